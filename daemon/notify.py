"""What systemd is told: ready, alive, busy, stopping. The only import of systemd.

Uses systemd-python where the extra is installed, else sends the same datagram itself: READY and WATCHDOG work either
way. Without $NOTIFY_SOCKET (not started by systemd) every call does nothing and answers False. launchd is told nothing,
and watches nothing but whether the process lives.

Does not: decide when. READY belongs after archive, index and socket answer (docs/reliability.md, D1), WATCHDOG after
every loop has shown progress (D2): that is the composition root's to know.
"""

from __future__ import annotations

import importlib
import logging
import os
import socket
import time
from collections.abc import Callable, Mapping

from daemon.supervisor import LABEL

SEND_SECONDS = 1.0
"""How long READY and the like wait for room in the reader's queue; a status or a ping waits for none."""
_log = logging.getLogger(__name__)


class Notifier:
    """Speaks sd_notify(3). Each call answers whether the datagram was handed over; a failure is logged, once."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """`environment` is where NOTIFY_SOCKET and WATCHDOG_* are looked up: this process's when not given."""
        self._environment = os.environ if environment is None else environment
        self._address = self._environment.get("NOTIFY_SOCKET", "")
        # systemd-python reads the process's own environment only.
        self._native = _native() if self._address and environment is None else None
        self._has_failed = False

    @property
    def is_supervised(self) -> bool:
        """Whether a service manager started this process, and will start it again."""
        return bool(self._address) or self._environment.get("XPC_SERVICE_NAME") == LABEL

    @property
    def watchdog_interval_s(self) -> float | None:
        """How often to ping, seconds: a third of WatchdogSec. None when no ping is expected of this process."""
        text = self._environment.get("WATCHDOG_USEC", "")
        pid = self._environment.get("WATCHDOG_PID", "")
        if not text or (pid and pid != str(os.getpid())):
            return None
        if not text.isdecimal() or int(text) == 0:
            _log.warning("WATCHDOG_USEC is not a number of microseconds; no watchdog pings are sent")
            return None
        return int(text) / 3 / 1_000_000

    def ready(self, status: str = "") -> bool:
        """Start-up is complete."""
        return self._send("READY=1", *_status(status))

    def status(self, text: str) -> bool:
        """One line for ``systemctl status``; ids and counts only."""
        return self._send(*_status(text), wait_s=0.0)

    def watchdog(self) -> bool:
        """The work was proven to go on."""
        return self._send("WATCHDOG=1", wait_s=0.0)

    def reloading(self) -> bool:
        """The configuration is read again; `ready` says that this is over."""
        return self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def extend(self, seconds: float) -> bool:
        """Start-up, or stopping, goes on and needs up to this much longer from now."""
        return self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")

    def stopping(self, status: str = "") -> bool:
        """Shutting down has begun."""
        return self._send("STOPPING=1", *_status(status))

    def _send(self, *lines: str, wait_s: float = SEND_SECONDS) -> bool:
        if not self._address or not lines:
            return False
        message = "\n".join(lines)
        try:
            if self._native is not None:
                return self._native(message)
            _datagram(self._address, message, wait_s)
        except OSError as error:
            if not self._has_failed:
                _log.warning("systemd does not hear us at NOTIFY_SOCKET: %s", error.strerror or error)
            self._has_failed = True
            return False
        return True


def _status(text: str) -> tuple[str, ...]:
    """STATUS= with the text as one line: a line break would begin another assignment."""
    line = " ".join(text.split())
    return (f"STATUS={line}",) if line else ()


def _native() -> Callable[[str], bool] | None:
    try:
        daemon = importlib.import_module("systemd.daemon")
    except ImportError:  # the extra is not installed
        return None
    return lambda message: bool(daemon.notify(message))


def _datagram(address: str, message: str, wait_s: float) -> None:
    """Send to a path, or with a leading ``@`` to an abstract socket.

    Raises:
        OSError: nobody listens there, or its queue stays full for `wait_s`.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(wait_s)
        # Connected, so that waiting waits: to poll, a socket that is not has room always, and Python would try again
        # and again without a pause.
        sender.connect("\0" + address[1:] if address.startswith("@") else address)
        sender.send(message.encode("utf-8", "replace"))
