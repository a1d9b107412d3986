"""What package managers change besides the packages, such as lock files, and which scripts of package.json they run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from daemon import records
from daemon.model import Launch
from daemon.transcript.shell.names import words
from daemon.transcript.shell.words import Field

SCRIPTED = words("npm yarn pnpm bun")
_LOCKS = {
    "npm": ("package-lock.json",), "yarn": ("yarn.lock",), "pnpm": ("pnpm-lock.yaml",),
    "bun": ("bun.lock", "bun.lockb"),
    "cargo": ("Cargo.lock",), "go": ("go.sum",), "uv": ("uv.lock",), "poetry": ("poetry.lock",), "pdm": ("pdm.lock",),
    "bundle": ("Gemfile.lock",), "composer": ("composer.lock",),
}  # fmt: skip
_MANIFESTS = {
    "npm": "package.json", "yarn": "package.json", "pnpm": "package.json", "bun": "package.json",
    "cargo": "Cargo.toml", "go": "go.mod", "uv": "pyproject.toml", "poetry": "pyproject.toml", "pdm": "pyproject.toml",
    "bundle": "Gemfile", "composer": "composer.json",
}  # fmt: skip
MANAGERS = frozenset(_LOCKS)
_LOCKING = words(
    "install i add update up upgrade remove rm uninstall un dedupe link unlink import lock sync get tidy require audit"
)
"""Subcommands that write the lock file."""
_DECLARING = words("add remove rm uninstall un get tidy require up upgrade init version pkg set")
"""Subcommands that write the manifest; so does an install that names """
_VALUES = words("--prefix -C --cwd --filter -F -w --workspace --dir --project --directory --loglevel")
_FOLDERS = words("--prefix -C --cwd --dir --directory")
_OWN = words(
    "install i add ci clean-install update up upgrade remove rm uninstall un dedupe link unlink import ls list ll "
    "la outdated view "
    "info show config get set why audit cache help help-search whoami login logout adduser root bin prefix search "
    "ping doctor "
    "fund explain owner team token access dist-tag deprecate star stars profile org hook bugs docs repo home "
    "completion "
    "query sbom diff find-dupes workspaces workspace global policies plugin store patch patch-commit fetch licenses "
    "server env self-update setup pm init version pkg pack publish unpublish prune rebuild shrinkwrap create "
    "approve-scripts"
)
"""Subcommands that are not scripts of package.json."""
BUILDERS = words("create pack publish rebuild prepare")
"""Commands that run several scripts, each of its own name."""
HOOKED = words(
    "install i add ci clean-install update up upgrade remove rm uninstall un dedupe link unlink prune version"
)
"""Commands beside which package.json's scripts of certain names are run."""
_NPM_SCRIPTS = words("start stop restart")
_TESTING = words("test t tst")
_UPDATES = words("-u --update --updateSnapshot --update-snapshots --snapshot-update --inline-snapshot")
_PLAIN = frozenset(
    {"-s", "--silent", "-q", "--quiet", "--if-present", "--no-audit", "--no-fund", "--offline", "--prefer-offline",
     "-D", "--save-dev", "--production", "--frozen-lockfile", "--prefix", "-C", "--cwd", "--dir", "--directory"}
)  # fmt: skip
"""Options that run no other script, nor the scripts of other """
_HOOKS = frozenset(
    f"{when}{name}" for when in ("pre", "", "post")
    for name in words("install prepare publish version uninstall pack rebuild dependencies shrinkwrap")
)  # fmt: skip
"""Scripts that are run because packages are installed, or the version is changed."""


def changed(verb: str, fields: Sequence[Field]) -> list[Field] | None:
    """The files that this command of a package manager may change; None for any other program."""
    if verb not in MANAGERS:
        return None
    command, arguments = _subcommand(verb, fields)
    if verb == "go":
        command = arguments[0].text if command == "mod" and arguments else command
        command = "" if command in ("download", "graph", "verify", "why") else command
    if verb == "cargo" and command in ("install", "i", "uninstall"):
        return []
    names: list[str] = []
    if command in _LOCKING and not (command == "audit" and "fix" not in [field.text for field in arguments]):
        names += _LOCKS[verb]
    names_packages = command in ("install", "i") and any(not field.text.startswith("-") for field in arguments)
    if command in _DECLARING or (names_packages and verb in SCRIPTED):
        names.append(_MANIFESTS[verb])
    folder = _folder(fields)
    if not folder.exact:
        return [folder] if names else []
    return [Field(f"{folder.text}/{name}" if folder.text else name) for name in names]


def script_of(verb: str, fields: Sequence[Field]) -> tuple[str, Field] | None:
    """The script of package.json that npm and its like run here, and the folder it stands in; None: none is run."""
    command, arguments = _subcommand(verb, fields)
    if command in ("run", "run-script", "rum", "urn"):
        plain = [field for field in arguments if not field.text.startswith("-")]
        if not plain:
            return None
        command = plain[0].text if plain[0].exact else ""
    elif verb != "npm" and command and command not in _OWN | _TESTING:
        pass  # yarn build, pnpm build, bun x.ts
    elif command not in _NPM_SCRIPTS | BUILDERS | _TESTING | HOOKED:
        return None
    return ("test" if command in _TESTING else command), _folder(fields)


def is_test(name: str, texts: Sequence[str]) -> bool:
    """Whether a script of this name is taken to run tests that change nothing, where it is not known."""
    return (name in _TESTING or name.startswith("test:")) and not _UPDATES & set(texts)


def updates_snapshots(texts: Sequence[str]) -> bool:
    """Whether a test runner with these arguments rewrites what it compares with."""
    return bool(_UPDATES & set(texts))


def _subcommand(verb: str, fields: Sequence[Field]) -> tuple[str, list[Field]]:
    at = 0
    while at < len(fields) and fields[at].text.startswith(("-", "+")):
        at += 2 if fields[at].text in _VALUES else 1
    if at >= len(fields):
        texts = {field.text for field in fields}
        is_install = verb == "yarn" and not texts & {"-v", "--version", "--help", "-h"}
        return ("install" if is_install else ""), []
    return (fields[at].text if fields[at].exact else "?"), list(fields[at + 1 :])


def _folder(fields: Sequence[Field]) -> Field:
    for at, field in enumerate(fields):
        if field.text in _FOLDERS and at + 1 < len(fields):
            return Field(fields[at + 1].text.rstrip("/"), fields[at + 1].exact)
        for name in _FOLDERS:
            if field.text.startswith(f"{name}=") and field.exact:
                return Field(field.text.partition("=")[2].rstrip("/"))
    return Field("")


def is_trusted(launch: Launch) -> bool:
    """Whether a script, or a command with hooks, of a package.json that is not known is taken to change no file."""
    argv = [argument for argument in launch.arguments if argument is not None]
    if launch.language != "package" or len(argv) < len(launch.arguments) or not argv:
        return False
    called = script_of(argv[0], [Field(argument) for argument in argv[1:]])
    return called is not None and (called[0] in HOOKED or is_test(called[0], argv))


def _is_plain(argv: Sequence[str]) -> bool:
    """Whether the words before ``--`` determine the package whose script is run."""
    own = argv[: argv.index("--")] if "--" in argv else argv
    return "workspace" not in own and all(word.partition("=")[0] in _PLAIN for word in own if word.startswith("-"))


def read(text: str, arguments: Sequence[str | None]) -> list[str] | None:
    """The command lines, hooks before and after included, with the arguments behind them; None: not understood."""
    argv = [word for word in arguments if word is not None]
    if len(argv) < len(arguments) or not argv or not _is_plain(argv[1:]):
        return None
    try:
        package = records.table(json.loads(text))
        scripts = records.table(package.get("scripts"))
    except (ValueError, RecursionError):
        return None
    called = script_of(argv[0], [Field(word) for word in argv[1:]])
    name = called[0] if called is not None else ""
    if name in HOOKED and name not in argv[2:]:
        return None if _HOOKS & scripts.keys() or package.get("workspaces") else []
    is_named = bool({"run", "run-script"} & set(argv))
    if not isinstance(scripts.get(name), str) or (name in BUILDERS and not is_named):
        return None
    argv = ["test" if name == "test" and word in ("t", "tst") else word for word in argv]
    extra = [word for word in argv[argv.index(name) + 1 :] if word != "--"] if name in argv else []
    lines = [scripts[key] for key in (f"pre{name}", name, f"post{name}") if isinstance(scripts.get(key), str)]
    return [f"{line} {shlex.join(extra)}" if extra and line == scripts[name] else line for line in lines]
