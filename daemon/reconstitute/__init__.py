"""One run of a target: collect its evidence, recover its files, answer its questions, publish its pages (design
section 7).

Guarantees: the same evidence gives the same pages, so a second run writes nothing; answers are computed anew only when
the evidence or the questions changed; a path nobody recorded is refused with the nearest ones that were. Without a
chat model the answers are quotations. It never writes outside the output directory, and never the files themselves.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from daemon.archive import Archive
from daemon.errors import BadRequest, OutputRefused, ReconstituteError
from daemon.files import Files
from daemon.files.trees import is_beneath
from daemon.index import Filters
from daemon.model import Json, Page, Target
from daemon.publish import publish
from daemon.recall.search import Recall
from daemon.recall.snippet import counted
from daemon.reconstitute import extract
from daemon.reconstitute.extract import Extractor, Findings, Passage
from daemon.reconstitute.moment import parse_moment, tree_suffix
from daemon.reconstitute.questions import Question, of
from daemon.reconstitute.recover import CERTAIN, Recovered, recover
from daemon.reconstitute.render import Material, Renderer
from daemon.reconstitute.scope import Scope, collect
from daemon.records import digest, dumps

__all__ = ["Reconstitution", "parse_moment"]

Progress = Callable[[Json], None]
_CANDIDATES = 60
_MOST_SESSIONS = 6


class Reconstitution:
    """Runs targets over one archive; pages go beneath `output_root` unless the target names another directory."""

    def __init__(
        self,
        archive: Archive,
        recall: Recall,
        files: Files,
        output_root: Path,
        *,
        pages: int = 5000,
        forbidden: Sequence[Path] = (),
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """`pages` bounds one tree; no page goes into a `forbidden` directory (the records' own).

        `clock` (epoch ms) only dates the record of the last run, never a page.
        """
        self._archive = archive
        self._recall = recall
        self._files = files
        self._output_root = output_root
        self._most_pages = pages
        self._forbidden = tuple(forbidden)
        self._clock = clock

    def run(self, target: Target, progress: Progress = lambda _: None, at: str = "") -> Json:
        """``{target, output, pages, written, unchanged, kept, files: {proven, unproven}, warnings}``, mostly counts.

        `at` (see parse_moment) asks for an earlier state and goes before the target's own. Such a state has a tree of
        its own beside the current one, which stays as it is: ``<target>@2026-10-01T235959Z`` (UTC).
        A target that is kept up to date (`refresh` is not ``once``) and has no evidence yet gets a page that says so.

        Raises:
            BadRequest: not an absolute path; `at` is no moment; or nothing is recorded of it (what is near is named).
            OutputRefused: the output directory is not ours to write to, or one of records.
        """
        path = _normal(target.path)
        target = replace(target, at=parse_moment(at)) if at else target
        root = Path(_absolute(target.output)) if target.output else self._output_root
        tree = path.strip("/") + tree_suffix(target.at)
        _check_output(root, tree, self._forbidden)
        progress({"phase": "collect", "done": 0, "total": None})
        histories = self._files.histories(path, target.at)
        scope = collect(self._archive, self._recall, path, histories, target.at)
        files = []
        for number, file in enumerate(recover(histories, path), start=1):
            files.append(file)
            progress({"phase": "recover", "done": number, "total": len(histories)})
        warnings = list(scope.warnings)
        if not files and not scope.sessions:
            message = self._nothing(path, target.at)
            if target.refresh == "once":
                raise BadRequest(message)
            warnings.append(message)
        extractor = Extractor(scope.passages, path, [file.relative for file in files])
        said = tuple(warnings)  # not what recall warns of: a model that comes and goes must not rewrite pages
        findings, degraded = self._findings(target, path, scope, extractor, progress)
        warnings += degraded
        material = Material(
            scope, tuple(files), findings, extractor, target.at, said, _shared_names(self._files.paths("/"))
        )
        renderer = Renderer(material, self._most_pages)
        pages = renderer.pages()
        if renderer.left_out:
            warnings.append(f"without a page: {counted(renderer.left_out, 'file')}; limits.pages is {self._most_pages}")
        result = _publish(root, tree, path, pages, files)
        result["warnings"] = warnings + result["warnings"]
        last = {"evidence": scope.fingerprint, "at": target.at, "time": self._clock(), "state": "done"}
        self._archive.target_put(path, "last" if target.at is None else "last-at", last | {"result": result})
        return result

    def _remember(self, path: str, name: str, value: Json) -> None:
        if self._archive.target_get(path, name) != value:
            self._archive.target_put(path, name, value)

    # -- answers -------------------------------------------------------------------------------------------------

    def _findings(
        self, target: Target, path: str, scope: Scope, extractor: Extractor, progress: Progress
    ) -> tuple[tuple[Findings, ...], list[str]]:
        """The answer to each question, and what recall had to warn of.

        Stored answers are used again while the evidence and the questions are the same, unless recall was not whole
        when they were found: then they are looked for anew.
        """
        questions = of(target)
        key = digest(
            scope.fingerprint.encode(),
            dumps([asdict(question) for question in questions]),
            f"{extract.VERSION} {target.at}".encode(),
        )
        name = "answers" if target.at is None else "answers-at"
        stored = self._archive.target_get(path, name)
        if stored is not None and stored["key"] == key and not stored["warnings"]:
            return tuple(_from_json(q, stored["answers"][q.id]) for q in questions), []
        found: list[Findings] = []
        warnings: list[str] = []
        for number, question in enumerate(questions):
            progress({"phase": "answer", "done": number, "total": len(questions)})
            found.append(extractor.answer(question, self._ranks(question, path, scope, warnings)))
        answers = {finding.question.id: _to_json(finding) for finding in found}
        self._remember(path, name, {"key": key, "answers": answers, "warnings": warnings})
        return tuple(found), warnings

    def _ranks(self, question: Question, path: str, scope: Scope, warnings: list[str]) -> dict[str, int]:
        """The best place in recall of each message of the scope, over the question's queries."""
        known = {message_id for one in scope.sessions for message_id in one.messages}
        outside = [one for one in scope.sessions if not is_beneath(one.session.directory, path)]
        busiest = sorted(outside, key=lambda one: (-len(one.messages), one.session.id))[:_MOST_SESSIONS]
        asks = [(query, Filters(session_id=one.session.id)) for one in busiest for query in question.queries[:1]]
        if len(outside) < len(scope.sessions):
            asks += [(query, Filters(directory=path)) for query in question.queries]
        ranks: dict[str, int] = {}
        for query, filters in asks:
            if not query.strip():
                continue
            try:
                answer = self._recall.search(query, limit=_CANDIDATES, filters=filters)
            except BadRequest:
                raise
            except ReconstituteError as error:  # the pages can do without recall's ranks, and say so
                warnings += [warning for warning in [f"recall did not answer: {error}"] if warning not in warnings]
                return {}
            warnings += [warning for warning in answer.degraded if warning not in warnings]
            for place, hit in enumerate(hit for hit in answer.hits if hit.message_id in known):
                ranks[hit.message_id] = min(place, ranks.get(hit.message_id, place))
        return ranks

    # -- nothing recorded ----------------------------------------------------------------------------------------

    def _nothing(self, path: str, until: int | None) -> str:
        """Why there is nothing to reconstitute, and which paths a person may have meant."""
        if until is not None and (self._files.rows(path) or self._sessions_beneath(path)):
            return f"{path}: nothing was recorded of it by that time; leave out --at, or give a later one"
        directories = sorted({session.directory for session in self._archive.sessions() if session.directory})
        name = path.rsplit("/", 1)[-1]
        near = sorted(
            directories,
            key=lambda d: (d.rsplit("/", 1)[-1] != name, -len(os.path.commonpath([d, path]) if d[0] == "/" else ""), d),
        )
        if not near:
            return f"{path}: nothing is recorded at all yet; run `reconstitute index` where OpenCode was used"
        return f"{path}: no recorded session touched or names it; sessions ran in {', '.join(near[:5])}"

    def _sessions_beneath(self, path: str) -> bool:
        return any(is_beneath(session.directory, path) for session in self._archive.sessions())


def _publish(root: Path, tree: str, path: str, pages: Sequence[Page], files: Sequence[Recovered]) -> Json:
    """Publish, and what became of it: a page is written, unchanged, kept, or in the warnings as left."""
    published = publish(root, tree, pages)
    proven = sum(file.state in CERTAIN for file in files)
    warnings = [f"{page} was edited by hand and is kept as it is" for page in published.kept]
    warnings += [f"{page}: something that is not ours stands there and is left" for page in published.taken]
    if published.nested:
        number = counted(len(published.nested), "page")
        warnings.append(f"left to another target's tree in the same folder: {number}, such as {published.nested[0]}")
    return {
        "target": path,
        "output": str(root / published.folder),
        "pages": len(pages),
        "written": len(published.written),
        "unchanged": len(published.unchanged),
        "kept": len(published.kept),
        "files": {"proven": proven, "unproven": len(files) - proven},
        "warnings": warnings,
    }


def _check_output(root: Path, tree: str, forbidden: Sequence[Path]) -> None:
    """Refuse an output directory or tree that lies in a forbidden one, or a tree around one; links are followed.

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


def _shared_names(paths: Iterable[str]) -> frozenset[str]:
    """The file names that several recorded paths end in."""
    often = Counter(path.rsplit("/", 1)[-1] for path in paths)
    return frozenset(name for name, number in often.items() if number > 1)


def _normal(path: str) -> str:
    """`path` absolute and plain.

    Raises:
        BadRequest: it is not absolute, is the root, or holds a NUL.
    """
    normal = "/" + os.path.normpath(_absolute(path)).lstrip("/")
    if normal == "/":
        raise BadRequest("/: the root is no target; give a folder or file beneath it")
    return normal


def _absolute(path: str) -> str:
    expanded = os.path.expanduser(path)
    if not expanded.startswith("/") or "\0" in path:
        raise BadRequest(f"{path!r}: not an absolute path; write it from / on, or from ~")
    return expanded


def _to_json(found: Findings) -> Json:
    fields = ("text", "kind", "message_id", "session_id", "title", "created", "opening", "code")
    return {"note": found.note, "quotes": [{name: getattr(quote, name) for name in fields} for quote in found.quotes]}


def _from_json(question: Question, stored: Json) -> Findings:
    return Findings(question, tuple(Passage(**quote) for quote in stored["quotes"]), stored["note"])
