"""Where a target's tree is written, whether it may be written there, and the result. daemon.publish writes it."""

from __future__ import annotations

import datetime as dt
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from daemon.archive import Archive
from daemon.display import counted
from daemon.errors import BadRequest, OutputRefused
from daemon.files import Disk
from daemon.model import Json, Page
from daemon.publish import publish
from daemon.publish.edits import SLACK_NS, PageChangeCheck, Stamp, stamp
from daemon.reconstitute.answer import Record
from daemon.reconstitute.pages import Renderer
from daemon.reconstitute.pages.index import from_json, publish_index, to_json
from daemon.reconstitute.pages.layout import README
from daemon.reconstitute.passages import Findings
from daemon.reconstitute.questions import CODE, DOCUMENTS, Question
from daemon.reconstitute.recover import CERTAIN, Recovered, State
from daemon.redact import redact_value

_TREES = "trees"
DEFAULT = frozenset(question.id for question in (*CODE, *DOCUMENTS))
"""The questions that are asked of every target."""


@dataclass(slots=True)
class _File:
    """`size` is that of the content it was compared with; `known` is its stamp, () if it must be checked again."""

    path: str
    disk: Disk
    size: int | None
    known: Stamp | tuple[()] | None


class FileChangeCheck:
    """Whether files have changed on the disk since they were looked at, which began at `began_ns` (epoch ns).

    `paths` are all recorded ones: where one has no file in `files`, a file may appear.
    """

    def __init__(self, files: Sequence[Recovered], began_ns: int, paths: Iterable[str] = ()) -> None:
        self._files = [_file(file, began_ns) for file in files]
        known = {file.path for file in files}
        self._files += [_unlisted(path, began_ns) for path in paths if path not in known]

    @property
    def paths(self) -> list[str]:
        """The paths that are checked."""
        return [file.path for file in self._files]

    def has_changed(self) -> bool:
        """Whether another state may be found now. Reads no file, only its stamp."""
        return any(_is_other(file) for file in self._files)


class ChangeCheck:
    """The disk states that a run from `began_ns` (epoch ns) reported, and the pages that it published in `folder`."""

    def __init__(self, output_root: Path, folder: str, files: Sequence[Recovered], began_ns: int) -> None:
        self._pages = PageChangeCheck(output_root, folder, began_ns)
        self._files = FileChangeCheck(files, began_ns)

    @property
    def paths(self) -> list[str]:
        """The paths that are checked: recorded files, then pages."""
        return [*self._files.paths, *self._pages.paths]

    def has_changed(self) -> bool:
        """Whether the next run may report something else."""
        return self._files.has_changed() or self._pages.has_changed()


def _file(recovered: Recovered, began_ns: int) -> _File:
    size = None
    if (
        recovered.disk in {Disk.IDENTICAL, Disk.DIFFERS}
        and recovered.state is not State.DELETED
        and recovered.certain is not None
    ):
        size = recovered.certain.size
    file = _File(recovered.path, recovered.disk, size, ())
    try:
        now = stamp(recovered.path)
    except (OSError, ValueError):
        return file
    is_consistent = (now is None) == (recovered.disk is Disk.MISSING)
    if is_consistent and (now is None or max(now[2:4]) < began_ns - SLACK_NS):
        file.known = now
    return file


def _unlisted(path: str, began_ns: int) -> _File:
    try:
        now = stamp(path)
    except (OSError, ValueError):
        return _File(path, Disk.UNREADABLE, None, None)
    if now is None or max(now[2:4]) >= began_ns - SLACK_NS:
        return _File(path, Disk.MISSING, None, None)
    return _File(path, Disk.PRESENT, None, now)


def _is_other(file: _File) -> bool:
    try:
        now = stamp(file.path)
    except (OSError, ValueError):
        return file.disk is not Disk.UNREADABLE
    if now == file.known:
        return False
    file.known = now
    return _rough(file, now) is not file.disk


def _rough(file: _File, now: Stamp | None) -> Disk | None:
    """The disk state, as far as the stamp shows it; None if the file may be identical."""
    if now is None:
        return Disk.MISSING
    if file.size is None:
        return Disk.PRESENT if file.disk is not Disk.DIFFERS else None
    return None if stat.S_ISREG(now[0]) and now[1] == file.size else Disk.DIFFERS


def with_progress(pages: Sequence[Page], progress: Callable[[Json], None]) -> list[Page]:
    """The pages, which report their rendering. `progress` may raise: nothing is published before all are rendered."""

    def text(number: int, page: Page) -> str:
        made = page.text
        progress({"phase": "write", "done": number, "total": len(pages)})
        return made

    return [replace(page, content=partial(text, number, page)) for number, page in enumerate(pages, start=1)]


def published(
    root: Path, tree: str, path: str, pages: Sequence[Page], files: Sequence[Recovered], *, spare_bytes: int
) -> Json:
    """Publish the pages; returns the result with counts of pages written, unchanged and kept, and warnings."""
    result = publish(root, tree, pages, spare_bytes=spare_bytes)
    files = [file for file in files if not file.is_folder]
    proven = sum(file.state in CERTAIN for file in files)
    warnings = [*result.notices]
    warnings += [f"{page}: something that is not ours stands there and is left" for page in result.taken]
    if result.nested:
        number = counted(len(result.nested), "page")
        warnings.append(f"left to another target's tree in the same folder: {number}, such as {result.nested[0]}")
    return {
        "target": path,
        "output": str(root / result.folder),
        "pages": len(pages),
        "written": len(result.written),
        "unchanged": len(result.unchanged),
        "kept": len(result.kept) + len(result.retired),
        "edited": sorted(result.current),
        "retired": sorted(result.retired),
        "files": {"proven": proven, "unproven": len(files) - proven},
        "warnings": warnings,
    }


def answers(questions: Iterable[Question], record: Record, findings: Iterable[Findings]) -> list[Json]:
    """The answers to a person's own questions: ``[{question, model, statements: [{text, reason, messages}], note,
    quotes}]``, redacted; without a model's statements the quotations stand in.
    """
    quotes = {finding.question.id: [quote.text for quote in finding.quotes] for finding in findings}
    answered = []
    for question in questions:
        if question.id in DEFAULT:
            continue
        answer = record.answers.get(question.id)
        statements = [
            {
                "text": statement.text,
                "reason": statement.reason,
                "messages": [source.message_id for source in statement.sources],
            }
            for statement in (answer.statements if answer is not None else ())
        ]
        answered.append(
            {
                "question": question.ask,
                "model": answer.model if answer is not None else "",
                "statements": statements,
                "note": answer.note if answer is not None else "",
                "quotes": [] if statements else quotes.get(question.id, []),
            }
        )
    entries: list[Json] = redact_value(answered)
    return entries


def entry(renderer: Renderer, root: Path, result: Json) -> Json:
    """A target's line in the index over all targets, with the output directory that the index is in."""
    line = renderer.entry(str(Path(result["output"]).relative_to(root)))
    return {
        "root": str(root),
        **to_json(replace(line, edited=tuple(result["edited"]), retired=tuple(result["retired"]))),
    }


def remember(archive: Archive, target: str, entry: Json) -> None:
    """Store a target's line: one for each of its trees, that is, for each directory and moment."""
    trees = archive.target_get(target, _TREES) or {}
    trees[f"{entry['root']}\0{entry['folder']}"] = entry
    archive.target_put(target, _TREES, trees)


def publish_targets(archive: Archive, root: Path, spare_bytes: int) -> list[str]:
    """Publish the index over all trees that are still in this output directory; returns warnings."""
    in_root = [tree for target in archive.targets() for tree in _trees(archive, target) if tree["root"] == str(root)]
    existing = [tree for tree in in_root if (root / tree["folder"] / README).is_file()]
    entries = [from_json({key: value for key, value in tree.items() if key != "root"}) for tree in existing]
    return publish_index(root, entries, spare_bytes)


def _trees(archive: Archive, target: str) -> list[Json]:
    """The lines of a target's trees; version 0.1 kept them with its last runs only."""
    lasts = [(archive.target_get(target, name) or {}).get("entry") for name in ("last", "last-at")]
    entries = {(tree["root"], tree["folder"]): tree for tree in lasts if tree is not None}
    stored = archive.target_get(target, _TREES) or {}
    return list((entries | {(tree["root"], tree["folder"]): tree for tree in stored.values()}).values())


def tree_suffix(moment: int | None) -> str:
    """The suffix of the tree of an earlier state, after the target's path: ``@2026-10-01T235959Z`` (UTC).

    It has milliseconds if a person gave them; 999 is the end of a day. Empty for None.
    """
    if moment is None:
        return ""
    seconds, milliseconds = divmod(moment, 1000)
    exact = "" if milliseconds in {0, 999} else f".{milliseconds:03}"
    return f"@{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%dT%H%M%S}{exact}Z"


def check(root: Path, tree: str, forbidden: Sequence[Path]) -> None:
    """Refuse an output directory or tree in a forbidden directory, or a tree around one; links are followed.

    Raises:
        OutputRefused: naming the directory, why, and what to do.
    """
    try:
        places = [root.resolve(), (root / tree).resolve()]
        for records in (directory.resolve() for directory in forbidden):
            if any(place.is_relative_to(records) for place in places) or records.is_relative_to(places[1]):
                raise OutputRefused(
                    f"{root}: the pages would go into {records}, which holds records and is never written to by a "
                    "reconstitution; name another output directory"
                )
    except (OSError, RuntimeError) as error:  # a circle of links is a RuntimeError
        raise OutputRefused(f"{root}: cannot be resolved: {error}; name another output directory") from error


def normal(path: str) -> str:
    """`path`, absolute and normalised.

    Raises:
        BadRequest: it is not absolute, is the root, or holds a NUL.
    """
    plain = "/" + os.path.normpath(absolute(path)).lstrip("/")
    if plain == "/":
        raise BadRequest("/: the root is no target; give a folder or file beneath it")
    return plain


def absolute(path: str) -> str:
    """`path` with ~ expanded.

    Raises:
        BadRequest: it is not absolute, or holds a NUL.
    """
    expanded = os.path.expanduser(path)
    if not expanded.startswith("/") or "\0" in path:
        raise BadRequest(f"{path!r}: not an absolute path; write it from / on, or from ~")
    return expanded
