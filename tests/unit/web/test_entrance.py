"""Links and sessions of the page: once, for a while, by whole keys."""

from __future__ import annotations

import hmac
from unittest import mock

import pytest

from daemon.web.entrance import _MOST, LINK_SECONDS, SESSION_SECONDS, Entrance


class Clock:
    """Seconds that a test moves on."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def entrance(clock: Clock) -> Entrance:
    return Entrance(clock)


def test_a_link_works_once(entrance: Entrance) -> None:
    key = entrance.new_link()
    session = entrance.enter(key)
    assert session is not None
    assert entrance.is_open(session)
    assert entrance.enter(key) is None


def test_keys_have_256_random_bits(entrance: Entrance) -> None:
    keys = {entrance.new_link() for _ in range(50)}
    assert len(keys) == 50
    assert all(len(key) == 43 for key in keys)  # 32 bytes in base64


@pytest.mark.parametrize(("seconds", "is_open"), [(LINK_SECONDS - 1, True), (LINK_SECONDS, False)])
def test_a_link_expires(entrance: Entrance, clock: Clock, seconds: int, is_open: bool) -> None:
    key = entrance.new_link()
    clock.now += seconds
    assert (entrance.enter(key) is not None) == is_open


@pytest.mark.parametrize(("seconds", "is_open"), [(SESSION_SECONDS - 1, True), (SESSION_SECONDS, False)])
def test_a_session_expires(entrance: Entrance, clock: Clock, seconds: int, is_open: bool) -> None:
    session = entrance.enter(entrance.new_link()) or ""
    clock.now += seconds
    assert entrance.is_open(session) == is_open


@pytest.mark.parametrize("key", ["", "x", "\udcff", "ключ", "a" * 100_000])
def test_no_other_key_works(entrance: Entrance, key: str) -> None:
    entrance.new_link()
    assert entrance.enter(key) is None
    assert not entrance.is_open(key)


def test_a_link_is_no_session_and_a_session_no_link(entrance: Entrance) -> None:
    link = entrance.new_link()
    assert not entrance.is_open(link)
    assert entrance.enter(entrance.enter(link) or "") is None


def test_keys_are_compared_whole_and_all_of_them(entrance: Entrance) -> None:
    """However alike a key is, and wherever it stands among the others, the comparisons are the same."""
    keys = [entrance.new_link() for _ in range(3)]
    for key in ["nothing like it", *keys[::-1]]:
        kept = len(entrance._links._ends)
        with mock.patch("daemon.web.entrance.hmac.compare_digest", wraps=hmac.compare_digest) as compare:
            entrance.enter(key)
        assert compare.call_count == kept
        assert {len(side) for call in compare.call_args_list for side in call.args} == {32}


def test_old_links_make_room(entrance: Entrance) -> None:
    first, *_, last = (entrance.new_link() for _ in range(_MOST + 1))
    assert entrance.enter(first) is None
    assert entrance.enter(last) is not None


def test_a_form_token_is_of_one_session(entrance: Entrance) -> None:
    one, other = (entrance.enter(entrance.new_link()) or "" for _ in range(2))
    assert entrance.is_form_token(one, entrance.form_token(one))
    assert not entrance.is_form_token(other, entrance.form_token(one))
    assert not entrance.is_form_token(one, "")
    assert not Entrance().is_form_token(one, entrance.form_token(one))
