"""The adapter's parts without a server: language, plain requests, history, what is visible, forms, sessions in time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.adapter import prompts
from daemon.adapter.exchange import VisibleText, before_stop
from daemon.adapter.prompts import language_of
from daemon.adapter.sessions import Sessions, awaits_answer, continuing, digests, opening, turns_of
from daemon.chat import ToolCall
from daemon.chat.opencode.server import OpenCodeServer
from daemon.errors import BadReply, BadRequest, Retry
from tests.support.servers.adapter_opencode import STATUS, TOOLS, called, result, user
from tests.support.servers.fake_opencode import FakeOpenCode

LANGUAGES = {
    "Turn on the light in the kitchen": "en",
    "Schalte bitte das Licht in der Küche ein": "de",
    "Allume la lumière dans la cuisine": "fr",
    "Enciende la luz de la cocina, por favor": "es",
    "Accendi la luce in cucina, per favore": "it",
    "Por favor, ligue a luz da cozinha, você pode?": "pt",
    "Doe het licht in de keuken aan": "nl",
    "Kan du tända lampan i köket?": "sv",
    "Proszę włącz światło w kuchni": "pl",
    "Mutfakta bir ışık aç lütfen": "tr",
    "Включи свет на кухне": "ru",
    "Увімкни світло на кухні": "uk",
    "台所の電気をつけて": "ja",
    "부엌 불을 켜 줘": "ko",
    "開客廳的燈": "zh-Hant",
    "打开客厅的灯": "zh-Hans",
    "شغّل الضوء في المطبخ": "ar",
    "תדליק את האור במטבח": "he",
    "रसोई की बत्ती जलाओ": "hi",
    "เปิดไฟในครัว": "th",
    "Άναψε το φως στην κουζίνα": "el",
    "Open the file 日本.txt and tell me what it says": "en",
    "打開 Spotify": "zh-Hant",
    "": None,
    "42 :-)": None,
    "Bật đèn trong nhà bếp lên nhé": None,
    "Sytytä keittiön valot, kiitos paljon": None,
}


@pytest.mark.parametrize(("text", "code"), LANGUAGES.items())
def test_the_language_of_a_users_words_is_guessed_or_not(text: str, code: str | None) -> None:
    guess = language_of([text])
    assert (guess.code if guess else None) == code


def test_words_that_tell_nothing_leave_the_language_to_earlier_ones() -> None:
    guess = language_of(["ok", "Wie ist das Wetter?"])
    assert guess is not None
    assert guess.code == "de"


@given(st.lists(st.text()))
def test_every_guess_has_something_to_say(texts: list[str]) -> None:
    guess = language_of(texts)
    assert guess is None or (guess.name and guess.failure)


PLAIN = {
    "get_status": ToolCall("get_status", {}),
    "Bitte get_status aufrufen!": ToolCall("get_status", {}),
    'get_weather {"city": "Oslo"}': ToolCall("get_weather", {"city": "Oslo"}),
    "get_weather": None,
    'get_weather {"town": "Oslo", "city": "x"}': None,
    'get_weather {"city": "Oslo"} and {"city": "Rome"}': None,
    "do not call get_status": None,
    "don’t run get_status": None,
    "rufe get_status nicht auf": None,
    "別用 get_status": None,
    "get_status or get_weather?": None,
    "get_statuses": None,
    "what is the status?": None,
    "": None,
}


@pytest.mark.parametrize(("text", "call"), PLAIN.items())
def test_a_tool_is_chosen_without_a_model_only_when_it_is_unambiguous(text: str, call: ToolCall | None) -> None:
    assert prompts.named_tool(text, TOOLS) == call


def test_a_tool_without_a_schema_needs_no_arguments() -> None:
    assert prompts.named_tool("ping", [{"function": {"name": "ping"}}]) == ToolCall("ping", {})
    assert prompts.named_tool("ping", [{"function": {"name": "ping", "parameters": None}}]) == ToolCall("ping", {})


# -- history -----------------------------------------------------------------------------------------------------------


def test_one_message_is_told_as_it_is() -> None:
    assert opening([user("Hi\n there")], in_actions=True) == "Hi\n there"


def test_tool_conversations_get_tool_instructions_and_others_plain_words() -> None:
    turns = turns_of([user("a"), called("get_status"), result("up", "get_status"), {"role": "assistant", "content": "It is up."}, user("b")])  # fmt: skip
    with_tools, without = (opening(turns, in_actions=flag) for flag in (True, False))
    for told in (with_tools, without):
        assert '{"action": "tool_call", "tool_name": "get_status", "arguments": {}}' in told
        assert "Result of get_status" in told
    assert '{"action": "answer", "content": "It is up."}' in with_tools
    assert "Assistant:\nIt is up." in without


def test_what_follows_is_told_alone() -> None:
    told = continuing(turns_of([result("up", "get_status"), user("and?")]))
    assert told.startswith("Result of get_status")
    assert told.endswith("\n\nand?")


MESSAGES = st.lists(
    st.builds(user, st.text())
    | st.builds(lambda text: {"role": "assistant", "content": text}, st.text())
    | st.builds(lambda text: called("f", x=text), st.text())
    | st.builds(result, st.text()),
    max_size=6,
)


@given(MESSAGES, MESSAGES)
def test_a_beginning_has_the_digests_of_the_whole(first: list[dict[str, Any]], more: list[dict[str, Any]]) -> None:
    received = digests("setup", [*first, *more])
    assert digests("setup", first) == received[: len(first) + 1]
    assert not set(digests("another", first)) & set(received)
    assert len(set(received)) == len(received)


@given(MESSAGES)
def test_every_message_is_told(messages: list[dict[str, Any]]) -> None:
    turns = turns_of(messages)
    told = opening(turns, in_actions=False)
    for message in messages:
        assert message["content"].strip() in told
    assert awaits_answer(turns) == bool(messages and messages[-1]["role"] == "tool")


# -- what is visible ---------------------------------------------------------------------------------------------------


@given(
    st.sampled_from(["", "<think>a </div> b</think>", " <reasoning></reasoning>\n<think>x</think>"]),
    st.text(),
    st.data(),
)
def test_pieces_and_rest_are_the_text_without_its_thinking(thinking: str, text: str, data: st.DataObject) -> None:
    received = thinking + text
    cuts = sorted(data.draw(st.lists(st.integers(0, len(received)), max_size=5)))
    told: list[str] = []
    visible = VisibleText(told.append)
    for start, end in zip([0, *cuts], [*cuts, len(received)], strict=True):
        visible.feed(received[start:end])
    content = text.strip()
    if not content.startswith("<"):
        assert ("".join(told) + visible.unsent(content)).strip() == content
    assert visible.sent == "".join(told)
    assert "".join(told).lstrip() == "".join(told)


@given(st.text("ab", max_size=12), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3), st.data())
def test_no_piece_holds_what_follows_a_stop(text: str, stop: list[str], data: st.DataObject) -> None:
    told: list[str] = []
    visible = VisibleText(told.append, stop)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        visible.feed(text[start:end])
    content = before_stop(text, stop)
    assert content.startswith("".join(told))
    assert "".join(told) + visible.unsent(content) == content


def test_without_a_listener_everything_is_left_for_the_end() -> None:
    visible = VisibleText(None)
    visible.feed("some")
    assert (visible.sent, visible.unsent("some text")) == ("", "some text")


def test_what_was_told_beside_the_text_is_not_told_again() -> None:
    visible = VisibleText(lambda _: None)
    visible.feed("I will look. It snows.")
    assert visible.unsent("It snows.") == ""
    assert visible.received("It snows.") == "I will look. It snows."


# -- words -------------------------------------------------------------------------------------------------------------


def test_the_system_prompt_begins_with_the_clients_text() -> None:
    """Tools and the language are named only where there are some."""
    told = prompts.system("You are a butler.", [STATUS], "", language_of(["Wie ist das?"]))
    assert told.startswith("You are a butler.\n\n")
    assert "get_status: Does get_status." in told
    assert "even when it was done before" in told
    assert "seems to be German" in told
    plain = prompts.system("", [], "", None)
    assert "tool" not in plain
    assert "seems to be" not in plain


NESTED = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/b"}}},
    "additionalProperties": False,
    "$defs": {"b": {"type": "object", "properties": {"b": {"type": "string", "pattern": "^(x+x+)+$"}}}},
}


@pytest.mark.parametrize(
    ("text", "form", "reason"),
    [
        ("{", "json", "must be JSON"),
        ("a {} b", "json", "must be JSON"),
        ("[" * 100_000, "json", "must be JSON"),
        ("1", {"type": "object"}, "not of type 'object'"),
        ("{}", {"type": "object", "required": ["a", "b"]}, "'a' is a required property"),
        ('{"a": [{"b": 1}]}', NESTED, r"\$\.a\[0\]\.b: 1 is not of type 'string'"),
        ('{"a": [], "c": 1}', NESTED, "'c' was unexpected"),
    ],
)
def test_another_form_than_was_asked_for_is_a_bad_reply(text: str, form: Any, reason: str) -> None:
    with pytest.raises(BadReply, match=reason):
        prompts.formed(text, form)


@pytest.mark.parametrize("schema", [{"$ref": "http://127.0.0.1:9/x"}, {"$ref": "#"}])
def test_a_schema_that_leads_elsewhere_or_nowhere_is_refused(schema: Any) -> None:
    with pytest.raises(BadRequest, match="the JSON schema refers to"):
        prompts.formed("{}", schema)


def test_no_regular_expression_of_a_client_is_run() -> None:
    text = json.dumps({"a": [{"b": "x" * 60 + "!"}]})
    assert prompts.formed(text, NESTED) == text
    by_pattern = {"type": "object", "patternProperties": {"(x+x+)+$": {}}, "additionalProperties": False}
    assert prompts.formed(text, by_pattern) == text


@given(st.dictionaries(st.text(), st.integers() | st.text()))
def test_json_is_taken_with_and_without_fences(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    assert prompts.formed(f"\n```json\n{text}\n```\n", "json") == text
    assert prompts.formed(text, {"type": "object", "required": list(value)}) == text
    assert prompts.formed("any words", "") == "any words"


# -- sessions ----------------------------------------------------------------------------------------------------------


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def opencode() -> Iterator[FakeOpenCode]:
    with FakeOpenCode() as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(opencode: FakeOpenCode, clock: Clock) -> Iterator[Sessions]:
    with OpenCodeServer(opencode.url) as server:
        made = Sessions(server, 60, clock)
        yield made
        made.close()


CHAIN = ["", "a", "ab", "abc"]
ALWAYS = [True] * 4


def test_the_session_that_knows_most_is_taken_and_by_nobody_else(sessions: Sessions) -> None:
    short, long = sessions.new("m"), sessions.new("m")
    sessions.keep(short, "a")
    sessions.keep(long, "ab")
    first, second, third = (sessions.lease("m", CHAIN, ALWAYS) for _ in range(3))
    assert [one.known for one in (first, second, third)] == [2, 1, 0]
    assert (first.session_id, second.session_id) == (long.session_id, short.session_id)
    assert third.session_id not in (long.session_id, short.session_id)
    assert sessions.counts() == (3, 0)


def test_a_session_is_reused_only_where_the_conversation_may_continue(sessions: Sessions) -> None:
    sessions.keep(sessions.new("m"), "abc")
    assert sessions.lease("m", CHAIN, ALWAYS).known == 0
    sessions.keep(sessions.new("m"), "ab")
    assert sessions.lease("m", CHAIN, [False, False, False, True]).known == 0


def test_what_waited_too_long_is_deleted_and_the_rest_stays(
    sessions: Sessions, clock: Clock, opencode: FakeOpenCode
) -> None:
    sessions.keep(sessions.new("m"), "a")
    clock.now = 40
    sessions.keep(sessions.new("n"), "b")
    assert sessions.waiting() == [("m", 20.0), ("n", 60.0)]
    clock.now = 60
    assert sessions.expire() == 40
    assert sessions.waiting() == [("n", 40.0)]
    assert len(opencode.sessions) == 1
    sessions.release("n")
    assert opencode.sessions == {}


def test_not_more_than_so_many_are_kept_the_oldest_goes_first(sessions: Sessions, opencode: FakeOpenCode) -> None:
    first = sessions.new("m")
    sessions.keep(first, "first")
    for number in range(64):
        sessions.keep(sessions.new("m"), str(number))
    assert sessions.counts() == (0, 64)
    assert first.session_id not in opencode.sessions
    assert len(opencode.sessions) == 64


def test_after_the_end_there_are_no_sessions_and_none_are_made(sessions: Sessions, opencode: FakeOpenCode) -> None:
    in_use = sessions.new("m")
    sessions.keep(sessions.new("m"), "a")
    assert sessions.close() == 0
    assert opencode.sessions == {}
    sessions.keep(in_use, "b")
    with pytest.raises(Retry, match="stopping"):
        sessions.new("m")
    assert opencode.sessions == {}
    assert sessions.counts() == (0, 0)


def test_what_could_not_be_deleted_is_counted_and_deleted_when_it_can_be(opencode: FakeOpenCode) -> None:
    with OpenCodeServer(opencode.url) as server:
        sessions = Sessions(server, 60)
        dropped, kept = sessions.new("m"), sessions.new("m")
        opencode.fail["DELETE /session/*"] = 500
        sessions.drop(dropped)
        sessions.keep(kept, "a")
        assert sessions.close() == 1
        assert len(opencode.sessions) == 2
        del opencode.fail["DELETE /session/*"]
        server.delete(kept.session_id)
    assert opencode.sessions == {}
