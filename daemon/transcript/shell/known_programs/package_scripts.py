"""Which command lines ``npm run`` and its like take out of a package.json."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from daemon import records
from daemon.model import Launch
from daemon.transcript.shell.known_programs import packages
from daemon.transcript.shell.names import words
from daemon.transcript.shell.words import Field

_PLAIN = frozenset(
    {"-s", "--silent", "-q", "--quiet", "--if-present", "--no-audit", "--no-fund", "--offline", "--prefer-offline",
     "-D", "--save-dev", "--production", "--frozen-lockfile", "--prefix", "-C", "--cwd", "--dir", "--directory"}
)  # fmt: skip
"""Options that run no other script, nor the scripts of other packages."""
_HOOKS = frozenset(
    f"{when}{name}" for when in ("pre", "", "post")
    for name in words("install prepare publish version uninstall pack rebuild dependencies shrinkwrap")
)  # fmt: skip
"""Scripts that are run because packages are installed, or the version is changed."""


def is_trusted(launch: Launch) -> bool:
    """Whether a script, or a command with hooks, of a package.json that is not known is taken to change no file."""
    given = [one for one in launch.arguments if one is not None]
    if launch.language != "package" or len(given) < len(launch.arguments) or not given:
        return False
    called = packages.script_of(given[0], [Field(one) for one in given[1:]])
    return called is not None and (called[0] in packages.HOOKED or packages.is_test(called[0], given))


def _is_plain(given: Sequence[str]) -> bool:
    """Whether the words before ``--`` surely tell which package's script is run."""
    own = given[: given.index("--")] if "--" in given else given
    return "workspace" not in own and all(one.partition("=")[0] in _PLAIN for one in own if one.startswith("-"))


def read(text: str, arguments: Sequence[str | None]) -> list[str] | None:
    """The command lines, hooks before and after included, with the arguments behind them; None: not understood."""
    given = [one for one in arguments if one is not None]
    if len(given) < len(arguments) or not given or not _is_plain(given[1:]):
        return None
    try:
        package = records.table(json.loads(text))
        scripts = records.table(package.get("scripts"))
    except (ValueError, RecursionError):
        return None
    called = packages.script_of(given[0], [Field(one) for one in given[1:]])
    name = called[0] if called is not None else ""
    if name in packages.HOOKED and name not in given[2:]:
        return None if _HOOKS & scripts.keys() or package.get("workspaces") else []
    is_named = bool({"run", "run-script"} & set(given))
    if not isinstance(scripts.get(name), str) or (name in packages.BUILDERS and not is_named):
        return None
    given = ["test" if name == "test" and one in ("t", "tst") else one for one in given]
    rest = [one for one in given[given.index(name) + 1 :] if one != "--"] if name in given else []
    lines = [scripts[key] for key in (f"pre{name}", name, f"post{name}") if isinstance(scripts.get(key), str)]
    return [f"{line} {shlex.join(rest)}" if rest and line == scripts[name] else line for line in lines]
