"""Models behind a real OpenCode server: they answer, they can touch nothing, and nothing of them stays behind.

Every test runs against both generations of OpenCode's server. The provider is the scripted one, which here also keeps
what it is sent and fails when told to.
"""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx
import pytest

from daemon.archive import Archive
from daemon.chat import BadReply, ModelUnavailable
from daemon.chat.opencode import OpenCodeChat
from daemon.chat.opencode.server import OpenCodeServer, Patience, SessionGone
from daemon.records import OWN_SESSION_TITLE
from tests.live.fetched import CHECKOUT
from tests.live.opencode import OpenCode, make_project
from tests.live.recorded import read_quiet_source
from tests.live.scripted_model import Call, ScriptedModel, Step, _Handler
from tests.support.processes.daemon_process import Daemon

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

QUESTION = "What grows in the garden?"
ANSWER = "Beans grow there, and a row of late peas beside the wall that faces south."
TEMPTED = "Look for yourself"
SYSTEM = "Name vegetables only."
PATIENT = Patience(create=240.0, prompt=240.0, read=240.0, delete=240.0)


@dataclass
class Provider(ScriptedModel):
    """The scripted model; it keeps every request, and fails with `status` when that is set.

    Before it answers it waits `wait_s`, or until `gate` is open.
    """

    status: int = 0
    wait_s: float = 0.0
    gate: threading.Event = field(default_factory=threading.Event)
    requests: list[dict[str, Any]] = field(default_factory=list)

    def __enter__(self) -> Self:
        super().__enter__()
        self._server.RequestHandlerClass = _Watched
        return self


class _Watched(_Handler):
    def do_POST(self) -> None:
        model = self.server.model
        assert isinstance(model, Provider)
        body = self.rfile.read(int(self.headers["content-length"]))
        model.requests.append(json.loads(body))
        model.gate.wait(model.wait_s)
        if not model.status:
            self.rfile = io.BytesIO(body)
            return super().do_POST()
        said = b'{"error": {"message": "scripted failure", "type": "x"}}'
        self.send_response(model.status)
        for name, value in {"content-type": "application/json", "content-length": str(len(said))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(said)
        return None


@dataclass
class Live:
    """A running OpenCode and our client of it."""

    opencode: OpenCode
    provider: Provider
    server: OpenCodeServer
    place: Path
    root: Path

    def titles(self) -> list[str]:
        """Of every session that the server has, wherever it runs."""
        found = set()
        for query in ({}, {"directory": str(self.place)}):
            listed = httpx.get(f"{self.server.url}/session", params=query, timeout=240, trust_env=False, verify=False)
            found |= {session["title"] for session in listed.json()}
        return sorted(found)

    def ask(self, text: str = QUESTION, **more: Any) -> Any:
        with self.server.session() as session:
            return self.server.prompt(session, SYSTEM, text, **more)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider() as server:
        server.add(QUESTION, [Step(text=ANSWER, reasoning="Let me see.")])
        yield server


@pytest.fixture(scope="module")
def running(binary: Path, provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    root = tmp_path_factory.mktemp("chat")
    # What OpenCode would take up on its way to the root, were our folder not a repository of its own.
    (root / "AGENTS.md").write_text("Speak of turnips only.\n")
    with OpenCode(binary, root / "oc", provider.url) as opencode:
        url = str(opencode._http.base_url).rstrip("/")
        with OpenCodeServer(url, directory=root / "place", patience=PATIENT) as server:
            with server.session():  # makes the folder: OpenCode would remember it as it was when `titles` first asked
                pass
            yield Live(opencode, provider, server, root / "place", root)


@pytest.fixture
def live(running: Live) -> Iterator[Live]:
    running.provider.gate.clear()
    running.provider.status, running.provider.wait_s = 0, 0.0
    running.provider.requests.clear()
    yield running
    running.provider.gate.set()
    running.provider.status, running.provider.wait_s = 0, 0.0


def texts(request: dict[str, Any], role: str) -> str:
    return "\n".join(str(message["content"]) for message in request["messages"] if message["role"] == role)


def test_the_servers_version_models_and_default_are_told(live: Live, binary: Path) -> None:
    assert f"/{live.server.health()}/" in str(binary)
    (model,) = live.server.models()
    assert (model.id, model.is_default, model.context_tokens) == ("scripted/scripted", True, 2_000_000)
    with pytest.raises(ModelUnavailable, match="does not have scripted/nothing; it has scripted/scripted"):
        live.server.resolve("scripted/nothing")


def test_an_answer_comes_in_pieces_and_whole_with_its_tokens(live: Live) -> None:
    said: list[str] = []
    reply = live.ask(on_text=said.append)
    assert (reply.content.strip(), reply.thinking.strip(), reply.calls) == (ANSWER, "Let me see.", ())
    assert "".join(said).strip() == ANSWER
    assert len([piece for piece in said if piece]) > 3
    assert reply.prompt_tokens == 100
    assert reply.reply_tokens is not None


def test_one_prompt_is_one_request_with_our_system_text_and_nobody_elses(live: Live) -> None:
    # What means something when a person types it is text here.
    asked = f"{QUESTION} @/etc/hostname @general /init !`touch {live.root}/by-shell`"
    live.ask(asked)
    live.ask(asked)
    assert len(live.provider.requests) == 2  # no title is made, nothing is summarised
    assert not (live.root / "by-shell").exists()
    for request in live.provider.requests:
        assert not request.get("tools")
        system = texts(request, "system")
        assert SYSTEM in system
        assert "You are opencode" not in system
        assert "turnips" not in system
        assert texts(request, "user") == asked


def test_a_session_remembers_what_was_said_in_it(live: Live) -> None:
    with live.server.session("adapter") as session:
        live.server.prompt(session, SYSTEM, QUESTION, model="scripted/scripted")
        (title,) = [title for title in live.titles() if title.startswith(OWN_SESSION_TITLE)]
        assert " adapter " in title  # and no model gave it another one
        live.server.prompt(session, "Another system text.", QUESTION, model="scripted/scripted")
    last = live.provider.requests[-1]
    assert ANSWER in texts(last, "assistant")
    assert "Another system text." in texts(last, "system")
    assert SYSTEM not in texts(last, "system")


def _temptation(directory: Path) -> list[Step]:
    calls = (
        Call("bash", {"command": f"touch {directory}/by-bash", "description": "Make a file"}),
        Call("write", {"filePath": f"{directory}/by-write", "content": "made"}),
        Call("read", {"filePath": str(directory / "secret")}),
        Call("task", {"description": "x", "prompt": "x", "subagent_type": "general"}),
    )
    return [Step(text="I look.", calls=calls), Step(text="I saw nothing.")]


@pytest.mark.parametrize("seen", [True, False], ids=["our folder seen", "our folder unseen"])
def test_a_model_that_asks_for_tools_gets_nothing_executed(
    live: Live, tmp_path: Path, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("a secret word: quincunx")
    live.provider.add(TEMPTED, _temptation(tmp_path))
    before = sorted(live.root.rglob("*by-*"))
    with OpenCodeServer(live.server.url, directory=tmp_path / "place", patience=PATIENT) as server:
        if not seen:
            # As a server elsewhere has it: no such folder on its machine.
            monkeypatch.setattr("daemon.chat.opencode.folder.prepare", lambda directory: None)
        with server.session() as session:
            assert server.prompt(session, SYSTEM, TEMPTED).content == "I saw nothing."
            told = live.opencode._http.get(f"/session/{session}/message").json()
    states = [part["state"]["status"] for message in told for part in message["parts"] if part["type"] == "tool"]
    assert states == ["error"] * 4
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "place") == ["secret"]
    assert sorted(live.root.rglob("*by-*")) == before
    assert "quincunx" not in json.dumps(live.provider.requests)
    assert [request.get("tools") for request in live.provider.requests if request.get("tools")] == []
    assert [title for title in live.titles() if title.startswith(OWN_SESSION_TITLE)] == []


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (500, ModelUnavailable, "keeps failing.*scripted failure"),
        (401, ModelUnavailable, "opencode auth login"),
        (400, BadReply, r"refused the request \(400\).*scripted failure"),
    ],
)
def test_a_failing_provider_is_told_by_kind_and_its_session_is_gone(
    live: Live, status: int, kind: type[Exception], words: str
) -> None:
    live.provider.status = status
    with pytest.raises(kind, match=words):
        live.ask()
    assert live.titles() == []


def test_an_empty_reply_is_bad(live: Live) -> None:
    live.provider.add("Say nothing", [Step(text="")])
    with pytest.raises(BadReply, match="empty"):
        live.ask("Say nothing")


def test_a_model_that_is_not_there_is_named_with_how_to_find_one(live: Live) -> None:
    with pytest.raises(ModelUnavailable, match=r"(?i)model not found.*scripted/nothing.*opencode models"):
        live.ask(model="scripted/nothing")
    assert live.titles() == []


def test_a_turn_that_takes_too_long_ends_in_time_and_its_session_is_gone(live: Live) -> None:
    live.provider.wait_s = 600
    with pytest.raises(ModelUnavailable, match=r"no answer within 1\.5 s"):
        live.ask(timeout_s=1.5)
    assert live.titles() == []


class _Interrupted(BaseException):
    """As KeyboardInterrupt."""


def test_a_caller_that_is_interrupted_leaves_no_session(live: Live) -> None:
    def stop(piece: str) -> None:
        raise _Interrupted

    with pytest.raises(_Interrupted):
        live.ask(on_text=stop)
    assert live.titles() == []


def test_a_session_that_somebody_deleted_is_told_as_gone(live: Live) -> None:
    session = live.server.create()
    live.opencode._http.delete(f"/session/{session}")
    with pytest.raises(SessionGone):
        live.server.prompt(session, SYSTEM, QUESTION)
    assert live.server.delete(session)


@pytest.mark.parametrize("from_our_folder", [True, False])
def test_a_session_that_somebody_deletes_during_a_turn_ends_it(live: Live, from_our_folder: bool) -> None:
    live.provider.wait_s = 600  # longer than the turn may take: only the deletion ends it
    session = live.server.create()
    query = {"directory": str(live.place)} if from_our_folder else {}
    deleting = threading.Timer(1, lambda: live.opencode._http.delete(f"/session/{session}", params=query))
    deleting.start()
    with pytest.raises(SessionGone):
        live.server.prompt(session, SYSTEM, QUESTION)
    deleting.join()
    assert live.titles() == []


_ASKS = """
import sys
from pathlib import Path
from daemon.chat.opencode.server import OpenCodeServer
server = OpenCodeServer(sys.argv[1], directory=Path(sys.argv[2]))
with server.session() as session:
    print(session, flush=True)
    server.prompt(session, "", sys.argv[3], on_text=lambda _: None)
"""


def test_what_a_killed_process_left_is_swept_and_nothing_else(live: Live) -> None:
    live.provider.wait_s = 90
    asking = subprocess.Popen(
        [sys.executable, "-c", _ASKS, live.server.url, str(live.place), QUESTION],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert asking.stdout is not None
    left = asking.stdout.readline().strip()
    theirs = live.opencode.create_session(live.place, "A session of the user's")
    ours = live.server.create()
    while not live.provider.requests:
        time.sleep(0.05)
    assert live.server.sweep() == 0  # its process lives
    asking.send_signal(signal.SIGKILL)
    asking.wait()
    asking.stdout.close()
    assert left
    assert live.server.sweep() == 1
    ids = {session["id"] for session in live.opencode._http.get("/session").json()}
    assert (left in ids, theirs in ids, ours in ids) == (False, True, True)
    live.opencode.delete(theirs)
    live.server.delete(ours)
    assert live.titles() == []


def test_several_threads_ask_at_once(live: Live) -> None:
    replies: list[str] = []
    threads = [threading.Thread(target=lambda: replies.append(live.ask().content.strip())) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == [ANSWER] * 5
    assert live.titles() == []


def test_a_password_is_needed_where_the_server_has_one(
    binary: Path, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Guarded(OpenCode):
        def environment(self) -> dict[str, str]:
            return super().environment() | {"OPENCODE_SERVER_PASSWORD": "sesame"}

        def _wait_until_healthy(self, timeout_s: float = 60) -> None:
            self._http.auth = ("opencode", "sesame")
            super()._wait_until_healthy(timeout_s)

    with Guarded(binary, tmp_path / "oc", provider.url) as opencode:
        url = str(opencode._http.base_url)
        with (
            OpenCodeServer(url, directory=tmp_path / "place") as server,
            pytest.raises(ModelUnavailable, match="OPENCODE_SERVER_PASSWORD"),
        ):
            server.health()
        monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "sesame")
        with OpenCodeServer(url, directory=tmp_path / "place") as server, server.session() as session:
            assert server.prompt(session, "", QUESTION).content.strip() == ANSWER


def test_the_daemons_archive_holds_nothing_of_what_a_model_was_asked(
    binary: Path, provider: Provider, tmp_path: Path
) -> None:
    """The feedback loop (docs/reliability.md, S13): with our sessions at work, finished, left behind and deleted."""
    project = make_project(tmp_path / "work" / "garden", {"README.md": "# Garden\n"})
    provider.add("The user's own words", [Step(text="Answered to the user.")])
    daemon = Daemon(tmp_path / "oc" / "data" / "opencode", tmp_path / "ours")
    try:
        daemon.start()
        daemon.wait_until_ready()
        with OpenCode(binary, tmp_path / "oc", provider.url) as opencode:
            theirs = opencode.create_session(project, "")
            opencode.prompt(theirs, "The user's own words")
            url = str(opencode._http.base_url)
            chat = OpenCodeChat(url, "", timeout_s=300, context_tokens=50_000, directory=tmp_path / "place")
            system = {"role": "system", "content": "A system text with the word zyzzyva."}
            for number in range(3):
                told = [system, {"role": "user", "content": f"{QUESTION} ({number})"}]
                assert chat.chat(told).content.strip() == ANSWER
            # One that stays, as after a crash, and is seen by scan and watch alike.
            with OpenCodeServer(url, directory=tmp_path / "place") as server:
                left = server.create()
                server.prompt(left, system["content"], QUESTION)
                daemon.wait_until_found({"own": opencode.messages(theirs)[0]["info"]["id"]}, timeout_s=240)
                read_quiet_source(opencode.data_dir)
                status = daemon.wait_until_drained()
                assert sum(source["seen"] - source["kept"] for source in status["sources"]) >= 2
            for word in ("zyzzyva", "peas", "grows"):
                assert daemon.search(word) == []
            chat.close()
        daemon.wait_until_drained()
        daemon.terminate()
    finally:
        daemon.close()
    with Archive(daemon.archive_dir) as archive:
        assert [session.id for session in archive.sessions()] == [theirs]
        kept = [archive.message(message_id) for message_id in archive.all_message_ids()]
        assert {message.session_id for message in kept if message is not None} == {theirs}
    held = b"".join(path.read_bytes() for path in daemon.archive_dir.rglob("*") if path.is_file())
    assert b"zyzzyva" not in held
