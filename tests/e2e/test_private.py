"""What any command writes is for its user alone, and no command leaves a core file, whatever the shell allows."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.daemon_process import until
from tests.support.stores.make_opencode import one_written_file

CHECKOUT = Path(__file__).resolve().parents[2]


OPEN_TO_ALL = ["bash", "-c", 'umask 0; ulimit -S -c $(ulimit -H -c); exec "$@"', "bash"]
"""Runs a command as a shell that lets others read, and keeps cores."""


def _environment(root: Path) -> dict[str, str]:
    places = {"OPENCODE_DIR": "opencode", "ARCHIVE_DIR": "archive", "OUTPUT_DIR": "output"}
    named = {f"RECONSTITUTE_{name}": str(root / place) for name, place in places.items()}
    nobody = {"RECONSTITUTE_EMBEDDING_URL": "http://127.0.0.1:9", "RECONSTITUTE_CHAT_URL": "http://127.0.0.1:9"}
    return {**os.environ, "PYTHONPATH": str(CHECKOUT), **named, **nobody}


def test_nothing_that_commands_write_is_open_to_others(tmp_path: Path) -> None:
    root = tmp_path / "ours"
    one_written_file(tmp_path / "opencode", "shop", "kingfisher")
    environment = _environment(root) | {"RECONSTITUTE_OPENCODE_DIR": str(tmp_path / "opencode")}
    root.mkdir(mode=0o700)
    commands = [
        ["index"], ["/work/shop"], ["restore", "/work/shop", "--to", str(root / "back")],
        ["export", "--format", "jsonl", "--output", str(root / "all.jsonl")], ["run", "--once"],
    ]  # fmt: skip
    for words in commands:
        done = subprocess.run(
            [*OPEN_TO_ALL, sys.executable, "-m", "daemon.cli", *words],
            env=environment, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    made = [path for path in root.rglob("*") if not path.is_symlink()]
    assert {"back", "all.jsonl", "archive", "output"} <= {path.name for path in root.iterdir()}
    assert [str(path) for path in made if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


@pytest.mark.parametrize("words", [["mcp"], ["run"]], ids=" ".join)
def test_a_process_that_stays_leaves_no_core(tmp_path: Path, words: list[str]) -> None:
    one_written_file(tmp_path / "opencode", "shop", "kingfisher")
    environment = _environment(tmp_path) | {"XDG_RUNTIME_DIR": str(tmp_path)}
    with subprocess.Popen(
        [*OPEN_TO_ALL, sys.executable, "-m", "daemon.cli", *words],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        facts = Path(f"/proc/{process.pid}")

        def is_private() -> bool:
            limits = next(line for line in (facts / "limits").read_text().splitlines() if "core file" in line)
            return limits.split()[4:6] == ["0", "0"] and "Umask:\t0077" in (facts / "status").read_text()

        try:
            until(is_private, what="a process that is private")
        finally:
            process.kill()
