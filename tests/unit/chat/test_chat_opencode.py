"""A model behind an OpenCode server: what is asked of it, how it fails, and that no session outlives its use."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.chat import BadReply, ContextLost, ModelUnavailable
from daemon.chat.opencode import OpenCodeChat, as_prompt
from daemon.chat.opencode import folder as place
from daemon.chat.opencode.server import OpenCodeServer, Patience, SessionGone
from daemon.chat.opencode.turn import failure
from daemon.errors import ConfigError
from daemon.records import OWN_MARK, OWN_SESSION_TITLE
from tests.support.processes.daemon_process import until
from tests.support.processes.ports import free_port
from tests.support.servers.fake_opencode import FakeOpenCode

PATIENT = Patience(create=30.0, prompt=60.0, read=30.0, delete=30.0)
QUICK = Patience(create=1.0, prompt=5.0, read=1.0, delete=0.5)
"""Where it is tested that a limit holds; a busy machine may need longer for anything else."""
Connect = Callable[..., OpenCodeServer]


@pytest.fixture
def fake() -> Iterator[FakeOpenCode]:
    with FakeOpenCode() as server:
        yield server


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Connect]:
    opened: list[OpenCodeServer] = []

    def connected(fake: FakeOpenCode, **more: Any) -> OpenCodeServer:
        opened.append(OpenCodeServer(fake.url, **{"directory": tmp_path / "place", "patience": PATIENT} | more))
        return opened[-1]

    yield connected
    for server in opened:
        server.close()


def ask(server: OpenCodeServer, **more: Any) -> Any:
    with server.session() as session:
        return server.prompt(session, "Be brief.", "How are you?", **more)


# -- what is there ---------------------------------------------------------------------------------------------------


def test_models_are_listed_with_their_limits_and_the_default(fake: FakeOpenCode, connect: Connect) -> None:
    server = connect(fake)
    assert server.health() == "1.18.33"
    found = [(m.id, m.context_tokens, m.has_tools, m.is_default) for m in server.models()]
    assert found == [("acme/large", 200_000, True, True), ("acme/small", 8_000, True, False)]
    assert server.resolve().id == "acme/large"
    assert server.resolve("acme/small").id == "acme/small"


def test_without_a_configured_default_the_first_providers_is_taken(fake: FakeOpenCode, connect: Connect) -> None:
    fake.default_model = None
    assert connect(fake).resolve().id == "acme/small"


@pytest.mark.parametrize(("model", "words"), [("acme/lrge", "acme/large"), ("other/x", "acme/")])
def test_a_model_that_is_not_there_is_named_with_what_there_is(
    fake: FakeOpenCode, connect: Connect, model: str, words: str
) -> None:
    with pytest.raises(ModelUnavailable, match=f"does not have {model}; it has .*{words}.*opencode.server_model"):
        connect(fake).resolve(model)


# -- a turn ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generation", ["1.1", "1.18"])
def test_an_answer_comes_piece_by_piece_and_then_whole(fake: FakeOpenCode, connect: Connect, generation: str) -> None:
    fake.generation = generation
    fake.more_parts = [{"id": "r", "type": "reasoning", "text": "hm"}]
    said: list[str] = []
    reply = ask(connect(fake), on_text=said.append)
    assert (reply.content, reply.thinking, reply.calls) == ("Good day.", "hm", ())
    assert (reply.prompt_tokens, reply.reply_tokens) == (100, 10)
    assert said == ["", "Good ", "day."]
    assert fake.sessions == {}


def test_a_prompt_names_our_agent_our_folder_and_no_tool(fake: FakeOpenCode, connect: Connect, tmp_path: Path) -> None:
    ask(connect(fake), model="acme/small")
    (prompt,) = fake.prompts
    assert prompt["agent"] == OWN_MARK
    assert prompt["tools"] == {"*": False, OWN_MARK: False}
    assert prompt["system"] == "Be brief."
    assert prompt["model"] == {"providerID": "acme", "modelID": "small"}
    assert [part["text"] for part in prompt["parts"]] == ["How are you?"]
    asked = [q for r, q in zip(fake.requests, fake.queries, strict=True) if "/session" in r or "/event" in r]
    assert {query.get("directory") for query in asked} == {str(tmp_path / "place")}


def test_a_server_that_cannot_see_our_folder_must_disable_every_tool(fake: FakeOpenCode, connect: Connect) -> None:
    fake.agents = ["build"]
    ask(connect(fake))
    (prompt,) = fake.prompts
    assert "agent" not in prompt
    assert prompt["tools"] == {"bash": False, "write": False, "*": False, OWN_MARK: False}
    asked = [q for r, q in zip(fake.requests, fake.queries, strict=True) if "/session" in r or "/event" in r]
    assert [query for query in asked if "directory" in query] == []


def test_a_server_that_fails_for_an_unknown_folder_is_asked_without_it(fake: FakeOpenCode, connect: Connect) -> None:
    fake.fail["GET /agent"] = 500
    assert ask(connect(fake)).content == "Good day."


def test_a_folder_that_cannot_be_made_is_done_without(fake: FakeOpenCode, connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert ask(connect(fake, directory=tmp_path / "file" / "place")).content == "Good day."
    assert "agent" not in fake.prompts[0]


@pytest.mark.parametrize(
    "switch",
    [{"tell": False}, {"hang_up_after": 1}, {"hang_up_after": 4}, {"think_s": 1.5}, {"late_record_s": 0.5}],
    ids=str,
)
def test_lost_events_and_a_late_record_do_not_lose_the_answer(
    fake: FakeOpenCode, connect: Connect, switch: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daemon.chat.opencode.turn._SILENCE_S", 0.4)
    for name, value in switch.items():
        setattr(fake, name, value)
    assert ask(connect(fake, patience=PATIENT)).content == "Good day."
    assert len(fake.prompts) == 1


def test_a_session_that_is_deleted_unheard_ends_its_turn(
    fake: FakeOpenCode, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daemon.chat.opencode.turn._SILENCE_S", 0.3)
    fake.think_s = 600
    server = connect(fake, patience=PATIENT)
    session = server.create()

    def delete() -> None:
        until(lambda: session in fake.status, what="the turn")
        del fake.sessions[session]

    with ThreadPoolExecutor(1) as workers:
        deleting = workers.submit(delete)
        with pytest.raises(SessionGone):
            server.prompt(session, "", "How are you?")
        deleting.result()
    assert session in fake.status


def test_a_session_keeps_its_turns_apart(fake: FakeOpenCode, connect: Connect) -> None:
    server = connect(fake)
    with server.session("adapter") as session:
        assert fake.sessions[session]["title"].startswith(f"{OWN_SESSION_TITLE} adapter ")
        first = server.prompt(session, "", "one")
        fake.pieces = ["Second."]
        second = server.prompt(session, "", "two")
    assert (first.content, second.content) == ("Good day.", "Second.")


def test_many_threads_may_ask_at_once(fake: FakeOpenCode, connect: Connect) -> None:
    server = connect(fake)
    with ThreadPoolExecutor(8) as workers:
        replies = list(workers.map(lambda _: ask(server).content, range(24)))
    assert replies == ["Good day."] * 24
    assert fake.sessions == {}


def test_leaked_thinking_and_lone_surrogates_do_not_reach_the_content(fake: FakeOpenCode, connect: Connect) -> None:
    fake.pieces = ["<think>secretly</think>", "Yes \ud83d."]
    server = connect(fake)
    with server.session() as session:
        reply = server.prompt(session, "sys \udfff", "text \ud800")
    assert (reply.content, reply.thinking) == ("Yes \ufffd.", "secretly")
    assert (fake.prompts[0]["system"], fake.prompts[0]["parts"][0]["text"]) == ("sys \ufffd", "text \ufffd")


# -- what goes wrong -------------------------------------------------------------------------------------------------

API = "APIError"
ERRORS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"name": API, "data": {"message": "overloaded", "statusCode": 529}}, ModelUnavailable, "provider failed: overl"),
    ({"name": API, "data": {"message": "bad key", "statusCode": 401}}, ModelUnavailable, "opencode auth login"),
    ({"name": "ProviderAuthError", "data": {"message": "no key"}}, ModelUnavailable, "opencode auth login"),
    ({"name": API, "data": {"message": "flagged", "statusCode": 400}}, BadReply, r"refused the request \(400\): flagg"),
    ({"name": API, "data": {"message": "prompt is too long: 9", "statusCode": 400}}, ContextLost, "does not fit"),
    ({"name": "ContextOverflowError", "data": {"message": "x"}}, ContextLost, "does not fit"),
    ({"name": "MessageOutputLengthError", "data": {}}, BadReply, "cut off"),
    ({"name": "MessageAbortedError", "data": {"message": "x"}}, ModelUnavailable, "aborted"),
    ({"name": "UnknownError", "data": {"message": "Model not found: a/b."}}, ModelUnavailable, "opencode models"),
    ({"name": "UnknownError", "data": {"message": "?"}}, ModelUnavailable, "asked again later"),
    ({}, ModelUnavailable, "no reason given"),
]


@pytest.mark.parametrize(("error", "kind", "words"), ERRORS)
def test_an_error_of_the_providers_is_told_by_what_is_to_be_done_about_it(
    error: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        raise failure(error, "http://x")


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("told", [True, False])
def test_an_error_is_found_in_the_event_or_in_the_record(
    fake: FakeOpenCode, connect: Connect, recorded: bool, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daemon.chat.opencode.turn._SILENCE_S", 0.3)
    fake.error, fake.error_recorded, fake.tell = ERRORS[0][0], recorded, told
    # A reason that comes nowhere is waited for as long as a read may take.
    patience = PATIENT if recorded or told else replace(PATIENT, read=3.0)
    with pytest.raises(ModelUnavailable, match="overloaded" if recorded or told else "without an answer or a reason"):
        ask(connect(fake, patience=patience))
    assert fake.sessions == {}


@pytest.mark.parametrize(
    ("pieces", "parts", "finish", "words"),
    [
        ([], [], "stop", "it holds no text"),
        ([" \n"], [], "stop", "it holds no text"),
        ([], [{"type": "tool", "tool": "bash"}], "tool-calls", "it called bash"),
        (["half of i"], [], "length", "cut off"),
        (["<think>on and on"], [], "stop", "it holds no text"),
    ],
)
def test_a_reply_without_text_is_bad(
    fake: FakeOpenCode, connect: Connect, pieces: list[str], parts: list[Any], finish: str, words: str
) -> None:
    fake.pieces, fake.more_parts, fake.finish = pieces, parts, finish
    with pytest.raises(BadReply, match=words):
        ask(connect(fake))


@pytest.mark.parametrize(
    "retries",
    [
        [{"type": "retry", "attempt": n, "message": "rate limited", "next": 0} for n in (1, 2, 3)],
        [{"type": "retry", "attempt": 1, "message": "rate limited", "next": 2**45}],
    ],
    ids=["too often", "too late"],
)
def test_a_provider_that_keeps_failing_is_not_waited_for(
    fake: FakeOpenCode, connect: Connect, retries: list[dict[str, Any]]
) -> None:
    fake.retries = retries
    begun = time.monotonic()
    with pytest.raises(ModelUnavailable, match="keeps failing: rate limited"):
        ask(connect(fake))
    assert time.monotonic() - begun < 30
    assert "POST /session/*/abort" in fake.requests
    assert fake.sessions == {}


# Each phase: what hangs, and what it may take; the prompt's own limit is the shortest of three.
PHASES = [("POST /session", 1.0), ("POST /session/*/prompt_async", 1.0), ("GET /session/*/message", 1.0)]


@pytest.mark.parametrize(("route", "limit_s"), PHASES)
def test_each_phase_has_a_time_limit_of_its_own(
    fake: FakeOpenCode, connect: Connect, route: str, limit_s: float
) -> None:
    fake.hang[route] = 60
    begun = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"did not answer in time.*opencode serve"):
        ask(connect(fake, patience=QUICK))
    assert limit_s <= time.monotonic() - begun < 30


def test_a_turn_has_a_time_limit_and_is_aborted_when_it_is_over(fake: FakeOpenCode, connect: Connect) -> None:
    fake.think_s = 60
    begun = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"no answer within 0\.8 s"):
        ask(connect(fake), timeout_s=0.8)
    assert 0.8 <= time.monotonic() - begun < 30
    assert fake.requests[-2:] == ["POST /session/*/abort", "DELETE /session/*"]


def test_an_answer_that_trickles_in_does_not_outlast_its_limit(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def trickle() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
                for _ in range(600):
                    try:
                        peer.sendall(b" ")
                    except OSError:
                        return
                    time.sleep(0.1)

        thread = threading.Thread(target=trickle)
        thread.start()
        begun = time.monotonic()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with OpenCodeServer(url, patience=QUICK, directory=tmp_path) as server, pytest.raises(ModelUnavailable):
            server.health()
        assert time.monotonic() - begun < 30
        thread.join()


@pytest.mark.parametrize(
    ("switch", "words"),
    [
        ({"fail": {"POST /session": 500}}, "HTTP 500 .*scripted failure.*; see the log"),
        ({"fail": {"POST /session": 400}}, "HTTP 400"),
        ({"fail": {"GET /event": 500}}, "/event: HTTP 500"),
        ({"garbage": {"GET /global/health": b"<html>"}}, "not as OpenCode does; check opencode.server_url"),
        ({"garbage": {"GET /global/health": b"[]"}}, "not as OpenCode does"),
        ({"garbage": {"POST /session": b"{}"}}, "made no session"),
        ({"garbage": {"GET /event": b""}}, "tells no events"),
        ({"password": "sesame"}, "wants a password; set OPENCODE_SERVER_PASSWORD"),
    ],
    ids=str,
)
def test_a_server_that_is_broken_is_named_with_the_cause(
    fake: FakeOpenCode, connect: Connect, switch: dict[str, Any], words: str
) -> None:
    for name, value in switch.items():
        setattr(fake, name, value)
    with pytest.raises(ModelUnavailable, match=f"{fake.url}.*{words}"):
        ask(connect(fake))


def test_a_server_that_is_down_is_named_with_how_to_start_it(tmp_path: Path) -> None:
    port = free_port()
    with OpenCodeServer(f"http://127.0.0.1:{port}", patience=QUICK, directory=tmp_path) as server:
        for call in (server.health, server.models, server.create, server.sweep):
            with pytest.raises(ModelUnavailable, match=rf":{port}: nothing answers .*opencode serve"):
                call()
        assert server.delete("ses_1") is False


def test_an_address_that_is_none_is_a_mistake_in_the_configuration() -> None:
    with pytest.raises(ConfigError, match=r"opencode\.server_url"):
        OpenCodeServer("http://[::1")


def test_a_password_is_taken_from_the_environment_as_the_server_takes_it(
    fake: FakeOpenCode, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.password = "sesame"
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "sesame")
    assert ask(connect(fake)).content == "Good day."
    with pytest.raises(ModelUnavailable, match="password"):
        connect(fake, password="wrong").health()


def test_a_session_that_is_gone_is_told_as_such(fake: FakeOpenCode, connect: Connect) -> None:
    server = connect(fake)
    session = server.create()
    assert server.delete(session)
    with pytest.raises(SessionGone, match=session):
        server.prompt(session, "", "x")
    assert server.delete(session)


# -- no session is left ----------------------------------------------------------------------------------------------


class _Interrupted(BaseException):
    """As KeyboardInterrupt."""


def test_a_caller_that_is_interrupted_leaves_no_session_and_no_turn(fake: FakeOpenCode, connect: Connect) -> None:
    def stop(_: str) -> None:
        raise _Interrupted

    with pytest.raises(_Interrupted):
        ask(connect(fake), on_text=stop)
    assert fake.sessions == {}
    assert fake.requests[-2:] == ["POST /session/*/abort", "DELETE /session/*"]


def test_deleting_a_session_at_work_stops_its_turn_first(fake: FakeOpenCode, connect: Connect) -> None:
    fake.think_s = 2
    server = connect(fake)
    session = server.create()
    with ThreadPoolExecutor(1) as worker:
        asked = worker.submit(server.prompt, session, "", "x")
        while not fake.prompts:
            time.sleep(0.01)
        assert server.delete(session)
        with pytest.raises(SessionGone):
            asked.result()
    stopped = fake.requests.index("POST /session/*/abort")
    assert "DELETE /session/*" in fake.requests[stopped:]
    assert "DELETE /session/*" not in fake.requests[:stopped]


@pytest.mark.parametrize(
    "failing", [{"fail": {"DELETE /session/*": 500}}, {"hang": {"DELETE /session/*": 20}}], ids=str
)
def test_a_session_that_could_not_be_deleted_is_deleted_at_the_next_call(
    fake: FakeOpenCode, connect: Connect, failing: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    server = connect(fake, patience=replace(PATIENT, delete=0.5))
    for name, value in failing.items():
        setattr(fake, name, value)
    assert ask(server).content == "Good day."
    (left,) = fake.sessions
    assert "session not deleted" in caplog.text
    fake.fail, fake.hang = {}, {}
    ask(server)
    assert left not in fake.sessions
    assert fake.sessions == {}


def test_closing_tries_once_more_to_delete(fake: FakeOpenCode, tmp_path: Path) -> None:
    fake.fail["DELETE /session/*"] = 503
    with OpenCodeServer(fake.url, patience=PATIENT, directory=tmp_path / "place") as server:
        ask(server)
        assert len(fake.sessions) == 1
        fake.fail.clear()
    assert fake.sessions == {}


def _title_of_a_dead_process() -> str:
    code = "from daemon.chat.opencode import folder as place; print(place.title('chat'))"
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_a_title_tells_whether_its_process_is_gone() -> None:
    living, dead = place.title("chat"), _title_of_a_dead_process()
    assert living.startswith(f"{OWN_SESSION_TITLE} chat ")
    assert (place.is_left_behind(living), place.is_left_behind(dead)) == (False, True)
    # The same number, taken by another process since.
    reused = f"{living.rpartition('-')[0]}-1"
    assert place.is_left_behind(reused) is True
    elsewhere = f"{OWN_SESSION_TITLE} chat 00000000-{os.getpid()}-1"
    assert place.is_left_behind(elsewhere) is None


@pytest.mark.parametrize(
    "title",
    ["", "A session", OWN_SESSION_TITLE, f"{OWN_SESSION_TITLE} chat 1-2-3", "[reconstitute] x 00000000-1-1 (fork #1)"],
)
def test_a_title_that_we_did_not_make_is_never_left_behind(title: str) -> None:
    assert place.is_left_behind(title) is False


def test_sweeping_deletes_what_a_crash_left_and_nothing_else(fake: FakeOpenCode, connect: Connect) -> None:
    now = int(time.time() * 1000)
    day = 86_400_000
    elsewhere = f"{OWN_SESSION_TITLE} chat 00000000-7-7"
    keep = [
        fake.add_session("Garden plans", now - 9 * day),
        fake.add_session("About [reconstitute]", now - 9 * day),
        fake.add_session(place.title("adapter"), now - 9 * day),
        fake.add_session(elsewhere, now),
        fake.add_session(f"{elsewhere} (fork #1)", now - 9 * day),
    ]
    fake.add_session(_title_of_a_dead_process(), now)
    fake.add_session(elsewhere, now - 2 * day)
    assert connect(fake).sweep() == 2
    assert sorted(fake.sessions) == sorted(keep)


# -- our folder ------------------------------------------------------------------------------------------------------


def test_our_folder_denies_everything_is_private_and_is_written_once(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "place"
    place.prepare(folder)
    settings = json.loads((folder / "opencode.json").read_text())
    assert settings["permission"] == {"*": "deny"}
    assert settings["agent"][OWN_MARK]["permission"] == {"*": "deny"}
    assert folder.stat().st_mode & 0o777 == 0o700
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    place.prepare(folder)
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before
    # git takes it for a repository, so OpenCode looks for instructions no further up.
    found = subprocess.run(
        ["git", "-C", folder, "rev-parse", "--show-toplevel"], check=True, capture_output=True, text=True
    )
    assert found.stdout.strip() == str(folder)


def test_the_folder_lies_beneath_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/cache")
    assert place.default_directory() == Path("/somewhere/cache/reconstitute/opencode")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/dev")
    assert place.default_directory() == Path("/home/dev/.cache/reconstitute/opencode")


# -- the chat model --------------------------------------------------------------------------------------------------


@pytest.fixture
def chat(fake: FakeOpenCode, tmp_path: Path) -> Iterator[OpenCodeChat]:
    model = OpenCodeChat(fake.url, "acme/large", timeout_s=60, context_tokens=4000, directory=tmp_path / "place")
    yield model
    model.close()


def test_a_chat_is_one_prompt_in_a_session_of_its_own(fake: FakeOpenCode, chat: OpenCodeChat) -> None:
    left = fake.add_session(_title_of_a_dead_process(), 0)
    said: list[str] = []
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    reply = chat.chat(messages, [{"type": "function"}], said.append)
    assert (reply.content, said) == ("Good day.", ["", "Good ", "day."])
    (prompt,) = fake.prompts
    assert (prompt["system"], prompt["parts"][0]["text"]) == ("Be brief.", "Hello")
    assert (left in fake.sessions, fake.sessions) == (False, {})


def test_a_chat_names_its_model_and_what_replies_depend_on(fake: FakeOpenCode, chat: OpenCodeChat) -> None:
    assert chat.name == "acme/large (OpenCode)"
    assert chat.context_tokens == 4000
    first = chat.fingerprint
    assert "acme/large" in first
    assert "1.18.33" in first
    assert chat.fingerprint == first
    fake.version = "1.19.0"
    assert chat.fingerprint != first


def test_an_empty_model_is_the_servers_default_by_its_own_name(fake: FakeOpenCode, tmp_path: Path) -> None:
    model = OpenCodeChat(fake.url, "", timeout_s=60, context_tokens=10**6, directory=tmp_path / "place")
    assert model.name == "default model (OpenCode)"
    assert "acme/large" in model.fingerprint
    assert model.context_tokens == 200_000
    fake.default_model = "acme/small"
    assert "acme/small" in model.fingerprint
    assert model.context_tokens == 8_000
    model.close()


def test_a_conversation_that_does_not_fit_is_not_sent(fake: FakeOpenCode, chat: OpenCodeChat) -> None:
    with pytest.raises(ContextLost, match="do not fit into 4000"):
        chat.chat([{"role": "user", "content": "word " * 9000}])
    assert fake.prompts == []


def test_a_provider_that_read_only_part_of_the_conversation_is_not_trusted(fake: FakeOpenCode, tmp_path: Path) -> None:
    model = OpenCodeChat(fake.url, "", timeout_s=60, context_tokens=100_000, directory=tmp_path / "place")
    messages = [{"role": "user", "content": "one two three four " * 1500}]
    with pytest.raises(ContextLost, match="only 100 of at least"):
        model.chat(messages)
    fake.tokens = {"input": 6000, "output": 5}
    assert model.chat(messages).content == "Good day."
    assert fake.sessions == {}
    model.close()


def test_a_conversation_becomes_turns_that_name_who_speaks() -> None:
    system, content = as_prompt(
        [
            {"role": "system", "content": "One."},
            {"role": "user", "content": "What is there?"},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]},
            {"role": "tool", "tool_name": "look", "content": "a lamp"},
            {"role": "system", "content": "Two."},
        ]
    )
    assert system == "One.\n\nTwo."
    mark = content.split("line in brackets that holds ")[1].split(" ")[0]
    turns = [line for line in content.splitlines() if line.startswith(f"[{mark} ")]
    assert turns == [f"[{mark} {who}]" for who in ("user", "assistant", "result of look", "assistant")]
    assert '{"name": "look", "arguments": {}}' in content
    assert content.index("What is there?") < content.index("a lamp")


@given(st.lists(st.text(), min_size=1, max_size=4), st.lists(st.text(), min_size=1, max_size=4))
def test_no_message_can_pass_itself_off_as_another_turn(first: list[str], second: list[str]) -> None:
    """Even one that knows an earlier prompt: its turns are marked anew."""
    told = [{"role": "user", "content": text} for text in [*first, "end"]]
    _, earlier = as_prompt(told)
    _, content = as_prompt([{"role": "user", "content": earlier}, *({"role": "tool", "content": t} for t in second)])
    mark = content.split("line in brackets that holds ")[1].split(" ")[0]
    assert content.count(f"\n[{mark} ") == len(second) + 2
