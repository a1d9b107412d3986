"""What a client may take of the adapter before it has said what it wants: time, connections, bytes; over raw sockets."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest

from daemon import http_server
from daemon.adapter import Adapter, guard
from tests.support.servers.adapter_opencode import MODEL, ScriptedOpenCode, adapter, user

HEAD = b"POST /api/chat HTTP/1.1\r\nhost: 127.0.0.1\r\n"
GET = b"GET /api/version HTTP/1.1\r\nhost: 127.0.0.1\r\n"


@pytest.fixture
def served(opencode: ScriptedOpenCode, monkeypatch: pytest.MonkeyPatch) -> Iterator[Adapter]:
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 0.5)
    with adapter(opencode.url) as made:
        yield made


def call(served: Adapter) -> socket.socket:
    parts = urlsplit(served.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=90)


def rest(caller: socket.socket) -> tuple[int, str]:
    """(status, text) of all that comes until the other side hangs up."""
    found = b""
    while piece := caller.recv(65536):
        found += piece
    head, _, body = found.partition(b"\r\n\r\n")
    return (int(head.split()[1]), body.decode()) if head else (0, "")


@pytest.mark.parametrize(
    "begun", [b"", b"G", GET, GET + b"x: ", HEAD], ids=["nothing", "a byte", "a line", "half", "post"]
)
def test_headers_that_do_not_arrive_are_not_waited_for(served: Adapter, begun: bytes) -> None:
    with call(served) as caller:
        caller.sendall(begun)
        status, text = rest(caller)
    assert (status, "did not arrive" in text) == (408, True)


def test_a_byte_now_and_then_does_not_lengthen_the_time(served: Adapter) -> None:
    with call(served) as caller:
        began = time.monotonic()
        caller.sendall(GET)
        try:
            while time.monotonic() - began < 60:
                caller.sendall(b"x: y\r\n")
                time.sleep(0.1)
        except OSError:
            pass
        assert time.monotonic() - began < 30


def test_the_second_request_of_a_connection_is_bounded_too(served: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 2.0)  # for the first one, too
    with call(served) as caller:
        caller.sendall(GET + b"\r\n")
        assert b"200 OK" in caller.recv(65536)
        caller.sendall(b"G")
        status, text = rest(caller)
    assert (status, "did not arrive" in text) == (408, True)


def test_an_answer_that_takes_longer_than_headers_may_is_given(
    served: Adapter, opencode: ScriptedOpenCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 2.0)

    def slow(*_: Any, **__: Any) -> str:
        time.sleep(3.0)
        return "1.18.33"

    monkeypatch.setattr(served._opencode, "health", slow)
    with call(served) as caller:
        caller.sendall(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        assert rest(caller)[0] == 200


def test_more_connections_than_may_be_are_refused_and_come_back(
    served: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 30)
    with ExitStack() as stack:
        held = [stack.enter_context(call(served)) for _ in range(http_server.CONNECTIONS)]
        for one in held:
            one.sendall(GET)  # the headers are not complete: each stays open
        with call(served) as late:
            status, text = rest(late)
        assert (status, "connections are open" in text) == (503, True)
        held.pop().close()
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            with call(served) as again:
                again.sendall(GET + b"connection: close\r\n\r\n")
                if rest(again)[0] == 200:
                    return
        pytest.fail("a connection that was closed is not free again")


def test_a_body_that_is_said_to_be_too_large_is_refused_before_it_is_sent(served: Adapter) -> None:
    with call(served) as caller:
        caller.sendall(HEAD + b"content-length: %d\r\nexpect: 100-continue\r\n\r\n" % (guard.BODY_BYTES + 1))
        status, text = rest(caller)
    assert (status, "larger than 32 MB" in text) == (413, True)


def test_a_body_without_a_length_is_counted(served: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daemon.adapter.routes.BODY_BYTES", 1000)
    with call(served) as caller:
        caller.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"400\r\n" + b"x" * 1024 + b"\r\n")
        caller.shutdown(socket.SHUT_WR)
        assert rest(caller)[0] == 413


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("", 401), ("Bearer wrong", 401), ("Bearer ", 401), ("sesame", 401), ("Basic sesame", 401), ("Bearer sésame", 401),
        ("Bearer sesame", 200), ("bearer  sesame ", 200),
    ],
)  # fmt: skip
def test_with_a_token_nobody_asks_without_it(opencode: ScriptedOpenCode, given: str, status: int) -> None:
    said = f"authorization: {given}\r\n".encode() if given else b""
    with adapter(opencode.url, token="sesame") as served:
        for path in (b"/", b"/api/tags", b"/health", b"/nothing-there"):
            with call(served) as caller:
                caller.sendall(b"GET %s HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n" % path + said + b"\r\n")
                got, text = rest(caller)
            assert (got == 401) == (status == 401)
            assert "sesame" not in text


def test_without_the_token_a_body_is_not_read(opencode: ScriptedOpenCode) -> None:
    body = json.dumps({"model": MODEL, "messages": [user("hi")]}).encode()
    with adapter(opencode.url, token="sesame") as served, call(served) as caller:
        caller.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(body))  # the body stays here
        assert rest(caller)[0] == 401
    assert opencode.requests == []
