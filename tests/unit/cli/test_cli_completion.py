"""A real bash completes commands, options, values and paths with the script that the command prints."""

from __future__ import annotations

import os
import pty
import select
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
        (["recall", "--match", "=", "s"], ["smart", "semantic"]),
        (["recall", "--match", "="], ["hybrid", "literal", "smart", "fuzzy", "regex", "semantic"]),
        (["recall", "--tool", "=", "bash", "--match", "=", "s"], ["smart", "semantic"]),
        (["recall", "--tool", "=", "bash", "--mat"], ["--match"]),
        (["config", "ch"], ["check"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["~/projects/shop", "--est"], ["--estimate"]),
    ],
)
def test_a_word_is_completed(complete, words, expected):
    assert complete(*words) == expected


def test_an_option_with_an_equals_sign_is_completed_as_without(tmp_path, complete):
    """Tab itself, typed at a bash with readline on a terminal, which breaks words as it does by default."""
    mine, theirs = pty.openpty()
    script = tmp_path / "rc"
    script.write_text('PS1="$ "; bind "set enable-bracketed-paste off"; eval "$(reconstitute completion bash)"\n')
    command = ["bash", "--noprofile", "--rcfile", str(script), "-i"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as shell:
        os.close(theirs)
        os.write(mine, b"reconstitute recall --match=sm\t")
        seen = b""
        while b"--match=smart" not in seen and select.select([mine], [], [], 60)[0]:
            seen += os.read(mine, 4096)
        shell.kill()
    os.close(mine)
    assert b"--match=smart" in seen


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
