"""What came of a session, by the end of its last answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.reconstitute.facts.session.turns import closing_words
from daemon.reconstitute.facts.session_values import Ending
from tests.support.stores.constructed_sessions import edited, ran, session, used, user_turn

MOST = 240
WORK = ran("make")


def said(*turns, most: int = MOST, told=()) -> str:
    found = closing_words(session(*turns), most, told)
    return "" if found is None else found.quote


@pytest.mark.parametrize(
    ("reply", "quote"),
    [
        ("The parser is strict now. Two callers still pass None.", "The parser is strict now. Two callers still pass None."),
        ("Der Zwischenspeicher wird nach zehn Minuten geleert. Soll ich das dokumentieren?",
         "Der Zwischenspeicher wird nach zehn Minuten geleert."),
        ("Le cache est vidé toutes les dix minutes. Veux-tu que je le documente ?", "Le cache est vidé toutes les dix minutes."),
        ("検索の索引を作り直しました。古い項目は削除済みです。", "検索の索引を作り直しました。古い項目は削除済みです。"),
        ("Кэш очищается каждые десять минут. Старые записи удалены.", "Кэш очищается каждые десять минут. Старые записи удалены."),
        ("The index was rebuilt.\n\n```sh\nmake index\n```\n\nOld entries are gone.", "The index was rebuilt. … Old entries are gone."),
        ("The index was rebuilt from scratch. Let me know if you need anything else.", "The index was rebuilt from scratch."),
        ("Done.", ""),
        ("完了しました。", ""),
        ("The whole answer is code:\n\n```sh\nmake index\n```", "The whole answer is code:"),
        ("```sh\nmake index\n```", ""),
        ("It was cut …", ""),
    ],
)  # fmt: skip
def test_the_end_of_the_last_answer_is_quoted(reply: str, quote: str) -> None:
    assert said(user_turn("Go.", WORK, reply=reply)) == quote


def test_an_answer_that_repeats_the_prompt_says_nothing() -> None:
    assert (
        said(user_turn("Add a page for invoices.", edited("invoices.html"), reply="I added the page for invoices."))
        == ""
    )


def test_a_confirmation_does_not_hide_what_the_work_came_to() -> None:
    work = user_turn("Review the loop.", WORK, reply="It never ends where the queue is empty.")
    assert said(work, user_turn("Good.", reply="Thanks, see you.")) == "It never ends where the queue is empty."
    told = "The queue is emptied by the scheduler once an hour, which needs a lock."
    assert said(work, user_turn("How does it end?", reply=told)) == told


QUEUE = user_turn("Take a table.", edited("queue.py"), reply="RabbitMQ is gone, and the queue will be a table.")


@pytest.mark.parametrize(
    "later",
    [
        user_turn("No. Go back to RabbitMQ.", reply="Back."),
        user_turn("No. Go back to RabbitMQ.", ending=Ending.STOPPED),
        user_turn("No, not so.", edited("queue.py"), reply="Done."),
        user_turn("いいえ、RabbitMQに戻してください。", reply="戻しました。"),
    ],
)
def test_an_answer_that_a_later_prompt_overtakes_is_no_result(later) -> None:
    assert said(QUEUE) == said(QUEUE, user_turn("Commit it.", ran("git commit -am x"), reply="Done.")) != ""
    assert said(QUEUE, later) == ""


def test_a_stopped_and_a_taken_back_answer_are_no_result() -> None:
    first = user_turn("Review the loop.", WORK, reply="It never ends where the queue is empty.")
    stopped = user_turn("Do so.", WORK, reply="The queue has a lock now.", ending=Ending.STOPPED)
    back = user_turn("Do so.", WORK, reply="The queue has a lock now.", taken_back=True)
    assert said(first, stopped) == said(first, back) == "It never ends where the queue is empty."
    assert said(stopped) == said(back) == ""


def test_what_was_said_before_the_last_call_is_no_result() -> None:
    turn = user_turn("Mend it.", used("read", "a.py"), reply="")
    early = user_turn("Mend it.", WORK, reply="I will look at the queue and at its lock first.")
    swapped = early.message_ids[:1] + early.message_ids[:0:-1]
    assert said(turn) == ""
    assert (
        said(type(early)(**{name: getattr(early, name) for name in early.__slots__} | {"message_ids": swapped})) == ""
    )


def test_what_other_sections_quote_is_not_repeated() -> None:
    turn = user_turn("Mend it.", WORK, reply="The lock is there. The second queue has none yet.")
    assert said(turn, told=["The second queue has none yet."]) == "The lock is there. The second queue has none yet."
    assert said(turn, told=["The second queue has none yet.", "The lock is there."]) == ""


def test_long_answers_are_cut_at_sentences_and_long_sentences_at_words() -> None:
    many = " ".join(f"Point {number} of the review is about its names." for number in range(40))
    quote = said(user_turn("Review.", WORK, reply=many))
    assert quote.startswith("Point ")
    assert quote.endswith("about its names.")
    assert 100 < len(quote) <= MOST
    assert said(user_turn("Review.", WORK, reply="every word of it " * 50)).endswith(("every…", "word…", "of…", "it…"))


@given(
    st.lists(
        st.sampled_from(
            ["One two three. ", "四五六。", "Why not?\n", "- item four\n", "`code` five six! ", "\n\n# H\n", "x "]
        )
    )
)
def test_a_quote_is_made_of_stretches_of_the_answer(parts: list[str]) -> None:
    reply = "".join(parts) or "x"
    quote = said(user_turn("Go.", WORK, reply=reply), most=60)
    line = " ".join(reply.split())
    assert len(quote) <= 60
    assert all(piece.rstrip("…").strip() in line for piece in quote.split(" … "))
