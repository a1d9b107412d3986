"""The Ollama chat model over the official client, against a real HTTP server that fails as Ollama is known to."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.chat import BadReply, ContextLost, ModelUnavailable, ToolCall
from daemon.chat.ollama import OllamaChat, ToolsRefused
from daemon.chat.ollama_reply import StreamedReply, without_thinking
from daemon.chat.tokens import of_chat, of_text
from tests.support.servers.fake_ollama import DIGEST, FakeOllama, Turn, call
from tests.support.servers.fake_ollama import tokens as fake_tokens

USER = {"role": "user", "content": "what was decided?"}
SYSTEM = {"role": "system", "content": "You answer from the evidence."}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Search the sessions",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}
PROSE = "The folder held a small web server that was rewritten twice before it was given up. "


@pytest.fixture
def server():
    with FakeOllama({"chat:8b": DIGEST}) as fake:
        fake.capabilities["chat:8b"] = ["completion", "tools"]
        yield fake


@pytest.fixture
def model(server):
    made = OllamaChat(server.url, "chat:8b", num_ctx=8192, timeout_s=60)
    yield made
    made.close()


def said(server, *script):
    server.chat_script = list(script)


def long(tokens):
    """Messages of about so many tokens, in the server's count."""
    each = fake_tokens(PROSE) + 2
    return [SYSTEM, *({"role": "user", "content": PROSE} for _ in range(tokens // each))]


# -- what is asked ----------------------------------------------------------------------------------------------------


def test_every_request_sets_context_and_options_and_forbids_truncation(server, model):
    model.chat([SYSTEM, USER], [TOOL])
    model.chat([USER])
    for body in server.chats:
        options = body["options"]
        assert (options["num_ctx"], options["temperature"], isinstance(options["seed"], int)) == (8192, 0, True)
        assert 512 <= options["num_predict"] <= 8192
        assert (body["stream"], body["truncate"], body["shift"], body["keep_alive"]) == (True, False, False, "10m")
    first, second = server.chats
    assert (first["messages"], first["tools"], second.get("tools")) == ([SYSTEM, USER], [TOOL], None)


@pytest.mark.parametrize(
    ("capabilities", "think", "sent"),
    [
        (["completion", "thinking"], True, True),
        (["completion", "thinking"], False, False),
        (["completion"], True, None),
        (None, True, None),
    ],
)
def test_a_model_that_can_think_is_told_whether_to_and_no_other_is(server, capabilities, think, sent):
    server.capabilities["chat:8b"] = capabilities
    made = OllamaChat(server.url, "chat:8b", think=think, timeout_s=60)
    made.chat([USER])
    assert server.chats[-1].get("think") is sent
    made.close()


@pytest.mark.parametrize(("length", "context"), [(4096, 4096), (131_072, 8192)])
def test_the_context_is_no_longer_than_what_the_model_was_made_for(server, model, length, context):
    server.context_lengths["chat:8b"] = length
    assert model.context_tokens == context
    model.chat([USER])
    assert server.chats[-1]["options"]["num_ctx"] == context


def test_the_fingerprint_survives_restarts_and_follows_model_and_options(server, model):
    def fingerprint(**options):
        made = OllamaChat(server.url, "chat:8b", **{"num_ctx": 8192, "timeout_s": 60, **options})
        found = made.fingerprint
        made.close()
        return found

    first = fingerprint()
    assert first == fingerprint() == fingerprint(timeout_s=50, keep_alive="1h") == model.fingerprint
    assert len({first, fingerprint(num_ctx=4096), fingerprint(think=True)}) == 3
    server.models["chat:8b"] = "ff" * 32
    assert fingerprint() != first


def test_a_model_replaced_between_calls_fails_one_call_then_is_another(server, model):
    model.chat([USER])
    before = model.fingerprint
    server.models["chat:8b"] = "ff" * 32
    with pytest.raises(ModelUnavailable, match="replaced"):
        model.chat([USER])
    model.chat([USER])
    assert model.fingerprint != before


def test_text_that_no_request_can_hold_is_sent_as_what_can_be(server, model):
    model.chat([{"role": "user", "content": "lone \ud800 surrogate", "images": []}])
    assert server.chats[-1]["messages"][0]["content"] == "lone \ufffd surrogate"


# -- what is answered -------------------------------------------------------------------------------------------------


def test_an_answer_has_its_text_and_counts_and_streams_as_it_comes(server, model):
    heard: list[str] = []
    said(server, Turn({"content": "It was decided to keep the old parser."}, prompt_tokens=31, reply_tokens=9))
    reply = model.chat([USER], on_text=heard.append)
    assert (reply.content, reply.calls, reply.thinking) == ("It was decided to keep the old parser.", (), "")
    assert (reply.prompt_tokens, reply.reply_tokens) == (31, 9)
    assert len(heard) > 1
    assert "".join(heard) == reply.content


def test_thinking_is_kept_apart_and_is_a_sign_of_life(server, model):
    heard: list[str] = []
    said(server, {"content": "Yes.", "thinking": "The user asks about the parser."})
    reply = model.chat([USER], on_text=heard.append)
    assert (reply.content, reply.thinking) == ("Yes.", "The user asks about the parser.")
    assert "".join(heard) == "Yes."
    assert "" in heard


def test_several_calls_come_in_order_beside_text(server, model):
    calls = [call("search", query=query)["tool_calls"][0] for query in ("one", "two")]
    said(server, {"content": "I look.", "tool_calls": calls})
    reply = model.chat([USER], [TOOL])
    assert reply.calls == (ToolCall("search", {"query": "one"}), ToolCall("search", {"query": "two"}))
    assert reply.message() == {"role": "assistant", "content": "I look.", "tool_calls": calls}


# -- O3: nothing is dropped silently ----------------------------------------------------------------------------------


def test_what_does_not_fit_is_not_sent(server, model):
    with pytest.raises(ContextLost, match=r"do not fit into 8192.*chat\.num_ctx"):
        model.chat(long(9000))
    assert server.chats == []


def test_tools_count_as_part_of_the_prompt(server, model):
    many = [{**TOOL, "function": {**TOOL["function"], "description": PROSE * 30}} for _ in range(20)]
    with pytest.raises(ContextLost):
        model.chat([USER], many)


def test_a_server_that_drops_the_front_silently_is_found_out(server, model):
    server.truncate_chat_chars = 4000
    with pytest.raises(ContextLost, match="dropped the rest"):
        model.chat(long(5000))


def test_a_server_that_can_refuse_is_told_to_and_says_why(server, model):
    server.truncate_chat_chars, server.honours_truncate = 4000, True
    with pytest.raises(ContextLost, match="max context length"):
        model.chat(long(5000))
    assert len(server.chats) == 1


@pytest.mark.parametrize(
    "reason",
    [
        "no user query found in messages",
        "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "input length exceeds the context length",
    ],
)
def test_an_error_that_comes_of_a_lost_front_says_so(server, model, reason):
    said(server, (500, reason), (400, reason))
    for _ in range(2):
        with pytest.raises(ContextLost, match="does not fit"):
            model.chat([USER])


def test_a_count_that_leaves_out_what_was_cached_is_no_loss(server, model):
    server.counts_only_uncached = True
    messages = long(5000)
    for turn in range(4):
        reply = model.chat([*messages, {"role": "user", "content": f"turn {turn}"}])
        assert reply.content
    assert reply.prompt_tokens < 0.3 * of_chat(messages).least  # so the count alone would have condemned it
    assert len(server.chats) == 5  # counted anew once, and not for every turn


def test_a_server_that_caches_and_then_drops_is_found_out_all_the_same(server, model):
    server.counts_only_uncached = True
    messages = long(2500)
    for _ in range(2):
        model.chat(messages)
    server.truncate_chat_chars = 3000
    with pytest.raises(ContextLost):
        model.chat(long(5500))


@pytest.mark.parametrize("count", [None, 0])
def test_a_count_that_is_absent_proves_nothing(server, model, count):
    said(server, Turn({"content": "Yes."}, prompt_tokens=count))
    assert model.chat(long(5000)).prompt_tokens is None


def test_a_small_conversation_is_never_suspected(server, model):
    said(server, Turn({"content": "Yes."}, prompt_tokens=1))
    assert model.chat([SYSTEM, USER]).content == "Yes."


@pytest.mark.parametrize(
    ("text", "chars_per_token"),
    [
        ("Привет, это длинный рассказ о том, как была написана эта программа. ", 5),
        ("これは長い会話の記録であり、決定とその理由が書かれている。", 2),
        ("이것은 결정과 그 이유를 적은 긴 대화 기록이다. ", 2.5),
        ("यह निर्णयों और उनके कारणों का लंबा विवरण है। ", 4),
        ("หน้าต่างนี้ถูกเขียนใหม่สองครั้ง ", 4),
        ("🙂🎉🚀 ", 3),
        ("        \n\n\n                return\n", 12),
        ("=" * 400 + "\n", 64),
        ("1234567890 0.25 1e-9 ", 3),
        ('{"id": "a", "list": [], "done": true},\n', 5),
        ("internationalisation counterrevolutionaries ", 8),
    ],
)
def test_a_script_whose_estimate_is_poor_raises_no_alarm(server, text, chars_per_token):
    made = OllamaChat(server.url, "chat:8b", num_ctx=100_000, timeout_s=60)
    content = text * (12_000 // len(text))
    said(server, Turn({"content": "Yes."}, prompt_tokens=int(len(content) / chars_per_token)))
    assert made.chat([{"role": "user", "content": content}]).content == "Yes."
    assert len(server.chats) == 1
    made.close()


def test_more_read_and_written_than_there_is_room_for_is_void(server, model):
    said(server, Turn({"content": "Yes."}, prompt_tokens=8000, reply_tokens=500))
    with pytest.raises(ContextLost, match="8000 tokens and a reply of 500"):
        model.chat([USER])


def test_a_reply_has_no_more_room_than_is_left(server, model):
    messages = long(5000)
    model.chat(messages)
    options = server.chats[-1]["options"]
    assert options["num_predict"] + of_chat(messages).most <= options["num_ctx"]


# -- O6: down, missing, slow, busy ------------------------------------------------------------------------------------


def test_down_and_up_again_without_a_new_model(server, model):
    server.down()
    with pytest.raises(ModelUnavailable, match="ollama serve"):
        model.chat([USER])
    assert model.context_tokens == 8192
    server.up()
    assert model.chat([USER]).content
    server.down()
    with pytest.raises(ModelUnavailable):
        model.chat([USER])


def test_a_missing_model_is_named_with_the_command_that_gets_it(server):
    absent = OllamaChat(server.url, "other:8b", timeout_s=60)
    for asked in (lambda: absent.chat([USER]), lambda: absent.fingerprint, absent.has_tools):
        with pytest.raises(ModelUnavailable, match="ollama pull other:8b"):
            asked()
    absent.close()


@pytest.mark.parametrize(("status", "said_of_it"), [(503, "busy"), (429, "busy"), (401, "401"), (500, "Ollama's log")])
def test_a_server_that_is_busy_or_broken_is_unavailable(server, model, status, said_of_it):
    server.broken, server.broken_path = status, "/api/chat"
    with pytest.raises(ModelUnavailable, match=said_of_it):
        model.chat([USER])


def test_a_cold_start_is_waited_for_and_one_too_slow_is_unavailable(server, model):
    hasty = OllamaChat(server.url, "chat:8b", timeout_s=2)
    assert hasty.has_tools()
    server.delay_s = 4
    with pytest.raises(ModelUnavailable, match="in time"):
        hasty.chat([USER])
    server.delay_s = 0.6
    assert model.chat([USER]).content
    hasty.close()


def test_one_reply_is_bounded_in_all_even_when_it_trickles(server):
    hasty = OllamaChat(server.url, "chat:8b", timeout_s=0.5)
    server.trickle_s = 0.05
    said(server, "word " * 1000)
    started = time.monotonic()
    with pytest.raises(ModelUnavailable, match="in time"):
        hasty.chat([USER])
    assert time.monotonic() - started < 30
    hasty.close()


@pytest.mark.parametrize("turn", [Turn({"content": "so far"}, cut=True), Turn(raw=b"<html></html>"), Turn(raw=b"")])
def test_a_stream_that_breaks_or_is_none_is_no_answer(server, model, turn):
    said(server, turn)
    with pytest.raises(ModelUnavailable):
        model.chat([USER])


def test_a_runner_that_dies_while_answering_is_no_fault_of_the_reply(server, model):
    said(server, Turn({"content": "so far"}, error="an error was encountered while running the model: unexpected EOF"))
    with pytest.raises(ModelUnavailable, match="unexpected EOF"):
        model.chat([USER])


# -- O7: calls that cannot be read ------------------------------------------------------------------------------------


def calling(function, **more):
    return {"role": "assistant", "content": "", "tool_calls": [{"function": function}], **more}


PARSE = "error parsing tool call: raw='{\"query\":\"a\"}]', err=invalid character ']' after top-level value"
DEEP = "[" * 100_000 + "]" * 100_000

BAD_CALLS = {
    "500 with the raw text": ((500, PARSE), "could not be read"),
    "500 that speaks of other things in the raw text": (
        (500, 'error parsing tool call: raw=\'{"q":"context length, does not support tools"\', err=unexpected end'),
        "could not be read",
    ),
    "500 of truncated JSON": ((500, "failed to parse JSON: unexpected end of JSON input"), "could not be read"),
    "500 of XML": ((500, "XML syntax error on line 5: element <a> closed by </b>"), "could not be read"),
    "error in the stream": (Turn({"content": "I call"}, error=PARSE), "could not be read"),
    "cause in the key's place": (
        Turn(raw=b'{"error parsing tool call":"invalid character \'c\' looking for beginning of value"}\n'),
        "could not be read",
    ),
    "arguments truncated": (calling({"name": "search", "arguments": '{"query": "a'}), "arguments of search are not"),
    "arguments with a trailing bracket": (calling({"name": "search", "arguments": '{"query":"a"}]'}), "are not JSON"),
    "arguments in single quotes": (calling({"name": "search", "arguments": "{'query': 'a'}"}), "are not JSON"),
    "arguments a plain text": (calling({"name": "search", "arguments": "what was decided"}), "are not JSON"),
    "arguments a JSON text": (calling({"name": "search", "arguments": '"a"'}), "are a text"),
    "arguments an array": (calling({"name": "search", "arguments": [{"query": "a"}]}), "are an array"),
    "arguments a text of an array": (calling({"name": "search", "arguments": '[{"query":"a"}]'}), "are an array"),
    "arguments a number": (calling({"name": "search", "arguments": 7}), "are a number"),
    "arguments a truth value": (calling({"name": "search", "arguments": True}), "are a truth value"),
    "arguments with NaN": (calling({"name": "search", "arguments": {"n": float("nan")}}), "NaN"),
    "arguments a text with Infinity": (calling({"name": "search", "arguments": '{"n": Infinity}'}), "NaN or Infinity"),
    "arguments nested without end": (calling({"name": "search", "arguments": f'{{"n":{DEEP}}}'}), "are not JSON"),
    "arguments with a number without end": (calling({"name": "search", "arguments": "9" * 9000}), "are not JSON"),
    "no name": (calling({"arguments": {"query": "a"}}), "names no tool"),
    "an empty name": (calling({"name": " ", "arguments": {}}), "names no tool"),
    "a name that is no text": (calling({"name": {"search": 1}, "arguments": {}}), "names no tool"),
    "a name that is a call": (calling({"name": 'search(query="a")', "arguments": {}}), "not the name of a tool"),
    "a name that is an essay": (calling({"name": "search " * 99, "arguments": {}}), "not the name of a tool"),
    "a function that is a text": (calling("search"), "has no function"),
    "a call without function": ({"content": "", "tool_calls": [{"name": "search", "arguments": {}}]}, "no function"),
    "a call that is a text": ({"content": "", "tool_calls": ["search"]}, "has no function"),
    "a call that is nothing": ({"content": "", "tool_calls": [None]}, "has no function"),
    "calls that are an object": ({"content": "", "tool_calls": {"function": {}}}, "no list"),
    "calls without number": (
        {"content": "", "tool_calls": call("search", query="a")["tool_calls"] * 33},
        "33 tool calls",
    ),
    "a call written as text": ({"content": '<tool_call>{"name":"search"}</tool_call>'}, "call the tool itself"),
    "a good call and a bad one": (
        {"content": "", "tool_calls": [*call("search", query="a")["tool_calls"], {"function": {}}]},
        "names no tool",
    ),
    "cut off within a call": (Turn(call("search", query="a"), done_reason="length"), "cut off"),
    "cut off within the text": (Turn({"content": "It was deci"}, done_reason="length"), "cut off"),
    "content that is no text": ({"content": ["a", "list"]}, "content is no text"),
    "a message that is no object": (Turn("a text"), "no object"),
}


@pytest.mark.parametrize("shape", BAD_CALLS)
def test_a_malformed_reply_gives_a_reason_and_the_next_one_is_read(server, model, shape):
    turn, complaint = BAD_CALLS[shape]
    said(server, turn, call("search", query="good"))
    with pytest.raises(BadReply, match=complaint) as error:
        model.chat([USER], [TOOL])
    assert len(str(error.value)) < 800
    assert model.chat([USER], [TOOL]).calls == (ToolCall("search", {"query": "good"}),)


def test_there_are_enough_bad_shapes():
    assert len(BAD_CALLS) >= 20


@pytest.mark.parametrize(
    ("given_", "arguments"),
    [
        ('{"query": "a"}', {"query": "a"}),
        (' {"query": {"deep": [1, 2.5, null]}} ', {"query": {"deep": [1, 2.5, None]}}),
        ({}, {}),
        (None, {}),
        ("", {}),
        ({"query": "lone \ud800"}, {"query": "lone \ufffd"}),
    ],
)
def test_arguments_that_can_only_be_meant_one_way_are_taken(server, model, given_, arguments):
    said(server, calling({"name": " search ", "arguments": given_}))
    assert model.chat([USER], [TOOL]).calls == (ToolCall("search", arguments),)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(message=st.dictionaries(st.sampled_from(["content", "thinking", "tool_calls", "role", "x"]), JSON))
def test_any_message_is_either_a_reusable_reply_or_a_bad_one(message):
    received = StreamedReply()
    received.feed({"message": message, "done": True, "done_reason": "stop"}, None)
    try:
        reply = received.reply(with_tools=True)
    except BadReply:
        return  # told what was wrong
    else:
        assert reply.content.strip() or reply.calls
        json.dumps(reply.message(), allow_nan=False, ensure_ascii=False).encode()


def test_a_model_that_refuses_tools_at_run_time_says_so(server, model):
    server.refuses_tools = True
    with pytest.raises(ToolsRefused, match="takes no tools"):
        model.chat([USER], [TOOL])
    assert model.chat([USER]).content


# -- O8: thinking -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        {"content": "", "thinking": "I know: it was the parser."},
        {"content": "<think>I know: it was the parser.</think>"},
        {"content": "<think>I know, and never say it"},
        {"content": "I know.\n</think>\n"},
        {"content": " \n"},
        {"content": ""},
        {},
    ],
)
def test_a_reply_without_an_answer_is_no_success(server, model, message):
    said(server, message)
    with pytest.raises(BadReply, match=r"no answer|empty"):
        model.chat([USER])


@pytest.mark.parametrize(
    ("raw", "content", "thinking"),
    [
        ("<think>\nhm\n</think>\n\nThe parser.", "The parser.", "hm"),
        ("<THINKING>hm</THINKING>The parser.", "The parser.", "hm"),
        ("<think>a</think><think>b</think>The parser.", "The parser.", "a\nb"),
        ('<think>hm</think>{"action": "answer"}', '{"action": "answer"}', "hm"),
        ("hm, so\n</think>\nThe parser.", "The parser.", "hm, so"),
        ("hm, so</think>\nThe parser.", "The parser.", "hm, so"),
        ('hm</think>{"action": "answer"}', '{"action": "answer"}', "hm"),
        ("</think>\n\nThe parser.", "The parser.", ""),
        ("<think>a</think>\nb\n</think>\nThe parser.", "The parser.", "a\nb"),
        # Not leaks: what an answer says about such tags.
        ("The template emits `</think>`\nwhich is stripped.", None, ""),
        ("It strips </think> tags from the text.", None, ""),
        ('The line read "</think>\nand nothing else".', None, ""),
        ("Use a fence:\n```\n<think>\nx\n</think>\n```\nThat is all.", None, ""),
        ('{"action": "answer", "content": "it ends with\n</think>\n"}', None, ""),
        ("  indented, as it was\n", None, ""),
    ],
)
def test_thinking_that_leaks_is_kept_apart_and_words_about_it_stay(server, model, raw, content, thinking):
    assert without_thinking(raw) == (raw if content is None else content, thinking)
    said(server, {"content": raw})
    reply = model.chat([USER])
    assert (reply.content, reply.thinking) == (raw if content is None else content, thinking)


@pytest.mark.parametrize("hostile", ["</think>\n" * 100_000, "<think></think>" * 100_000, "```\n</think>\n" * 80_000])
def test_a_hostile_reply_is_read_in_no_time(hostile):
    started = time.monotonic()
    without_thinking(hostile)
    assert time.monotonic() - started < 30


def test_a_reply_without_end_is_ended(server, model):
    said(server, {"content": "x" * 4_100_000})
    with pytest.raises(BadReply, match="no end"):
        model.chat([USER])


# -- estimates --------------------------------------------------------------------------------------------------------


@given(st.text(max_size=300))
def test_the_least_is_never_more_than_the_most_and_grows_with_the_text(text):
    size, twice = of_text(text), of_text(f"{text}\n{text}")
    assert 0 <= size.least <= size.most
    assert twice.least >= size.least
    assert twice.most >= size.most


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        (PROSE, 14, 22),
        ("if (count > 0) { return list[index]; }", 8, 24),
        ("=" * 800, 5, 300),
        ("決定とその理由", 3, 9),
        ("3f9a0c" * 100, 100, 700),
        ("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo" * 10, 30, 300),
        (" " * 1000, 0, 100),
    ],
)
def test_an_estimate_lies_within_what_tokenizers_make_of_it(text, low, high):
    size = of_text(text)
    assert low <= size.most <= high
    assert size.least <= size.most


def test_calls_images_and_tools_are_part_of_a_conversations_size():
    plain = of_chat([USER])
    with_call = of_chat([USER, {"role": "assistant", "content": "", **call("search", query=PROSE)}])
    assert with_call.most > plain.most + 14
    assert of_chat([{**USER, "images": ["aGk="]}]).most > plain.most + 500
    assert of_chat([USER], [TOOL]).most > plain.most + 20
