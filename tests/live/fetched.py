"""What the live tests need from a registry: fetched on first use, kept in a cache, once for all workers."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
_LONGEST_S = 300
_NPM_UNREACHABLE = re.compile(
    r"\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ESOCKETTIMEDOUT|EHOSTUNREACH|ENETUNREACH|EPIPE"
    r"|ERR_SOCKET_TIMEOUT|E429|E5\d\d)\b"
)
_PIP_UNREACHABLE = re.compile(
    r"connection broken by '(\w+)|Name or service not known|Temporary failure in name resol|Read timed out|IncompleteRead"
    r"|Connection (?:aborted|reset)|HTTP error (?:429|5\d\d)|(?:429|5\d\d) \w* ?Error"
)


class NotAvailableError(Exception):
    """A registry, or the program that fetches from it, is not there: the reason to skip."""


def cache_dir() -> Path:
    """$RECONSTITUTE_TEST_CACHE, else .cache in the checkout."""
    named = os.environ.get("RECONSTITUTE_TEST_CACHE", "")
    return Path(named) if named else CHECKOUT / ".cache"


def fetched(home: Path, fetch: Callable[[Path], None]) -> Path:
    """`home`, which `fetch` fills when it is not there. Other workers that want it meanwhile wait.

    It is filled aside and renamed, so that what was fetched by half is never taken for the whole.
    """
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(f".{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            staging = Path(tempfile.mkdtemp(prefix=f".{home.name}-", dir=home.parent))
            try:
                fetch(staging)
                staging.rename(home)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    return home


def npm_install(npm: str, package: str, prefix: Path) -> None:
    """Install a package of npm, without its scripts.

    Raises:
        NotAvailableError: the registry cannot be reached, or does not serve it.
        RuntimeError: npm failed for another reason.
    """
    command = [npm, "install", "--prefix", str(prefix), package]
    command += ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    environment = {"npm_config_fetch_retries": "1"} | os.environ
    _install(command, package, _NPM_UNREACHABLE, cwd=prefix, env=environment)


def pip_install(packages: Sequence[str], prefix: Path) -> None:
    """Install packages of Python's index as they are, without what they depend on; raises as `npm_install` does."""
    command = [sys.executable, "-m", "pip", "install", "--target", str(prefix), "--no-deps", "--only-binary", ":all:"]
    command += ["--retries", "1", "--no-input", "--disable-pip-version-check", "--progress-bar", "off", *packages]
    _install(command, " and ".join(packages), _PIP_UNREACHABLE)


def _install(command: Sequence[str], what: str, unreachable: re.Pattern[str], **options: Any) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S, check=False, **options)
    except subprocess.TimeoutExpired as late:
        raise NotAvailableError(f"{what} was not served within {_LONGEST_S} s") from late
    said = done.stdout + done.stderr
    if done.returncode and (reason := unreachable.search(said)):
        raise NotAvailableError(f"the registry cannot be reached ({reason[0]}), so {what} cannot be fetched")
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{said[-2000:]}")
