"""``reconstitute open``: the pages of a folder in the program that the desktop has for Markdown, else in the pager."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click

from daemon.cli import terminal
from daemon.cli.settings import NOTHING, Settings, absolute
from daemon.publish.naming import safe_path

_FRONT_PAGE = "README.md"


@click.command()
@click.argument("path", default=".", type=click.Path())
@click.option("--print", "only_print", is_flag=True, help="Only print where the page is.")
@click.pass_obj
def open_pages(settings: Settings, *, path: str, only_print: bool) -> int:
    """Open the page about PATH (by default this folder), which `reconstitute PATH` wrote.

    On a desktop xdg-open (on macOS open) chooses the program; over ssh and without a display the page is shown in the
    pager. PATH may be anything beneath a folder that has pages. Ends with 4 if there are none.

    \b
    Examples:
      reconstitute open
      reconstitute open ~/projects/shop
      less $(reconstitute open ~/projects/shop --print)
    """  # noqa: D301 - click's mark for text that is not to be filled
    place = absolute(path)
    page = _front_page(settings.load().output_dir, place)
    if page is None:
        terminal.note(f"{place}: there are no pages yet; run `reconstitute {shlex.quote(place)}`")
        return NOTHING
    if only_print:
        terminal.say(terminal.line(page))
    elif not (_has_desktop() and _opened(page)):
        click.echo_via_pager(terminal.plain(page.read_text(encoding="utf-8", errors="replace")))
    return 0


def _front_page(output_dir: Path, path: str) -> Path | None:
    """The front page about `path`, or about the nearest folder above it that has one."""
    while path != "/":
        page = output_dir / safe_path(path.strip("/")) / _FRONT_PAGE
        if page.is_file():
            return page
        path = os.path.dirname(path)
    return None


def _has_desktop() -> bool:
    """Whether a person sits before a desktop on this machine."""
    is_remote = any(os.environ.get(name) for name in ("SSH_CONNECTION", "SSH_TTY"))
    has_display = sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return has_display and not is_remote


def _opened(page: Path) -> bool:
    """Whether the desktop has found a program for the page."""
    program = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    return program is not None and subprocess.run([program, page], check=False, timeout=60).returncode == 0
