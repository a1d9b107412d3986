"""A real OpenCode with a real formatter: what it wrote and what the formatter left, against what is called certain.

One run per OpenCode version, in a folder with git and in one without. Our daemon is there while
the work is done; the formatter is a program of the test's own, configured as a person would.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from daemon.app import open_engine
from daemon.config import load
from tests.live.fetched import NotAvailableError
from tests.live.opencode import install, make_project
from tests.live.recovery_opencode import PATCHING_MODEL, Workshop
from tests.live.recovery_truth import Notes, Score, compare
from tests.live.scripted_model import MODEL, Call, ScriptedModel, Step
from tests.support.processes.daemon_process import Daemon

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

FORMATTER = "#!/bin/sh\nsed -i 's/ *= */ = /' \"$1\"\n"
WRITTEN, FORMATTED = "x=1\ny=2\n", "x = 1\ny = 2\n"


@dataclass
class Formatted:
    """What was done and seen. `scores` by folder; `ends` by path: whether its end is certain, what it holds."""

    root: Path
    notes: Notes = field(default_factory=Notes)
    scores: dict[str, Score] = field(default_factory=dict)
    ends: dict[str, tuple[bool, bytes | None]] = field(default_factory=dict)
    outside: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.git, self.plain = self.root / "work" / "shop", self.root / "work" / "notes"
        for folder in (self.git, self.plain):
            folder.mkdir(parents=True)
        program = self.root / "format.sh"
        program.write_text(FORMATTER)
        program.chmod(0o755)
        table = {"ours": {"command": [str(program), "$FILE"], "extensions": [".conf"]}}
        for folder in (self.git, self.plain):
            (folder / "opencode.json").write_text(json.dumps({"formatter": table}))
        make_project(self.git, {"README": "A shop\n"})

    @property
    def data_dir(self) -> Path:
        return self.root / "oc" / "data" / "opencode"

    def work(self, binary: Path) -> None:
        with ScriptedModel(chunk=64) as model, Workshop(binary, self.root / "oc", model.url) as opencode:
            for folder in (self.git, self.plain):
                session = opencode.create_session(folder, "Formatted")
                for number, (calls, name) in enumerate(_turns(folder)):
                    prompt = f"turn {number} of {folder.name}"
                    model.scripts[prompt] = tuple(Step(calls=(call,)) for call in calls)
                    opencode.say(session, prompt, model=name)
                    assert {call["state"]["status"] for call in opencode.calls(session)} == {"completed"}
                    self.notes.take(prompt, folder)

    def compare(self, daemon: Daemon) -> None:
        with open_engine(load(daemon.config)) as engine:
            engine.scan(everything=True, patient=False)
            for folder in (self.git, self.plain):
                notes = [note for note in self.notes.taken if note.folder == str(folder)]
                self.scores[folder.name] = compare(engine.recorded, notes)
                for history in engine.recorded.histories(str(folder)):
                    latest = history.latest
                    self.ends[history.path] = latest is not None and latest.proven, latest.content if latest else None
                    self.outside += [history.path for revision in history.revisions if revision.outside_change]


def _turns(folder: Path) -> Iterator[tuple[list[Call], str]]:
    def write(name: str, content: str) -> Call:
        return Call("write", {"filePath": str(folder / name), "content": content})

    yield [write("written.conf", WRITTEN), write("fine.conf", FORMATTED), write("other.cfg", WRITTEN)], MODEL
    yield [Call("bash", {"command": f"printf 'a=1\\nb=2\\n' > {folder}/edited.conf", "description": "Make it"})], MODEL
    yield [Call("read", {"filePath": str(folder / "edited.conf")})], MODEL
    change = {"filePath": str(folder / "edited.conf"), "oldString": "b=2", "newString": "b=3"}
    yield [Call("edit", change)], MODEL
    patch = "*** Begin Patch\n*** Add File: added.conf\n+x=1\n*** Update File: written.conf\n@@\n-y = 2\n+y=4\n*** End Patch"
    yield [Call("apply_patch", {"patchText": patch})], PATCHING_MODEL


@pytest.fixture(scope="module", params=["1.1.65", "1.15.13", "1.18.33"])
def run(
    request: pytest.FixtureRequest,
    quick_embedder: dict[str, dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Formatted]:
    try:
        binary = install(request.param)
    except NotAvailableError as reason:
        pytest.skip(str(reason))
    run = Formatted(tmp_path_factory.mktemp("formatters"))
    daemon = Daemon(run.data_dir, run.root / "daemon", tables=quick_embedder)
    try:
        daemon.run()
        run.work(binary)
        daemon.terminate()
        run.compare(daemon)
        yield run
    finally:
        daemon.close()


def test_the_formatter_ran_and_left_no_record(run: Formatted) -> None:
    for folder in (run.git, run.plain):
        files = run.notes.last(folder).files
        assert files[f"{folder}/written.conf"] == b"x = 1\ny = 4\n"
        assert files[f"{folder}/added.conf"] == b"x = 1\n"
        assert files[f"{folder}/edited.conf"] == b"a = 1\nb = 3\n"
        assert files[f"{folder}/other.cfg"] == WRITTEN.encode()


def test_nothing_is_certain_but_what_the_formatter_left(run: Formatted) -> None:
    for name, score in run.scores.items():
        print(f"{name}: {score}")
        assert score.wrong_once() == [], name


def test_with_git_all_is_exact_in_the_end(run: Formatted) -> None:
    last = run.notes.last(run.git)
    for name in ("written.conf", "fine.conf", "edited.conf", "added.conf", "other.cfg"):
        assert run.ends[f"{run.git}/{name}"] == (True, last.files[f"{run.git}/{name}"]), name


def test_without_git_what_no_formatter_takes_is_exact(run: Formatted) -> None:
    assert run.ends[f"{run.plain}/other.cfg"] == (True, WRITTEN.encode())
    assert run.ends[f"{run.plain}/added.conf"] == (False, b"x=1\n")


def test_no_formatter_is_called_a_change_from_outside(run: Formatted) -> None:
    assert run.outside == []
