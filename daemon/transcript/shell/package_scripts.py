"""Which command lines ``npm run`` and its like take out of a package.json."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from daemon import records
from daemon.transcript.shell import packages
from daemon.transcript.shell.words import Field

_ELSEWHERE = frozenset({"-w", "--workspace", "--workspaces", "-ws", "--filter", "-F", "-r", "--recursive", "workspace"})
"""Options that run scripts of other packages."""


def read(text: str, arguments: Sequence[str | None]) -> list[str] | None:
    """The command lines, hooks before and after included, with the arguments behind them; None: not understood."""
    given = [one for one in arguments if one is not None]
    if len(given) < len(arguments) or not given or any(one.partition("=")[0] in _ELSEWHERE for one in given):
        return None
    try:
        scripts = records.table(records.table(json.loads(text)).get("scripts"))
    except (ValueError, RecursionError):
        return None
    called = packages.script_of(given[0], [Field(one) for one in given[1:]])
    name = called[0] if called is not None else ""
    is_named = bool({"run", "run-script"} & set(given))
    if not isinstance(scripts.get(name), str) or (name in packages.BUILDERS and not is_named):
        return None
    rest = [one for one in given[given.index(name) + 1 :] if one != "--"] if name in given else []
    lines = [scripts[key] for key in (f"pre{name}", name, f"post{name}") if isinstance(scripts.get(key), str)]
    return [f"{line} {shlex.join(rest)}" if rest and line == scripts[name] else line for line in lines]
