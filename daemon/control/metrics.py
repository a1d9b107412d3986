"""The status as Prometheus reads it (text format 0.0.4): counts, what waits, how far behind, sizes, troubles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from daemon.control.answers import CHECK_STATES, Status

ADDRESS = "/metrics"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_OK, *_TROUBLES, _NOT_CHECKED = CHECK_STATES
_NAMES = {"lexical": "words", "semantic": "meaning", "tools": "tool_calls"}
"""Stages and indexes, in the words of the documents."""

_Values = Mapping[tuple[tuple[str, str], ...], object]
"""Labels and value of each sample; a value that is no number is left out."""


def text(status: Status) -> str:
    """All metrics."""
    return "".join(line + "\n" for line in _lines(status))


def _lines(status: Status) -> Iterator[str]:
    archive = status.archive
    counts = {"sessions": archive.sessions, "messages": archive.messages, "parts": archive.parts}
    index = {_NAMES.get(name, name): table.get("count") for name, table in status.index.items()}
    outbox = {_NAMES.get(stage, stage): number for stage, number in status.outbox.items()}
    states = [row.state for row in status.troubles]
    semantic = status.index.get("semantic", {})
    yield from _metric("info", "The version.", {(("version", status.version),): 1})
    yield from _metric("start_time_seconds", "When the service started.", _one(_seconds(status.started)))
    yield from _metric("records", "What is archived.", _by("kind", counts))
    yield from _metric("large_records", "Records that are kept as files.", _one(archive.large.count))
    yield from _metric("newest_message_time_seconds", "The newest archived message.", _one(_seconds(status.newest)))
    behind = {source.name: source.lag_seconds for source in status.sources}
    yield from _metric("lag_seconds", "How far the archive is behind a source.", _by("source", behind))
    yield from _metric("waiting_messages", "Messages that are not indexed yet.", _by("index", outbox))
    yield from _metric("rate_per_second", "Recent work in a second.", _by("what", msgspec.structs.asdict(status.rates)))
    yield from _metric("embedding_seconds_left", "Until all is embedded.", _one(semantic.get("secondsLeft")))
    yield from _metric("index_entries", "Entries of each index; of meaning only while it is open.", _by("index", index))
    yield from _metric("size_bytes", "What is on the disk.", _by("what", msgspec.structs.asdict(status.sizes)))
    yield from _metric("free_bytes", "Free space on the disk of the archive.", _one(status.free_bytes))
    yield from _metric("disk_full", "Whether work waits for free space.", _one(int(status.disk is not None)))
    yield from _metric("queued_jobs", "Requests and targets that wait.", _one(status.jobs.queued if status.jobs else 0))
    troubles = {state: states.count(state) for state in _TROUBLES}
    yield from _metric("troubles", "Checks that need a person; reconstitute doctor names them.", _by("state", troubles))


def _metric(name: str, help_text: str, values: _Values) -> Iterator[str]:
    samples = [
        f"reconstitute_{name}{_labels(labels)} {value}"
        for labels, value in values.items()
        if isinstance(value, int | float)
    ]
    if samples:
        yield f"# HELP reconstitute_{name} {help_text}"
        yield f"# TYPE reconstitute_{name} gauge"
        yield from samples


def _one(value: object) -> _Values:
    return {(): value}


def _by(label: str, values: Mapping[str, object]) -> _Values:
    return {((label, name),): value for name, value in values.items()}


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}" if labels else ""


def _escaped(value: str) -> str:
    readable = value.encode("utf-8", "replace").decode()
    return readable.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
