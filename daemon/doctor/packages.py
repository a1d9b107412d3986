"""Python and the libraries: of a version that this Reconstitute takes, and their native code loads on this machine."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata

from daemon.control.answers import Check
from daemon.display import counted
from daemon.doctor.rows import broken, not_checked, ok
from daemon.errors import Retry

PACKAGE = "reconstitute"
OLDEST, NEWEST = (3, 11), (3, 14)
_SECONDS = 120
# Not in this process: Chroma and onnxruntime are never loaded into a command, and one that crashes is to be named.
_IMPORT = """
import importlib, json, sys
for name in sys.argv[1:]:
    print(json.dumps(name), end=" ", flush=True)
    try:
        importlib.import_module(name)
        print(json.dumps(""), flush=True)
    except BaseException as error:
        print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)
"""


def python() -> Iterator[Check]:
    """The version of Python."""
    version, place = platform.python_version(), sys.executable
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        yield ok("python", f"{version}, {place}")
    else:
        supported = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
        yield broken("python", f"{version} is not supported, {supported} are", "uv tool install --python 3.13 .")


def packages() -> Iterator[Check]:
    """Each library is installed and can be imported."""
    try:
        named = required()
    except metadata.PackageNotFoundError:
        yield not_checked("packages", f"{PACKAGE} is not installed as a package; its requirements are not known")
        return
    fix = f"{sys.executable} -m pip install --force-reinstall {PACKAGE}"
    missing = [name for name, version in named.items() if version is None]
    reasons = [f"{name}: not installed" for name in missing]
    reasons += [f"{name}: {reason}" for name, reason in _failures(_modules(set(named) - set(missing))).items()]
    if reasons:
        yield broken("packages", "; ".join(reasons), fix)
    else:
        yield ok("packages", f"all {counted(len(named), 'package')} can be imported")


def required() -> dict[str, str | None]:
    """The libraries that this installation needs, each with its version, or None where it is missing."""
    versions: dict[str, str | None] = {}
    for requirement in metadata.distribution(PACKAGE).requires or ():
        name, _, marker = requirement.partition(";")
        if "extra ==" in marker or not _is_meant(marker):
            continue
        name = re.split(r"[^A-Za-z0-9._-]", name.strip(), maxsplit=1)[0]
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def _is_meant(marker: str) -> bool:
    """Whether a requirement is for this Python: the only markers we use compare its version."""
    match = re.search(r"python_version (<|>=) '3\.(\d+)'", marker)
    if match is None:
        return True
    return (sys.version_info[1] < int(match[2])) == (match[1] == "<")


def _modules(distributions: set[str]) -> list[str]:
    """The modules of these distributions, without private ones."""
    names = {_normal(name) for name in distributions}
    installed = metadata.packages_distributions().items()
    return sorted(
        module
        for module, owners in installed
        if not module.startswith("_") and names & {_normal(owner) for owner in owners}
    )


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _failures(modules: list[str]) -> dict[str, str]:
    """The modules that cannot be imported, each with the reason. A crash of the child names the one it came from.

    Raises:
        Retry: the imports take too long.
    """
    failures: dict[str, str] = {}
    while modules:
        try:
            child = subprocess.run(
                [sys.executable, "-c", _IMPORT, *modules],
                capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            begun = (error.stdout or b"").decode("utf-8", "replace").splitlines()
            name = begun[-1].strip(' "') if begun else PACKAGE
            raise Retry(
                f"{name} was not imported within {_SECONDS} s; try again when the machine is less busy"
            ) from None
        lines = [line.split(" ", 1) for line in child.stdout.splitlines() if line.startswith('"')]
        reasons = {json.loads(name): json.loads(reason) if reason else None for name, *[reason] in lines}
        failures |= {name: reason for name, reason in reasons.items() if reason}
        crashed = next((name for name, reason in reasons.items() if reason is None), None)
        if crashed is None:
            break
        failures[crashed] = f"the process ended with {child.returncode} when it was imported"
        modules = modules[modules.index(crashed) + 1 :]
    return failures
