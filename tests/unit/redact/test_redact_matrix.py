"""No secret can be read in whatever form it stands and by whatever way it leaves; what only looks like one stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from daemon.redact import known, redact, redact_value
from tests.support.secrets.canaries import SECRETS
from tests.support.secrets.look_alikes import look_alikes
from tests.support.secrets.outputs import WAYS, Planted, each_frame, engine
from tests.support.secrets.renderings import FRAMES, seen
from tests.support.servers.plain_service import PlainService


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    """Whatever other tests learnt is no part of these."""
    with known.only({}):
        yield


@pytest.mark.parametrize("frame", FRAMES)
def test_no_canary_can_be_read_in_a_frame(frame: str) -> None:
    leaks = {}
    for number, (_, secret, text) in enumerate(SECRETS):
        before, _, after = text.partition("{}")
        framed = FRAMES[frame](before, secret, after)
        if found := seen(framed, redact_value(framed.value)):
            leaks[number] = found
    assert leaks == {}


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_shows_its_canaries_where_nothing_is_redacted(frame: str) -> None:
    """Otherwise the matrix could not fail. What is cut or coloured shows at least most of them."""
    shown = 0
    for _, secret, text in SECRETS:
        before, _, after = text.partition("{}")
        framed = FRAMES[frame](before, secret, after)
        shown += bool(seen(framed, framed.value))
    assert shown >= len(SECRETS) // (3 if frame == "cut at the end" else 1) * 3 // 4


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PlainService, list[Planted]]]:
    with engine(tmp_path_factory.mktemp("ways"), each_frame()) as made:
        yield made


@pytest.mark.parametrize("way", WAYS)
def test_no_frame_can_be_read_by_a_way_out(way: str, planted: tuple[PlainService, list[Planted]]) -> None:
    opened, sessions = planted
    leaks = {(one.kind, one.frame): found for one in sessions if (found := seen(one.framed, WAYS[way](opened, one)))}
    assert leaks == {}


def test_fewer_than_three_in_a_hundred_look_alikes_are_changed() -> None:
    changed = Counter(kind for kind, text in look_alikes() if redact(text) != text)
    total = Counter(kind for kind, _ in look_alikes())
    assert total.total() > 1000
    assert changed.total() < 0.03 * total.total(), changed


def test_no_name_of_a_service_host_branch_or_file_is_changed() -> None:
    assert [text for kind, text in look_alikes() if kind == "names" and redact(text) != text] == []
