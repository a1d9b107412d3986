"""What the calls that the page in the browser is made for answer (docs/json.md)."""

from __future__ import annotations

from daemon.control.answers import Answer


class Web(Answer):
    """`address` is where the page is; `url` lets one browser in, once, within `seconds`."""

    url: str = ""
    address: str = ""
    seconds: int = 0
