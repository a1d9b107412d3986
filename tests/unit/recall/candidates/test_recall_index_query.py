"""Questions to an index in threads of their own."""

from __future__ import annotations

import threading

import pytest

from daemon.recall.candidates.index_query import IndexQuery, finish
from daemon.recall.candidates.lists import CandidateLists

ENDLESS_S = 60.0


def test_what_was_given_up_is_waited_for_before_it_is_closed():
    gate = threading.Event()
    query = IndexQuery("lexical", lambda _candidates: assert_in_time(gate))
    query.start()
    assert not finish(0.0)
    threading.Timer(0.05, gate.set).start()
    assert finish(ENDLESS_S)
    assert query.is_done


def test_an_error_is_kept_and_the_question_has_ended():
    def fails(_candidates: CandidateLists) -> None:
        raise ValueError("broken")

    query = IndexQuery("lexical", fails)
    query.start()
    query.join(ENDLESS_S)
    assert query.is_done
    assert str(query.error) == "broken"
    assert finish(0.0)


def test_a_thread_that_cannot_be_started_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    def fails(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fails)
    with pytest.raises(RuntimeError):
        IndexQuery("lexical", lambda _candidates: None).start()
    assert finish(0.0)


def assert_in_time(gate: threading.Event) -> None:
    assert gate.wait(ENDLESS_S)
