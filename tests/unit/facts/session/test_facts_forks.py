"""Which sessions are copies of others, turn by turn."""

from __future__ import annotations

from dataclasses import replace

from daemon.reconstitute.facts.session import with_forks
from tests.unit.facts.folder_facts import START, session, turn

FIRST, SECOND = (turn(text, time=START + n, message_ids=()) for n, text in enumerate(("use a database", "use a file")))
OWN = turn("now the page", time=START + 900, message_ids=())


def _forked(origin, fork):
    late = session(*fork, id_="ses_b")
    late = replace(late, session=replace(late.session, created=START + 500))
    found = with_forks([session(*origin, id_="ses_a"), late])[1]
    return found.forked_from, found.copied


def test_a_fork_of_a_session_with_a_reverted_first_turn_repeats_nothing():
    assert _forked([replace(FIRST, taken_back=True), SECOND], [SECOND]) == ("ses_a", 1)


def test_the_own_turns_of_such_a_fork_are_its_own():
    assert _forked([FIRST, SECOND], [SECOND, OWN]) == ("ses_a", 1)


def test_the_same_words_at_another_time_make_no_fork():
    assert _forked([FIRST, SECOND], [replace(SECOND, time=START + 400)]) == ("", 0)
