"""The page's own server, and the service that serves it on demand."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from daemon import config, http_server
from daemon.app.engine import Engine
from daemon.control import calls, peer
from daemon.control.calls import OnPart, Progress, Request, silent
from daemon.errors import DaemonUnreachable, Retry
from daemon.web import HOST, WebPage
from daemon.web.entrance import Entrance
from daemon.web.site import Site
from tests.unit.web.conftest import Scripted

SESSIONS: dict[str, Any] = {"sessions": []}
NOBODY = 65534


async def test_it_answers_on_loopback_until_it_is_stopped() -> None:
    page = WebPage(Scripted(SESSIONS), 0)
    assert page.address == ""
    await page.start()
    await page.start()
    address, link = page.address, page.link()
    assert link.startswith(f"{address}/enter?key=")
    async with httpx.AsyncClient(trust_env=False, verify=False) as browser:
        assert (await browser.get(address)).status_code == 401
        assert (await browser.get(link)).status_code == 200
        assert (await browser.get(address)).status_code == 200
        assert (await browser.get(address, headers={"host": "evil.example"})).status_code == 403
    await page.stop()
    await page.stop()
    assert page.address == ""
    with socket.socket() as caller:
        assert caller.connect_ex((HOST, int(address.rpartition(":")[2]))) != 0


async def test_a_port_in_use_is_said_and_tried_again() -> None:
    with socket.create_server((HOST, 0)) as other:
        page = WebPage(Scripted(), other.getsockname()[1])
        with pytest.raises(Retry, match=r"web\.port"):
            await page.start()
        assert page.address == ""
    await page.start()
    assert page.address
    await page.stop()


# Not by Python, which may stand where another user cannot read it.
_CALLER = r'exec 3<>/dev/tcp/127.0.0.1/$0; printf "GET / HTTP/1.1\r\nhost: 127.0.0.1:$0\r\n\r\n" >&3; read -r said <&3; echo $said'


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(("uid", "status"), [(0, "401"), (NOBODY, "403")])
async def test_another_user_of_the_machine_is_refused(uid: int, status: str) -> None:
    page = WebPage(Scripted(), 0)
    await page.start()
    command = ["bash", "-c", _CALLER, page.address.rpartition(":")[2]]
    caller = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, user=uid, cwd="/")
    said, _ = await caller.communicate()
    await page.stop()
    assert said.decode().split()[1] == status


@pytest.mark.parametrize("family", ["IPv4", "IPv6"])
def test_the_kernel_tells_who_calls(family: str) -> None:
    with socket.create_server((HOST, 0)) as listener:
        if family == "IPv4":
            caller = socket.create_connection(listener.getsockname())
        else:
            caller = socket.socket(socket.AF_INET6)
            caller.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            caller.connect((f"::ffff:{HOST}", listener.getsockname()[1]))
        connection, _ = listener.accept()
        with caller, connection:
            assert peer.tcp_uid(connection) == os.geteuid()


def test_where_the_kernel_does_not_tell_nobody_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("sl local_address\n")
    monkeypatch.setattr(peer, "_TABLES", (tmp_path / "missing", tmp_path / "empty"))
    with socket.create_server((HOST, 0)) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert peer.tcp_uid(connection) is None


async def test_headers_that_do_not_come_end_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEADER_SECONDS", 0.2)
    page = WebPage(Scripted(), 0)
    await page.start()
    reader, writer = await asyncio.open_connection(HOST, int(page.address.rpartition(":")[2]))
    writer.write(b"GET / HTTP/1.1\r\n")
    assert b" 408 " in await reader.readline()
    writer.close()
    await page.stop()


def test_a_command_serves_no_page(tmp_path: Path) -> None:
    tables = config.Config(archive=config.sections.ArchiveSection(dir=str(tmp_path)))
    with Engine(tables) as engine, pytest.raises(DaemonUnreachable, match="service install"):
        engine.call(calls.Web())


class Working:
    """A service whose call Doctor lasts until `end`; `begun` counts them."""

    def __init__(self) -> None:
        self.begun, self.end = 0, threading.Event()

    def call(self, request: Any, *, progress: Progress = silent, on_part: OnPart = silent) -> Any:
        """See Service."""
        if isinstance(request, calls.Doctor):
            self.begun += 1
            assert self.end.wait(30)
        return request


async def test_short_calls_do_not_wait_for_long_ones() -> None:
    service = Working()
    site = Site(service, Entrance(), 0)
    requests: list[Request[Any]] = [calls.Status(), calls.Recall("recall", {}), calls.Pause(resume=True)]
    long = [asyncio.create_task(site.ask(calls.Doctor())) for _ in range(6)]
    try:
        await asyncio.sleep(0.2)
        for request in requests:
            async with asyncio.timeout(10):
                assert await site.ask(request) is request
        assert service.begun == 2
    finally:
        service.end.set()
        await asyncio.gather(*long)
    assert service.begun == 6
