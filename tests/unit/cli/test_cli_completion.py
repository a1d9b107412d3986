"""A real bash completes commands, options, values and paths with the script that the command prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from daemon.cli import COMMANDS

# `compgen` has no way to ask for what Tab would give, so the function that the script registers is called as bash does.
ASK = """
eval "$(reconstitute completion bash)"
compopt() { echo "left to the shell: $1 $2"; }
COMP_WORDS=(reconstitute "$@"); COMP_CWORD=$#
_reconstitute_completion reconstitute
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "bin" / "reconstitute"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m daemon.cli "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/local/bin:/usr/bin:/bin")

    def ask(*words: str) -> list[str]:
        done = subprocess.run(
            ["bash", "--norc", "-c", ASK, "bash", *words], capture_output=True, text=True, check=True, timeout=60
        )
        assert done.stderr == ""
        return done.stdout.split("\n")[:-1]

    return ask


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sta"], ["status"]),
        (["recall-m"], ["recall-messages"]),
        (["recall", "--match", "s"], ["smart", "semantic"]),
        (["config", "ch"], ["check"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["~/projects/shop", "--est"], ["--estimate"]),
    ],
)
def test_a_word_is_completed(complete, words, expected):
    assert complete(*words) == expected


@pytest.mark.parametrize(
    "words",
    [
        ["~/pro"],
        ["./x"],
        ["src"],
        ["files", "sr"],
        ["restore", "/a", "--to", "/b"],
        ["recall-files", ""],
        ["recall", "a", "--directory", "b"],
        ["mcp", "--directory", "b"],
    ],
)
def test_a_path_is_left_to_the_shell(complete, words):
    assert complete(*words) == ["left to the shell: -o default", ""]


def test_a_mistyped_command_prints_no_error_while_one_types(complete):
    assert "--config" in complete("serch", "--")  # `complete` asserts that stderr is empty


def test_nothing_yet_offers_every_command(complete):
    assert complete("") == list(COMMANDS)


@pytest.mark.parametrize(
    ("shell", "word"), [("zsh", "compdef"), ("fish", "complete --no-files --command reconstitute")]
)
def test_other_shells_have_a_script(shell, word):
    done = subprocess.run(
        [sys.executable, "-m", "daemon.cli", "completion", shell],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert word in done.stdout
    assert "_RECONSTITUTE_COMPLETE" in done.stdout
