"""Our service as `reconstitute service install` installs it under a real user manager of systemd."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.processes.daemon_process import CHECKOUT, Daemon, until
from tests.support.processes.user_manager import UserManager

UNIT = "reconstitute.service"
STOP_S = 20
_FASTER = """[Service]
RestartSec=0.1
TimeoutAbortSec=2
StandardOutput=append:{log}
StandardError=append:{log}
Environment=PYTHONPATH={checkout}
"""


class Service:
    """The service as `reconstitute service install` installs it, over one archive of the test's."""

    def __init__(self, manager: UserManager, daemon: Daemon) -> None:
        self.manager, self.daemon = manager, daemon
        daemon.socket = Path(manager.environment["XDG_RUNTIME_DIR"]) / "reconstitute" / "control.sock"
        self._drop_ins = manager.home / ".config/systemd/user" / f"{UNIT}.d"
        self._drop_ins.mkdir(parents=True)
        (self._drop_ins / "test.conf").write_text(_FASTER.format(log=daemon.log_path, checkout=CHECKOUT))

    def reconstitute(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.daemon.command(*words),
            cwd=CHECKOUT, env=self.manager.environment, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        return int(self.manager.show(UNIT, "MainPID")["MainPID"])

    @property
    def state(self) -> str:
        return self.manager.show(UNIT, "ActiveState")["ActiveState"]

    def change(self, setting: str) -> None:
        """Start it anew with this line in its unit."""
        (self._drop_ins / "more.conf").write_text(f"[Service]\n{setting}\n")
        assert self.manager.systemctl("daemon-reload").returncode == 0
        assert self.manager.systemctl("restart", UNIT).returncode == 0

    def kill(self, number: int) -> None:
        """This signal to the service alone, and nothing more until another one has taken its place."""
        former = self.pid
        os.kill(former, number)
        until(lambda: self.pid not in {0, former} and self.state == "active", what="the restart")

    def until_status(self, wanted: Callable[[dict[str, Any]], object], what: str) -> dict[str, Any]:
        return self.daemon.until_status(wanted, what)


@contextmanager
def installed(manager: UserManager, daemon: Daemon) -> Iterator[Service]:
    """Install it over the archive of `daemon`, which is not started itself, and uninstall it."""
    service = Service(manager, daemon)
    done = service.reconstitute("service", "install")
    try:
        assert done.returncode == 0, done.stdout + done.stderr + daemon.log_end()
        assert "The service runs" in done.stdout
        yield service
    finally:
        assert service.reconstitute("service", "uninstall", "--force").returncode == 0
        shutil.rmtree(manager.home / ".config/systemd/user" / f"{UNIT}.d")
        manager.systemctl("daemon-reload")
        manager.systemctl("reset-failed")
