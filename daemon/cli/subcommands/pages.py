"""``reconstitute open`` and ``web``: what is better looked at than read on a terminal.

``open`` shows the pages of a folder in the program that the desktop has for Markdown, else in the pager; ``web`` the
service's page in the browser.
"""

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


@click.command()
@click.option("--print", "only_print", is_flag=True, help="Only print the link.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON, and open nothing.")
@click.pass_obj
def web(settings: Settings, *, only_print: bool, as_json: bool) -> int:
    """Open the service's page in the browser: search, sessions, files, days, and the state of the service.

    The service serves it on 127.0.0.1 alone, from the first call of this command on, or always with web.enabled. The
    link works once, within a minute, and lets one browser in for 12 hours. Over ssh and without a display it is
    printed; forward the port (ssh -L 11436:127.0.0.1:11436), and open it on your own machine.

    \b
    Examples:
      reconstitute web
      firefox "$(reconstitute web --print)"
    """  # noqa: D301 - click's mark for text that is not to be filled
    from daemon.control import calls  # noqa: PLC0415 - `open` needs no calls
    from daemon.control.client import Client  # noqa: PLC0415 - as above

    config = settings.load()
    # Not by `Settings.ask`: without a service there is nothing to ask.
    answer = Client(config.socket_path, config).call(calls.Web())
    if as_json:
        terminal.data(answer)
    elif only_print or not (_has_desktop() and _opened(answer.url)):
        terminal.say(terminal.line(answer.url))
        terminal.note(f"this link works once, within {answer.seconds} s")
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


def _opened(page: Path | str) -> bool:
    """Whether the desktop has found a program for a file or an address."""
    program = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    return program is not None and subprocess.run([program, page], check=False, timeout=60).returncode == 0
