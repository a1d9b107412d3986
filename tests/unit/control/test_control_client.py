"""The client: the Service protocol over the socket, with the errors of the other side."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import days, errors
from daemon.control import client as client_module
from daemon.control.calls import FileContent
from daemon.control.client import Client
from daemon.errors import BadRequest, DaemonUnreachable, ReconstituteError
from tests.support.servers.plain_service import PlainService
from tests.support.servers.scripted_service import ScriptedService, content_of, serving


@pytest.fixture
def service() -> ScriptedService:
    return ScriptedService()


@pytest.fixture
def client(service: ScriptedService, tmp_path: Path) -> Iterator[PlainService]:
    with serving(service, tmp_path / "r" / "s"):
        yield PlainService(Client(tmp_path / "r" / "s"))


def every_error() -> list[type[ReconstituteError]]:
    kinds: list[type[ReconstituteError]] = [ReconstituteError]
    for kind in kinds:
        kinds += [k for k in kind.__subclasses__() if k.__module__ == errors.__name__]
    return kinds


def answering(path: Path, answer: bytes) -> threading.Thread:
    """Something at the socket that is not our daemon: to one call, these bytes, and goodbye."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        with listener, listener.accept()[0] as caller:
            caller.recv(65536)
            caller.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_the_answers_are_the_services(client: PlainService, service: ScriptedService) -> None:
    progress: list[Any] = []
    assert client.status() == service.answer("status")
    assert client.recall("recall", {"query": "rate limit"}) == service.answers["recall"]
    assert client.index(progress.append)["embedded"] == 5
    assert progress == [{"phase": "scan", "done": n, "total": 3} for n in (1, 2, 3)]
    run = client.reconstitute("/p", questions=["Why?"], at="2026-06-01", output="/o", progress=progress.append)
    assert run["output"] == "/o"
    assert service.calls[-1] == ("reconstitute", "/p", ["Why?"], "2026-06-01", "/o")


def test_a_service_reads_days_in_the_callers_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Zoned(ScriptedService):
        def call(self, request: Any, **more: Any) -> Any:
            hours.append(days.local(0).hour)
            return super().call(request, **more)

    hours: list[int] = []
    with serving(Zoned(), tmp_path / "r" / "s"):
        client = PlainService(Client(tmp_path / "r" / "s"))
        for zone in ("Asia/Tokyo", "UTC"):
            monkeypatch.setattr("tzlocal.get_localzone_name", lambda zone=zone: zone)  # which it keeps
            client.recall("recall", {"query": "rate limit"})
            client.reconstitute("/p", at="2026-06-01")
    assert hours == [9, 9, 0, 0]


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_every_error_is_raised_as_the_type_it_was(
    client: PlainService, service: ScriptedService, kind: type[ReconstituteError]
) -> None:
    service.failure = kind("thing: cause; fix")
    asks = (
        client.status,
        lambda: client.files("/x"),
        lambda: client.index(print),
        lambda: client.recall("recall", {}),
        lambda: client.export({}, on_part=lambda _: None),
    )
    for ask in asks:
        with pytest.raises(ReconstituteError) as caught:
            ask()
        assert type(caught.value) is kind
        assert str(caught.value) == "thing: cause; fix"


def test_an_error_of_a_newer_daemon_keeps_message_and_exit_code(client: PlainService, service: ScriptedService) -> None:
    class UnheardError(ReconstituteError):
        exit_code = 99

    service.failure = UnheardError("thing: cause; fix")
    # Known here only because the class is defined in this process; the wire has name, message and code.
    error = client_module._error({"error": {"type": "Unheard", "message": "thing: cause; fix", "exitCode": 99}})
    assert (type(error), str(error), error.exit_code) == (ReconstituteError, "thing: cause; fix", 99)
    with pytest.raises(UnheardError):
        client.status()


def test_a_request_that_makes_no_sense_is_bad_request(client: PlainService) -> None:
    with pytest.raises(BadRequest, match="it takes path, at, lost"):
        client.files(3)


def test_no_socket_no_listener_and_a_path_too_long_are_unreachable(tmp_path: Path) -> None:
    stale = tmp_path / "stale"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(stale))
    for path in (tmp_path / "none", stale, tmp_path / ("x" * 200)):
        with pytest.raises(DaemonUnreachable, match="no service answers there"):
            PlainService(Client(path)).status()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\ncontent-length: 30\r\nconnection: close\r\n\r\n{}",
        b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10\r\n{"phase": "scan"',
    ],
)
def test_whatever_else_answers_there_is_unreachable(tmp_path: Path, answer: bytes) -> None:
    thread = answering(tmp_path / "s", answer)
    with pytest.raises(DaemonUnreachable):
        PlainService(Client(tmp_path / "s")).index(print)
    thread.join(90)


def test_a_silent_daemon_is_unreachable_after_the_allowed_silence(
    client: PlainService, service: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "SILENCE_SECONDS", 0.2)
    service.gate.clear()
    with pytest.raises(DaemonUnreachable, match="does not answer in time"):
        client.index(lambda _event: None)
    service.gate.set()


def test_proxies_of_the_environment_are_not_asked(
    service: ScriptedService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving(service, tmp_path / "r" / "s"):
        assert PlainService(Client(tmp_path / "r" / "s")).status() == service.answer("status")


DAEMON = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.support.servers.scripted_service import ScriptedService
from daemon.control.server import Server
async def main():
    service = ScriptedService()
    service.gate.clear()
    await Server(service, Path(sys.argv[1])).start()
    print("ready", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def test_a_daemon_killed_during_a_call_is_unreachable_not_an_empty_answer(tmp_path: Path) -> None:
    path = tmp_path / "r" / "s"
    arguments = [sys.executable, "-c", DAEMON, str(path), str(Path(__file__).parents[3])]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == b"ready\n"

        def kill(event: dict[str, Any]) -> None:
            if event["done"] == 3:
                os.kill(daemon.pid, signal.SIGKILL)

        with pytest.raises(DaemonUnreachable, match=r"stopped answering|ended before"):
            PlainService(Client(path)).index(kill)


def test_the_calls_about_files_are_answered_by_the_service(client: PlainService, service: ScriptedService) -> None:
    taken: list[FileContent] = []
    steps: list[dict[str, Any]] = []
    service.parts["restore"] = [content_of("a\n\ud800", bytes(range(256)), executable=True), content_of("b", b"")]
    service.answers["restore"]["skipped"] = [{"path": "/x/c", "reason": "lost: x"}]
    assert client.files("/x", at="2026-05-31", lost=True) == service.answer("files")
    assert client.history("/x", diff=True, lines=True) == service.answer("history")
    assert client.content("/x", at="2026-05-31", raw=True) == service.answer("content")
    answer = client.restore(
        "/x", deleted=True, grade="stale", include=["*.py"], on_part=taken.append, progress=steps.append
    )
    assert client.alias("/a", "/b") == {"aliases": [], "warnings": []}
    assert (taken, answer["skipped"]) == (service.parts["restore"], [{"path": "/x/c", "reason": "lost: x"}])
    assert [step["done"] for step in steps] == [1, 2, 3]
    assert service.calls == [
        ("files", "/x", "2026-05-31", True),
        ("history", "/x", True, True),
        ("content", "/x", "2026-05-31", True),
        ("restore", "/x", "", True, "stale", ["*.py"], [], ""),
        ("alias", "/a", "/b", False),
    ]


def test_what_the_taker_of_contents_raises_comes_out(client: PlainService, service: ScriptedService) -> None:
    def full(_: FileContent) -> None:
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        client.restore("/x", on_part=full)
    assert client.status() == service.answer("status")


def test_the_recall_calls_and_exports_are_answered_by_the_service(
    client: PlainService, service: ScriptedService
) -> None:
    steps: list[dict[str, Any]] = []
    pieces: list[str] = []
    service.answers["recall"] = {"ok": True, "results": [{"path": "/a\udcff \u2028 日本"}], "warnings": []}
    service.parts["export"] = ["", "{}\n", "\udcff\n\n", "x" * 600_000, *map(str, range(1000))]
    asked = {"query": "\ud800 größer", "kinds": ["prompt"], "explain": True}
    assert client.recall("recall", asked, here="/home/\udcff") == service.answers["recall"]
    answer = client.export({"format": "jsonl"}, on_part=pieces.append, progress=steps.append)
    assert pieces == service.parts["export"]
    assert answer == service.answer("export")
    assert [step["done"] for step in steps] == [1, 2, 3]
    assert service.calls == [("recall", "recall", asked, "/home/\udcff"), ("export", {"format": "jsonl"})]


@pytest.mark.parametrize("call", ["", "re/call", "../status", "re call", "r\r\nx: y", "\ud800", "recall?x=1", "é"])
def test_a_call_of_any_name_reaches_the_service_or_is_a_bad_request(
    client: PlainService, service: ScriptedService, call: str
) -> None:
    try:
        client.recall(call, {})
    except BadRequest as error:
        assert "not a call of this daemon" in str(error)  # noqa: PT017 - either outcome is right
        assert service.calls == []
    else:
        assert service.calls == [("recall", call.replace("\ud800", "?"), {}, "")]


def test_what_the_taker_of_an_export_raises_comes_out(client: PlainService, service: ScriptedService) -> None:
    def full(_: str) -> None:
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        client.export({}, on_part=full)
    assert client.status() == service.answer("status")


def test_a_call_costs_one_connection_and_leaves_none_open(client: PlainService, service: ScriptedService) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        client.recall("recall", {})
    service.failure = BadRequest("x: y; z")
    for _ in range(50):
        with pytest.raises(BadRequest):
            client.status()
    assert len(os.listdir("/proc/self/fd")) < before + 20


def test_a_refusal_is_heard_also_when_it_comes_before_the_question_is_sent(client: PlainService) -> None:
    with pytest.raises(BadRequest, match="larger than"):
        client.recall("recall", {"query": "x" * (8 << 20)})
    for _ in range(50):
        with pytest.raises(BadRequest, match="not a call"):
            client.recall("a/b", {"query": "x" * 60_000})
