"""`reconstitute open`: the desktop's program where there is one, else the pager, and what to run without pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes.command_line import Cli

TITLE = "# Pages about the shop"
NO_DESKTOP = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "PAGER": "cat", "SSH_CONNECTION": "", "SSH_TTY": ""}
DESKTOP = NO_DESKTOP | {"DISPLAY": ":0"}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    page = tmp_path / "pages" / "home" / "ada" / "shop" / "README.md"
    page.parent.mkdir(parents=True)
    page.write_text(f"{TITLE}\n\x1b]0;owned\x07\n")
    (tmp_path / "pages" / "README.md").write_text("# All folders\n")
    program = tmp_path / "bin" / "xdg-open"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened; exit "${{XDG_ENDS:-0}}"\n')
    program.chmod(0o755)
    path = f"{program.parent}:/usr/bin:/bin"
    return Cli(None, tmp_path, {"RECONSTITUTE_OUTPUT_DIR": str(tmp_path / "pages"), "PATH": path})


def seen(cli: Cli, *words: str, **environment: str) -> tuple[bool, str]:
    """Whether a program was opened with the page, and what the terminal showed."""
    shown = cli.on_terminal("open", *words, **cli.environment | environment)
    opened = cli.home / "opened"
    return opened.is_file() and opened.read_text().strip().endswith("home/ada/shop/README.md"), shown


@pytest.mark.parametrize("path", ["/home/ada/shop", "/home/ada/shop/src/cart.py"])
def test_a_desktop_opens_the_page(cli: Cli, path: str) -> None:
    assert seen(cli, path, **DESKTOP) == (True, "")


@pytest.mark.parametrize("more", [NO_DESKTOP, DESKTOP | {"SSH_CONNECTION": "::1"}], ids=["no display", "ssh"])
def test_without_a_desktop_the_pager_shows_the_page(cli: Cli, more: dict[str, str]) -> None:
    opened, shown = seen(cli, "/home/ada/shop", **more)
    assert (opened, TITLE in shown, "\x07" in shown) == (False, True, False)


@pytest.mark.parametrize("more", [{"PATH": "/usr/bin:/bin"}, {"XDG_ENDS": "3"}], ids=["no xdg-open", "it fails"])
def test_a_desktop_without_a_program_for_it_has_the_pager(cli: Cli, more: dict[str, str]) -> None:
    assert TITLE in seen(cli, "/home/ada/shop", **DESKTOP | more)[1]


def test_print_only_prints_where_the_page_is(cli: Cli) -> None:
    assert seen(cli, "/home/ada/shop", "--print", **DESKTOP)[0] is False
    done = cli("open", "/home/ada/shop", "--print", **cli.environment)
    assert done.stdout == f"{cli.home}/pages/home/ada/shop/README.md\n"


def test_without_pages_it_says_how_to_make_them(cli: Cli) -> None:
    done = cli("open", "/home/ada/a b", **cli.environment)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == ("reconstitute: /home/ada/a b: there are no pages yet; run `reconstitute '/home/ada/a b'`\n")
