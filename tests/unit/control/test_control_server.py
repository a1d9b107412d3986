"""The control socket from outside: who may call, what is refused, and how (M1 to M3)."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon.control import endpoint, responses
from daemon.control.server import Server
from daemon.errors import ArchiveLocked, BadRecord, ConfigError, IndexBroken, ModelUnavailable
from tests.support.examples import examples
from tests.support.processes.daemon_process import until
from tests.support.servers.scripted_service import ScriptedService, content_of, serving


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "control.sock"


@pytest.fixture
def service() -> ScriptedService:
    return ScriptedService()


@pytest.fixture
def served(service: ScriptedService, path: Path) -> Iterator[Path]:
    with serving(service, path):
        yield path


def connect(path: Path) -> socket.socket:
    caller = socket.socket(socket.AF_UNIX)
    caller.settimeout(90)
    caller.connect(str(path))
    return caller


def raw(path: Path, data: bytes) -> bytes:
    """What comes back for these bytes, until the server closes."""
    with connect(path) as caller:
        with suppress(BrokenPipeError):  # the server may have hung up before it was told anything
            caller.sendall(data)
        return drain(caller)


def drain(caller: socket.socket) -> bytes:
    answer = b""
    while True:
        try:
            piece = caller.recv(65536)
        except ConnectionResetError:
            return answer
        if not piece:
            return answer
        answer += piece


def call(path: Path, method: str, where: str, body: bytes = b"") -> tuple[int, list[dict[str, Any]]]:
    """The status and the JSON lines of one call."""
    head = f"{method} {where} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    top, _, rest = raw(path, head + body).partition(b"\r\n\r\n")
    if b"chunked" in top:
        rest = unchunk(rest)
    return int(top.split()[1]), [json.loads(line) for line in rest.splitlines() if line.strip()]


def unchunk(data: bytes) -> bytes:
    whole = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        whole, data = whole + data[:length], data[length + 2 :]
    return whole


def start_alone(path: Path, service: Any = None) -> None:
    """Start and stop a server in a loop of its own; raises what start raises."""

    async def both() -> None:
        server = Server(service or ScriptedService(), path)
        await server.start()
        await server.stop()

    asyncio.run(both())


def test_each_call_reaches_the_service_and_brings_its_answer(served: Path, service: ScriptedService) -> None:
    assert call(served, "GET", "/status") == (200, [service.answer("status")])
    status, lines = call(served, "POST", "/index")
    assert (status, lines[-1]["result"]["changed"]) == (200, 3)
    status, lines = call(served, "POST", "/reconstitute", b'{"path": "/home/ada/shop", "questions": ["Why?"]}')
    assert lines[0] == {"phase": "scan", "done": 1, "total": 3}
    assert lines[-1]["result"]["pages"] == 4
    body = b'{"arguments": {"query": "x", "results": "7"}, "here": "/home/ada"}'
    assert call(served, "POST", "/recall/recall_files", body) == (200, [service.answers["recall"]])
    status, lines = call(served, "POST", "/export", b'{"arguments": {"format": "jsonl"}}')
    assert (status, [line for line in lines if "phase" not in line][:-1]) == (200, [{"text": "{}\n"}])
    assert lines[-1]["result"]["sessions"] == 1
    assert service.calls == [
        ("status",),
        ("index", False),
        ("reconstitute", "/home/ada/shop", ["Why?"], "", ""),
        ("recall", "recall_files", {"query": "x", "results": "7"}, "/home/ada"),
        ("export", {"format": "jsonl"}),
    ]


@pytest.mark.parametrize(
    ("method", "where", "body", "status", "says"),
    [
        ("GET", "/", b"", 404, "GET /status, POST /recall"),
        ("GET", "/statuss", b"", 404, "not a call"),
        ("DELETE", "/status", b"", 405, "not a call"),
        ("GET", "/files", b"", 405, "not a call"),
        ("POST", "/search", b"{}", 404, "not a call"),
        ("POST", "/content", b"", 400, "path"),
        ("POST", "/files", b"{", 400, "/files"),
        ("POST", "/files", b"[]", 400, "object"),
        ("POST", "/files", b'{"path": 3}', 400, "`$.path`"),
        ("POST", "/history", b'{"path": "/x", "line": 3}', 400, "did you mean lines?"),
        ("POST", "/trajectories", b'{"started": "3"}', 400, "`$.started`"),
        ("POST", "/files", b'{"path": "\xff"}', 400, "/files"),
        ("POST", "/files", b"[" * 100_000, 400, "/files"),
        ("POST", "/models", b'{"path": "x"}', 400, "it takes no fields"),
        ("POST", "/reconstitute", b"{}", 400, "path"),
        ("GET", "/recall/recall", b"", 405, "not a call"),
        ("POST", "/recall", b"", 404, "POST /recall/{call}"),
        ("POST", "/recall/recall", b"[]", 400, "object"),
        ("POST", "/recall/recall", b'{"arguments": []}', 400, "`$.arguments`"),
        ("POST", "/recall/recall", b'{"arguments": {}, "here": 3}', 400, "`$.here`"),
        ("POST", "/recall/recall", b'{"argument": {}}', 400, "did you mean arguments?"),
        ("POST", "/export", b'{"arguments": 3}', 400, "`$.arguments`"),
        ("POST", "/reconstitute", b'{"path": "/x", "questions": "Why?"}', 400, "questions"),
        ("POST", "/files", b'{"path": "' + b"x" * (1 << 20) + b'"}', 413, "1048576 bytes"),
        ("POST", "/recall/recall", b'{"call": "recall_get"}', 400, "it takes arguments, here"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused_with_the_reason(
    served: Path, method: str, where: str, body: bytes, status: int, says: str
) -> None:
    got, [answer] = call(served, method, where, body)
    assert got == status
    assert set(answer) == {"error"}
    assert set(answer["error"]) == {"type", "message", "exitCode"}
    assert (answer["error"]["type"], answer["error"]["exitCode"]) == ("BadRequest", 64)
    assert says in answer["error"]["message"]


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (ModelUnavailable("127.0.0.1: no answer; start Ollama"), 503),
        (BadRecord("msg_1: not JSON; kept aside"), 422),
        (IndexBroken("semantic: probe failed; being rebuilt"), 503),
    ],
)
def test_an_error_of_ours_travels_with_type_message_and_exit_code(
    served: Path, service: ScriptedService, failure: Any, status: int
) -> None:
    service.failure = failure
    expected = {"type": type(failure).__name__, "message": str(failure), "exitCode": failure.exit_code}
    assert call(served, "GET", "/status") == (status, [{"error": expected}])
    assert call(served, "POST", "/index")[1] == [{"error": expected}]


SECRET = "ghp_" + "a8Kd0Zq3Lw7Rt5Yb2Nc" * 2


def test_an_error_does_not_repeat_the_secret_that_the_caller_sent(served: Path, service: ScriptedService) -> None:
    service.failure = BadRecord(f"no session is named {SECRET!r}; see recall_sessions")
    bodies = [
        ("GET", "/status", b""),
        ("POST", "/index", b""),
        ("POST", "/files", json.dumps({"path": "/x", SECRET: 1}).encode()),
        ("POST", f"/{SECRET}", b""),
    ]
    for method, where, sent in bodies:
        _, [answer] = call(served, method, where, sent)
        assert SECRET not in json.dumps(answer)
        assert "[REDACTED:github:" in answer["error"]["message"]
        assert answer["error"]["exitCode"] in {64, service.failure.exit_code}


def test_a_fault_of_ours_is_answered_without_its_text_and_logged(
    served: Path, service: ScriptedService, caplog: pytest.LogCaptureFixture
) -> None:
    service.failure = KeyError("hunter2")
    for method, where in (("GET", "/status"), ("POST", "/index")):
        _, [answer] = call(served, method, where)
        assert answer["error"]["type"] == "ReconstituteError"
        assert "KeyError" in answer["error"]["message"]
        assert "hunter2" not in answer["error"]["message"]
    assert "a fault of ours: /index" in caplog.text
    service.failure = None
    assert call(served, "GET", "/status")[0] == 200


def test_an_answer_that_is_not_json_data_is_a_fault_not_silence(served: Path, service: ScriptedService) -> None:
    service.answers["recall"] = {"when": object()}
    assert call(served, "POST", "/recall/recall")[1][0]["error"]["type"] == "ReconstituteError"


def test_a_lone_surrogate_in_an_answer_arrives(served: Path, service: ScriptedService) -> None:
    service.answers["recall"] = {"title": "broken \ud800 text", "a\ud800": 1}
    assert call(served, "POST", "/recall/recall") == (200, [service.answers["recall"]])


def test_status_answers_while_long_calls_run(served: Path, service: ScriptedService) -> None:
    service.gate.clear()
    callers = [connect(served) for _ in range(10)]
    for caller in callers:
        caller.sendall(b"POST /index HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        assert service.under_way.acquire(timeout=90)
    assert call(served, "GET", "/status")[0] == 200
    service.gate.set()
    for caller in callers:
        assert b'"result"' in drain(caller)
        caller.close()


def test_progress_arrives_before_the_call_ends(served: Path, service: ScriptedService) -> None:
    service.gate.clear()
    with connect(served) as caller:
        caller.sendall(b"POST /index HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        seen = b""
        while b'"done":3' not in seen:
            seen += caller.recv(4096)
        assert b'"result"' not in seen
        service.gate.set()
        assert b'"result"' in drain(caller)


def test_a_long_silent_call_is_seen_to_live(
    served: Path, service: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "ALIVE_SECONDS", 0.05)
    service.gate.clear()
    with connect(served) as caller:
        caller.sendall(b"POST /index HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        seen = b""
        while seen.count(b"\r\n1\r\n\n") < 2:  # pieces that hold a line break and nothing else
            piece = caller.recv(4096)
            assert piece
            seen += piece
        service.gate.set()
        assert b'"result"' in drain(caller)


def test_a_caller_that_hangs_up_does_not_stop_the_work_or_the_server(served: Path, service: ScriptedService) -> None:
    service.gate.clear()
    with connect(served) as caller:
        caller.sendall(b"POST /index HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        assert service.under_way.acquire(timeout=90)
    service.gate.set()
    assert call(served, "GET", "/status")[0] == 200


def test_more_progress_than_is_read_is_left_out_but_the_result_is_not(path: Path) -> None:
    class Chatty(ScriptedService):
        def work(self, _request: Any, progress: Any, _take: Any) -> None:
            for done in range(20_000):
                progress({"phase": "embed" * 20, "done": done, "total": None})

    with serving(Chatty(), path), connect(path) as caller:
        caller.sendall(b"POST /index HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        time.sleep(0.5)
        assert drain(caller).partition(b"\r\n\r\n")[2].rstrip().endswith(b'"warnings":[]}}\n\r\n0')


def test_a_sender_that_says_nothing_is_hung_up_on(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "READ_SECONDS", 0.2)
    for beginning in (b"", b"GET /sta", b"POST /files HTTP/1.1\r\nhost: x\r\n"):
        assert raw(served, beginning) == b""
    monkeypatch.setattr(responses, "READ_SECONDS", 2.0)  # for the headers, which are there
    assert b" 408 " in raw(served, b'POST /files HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\n{"pat')


def test_excess_connections_are_refused_as_busy_and_served_later(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = [connect(served) for _ in range(16)]
    answer = raw(served, b"")
    assert b" 503 " in answer
    assert b"try again later" in answer
    for caller in waiting:
        caller.close()
    until(lambda: call(served, "GET", "/status")[0] == 200)


@given(
    data=st.binary(min_size=1, max_size=200)
    | st.from_regex(rb"(GET|POST) /[a-z]{0,12} HTTP/1\.[01]\r\n[ -~]{0,40}\r\n\r\n")
)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_stop_the_server(served: Path, data: bytes) -> None:
    with connect(served) as caller:
        try:
            caller.sendall(data)
            caller.shutdown(socket.SHUT_WR)
        except OSError:  # hung up on already
            pass
        answer = drain(caller)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 ")
    assert b" 500 " not in answer
    assert call(served, "GET", "/status")[0] == 200


def test_a_peer_of_another_user_is_hung_up_on(service: ScriptedService, path: Path) -> None:
    with serving(service, path, uid=os.geteuid() + 1):
        assert raw(path, b"GET /status HTTP/1.1\r\nhost: x\r\n\r\n") == b""
    assert service.calls == []


def test_socket_and_directory_are_closed_to_others_whatever_the_umask(service: ScriptedService, path: Path) -> None:
    before = os.umask(0)
    try:
        with serving(service, path):
            assert stat.S_IMODE(path.lstat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.lstat().st_mode) == 0o700
    finally:
        os.umask(before)


def test_the_socket_never_has_a_wider_mode(path: Path) -> None:
    """Bound under umask 0, its first visible mode is the final one: there is no later chmod to be faster than."""
    before = os.umask(0)
    try:
        listener, _ = endpoint.bind(path)
        seen = path.lstat()
        listener.close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(seen.st_mode) == 0o600
    assert seen.st_ctime_ns - seen.st_mtime_ns == 0  # a chmod would have moved ctime on


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o704])
def test_a_directory_open_to_others_is_refused(path: Path, mode: int) -> None:
    path.parent.mkdir()
    path.parent.chmod(mode)
    with pytest.raises(ConfigError, match=f"mode {mode:04o}.*chmod 700"):
        start_alone(path)
    assert not path.exists()


def test_a_directory_that_is_a_link_or_a_file_is_refused(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    path.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="is a link or no directory"):
        start_alone(path)
    path.parent.unlink()
    path.parent.write_text("")
    with pytest.raises(ConfigError, match="is a link or no directory"):
        start_alone(path)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_missing_directories_are_made_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "control.sock"
    with serving(ScriptedService(), path):
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


@pytest.mark.parametrize(("length", "fits"), [(107, True), (108, False), (300, False)])
def test_a_path_longer_than_a_socket_can_have_is_refused_with_its_length(
    tmp_path: Path, length: int, fits: bool
) -> None:
    path = tmp_path / "ü" / "s"  # counted in bytes: this letter has two
    path = path.with_name("s" * (length - len(os.fsencode(path.parent)) - 1))
    assert len(os.fsencode(path)) == length
    if fits:
        start_alone(path)
    else:
        with pytest.raises(ConfigError, match=rf"at most 107 bytes, this one {length}"):
            start_alone(path)


def test_what_is_not_a_socket_is_never_removed(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_text("precious")
    with pytest.raises(ConfigError, match="not a socket"):
        start_alone(path)
    assert path.read_text() == "precious"
    path.unlink()
    path.symlink_to("/dev/null")
    with pytest.raises(ConfigError, match="not a socket"):
        start_alone(path)
    assert path.is_symlink()


def test_the_socket_of_a_killed_daemon_is_replaced(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    child = os.fork()
    if child == 0:
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(str(path))
        dead.listen()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert path.is_socket()
    with serving(ScriptedService(), path):
        assert call(path, "GET", "/status")[0] == 200


def test_a_second_daemon_is_refused_and_the_first_goes_on(served: Path) -> None:
    with pytest.raises(ArchiveLocked, match="another daemon answers"):
        start_alone(served)
    assert call(served, "GET", "/status")[0] == 200


def test_stopping_removes_our_socket_but_not_its_successor(path: Path) -> None:
    with serving(ScriptedService(), path):
        pass
    assert not path.exists()
    with serving(ScriptedService(), path):
        path.unlink()
        with socket.socket(socket.AF_UNIX) as successor:
            successor.bind(str(path))
    assert path.is_socket()


def test_stopping_ends_within_its_budget_while_a_call_hangs(path: Path, service: ScriptedService) -> None:
    service.gate.clear()
    with serving(service, path):
        caller = connect(path)
        caller.sendall(b"POST /index HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        assert service.under_way.acquire(timeout=90)
        began = time.monotonic()
    assert time.monotonic() - began < 30
    service.gate.set()
    caller.close()


def test_a_call_whose_caller_is_gone_has_ended_when_the_server_has_stopped(path: Path) -> None:
    """What it works on is closed next: a call that went on would read a closed archive."""

    class Slow(ScriptedService):
        has_ended = False

        def work(self, request: Any, progress: Any, on_part: Any) -> None:
            super().work(request, progress, on_part)
            self.has_ended = True

    service = Slow()
    service.gate.clear()
    with serving(service, path):
        with connect(path) as caller:
            caller.sendall(b"POST /index HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
            assert service.under_way.acquire(timeout=90)
        threading.Timer(0.5, service.gate.set).start()
    assert service.has_ended


def test_signal_handlers_stay_the_daemons_own(path: Path) -> None:
    async def look() -> list[Any]:
        server = Server(ScriptedService(), path)
        await server.start()
        found = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
        await server.stop()
        return found

    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    seen = asyncio.run(look())
    assert seen[1] == before[1]
    assert "uvicorn" not in repr(seen)


def test_stopping_a_server_twice_or_unstarted_is_no_error(path: Path) -> None:
    async def run() -> None:
        server = Server(ScriptedService(), path)
        await server.stop()
        await server.start()
        assert await asyncio.to_thread(path.exists)
        await server.stop()
        await server.stop()

    asyncio.run(run())
    assert not path.exists()


@pytest.mark.parametrize(
    ("where", "body", "called"),
    [
        ("/files", {}, ("files", "/", "", False)),
        ("/files", {"path": "/x", "at": "2026-05-31", "lost": True}, ("files", "/x", "2026-05-31", True)),
        ("/history", {"path": "/x", "diff": True, "lines": True}, ("history", "/x", True, True)),
        ("/content", {"path": "/x", "at": "2026-05-31", "raw": True}, ("content", "/x", "2026-05-31", True)),
        (
            "/restore",
            {"path": "/x", "deleted": True, "grade": "stale", "exclude": ["*.py"]},
            ("restore", "/x", "", True, "stale", [], ["*.py"], ""),
        ),
    ],
)
def test_each_call_about_files_reaches_the_service(
    served: Path, service: ScriptedService, where: str, body: dict[str, Any], called: tuple[Any, ...]
) -> None:
    status, lines = call(served, "POST", where, json.dumps(body).encode())
    assert (status, service.calls) == (200, [called])
    assert "result" in lines[-1]


def test_contents_are_sent_before_the_result_and_whole(served: Path, service: ScriptedService) -> None:
    service.parts["restore"] = [content_of("a", bytes(range(256))), content_of("b", b"", partial=True)]
    _, lines = call(served, "POST", "/restore", b'{"path": "/x"}')
    sent = [line["content"] for line in lines if "content" in line]
    assert [base64.b64decode(content["data"]) for content in sent] == [bytes(range(256)), b""]
    assert set(sent[0]) == {"path", "relative", "grade", "sha256", "data", "partial", "deleted", "executable"}
    assert lines[-1]["result"] == service.answer("restore")


@pytest.mark.parametrize(
    ("where", "body", "says"),
    [
        ("/files", b'{"losst": true}', "did you mean lost?"),
        ("/history", b"{}", "path"),
        ("/content", b'{"path": 3}', "`$.path`"),
        ("/restore", b'{"path": "/x", "zzz": 1}', "it takes path, at, deleted, grade"),
        ("/alias", b'{"remove": "yes"}', "remove"),
    ],
)
def test_a_call_about_files_that_makes_no_sense_is_refused_with_the_reason(
    served: Path, where: str, body: bytes, says: str
) -> None:
    status, [answer] = call(served, "POST", where, body)
    assert (status, answer["error"]["type"]) == (400, "BadRequest")
    assert says in answer["error"]["message"]


class _Endless(ScriptedService):
    """Sends contents until that fails."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = 0
        self.ended = threading.Event()

    def work(self, _request: Any, _progress: Any, on_part: Any) -> None:
        content = content_of("a", b"x" * 100_000)
        try:
            while self.sent < 100_000:
                on_part(content)
                self.sent += 1
        finally:
            self.ended.set()


def test_contents_wait_for_a_slow_reader_and_stop_when_it_hangs_up(path: Path) -> None:
    service = _Endless()
    with serving(service, path):
        with connect(path) as caller:
            caller.sendall(b'POST /restore HTTP/1.1\r\nhost: x\r\ncontent-length: 13\r\n\r\n{"path":"/x"}')
            caller.recv(1000)
            time.sleep(1.5)
            assert service.sent < 200  # some megabytes, not all there is
            assert not service.ended.is_set()
        assert service.ended.wait(90)
        assert call(path, "GET", "/status")[0] == 200
