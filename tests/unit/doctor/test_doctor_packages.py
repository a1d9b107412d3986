"""The libraries are imported in a process of their own: one that is missing, fails or crashes is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.doctor import packages
from daemon.errors import Retry


def test_every_library_of_this_installation_can_be_imported() -> None:
    [row] = packages.packages()
    assert row.state == "ok", row


def test_a_module_that_fails_or_crashes_is_named_and_the_others_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "torn.py").write_text("raise ImportError('libfoo.so.3: no such file')")
    (tmp_path / "crashing.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    failures = packages._failures(["json", "torn", "crashing", "absent"])
    assert failures == {
        "torn": "ImportError: libfoo.so.3: no such file",
        "crashing": "the process ended with -11 when it was imported",
        "absent": "ModuleNotFoundError: No module named 'absent'",
    }


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "required", lambda: {"zstandard": None})
    [row] = packages.packages()
    assert (row.state, row.message) == ("broken", "zstandard: not installed")
    assert "pip install" in row.fix


def test_an_import_that_hangs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(packages, "_SECONDS", 20)
    (tmp_path / "hanging.py").write_text("import time; time.sleep(600)")
    with pytest.raises(Retry, match="hanging was not imported within 20 s"):
        packages._failures(["json", "hanging"])
