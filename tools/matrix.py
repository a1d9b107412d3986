"""What `make matrix` does: build the wheel, install it under each supported Python, and do the main job with it.

Every Python of 3.11 to 3.14 that is installed gets a virtual environment of its own beneath .cache/matrix, with the
versions of requirements.lock. The job runs in an empty home and folder, isolated from the checkout: the sample is read,
indexed, searched and restored, and a service starts, answers and stops. `make matrix ONLY=newest` takes the newest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
PLACE = CHECKOUT / ".cache" / "matrix"
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
_ASK = "import sys; print(*sys.version_info[:3], sep='.')"
_VERSIONS = """
import importlib.metadata as m
names = [d.metadata["Name"] for d in m.distributions()]
print(", ".join(f"{n} {m.version(n)}" for n in ("plyvel", "plyvel-next", "chromadb", "tantivy") if n in names))
"""
_START_S = 60.0


class FailedError(Exception):
    """A step that did not do what it should; the message says which and what it printed."""


def main() -> int:
    """Run it; 1 where a Python fails, or none is there."""
    pythons = sorted(interpreters().items(), key=lambda pair: _number(pair[0]))
    missing = [minor for minor in SUPPORTED if not any(_minor(version) == minor for version, _ in pythons)]
    if os.environ.get("ONLY") == "newest":
        pythons = pythons[-1:]
    PLACE.mkdir(parents=True, exist_ok=True)
    wheel = build()
    failed = not pythons
    for version, python in pythons:
        begun = time.monotonic()
        try:
            outcome = job(install(version, python, wheel))
        except FailedError as error:
            outcome, failed = f"FAILED: {error}", True
        print(f"Python {version:8} {time.monotonic() - begun:4.0f} s  {outcome}", flush=True)
    if missing:
        print(f"Not installed here, so not run: {', '.join(missing)}")
    return int(failed)


def interpreters() -> dict[str, Path]:
    """The newest installed Python of each supported minor version, by its whole version."""
    siblings = Path(sys.base_prefix).parent.glob("*/bin/python3")  # pyenv keeps its versions side by side
    named = (shutil.which(f"python{minor}") for minor in SUPPORTED)
    newest: dict[str, tuple[str, Path]] = {}
    for python in [Path(sys.executable), *siblings, *(Path(name) for name in named if name)]:
        answer = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, check=False)
        version = answer.stdout.strip()
        if answer.returncode or _minor(version) not in SUPPORTED:
            continue  # a shim of a version that is not chosen, or an unsupported one
        best = newest.get(_minor(version))
        if best is None or _number(version) > _number(best[0]):
            newest[_minor(version)] = (version, python)
    return dict(newest.values())


def build() -> Path:
    """The wheel of this checkout."""
    into = PLACE / "dist"
    shutil.rmtree(into, ignore_errors=True)
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", into], cwd=CHECKOUT)
    (wheel,) = into.glob("*.whl")
    return wheel


def install(version: str, python: Path, wheel: Path) -> Path:
    """The `bin` folder of an environment of that Python that has the wheel and nothing of the checkout."""
    venv = PLACE / f"python-{version}"
    environment = {"PYTHON": str(python), "VENV": str(venv), "PACKAGE": str(wheel)}
    _run(["sh", "tools/setup.sh"], cwd=CHECKOUT, environment=os.environ | environment)
    return venv / "bin"


def job(binaries: Path) -> str:
    """The main job in an empty home; what it did, in a line."""
    with tempfile.TemporaryDirectory(prefix="matrix-") as folder:
        place = Path(folder)
        with tarfile.open(CHECKOUT / "examples" / "opencode-sample.tar.gz") as tar:
            tar.extractall(place, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(place / "home"), "TZ": "UTC",
            "RECONSTITUTE_OPENCODE_DIR": str(place / "opencode"), "RECONSTITUTE_ARCHIVE_DIR": str(place / "archive"),
        }  # fmt: skip
        (place / "home").mkdir()

        def ours(*words: str) -> Any:
            done = _run([binaries / "reconstitute", *words], cwd=place, environment=environment)
            return json.loads(done) if "--json" in words else done

        where = _run([binaries / "python", "-c", "import daemon; print(daemon.__file__)"], cwd=place).strip()
        _check(where.startswith(str(binaries.parent)), f"the package is that of {where}, not the wheel's")
        ours("run", "--once")
        restored = _restore(ours, place)
        for words in (
            ("recall", "flask", "--match", "literal"),
            ("recall", "a small web service", "--match", "semantic"),
        ):
            _check(bool(ours(*words, "--json")["results"]), f"{' '.join(words)} has no result")
        sessions = len({json.loads(line)["session_id"] for line in ours("export", "--format", "jsonl").splitlines()})
        with _service(binaries, place, environment):
            status = ours("status", "--json")
        versions = _run([binaries / "python", "-c", _VERSIONS], cwd=place).strip()
        return f"{sessions} sessions, {status['archive']['messages']} messages, {restored} files restored; {versions}"


def _restore(ours: Any, place: Path) -> int:
    known = {row["path"]: row for row in ours("files", "/", "--lost", "--json")["files"]}
    folder = Path(max(known, key=lambda path: known[path]["grade"] == "verified")).parent
    written = ours("restore", str(folder), "--to", str(place / "back"), "--json")["written"]
    _check(bool(written), f"nothing of {folder} was restored")
    for row in written:
        data = Path(row["file"]) if Path(row["file"]).is_absolute() else place / "back" / row["file"]
        _check(hashlib.sha256(data.read_bytes()).hexdigest() == known[row["path"]]["sha256"], f"{data} differs")
    return len(written)


@contextmanager
def _service(binaries: Path, place: Path, environment: dict[str, str]) -> Iterator[None]:
    """A running service that answers; it has to end with success when it is asked to."""
    with (place / "service.log").open("wb") as log:
        process = subprocess.Popen([binaries / "reconstitute", "run"], cwd=place, env=environment, stderr=log)
    try:
        end = time.monotonic() + _START_S
        while not any(place.rglob("*.sock")):
            running = process.poll() is None and time.monotonic() < end
            _check(running, f"the service has no socket: {(place / 'service.log').read_text()[-600:]}")
            time.sleep(0.1)
        yield
        process.send_signal(signal.SIGTERM)
        _check(process.wait(_START_S) == 0, f"the service ended with {process.returncode}")
    finally:
        process.kill()
        process.wait()


def _run(command: list[Any], *, cwd: Path, environment: dict[str, str] | None = None) -> str:
    """What the command prints; it may end with 3 (something is not proven) or 75 (something waits) besides 0."""
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    _check(done.returncode in {0, 3, 75}, f"{command} ended with {done.returncode}: {done.stderr[-600:]}")
    return done.stdout


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise FailedError(otherwise)


def _minor(version: str) -> str:
    return version.rpartition(".")[0]


def _number(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


if __name__ == "__main__":
    sys.exit(main())
