"""Killed between the writes that one large message needs, an archive has the old message or the new one, whole."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from daemon.archive import Archive
from daemon.archive.store import Store
from daemon.model import Message
from daemon.opencode.json_tree import JsonTree
from tests.support.processes import forks
from tests.support.stores.intake import intake_of
from tests.support.stores.make_opencode import JsonStore, assistant, session, text

pytestmark = [pytest.mark.crash, pytest.mark.on_disk]

MB = 1 << 20


def _read_store(place: Path, kill_at: int) -> None:
    left, write = kill_at, Store.write

    def killed(store: Store, *changes: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        write(store, *changes)

    with Archive(place / "archive") as archive:
        intake = intake_of(archive, quiet_s=0, free_mb=0)
        with mock.patch.object(Store, "write", killed):
            intake.scan(JsonTree(place / "oc" / "storage"), patient=False)


def take(place: Path, kill_at: int) -> bool:
    """Read the store in a child that kills itself before its write number `kill_at`; whether it died of that."""
    code = forks.exit_code(_read_store, place, kill_at, timeout_s=120)
    assert code in {0, -signal.SIGKILL}
    return code != 0


def archived(place: Path) -> tuple[list[str], int]:
    """The texts of the message, and how many keys there are of large values."""
    with Archive(place / "archive") as archive:
        message: Message | None = archive.message("msg_1")
        keys = sum(1 for prefix in (b"body:", b"ahead:") for _ in archive._store.keys(prefix))
        texts = [] if message is None else [part.data["text"] for part in message.parts]
        assert len(archive.files.edits("/home/dev/p/a")) == 0
    return texts, keys


@pytest.mark.parametrize("has_older", [False, True])
def test_killed_at_any_write_a_large_message_is_old_or_new(tmp_path: Path, *, has_older: bool) -> None:
    store = JsonStore(tmp_path / "oc")
    store.session(session("ses_1"))
    old = [f"{letter} begins" for letter in "abc"] if has_older else []
    new = [f"{letter} begins " + letter * (3 * MB) for letter in "abc"]
    if has_older:
        store.message(assistant("msg_1", "ses_1"), *_parts(old))
        assert not take(tmp_path, 1000)
    store.message(assistant("msg_1", "ses_1"), *_parts(new))
    seen = []
    for kill_at in range(100):
        died = take(tmp_path, kill_at)
        texts, keys = archived(tmp_path)
        assert texts in (old, new)
        seen.append(texts == new)
        if not died:
            break
        assert keys in (0, 12)  # what was written ahead for a commit that never came has been removed
    assert len(seen) > 4, "there were no writes to be killed between"
    assert seen[-1] is True
    assert False in seen


def _parts(texts: list[str]) -> list[dict[str, object]]:
    return [text(f"prt_{number}", "msg_1", "ses_1", said) for number, said in enumerate(texts)]
