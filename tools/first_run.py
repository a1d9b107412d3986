"""What `make run` does: the main job once, over OpenCode's records if there are any, else over the sample.

Reads everything, indexes every word, embeds for a while, reconstitutes the folders that sessions worked in, and says
where the pages are. With real records it uses the same configuration and archive as the service, so nothing is done
twice; the sample gets an archive and an output directory of its own inside the checkout.
"""

from __future__ import annotations

import os
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from daemon.app.engine import Engine
from daemon.cli.progress import display
from daemon.config import Config, load
from daemon.control.calls import Progress
from daemon.errors import ArchiveLocked, IndexBroken, ModelUnavailable, ReconstituteError
from daemon.model import Json, Target

CHECKOUT = Path(__file__).resolve().parent.parent
SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Debian 12's Python is 3.11.2, and the filter came with 3.11.4; the archive is our own either way."""

EMBED_S = 75.0
MODEL_MINUTES = 2.0
"""For all folders together, where there is a chat model. What is not answered by then, the service asks later."""
MOST_FOLDERS = 20


def main() -> int:
    """Run it; the exit code."""
    config, is_sample = configuration()
    config = hurried(config)
    click.echo(f"Reading {config.opencode_dir}" + (" (no OpenCode here, so: the sample)" if is_sample else ""))
    try:
        with Engine(config) as engine, display() as step:
            results = [run for folder in folders(feed(engine, step)) if (run := reconstitute(engine, folder, step))]
            waiting = engine.archive.waiting("semantic")
    except ArchiveLocked as error:
        click.echo(f"{error}\nThe service runs already: its pages are in {config.output_dir}", err=True)
        return error.exit_code
    except ReconstituteError as error:
        click.echo(f"make run: {error}", err=True)
        return error.exit_code
    report(config, results, waiting)
    return 0 if results else 1


def configuration() -> tuple[Config, bool]:
    """The user's, or one for the sample when there are no records."""
    config = load()
    folders = config.opencode_dirs
    stores = [*config.databases, *(folder / "storage" for folder in folders)]
    if any(store.exists() for store in stores) or any(any(folder.glob("opencode*.db")) for folder in folders):
        return config, False
    cache = CHECKOUT / ".cache" / "first-run"
    if not (cache / "opencode").is_dir():
        with tarfile.open(CHECKOUT / "examples" / "opencode-sample.tar.gz") as tar:
            tar.extractall(cache, **SAFELY)
    os.environ["RECONSTITUTE_OPENCODE_DIR"] = str(cache / "opencode")
    os.environ["RECONSTITUTE_ARCHIVE_DIR"] = str(cache / "archive")
    os.environ["RECONSTITUTE_OUTPUT_DIR"] = str(CHECKOUT / "reconstituted")
    return load(), True


def hurried(config: Config) -> Config:
    """With less time for a chat model than the service has."""
    share = MODEL_MINUTES / MOST_FOLDERS
    agent = replace(config.agent, minutes=min(config.agent.minutes, 0.5), target_minutes=share)
    return replace(config, agent=agent)


def feed(engine: Engine, step: Progress) -> Engine:
    """Everything into the archive and the lexical index; as much as fits the time into the semantic one."""
    engine.scan(everything=True, patient=False, progress=step)
    end = time.monotonic() + EMBED_S
    total = engine.archive.waiting("semantic")
    while engine.archive.waiting("semantic") and time.monotonic() < end:
        try:
            engine.drain_semantic(stop=lambda: time.monotonic() >= end)
        except (ModelUnavailable, IndexBroken) as error:
            click.echo(f"{error}; going on without meaning, words are indexed", err=True)
            break
        step({"phase": "embedding", "done": total - engine.archive.waiting("semantic"), "total": total})
    return engine


def folders(engine: Engine) -> list[str]:
    """The directories that sessions worked in, the latest first; a folder inside another one is part of that one."""
    latest: dict[str, int] = {}
    for session in engine.archive.sessions():
        if session.directory.startswith("/") and session.directory not in ("/", str(Path.home())):
            latest[session.directory] = max(latest.get(session.directory, 0), session.updated)
    outer = [d for d in latest if not any(d.startswith(parent.rstrip("/") + "/") for parent in latest)]
    return sorted(outer, key=lambda directory: -latest[directory])[:MOST_FOLDERS]


def reconstitute(engine: Engine, folder: str, step: Progress) -> Json | None:
    """One folder; a failure is said and the others go on."""
    try:
        return engine.run_target(Target(path=folder), step)
    except ReconstituteError as error:
        click.echo(f"{folder}: {error}", err=True)
        return None


def report(config: Config, results: list[Json], waiting: int) -> None:
    """What there is now, and what to do next."""
    for result in results:
        files = result["files"]
        click.echo(
            f"{result['target']}: {result['pages']} pages, {result['written']} written; "
            f"files: {files['proven']} proven, {files['unproven']} not"
        )
        for warning in result["warnings"]:
            click.echo(f"  {warning}")
    if waiting:
        click.echo(f"{waiting} messages are searched by words only so far; `reconstitute index` embeds the rest")
    click.echo(f"\nThe markdown is in {config.output_dir}")
    for result in results[:1]:
        click.echo(f"Begin with {Path(result['output']) / 'README.md'}")


if __name__ == "__main__":
    sys.exit(main())
