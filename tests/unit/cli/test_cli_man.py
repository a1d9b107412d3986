"""Each command has a man page as its help says now, and the wheel has them all where `man` looks."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from daemon.cli import COMMANDS
from tools import man

CHECKOUT = Path(__file__).parents[3]
NAMES = {"reconstitute.1", *(f"reconstitute-{name}.1" for name in COMMANDS)}


def test_each_command_has_a_man_page_as_its_help_says_now(tmp_path: Path) -> None:
    # By a process of its own, because click keeps what an earlier call of a command said of its help option.
    subprocess.run([sys.executable, "tools/man.py", str(tmp_path)], cwd=CHECKOUT, check=True, timeout=240)
    there, made = (
        {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()} for folder in (man.FOLDER, tmp_path)
    )
    assert there.keys() == NAMES
    assert there == made  # `make man` writes them


def test_the_wheel_has_the_man_pages(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True, timeout=240)
    [wheel] = tmp_path.glob("*.whl")
    names = [Path(name) for name in zipfile.ZipFile(wheel).namelist()]
    assert {path.name for path in names if path.match("*.data/data/share/man/man1/*")} == NAMES


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_the_pages_are_correct_roff() -> None:
    command = ["groff", "-man", "-Tutf8", "-ww", "-z", *sorted(map(str, man.FOLDER.iterdir()))]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240)
    assert done.stderr == ""
