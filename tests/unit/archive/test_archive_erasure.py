"""After an erasure LevelDB's files hold what is current and nothing else, and what is current is as it was."""

from __future__ import annotations

import random
import tempfile
import threading
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.archive.store import Store
from daemon.archive.store.compression import COMPRESSED
from daemon.archive.store.erasure import Erasure
from tests.support.stores.leveldb_files import texts

GONE = b"Xq7gone"


def erase(store: Store) -> None:
    erasure = Erasure(store, threading.RLock(), lambda _phase, _done: None)
    erasure.run(erasure.dictionary())


def current(store: Store) -> dict[bytes, bytes]:
    return {key: value for prefix in (*COMPRESSED, b"vec:") for key, value in store.scan(prefix)}


KEY = st.builds(
    lambda prefix, number: b"%b%d" % (prefix, number), st.sampled_from([b"part:", b"vec:", b"obj:"]), st.integers(0, 9)
)
STEP = st.one_of(
    st.tuples(st.just("put"), KEY, st.integers(0, 3)),
    st.tuples(st.just("delete"), KEY, st.just(0)),
    st.tuples(st.just("reopen"), KEY, st.just(0)),
)


@settings(max_examples=15, deadline=None)
@given(steps=st.lists(STEP, max_size=30))
def test_only_current_values_are_left_in_the_files(steps: list[tuple[str, bytes, int]]) -> None:
    """Whatever was put, replaced and deleted, in whichever tables it came to lie."""
    with tempfile.TemporaryDirectory() as place:
        store, expected = Store(Path(place)), dict[bytes, bytes]()
        for number, (action, key, size) in enumerate(steps):
            if action == "reopen":
                store.reopen()
                continue
            value = b"%b%d " % (GONE, number) * (1 + 40 * size) if action == "put" else None
            store.write({key: value})
            expected |= {key: value} if value is not None else {}
            if value is None:
                expected.pop(key, None)
        erase(store)
        assert current(store) == expected
        store.close()
        held = {word for _, raw in texts(Path(place)) for word in raw.split() if word.startswith(GONE)}
        assert held <= {value.split()[0] for value in expected.values()}


def test_a_dictionary_of_deleted_values_is_replaced(tmp_path: Path) -> None:
    words = [bytes(random.Random(n).choices(b"abcdefghij", k=6)) for n in range(300)]
    store = Store(tmp_path)
    for group in range(30):
        store.write({b"part:m%02d:%03d" % (group, n): _text(words, group * 100 + n) for n in range(100)})
    store.write(dict.fromkeys(list(store.keys(b"part:m03"))))
    before = current(store)
    assert any(b"Xq7gone3" in raw for _, raw in texts(tmp_path))
    erase(store)
    assert current(store) == before
    store.write({b"part:later": _text(words, 0)})
    store.close()
    assert not any(b"Xq7gone3" in raw for _, raw in texts(tmp_path))
    again = Store(tmp_path)
    assert current(again) == before | {b"part:later": _text(words, 0)}
    again.close()


def _text(words: list[bytes], number: int) -> bytes:
    return b" ".join(random.Random(number).choices(words, k=300)) + b" %b%d" % (GONE, number // 100)
