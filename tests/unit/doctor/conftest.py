"""An installation for each test. The libraries are imported by test_doctor_packages.py alone: that takes seconds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.control.answers import Check
from daemon.doctor import packages
from tests.unit.doctor.installations import Installation


@pytest.fixture
def installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Installation]:
    usual = os.umask(0o077)  # as a command of its own process has it
    monkeypatch.setattr(packages, "packages", lambda: [Check("packages", "ok", "not imported in this test")])
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    yield Installation(tmp_path, capsys)
    os.umask(usual)
