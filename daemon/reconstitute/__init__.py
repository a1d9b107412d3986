"""One run of a target: collect its evidence, recover its files, answer its questions, publish its pages (design
section 7).

Guarantees: the same evidence gives the same pages, so a second run writes nothing; answers are computed anew only when
the evidence or the questions changed; a path nobody recorded is refused with the nearest ones that were. Without a
chat model the answers are quotations. It never writes outside the output directory, and never the files themselves.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from daemon.archive import Archive
from daemon.errors import BadRequest, ReconstituteError
from daemon.files import Files
from daemon.index import Filters
from daemon.model import Json, Page, Target
from daemon.publish import publish
from daemon.recall import Recall
from daemon.reconstitute import extract
from daemon.reconstitute.extract import Extractor, Findings, Passage
from daemon.reconstitute.moment import parse_moment
from daemon.reconstitute.questions import Question, of
from daemon.reconstitute.recover import Recovered, State, recover
from daemon.reconstitute.render import Material, Renderer
from daemon.reconstitute.scope import Scope, collect, is_beneath
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
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """`pages` bounds one tree; `clock` (epoch ms) only dates the record of the last run, never a page."""
        self._archive = archive
        self._recall = recall
        self._files = files
        self._output_root = output_root
        self._most_pages = pages
        self._clock = clock

    def run(self, target: Target, progress: Progress = lambda _: None, at: str = "") -> Json:
        """``{target, output, pages, written, unchanged, kept, files: {proven, unproven}, warnings}``, mostly counts.

        `at` (see parse_moment) asks for an earlier state and goes before the target's own.
        A target that is kept up to date (`refresh` is not ``once``) and has no evidence yet gets a page that says so.

        Raises:
            BadRequest: not an absolute path; `at` is no moment; or nothing is recorded of it (what is near is named).
            OutputRefused: the output directory is not ours to write to.
        """
        path = _normal(target.path)
        target = replace(target, at=parse_moment(at)) if at else target
        progress({"phase": "collect", "done": 0, "total": None})
        paths = [found for found in self._files.paths(path) if is_beneath(found, path)]
        scope = collect(self._archive, self._recall, path, paths, target.at)
        files = []
        for number, file in enumerate(recover(self._files, paths, path, target.at), start=1):
            files.append(file)
            progress({"phase": "recover", "done": number, "total": len(paths)})
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
        renderer = Renderer(Material(scope, tuple(files), findings, extractor, target.at, said), self._most_pages)
        pages = renderer.pages()
        if renderer.left_out:
            warnings.append(f"{renderer.left_out} files have no page: limits.pages is {self._most_pages}")
        result = self._publish(target, path, pages, files)
        result["warnings"] = warnings + result["warnings"]
        last = {"evidence": scope.fingerprint, "at": target.at, "time": self._clock(), "state": "done"}
        self._archive.target_put(path, "last", last | {"result": result})
        return result

    def _publish(
        self,
        target: Target,
        path: str,
        pages: Sequence[Page],
        files: Sequence[Recovered],
    ) -> Json:
        root = Path(_absolute(target.output)) if target.output else self._output_root
        published = publish(root, path.strip("/"), pages)
        proven = sum(file.state in {State.PROVEN, State.DELETED} for file in files)
        return {
            "target": path,
            "output": str(root / published.folder),
            "pages": len(pages),
            "written": len(published.written),
            "unchanged": len(published.unchanged),
            "kept": len(published.kept),
            "files": {"proven": proven, "unproven": len(files) - proven},
            "warnings": [
                *(f"{page} was edited by hand and is kept as it is" for page in published.kept),
                *(f"{page}: something that is not ours stands there and is left" for page in published.taken),
                *(f"{page} belongs to another target's tree and is left to it" for page in published.nested),
            ],
        }

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
        if until is not None and (next(iter(self._files.paths(path)), None) or self._sessions_beneath(path)):
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
