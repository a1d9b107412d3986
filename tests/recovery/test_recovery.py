"""Small hard cases: what OpenCode recorded goes in, the exact bytes or an honest refusal comes out.

Each case tells what happened; the records are written as OpenCode 1.1.65 (JSON files) and 1.18.33 (SQLite) write them,
snapshots by git, and taken in by the real engine. Whatever a case expects, no answer that is called proven or verified
may differ from what stood on the disk: at the end, or at any moment in between that was recorded.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import cli, config, records
from daemon.app.engine import Engine
from daemon.files import Files
from daemon.files.end_states import _RULES, row_of
from daemon.ingest.evidence import VERSION
from tests.recovery import answers, story
from tests.recovery.answers import Answer
from tests.recovery.calls import APP
from tests.recovery.case import Case, cases
from tests.recovery.story import Story
from tests.support.servers.plain_service import PlainService

CASES = list(cases(Path(__file__).parent / "cases"))
LEAST = 60
DIGESTS = Path(__file__).parent / "digests.json"
"""Of each case: its records, the file edits drawn from them, and the end states; under which VERSION and _RULES."""
RECORDED = json.loads(DIGESTS.read_bytes())
RENEWS = "RECONSTITUTE_RENEW_DIGESTS" in os.environ
RENEW = "RECONSTITUTE_RENEW_DIGESTS=1 .venv/bin/python -m pytest -q tests/recovery/test_recovery.py -k test_a_case_is_recovered"


@contextmanager
def taken_in(case: Case, root: Path) -> Iterator[tuple[Story, PlainService]]:
    """The case's story, and an engine that has taken in all that was recorded of it."""
    told = Story(case, root / "data", root / "scratch")
    told.play()
    assert not list(answers.untruths(case, told)), "the case itself is wrong"
    tables = {
        "opencode": {"data_dir": str(root / "data")},
        "archive": {"dir": str(root / "archive")},
        "output": {"dir": str(root / "out")},
        "embedding": {"provider": "builtin"},
    }
    with PlainService(Engine(msgspec.convert(tables, config.Config))) as engine:
        engine.scan(everything=True, patient=False)
        yield told, engine


def asked(files: Files, told: Story, expected: dict[str, Any]) -> Answer:
    history = files.history(told.absolute(expected["path"]))
    if "at" not in expected:
        return answers.of_now(history)
    return answers.of_revision(history.at(answers.moment_of(told, expected["at"]).time + 1))


def shortfalls(files: Files, told: Story, expectations: list[dict[str, Any]]) -> list[str]:
    return [
        f"{expected['path']} {expected.get('at', 'now')}: {trouble}"
        for expected in expectations
        for trouble in answers.shortfalls(expected, asked(files, told, expected))
    ]


def paths(files: Files, told: Story) -> list[str]:
    known = {history.path for history in files.histories("/")}
    return sorted(known | {path for moment in told.moments for path in moment.disk})


def contradictions(files: Files, told: Story) -> Iterator[str]:
    """Every sure answer that is not the truth, at the end and at each recorded moment."""
    moments = told.moments if len(told.moments) < 50 else told.moments[-1:]
    end = told.moments[-1]
    strict = {told.absolute(path) for path in told.data.get("strict", ())}
    for path in paths(files, told):
        history = files.history(path)
        if path not in end.blind - strict:
            yield from _told(f"{path} now", answers.contradiction(answers.of_now(history), Story.truth(end.disk, path)))
        for moment in moments:
            if path not in moment.blind:
                then = answers.of_revision(history.at(moment.time + 1))
                name = f"{path} at {moment.label or moment.time - story.START}"
                yield from _told(name, answers.contradiction(then, Story.truth(moment.disk, path)))


def _told(name: str, trouble: str) -> Iterator[str]:
    if trouble:
        yield f"{name}: {trouble}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_recovered_or_refused_as_it_should_be(case: Case, tmp_path: Path) -> None:
    with taken_in(case, tmp_path) as (told, engine):
        wrong = list(contradictions(engine.recorded, told))
        assert wrong == [], f"silently wrong: {case.data['shows']}"
        assert shortfalls(engine.recorded, told, case.data["expect"]) == [], case.data["shows"]
        assert numbers_to_raise(case, engine, tmp_path) == []


def numbers_to_raise(case: Case, engine: PlainService, root: Path) -> list[str]:
    """The numbers to raise, and how, where a case is not answered or recorded as its digests say.

    Archives keep file edits and end states that an older program made; only a raised number makes them anew.
    """
    rows = [repr(row_of(history)) for history in engine.recorded.histories("/")]
    drawn = sorted(records.edit_to_json(edit).decode() for edit in engine.archive.files.beneath("/"))
    ids = sorted(engine.archive.all_message_ids())
    messages = [message for id_ in ids if (message := engine.archive.message(id_)) is not None]
    raw = [text.decode("utf-8", "replace") for one in messages for text in (one.raw, *(part.raw for part in one.parts))]
    now = [_digest(text, root) for text in (raw, drawn, rows)]
    before = RECORDED["cases"].get(case.name, ["", "", ""])
    is_same_case = now[0] == before[0]
    to_raise = []
    if is_same_case and now[1] != before[1] and RECORDED["version"] == VERSION:
        to_raise = ["other file edits are drawn: raise VERSION in daemon/ingest/evidence.py"]
    elif is_same_case and now[2] != before[2] and (RECORDED["rules"], RECORDED["version"]) == (_RULES, VERSION):
        to_raise = ["other end states follow: raise _RULES in daemon/files/end_states.py"]
    if RENEWS and not to_raise:
        recorded = json.loads(DIGESTS.read_bytes())
        cases_now = {name: recorded["cases"][name] for name in recorded["cases"] if name in {c.name for c in CASES}}
        cases_now |= {case.name: now}
        written = {"rules": _RULES, "version": VERSION, "cases": dict(sorted(cases_now.items()))}
        lines = json.dumps(written, indent=1).replace("[\n   ", "[").replace(",\n   ", ", ").replace("\n  ]", "]")
        DIGESTS.write_text(lines + "\n", encoding="utf-8")
        return []
    if before != now:
        to_raise.append(f"then record the digests: {RENEW}")
    return to_raise


def _digest(texts: list[str], root: Path) -> str:
    return hashlib.sha256("\n".join(texts).replace(str(root), "").encode()).hexdigest()[:12]


def test_the_digests_of_answers_are_of_the_present_numbers() -> None:
    assert RENEWS or (RECORDED["rules"], RECORDED["version"]) == (_RULES, VERSION), RENEW


def test_there_are_enough_cases_and_each_says_what_it_shows() -> None:
    names = [case.data["id"] for case in CASES]
    assert len(set(names)) >= LEAST
    assert len(names) == len({case.name for case in CASES})
    assert all(case.data["shows"] and case.data["expect"] for case in CASES)


CONTROLS = ("write-then-edit", "remove", "sed-between-edits", "rejected-write")


@pytest.mark.parametrize("case", [case for case in CASES if case.data["id"] in CONTROLS], ids=lambda case: case.name)
def test_a_case_with_another_truth_fails(case: Case, tmp_path: Path) -> None:
    with taken_in(case, tmp_path) as (told, engine):
        for expected in case.data["expect"]:
            for changed in _mutations(expected):
                assert shortfalls(engine.recorded, told, [changed]), changed


def _mutations(expected: dict[str, Any]) -> Iterator[dict[str, Any]]:
    changed = copy.deepcopy(expected)
    if isinstance(changed.get("text"), str) and not changed.get("if_sure", False):
        changed["text"] += "\n"
        yield changed
    if "deleted" in expected:
        yield expected | {"deleted": not expected["deleted"]}
    yield expected | {"grade": "refused" if expected.get("grade", "sure") == "sure" else "sure"}


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        pytest.param(Answer("proven", content=b"a"), b"b", id="other bytes"),
        pytest.param(Answer("verified", content=b"a"), b"a\n", id="a final newline less"),
        pytest.param(Answer("proven", content=b"a"), None, id="a file that was gone"),
        pytest.param(Answer("proven", deleted=True), b"a", id="gone, where a file stood"),
        pytest.param(Answer("proven"), b"a", id="proven without content"),
    ],
)
def test_a_sure_answer_that_is_not_the_truth_is_noticed(answer: Answer, truth: bytes | None) -> None:
    assert answers.contradiction(answer, truth)
    assert not answers.contradiction(Answer("stale", answer.deleted, answer.content), truth)


RESTORED = [
    "write-then-edit",
    "rejected-write",
    "crlf-edit",
    "bom-edit",
    "no-final-newline",
    "empty-file",
    "lone-surrogate",
    "ten-megabytes",
    "content-like-a-secret",
    "patch-several-files",
    "partial-read",
    "concurrent-writes",
    "duplicate-records",
    "revert-pending",
    "unicode-and-spaces",
    "names-like-patterns",
    "remove-folder",
    "sed-last",
    "binary-from-snapshot",
    "symlink-is-no-file",
]


def configured(root: Path) -> list[str]:
    """The command line's options for a configuration that keeps everything beneath `root`."""
    file = root / "config.toml"
    file.write_text(
        f'[opencode]\ndata_dir = "{root / "data"}"\n[archive]\ndir = "{root / "archive"}"\n'
        f'[output]\ndir = "{root / "out"}"\n[embedding]\nprovider = "builtin"\n'
    )
    return ["--config", str(file)]


@pytest.mark.parametrize("case", [case for case in CASES if case.data["id"] in RESTORED], ids=lambda case: case.name)
def test_restore_writes_exactly_what_is_sure(case: Case, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    told = Story(case, tmp_path / "data", tmp_path / "scratch")
    told.play()
    folder, end = tmp_path / "back", told.moments[-1].disk
    capfd.readouterr()
    code = cli.main([*configured(tmp_path), "restore", APP, "--to", str(folder), "--json"])
    answer = json.loads(capfd.readouterr().out)

    there = {f"{APP}/{path.relative_to(folder)}": path for path in folder.rglob("*") if path.is_file()}
    assert set(there) == {entry["path"] for entry in answer["written"]}
    assert [path for path, copy in there.items() if copy.read_bytes() != Story.truth(end, path)] == []
    now = [expected for expected in case.data["expect"] if "at" not in expected]
    sure = {told.absolute(e["path"]) for e in now if e.get("grade", "sure") == "sure" and not e.get("deleted", False)}
    assert sure <= set(there)
    assert not there.keys() & {told.absolute(e["path"]) for e in now if told.absolute(e["path"]) not in end}
    assert code == 4 if not there else code in (0, 3)


def test_restore_brings_back_what_was_deleted_when_it_is_asked_to(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for case in [case for case in CASES if case.data["id"] == "remove-folder"]:
        root = tmp_path / case.kind
        told = Story(case, root / "data", root / "scratch")
        told.play()
        arguments = [*configured(root), "restore", f"{APP}/src", "--to", str(root / "back"), "--json"]
        assert cli.main([*arguments, "--deleted"]) in (0, 3)
        assert len(json.loads(capfd.readouterr().out)["written"]) == 2
        assert (root / "back" / "a.lua").read_bytes() == b"a\n"
        assert (root / "back" / "deep" / "b.lua").read_bytes() == b"b2\n"
