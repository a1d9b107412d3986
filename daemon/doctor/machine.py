"""What can be seen without opening the archive: places, free space, and who else could read what is ours."""

from __future__ import annotations

import os
import pwd
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from daemon.config import Config
from daemon.control import endpoint
from daemon.control.answers import Check
from daemon.display import counted
from daemon.doctor.rows import attention, broken, is_of_unit, not_checked, ok, parted, restart
from daemon.filesystem.disk_space import free_bytes

_MOST_NAMED = 3
_OTHERS = 0o077
_NEARLY = 2
"""Below so many times limits.free_mb a person should know."""


def unusable(config: Config) -> Iterator[tuple[str, str]]:
    """(key, what is wrong and the fix) for places of the configuration that exist and cannot be used."""
    for place in config.opencode_dirs:
        key = "opencode.data_dir" if place == config.opencode_dir else "opencode.data_dirs"
        try:
            is_usable = not place.exists() or (place.is_dir() and os.access(place, os.R_OK | os.X_OK))
        except OSError as error:  # a folder above it is closed, or its name is too long
            yield key, f"{place} cannot be read: {error.strerror}; check its permissions, or name another place"
            continue
        if not is_usable:
            yield key, f"{place} is not a directory that can be read; check its permissions"
    for key, place in our_places(config).items():
        there = next(parent for parent in (place, *place.parents) if os.path.lexists(parent))
        if not there.is_dir():
            yield key, f"{there} is not a directory; move it away, or name another place"
        elif not os.access(there, os.W_OK | os.X_OK):
            yield key, f"{there} cannot be written to by this user; change its permissions, or name another place"


def our_places(config: Config) -> dict[str, Path]:
    """The directories that we write to, by their keys."""
    places = {"archive.dir": config.archive_dir, "output.dir": config.output_dir}
    if config.watch.requests_dir:  # otherwise it is in archive.dir
        places["watch.requests_dir"] = config.requests_dir
    return places


def places(config: Config) -> Iterator[Check]:
    """The places we write to can be written to, and the sources' can be read."""
    wrong = list(unusable(config))
    for key, reason in wrong:
        yield broken(key, *parted(reason))
    if not wrong:
        yield ok("places", ", ".join(f"{key} {place}" for key, place in our_places(config).items()))


def free_space(config: Config) -> Iterator[Check]:
    """Enough of the disk is free, also for the next weeks."""
    floor = config.limits.free_mb << 20
    fix = "free some space there, or move archive.dir or output.dir"
    free_by_place = {place: free_bytes(place) for place in (config.archive_dir, config.output_dir)}
    for place, free in free_by_place.items():
        counts = f"{place}: {free >> 20} MB free"
        if free < floor:
            yield broken(
                "free space", f"{counts}, less than limits.free_mb ({config.limits.free_mb}): writing waits", fix
            )
        elif free < _NEARLY * floor:
            yield attention(
                "free space", f"{counts}; below limits.free_mb ({config.limits.free_mb}) writing waits", fix
            )
    if min(free_by_place.values()) >= _NEARLY * floor:
        yield ok("free space", "; ".join(f"{place}: {free >> 20} MB" for place, free in free_by_place.items()))


def private(config: Config) -> Iterator[Check]:
    """Nobody else can read the archive or use the socket."""
    root = config.archive_dir
    if not root.is_dir():
        yield not_checked("file modes", f"{root} is not there yet")
        return
    if root.stat().st_uid != os.geteuid():
        yield attention("file modes", f"{root} is of another user", as_owner(root))
        return
    files = list(_below(root))
    open_places = [path for path, info in files if not stat.S_ISLNK(info.st_mode) and info.st_mode & _OTHERS]
    others = [path for path, info in files if info.st_uid != os.geteuid()]
    if open_places:
        message = f"{counted(len(open_places), 'file')} or folders open to others: {_named(open_places)}"
        yield attention("file modes", message, shlex.join(["chmod", "-R", "go=", str(root)]))
    if others:
        message = f"{counted(len(others), 'file')} or folders of another user: {_named(others)}"
        yield attention("file modes", message, shlex.join(["sudo", "chown", "-R", str(os.geteuid()), str(root)]))
    if not open_places and not others:
        yield ok("file modes", f"{root}: 0700, and nothing beneath it is open to others")
    # A command of cron or su has another runtime directory than the service.
    yield from _socket(endpoint.recorded(root) or config.socket_path)


def as_owner(place: Path) -> str:
    """The command that asks as the user whose place it is."""
    uid = place.stat().st_uid
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"#{uid}"
    return shlex.join(["sudo", "-H", "-u", name, "reconstitute", "doctor"])


def _socket(path: Path) -> Iterator[Check]:
    try:
        places = {path: os.lstat(path), path.parent: os.lstat(path.parent)}
    except FileNotFoundError:
        yield not_checked("socket", f"{path} is not there: no service runs")
        return
    for place, info in places.items():
        if info.st_uid != os.geteuid() or info.st_mode & _OTHERS:
            mode = f"{stat.S_IMODE(info.st_mode):04o}"
            message = f"{place} is open to others (mode {mode}, uid {info.st_uid})"
            yield attention("socket", message, shlex.join(["chmod", "go=", str(place)]))
            return
    yield ok("socket", f"{path}: 0600, in a directory of 0700")


def process(pid: int, isolation: str = "") -> Iterator[Check]:
    """The running service has the restrictions that its unit asks for. Without systemd it has only its own.

    `isolation` says why it is not isolated further than by its unit; empty if its drop-in asks for that.
    """
    if not Path("/proc/self/status").exists():
        yield not_checked("hardening", "this system does not show the limits of a process")
        return
    status = _fields(Path(f"/proc/{pid}/status"))
    limits = Path(f"/proc/{pid}/limits").read_text(encoding="ascii", errors="replace")
    missing = [name for name, value in (("NoNewPrivs", "1"), ("Seccomp", "2")) if status.get(name) != value]
    core = next((line.split()[4] for line in limits.splitlines() if line.startswith("Max core file size")), "?")
    if core != "0":
        message = f"process {pid} may leave a core dump, which would hold texts of the sessions"
        yield attention("hardening", message, restart(pid))
    elif int(status.get("Umask", "0"), 8) & _OTHERS != _OTHERS:
        yield attention("hardening", f"process {pid} makes files that others can read", "reconstitute service install")
    elif missing and is_of_unit(pid):
        message = f"process {pid} runs without {' and '.join(missing)} of its unit"
        yield attention("hardening", message, "reconstitute service install")
    elif is_of_unit(pid) and not isolation and not _is_isolated(pid, status):
        message = f"process {pid} runs without the namespaces that its unit asks for"
        yield attention("hardening", message, "systemctl --user restart reconstitute")
    else:
        message = f"process {pid}: files for this user alone, no core dumps"
        if not missing:
            message += "; no new privileges, system calls filtered"
        if is_of_unit(pid):
            message += f"; not isolated further: {isolation}" if isolation else "; isolated by namespaces of its own"
        yield ok("hardening", message)


def _is_isolated(pid: int, status: dict[str, str]) -> bool:
    """Whether the process has namespaces of its own, no capabilities, and a /usr that it cannot change."""
    own = all(os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}") for kind in ("user", "mnt"))
    mounts = Path(f"/proc/{pid}/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    options = [fields[5] for fields in map(str.split, mounts) if fields[4] == "/usr"]
    return own and int(status.get("CapBnd", "1"), 16) == 0 and bool(options) and options[-1].split(",")[0] == "ro"


def _fields(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _below(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """A folder and everything in it, as far as it is still there."""
    for folder, _, names in os.walk(root):
        for place in (Path(folder), *(Path(folder, name) for name in names)):
            try:
                yield place, place.lstat()
            except FileNotFoundError:  # the service works meanwhile
                continue


def _named(paths: list[Path]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return ", ".join(map(str, paths[:_MOST_NAMED])) + more
