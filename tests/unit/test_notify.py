"""What systemd hears: on a real datagram socket, in the order it was said (D1)."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon import notify
from daemon.notify import Notifier


@pytest.fixture(params=["path", "abstract"])
def heard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """systemd's end, and what NOTIFY_SOCKET would be."""
    address = str(tmp_path / "notify") if request.param == "path" else f"@reconstitute-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(address.replace("@", "\0", 1) if address.startswith("@") else address)
        systemd.settimeout(90)
        yield systemd, address


def test_messages_arrive_in_order_and_in_systemds_words(heard: tuple[socket.socket, str]) -> None:
    systemd, address = heard
    notifier = Notifier({"NOTIFY_SOCKET": address})
    assert notifier.extend(90)
    assert notifier.status("verifying the archive: 3 of 9")
    assert notifier.ready("watching 2 sources")
    assert notifier.watchdog()
    assert notifier.stopping("draining")
    received = [systemd.recv(4096).decode() for _ in range(5)]
    assert received == [
        "EXTEND_TIMEOUT_USEC=90000000",
        "STATUS=verifying the archive: 3 of 9",
        "READY=1\nSTATUS=watching 2 sources",
        "WATCHDOG=1",
        "STOPPING=1\nSTATUS=draining",
    ]


@given(text=st.text())
def test_no_status_text_can_say_anything_else(text: str) -> None:
    address = f"@reconstitute-status-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind("\0" + address[1:])
        systemd.settimeout(90)
        Notifier({"NOTIFY_SOCKET": address}).ready(text)
        lines = systemd.recv(1 << 20).decode().split("\n")
    assert lines[0] == "READY=1"
    assert all(line.startswith("STATUS=") for line in lines[1:])
    assert len(lines) <= 2


def test_without_systemd_nothing_is_sent_and_nothing_fails() -> None:
    notifier = Notifier({})
    assert not notifier.ready("here")
    assert notifier.watchdog_interval_s is None


def test_a_socket_that_is_gone_is_logged_once_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")})
    with caplog.at_level(logging.WARNING):
        assert not notifier.ready()
        assert not notifier.watchdog()
    assert caplog.text.count("does not hear us") == 1


def test_a_full_queue_is_not_waited_for_long(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(address)
        notifier = Notifier({"NOTIFY_SOCKET": address})
        began = time.monotonic()
        while notifier.watchdog():
            assert time.monotonic() - began < 60


def test_waiting_for_a_reader_takes_no_processor_time(heard: tuple[socket.socket, str]) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": heard[1]})
    while notifier.watchdog():
        pass
    used, began = time.thread_time(), time.monotonic()
    assert not notifier.ready()
    assert time.monotonic() - began > 0.5  # it did wait for room
    assert time.thread_time() - used < 0.4  # by trying again and again it takes all of it


def test_what_the_thread_of_the_control_socket_sends_is_never_waited_for(
    heard: tuple[socket.socket, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    send = notify._datagram

    def sent(address: str, message: str, wait_s: float) -> None:
        waits.append(wait_s)
        send(address, message, wait_s)

    monkeypatch.setattr(notify, "_datagram", sent)
    notifier = Notifier({"NOTIFY_SOCKET": heard[1]})
    while notifier.watchdog():
        pass
    assert not notifier.status("following OpenCode")
    assert set(waits) == {0.0}


@pytest.mark.parametrize(
    ("variables", "interval"),
    [
        ({"WATCHDOG_USEC": "120000000"}, 40.0),
        ({"WATCHDOG_USEC": "120000000", "WATCHDOG_PID": str(os.getpid())}, 40.0),
        ({"WATCHDOG_USEC": "120000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "-3"}, None),
        ({}, None),
    ],
)
def test_the_watchdog_is_pinged_three_times_within_its_period(
    variables: dict[str, str], interval: float | None
) -> None:
    assert Notifier(variables).watchdog_interval_s == interval


def test_the_processs_own_environment_is_the_default(tmp_path: Path) -> None:
    """In a process of its own, which takes systemd-python's way where that is installed."""
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(address)
        systemd.settimeout(10)
        code = "from daemon.notify import Notifier; assert Notifier().ready('here')"
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "NOTIFY_SOCKET": address}, check=True)
        assert systemd.recv(4096) == b"READY=1\nSTATUS=here"
