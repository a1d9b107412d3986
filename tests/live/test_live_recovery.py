"""What a real OpenCode did to files, recovered and compared with the disk as it was after every turn.

One run per OpenCode version: our daemon watches while the work is done, a second archive is made afterwards, a third when
the projects are deleted and OpenCode has lost its snapshots. None of them may call a content certain that did not stand
there at that moment; what is refused is counted and printed with its reasons.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from daemon.app import open_engine
from daemon.config import load
from tests.live.opencode import make_project
from tests.live.recovery_opencode import Workshop
from tests.live.recovery_truth import Note, Notes, Score, compare, contents, moved
from tests.live.recovery_work import FROM_NOTHING, LITERAL, Bench, prepare, work, work_renamed
from tests.live.scripted_model import ScriptedModel
from tests.support.processes.daemon_process import Daemon
from tests.support.servers.plain_service import PlainService

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

UNCERTAIN = {"ignored/x.txt", "link.txt"}
"""Of the git project: what no snapshot holds, and programs may have changed; and a link, which is not restored."""


@dataclass
class Recovery:
    """What was done and seen. `scores`: archive and folder -> comparison; `restored`: name -> what came back."""

    root: Path
    notes: Notes = field(default_factory=Notes)
    unexpected: list[str] = field(default_factory=list)
    scores: dict[str, Score] = field(default_factory=dict)
    restored: dict[str, dict[str, bytes]] = field(default_factory=dict)
    skipped: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    hint: str = ""
    literal: dict[str, object] = field(default_factory=dict)
    """What is certain in the end of the files that tools and literal commands made, with git."""
    made: dict[str, object] = field(default_factory=dict)
    """The same without git, of files made from nothing, before a program ran."""

    def __post_init__(self) -> None:
        place = self.root / "work"
        self.git, self.plain = place / "shop", place / "notes"
        self.old, self.new = place / "first-name", place / "second-name"
        self.outside = {folder: place / "elsewhere" / f"of {folder.name}" for folder in (self.git, self.plain)}
        for folder in self.outside.values():
            folder.mkdir(parents=True)
        for folder in (self.git, self.plain):
            prepare(folder)
        make_project(self.git, {})
        make_project(self.old, {"README.md": "# Renamed later\n"})

    @property
    def data_dir(self) -> Path:
        return self.root / "oc" / "data" / "opencode"

    def work(self, binary: Path) -> None:
        with ScriptedModel(chunk=64) as model, Workshop(binary, self.root / "oc", model.url) as opencode:
            bench = Bench(opencode, model, self.notes, self.unexpected)
            with ThreadPoolExecutor(3) as workers:
                each = [workers.submit(work, bench, folder, outside) for folder, outside in self.outside.items()]
                each.append(workers.submit(work_renamed, bench, self.old, self.new))
                for done in each:
                    done.result()

    def compare(self, name: str, daemon: Daemon) -> None:
        """Every note against this archive, but for those of the folder that a person renamed: no record tells that."""
        with PlainService(open_engine(load(daemon.config))) as engine:
            engine.scan(everything=True, patient=False)
            for folder in (self.git, self.plain, self.new, *self.outside.values()):
                self.scores[f"{name} {folder.name}"] = compare(engine.recorded, self.of(folder))

    def compare_joined(self, daemon: Daemon) -> None:
        """The notes of the renamed folder, all under its new name."""
        renamed = [*moved(self.of(self.old), self.old, self.new), *self.of(self.new)]
        with PlainService(open_engine(load(daemon.config))) as engine:
            self.scores["joined"] = compare(engine.recorded, renamed)

    def restore(self, name: str, daemon: Daemon, folder: Path, *options: str) -> None:
        to = self.root / "restored" / name
        to.parent.mkdir(exist_ok=True)
        done = daemon.ask("restore", str(folder), "--to", str(to), "--json", *options)
        assert done.returncode in (0, 3), done.stderr
        self.restored[name] = {str(Path(p).relative_to(to)): data for p, data in contents(to).items()}
        self.skipped[name] = json.loads(done.stdout)["skipped"]

    def of(self, folder: Path) -> list[Note]:
        return [note for note in self.notes.taken if note.folder == str(folder)]

    def truth(self, folder: Path, after: str = "the end") -> Note:
        return next(note for note in self.of(folder) if note.after == f"{folder.name} {after}")

    def states(self, daemon: Daemon, note: Note, names: tuple[str, ...]) -> dict[str, object]:
        """What is certain of these files at a note's moment: their content, else why not."""
        found: dict[str, object] = {}
        with PlainService(open_engine(load(daemon.config))) as engine:
            for name in names:
                state = engine.recorded.history(f"{note.folder}/{name}").at(note.time)
                refusal = "nothing recorded" if state is None else f"{state.grade}: {state.note}"
                found[name] = state.content if state is not None and state.proven else refusal
        return found


@pytest.fixture(scope="module")
def run(
    binary: Path, quick_embedder: dict[str, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recovery]:
    run = Recovery(tmp_path_factory.mktemp("recovery"))
    during, after, pruned = (
        Daemon(run.data_dir, run.root / name, tables=quick_embedder) for name in ("during", "after", "pruned")
    )
    try:
        during.run()
        run.work(binary)
        done = during.ask("index", "--wait")
        assert done.returncode == 0, done.stderr
        during.terminate()
        run.compare("during", during)
        run.compare("after", after)
        for folder in (run.git, run.plain):
            shutil.rmtree(folder)
        run.restore("deleted", during, run.git)
        run.restore("earlier", during, run.git, "--at", _moment(run.truth(run.git, "to undo")))
        # As git's own clearing up does it: OpenCode lets go of old trees after a week.
        shutil.rmtree(run.data_dir / "snapshot")
        run.restore("after the prune", during, run.git)
        run.compare("pruned", pruned)
        run.restore("pruned", pruned, run.git)
        run.hint = during.ask("files", str(run.new)).stderr
        joined = during.ask("alias", str(run.old), str(run.new))
        assert joined.returncode == 0, joined.stderr
        run.compare_joined(during)
        run.literal = run.states(during, run.truth(run.git), LITERAL)
        run.made = run.states(during, run.truth(run.plain, "literal shell"), FROM_NOTHING)
        yield run
    finally:
        for daemon in (during, after, pruned):
            daemon.close()


def _moment(note: Note) -> str:
    return str(note.time)


def test_the_work_went_as_it_was_meant(run: Recovery) -> None:
    assert run.unexpected == []


@pytest.mark.parametrize("name", ["during", "after", "pruned", "joined"])
def test_nothing_is_called_certain_that_did_not_stand_there(
    run: Recovery, name: str, record_property: Callable[[str, object], None]
) -> None:
    scores = {key: score for key, score in run.scores.items() if key.startswith(name)}
    for key, score in scores.items():
        record_property(key, str(score))
        print(f"{key}: {score}")
    wrong = "\n".join(f"{key}: {text}" for key, score in scores.items() for text in score.wrong_once())
    assert not wrong, wrong
    assert sum(score.exact for score in scores.values()) > 0


def test_what_tools_and_literal_commands_made_is_exact_in_the_end(run: Recovery) -> None:
    truth = run.truth(run.git)
    assert run.literal == {name: truth.files[f"{run.git}/{name}"] for name in LITERAL}


def test_files_made_without_git_are_exact_until_a_program_runs(run: Recovery) -> None:
    truth = run.truth(run.plain, "literal shell")
    assert run.made == {name: truth.files[f"{run.plain}/{name}"] for name in FROM_NOTHING}


def test_a_deleted_project_comes_back_byte_for_byte(run: Recovery) -> None:
    left_out, different = _against_truth(run, "deleted", run.truth(run.git))
    assert (left_out - UNCERTAIN, different) == (set(), {})


def test_an_earlier_moment_comes_back_byte_for_byte(run: Recovery) -> None:
    left_out, different = _against_truth(run, "earlier", run.truth(run.git, "to undo"))
    # Without a journal it is not known when what was done in this turn was undone.
    reverted = {"undone.txt", "undone-new.txt", "undone-shell.txt"} if _is_json(run) else set()
    assert (left_out - UNCERTAIN - reverted, different) == (set(), {})


def test_what_was_captured_outlives_the_snapshots(run: Recovery) -> None:
    assert run.restored["after the prune"] == run.restored["deleted"]
    assert len(run.restored["deleted"]) > len(run.restored["pruned"]) > 0
    assert {s["path"] for s in run.skipped["pruned"]} > {s["path"] for s in run.skipped["deleted"]}


def _is_json(run: Recovery) -> bool:
    return not (run.data_dir / "opencode.db").exists()


def _against_truth(run: Recovery, name: str, truth: Note) -> tuple[set[str], dict[str, bytes]]:
    """What a restore left out, and what it wrote that is not what stood there; all that is left out has its reason."""
    files = {path[len(str(run.git)) + 1 :]: data for path, data in truth.files.items()}
    restored = run.restored[name]
    told = {entry["path"][len(str(run.git)) + 1 :] for entry in run.skipped[name] if entry["reason"]}
    left_out = files.keys() - restored.keys()
    assert left_out <= told | _links(truth, run.git)
    return left_out, {path: data for path, data in restored.items() if files.get(path) != data}


def _links(truth: Note, folder: Path) -> set[str]:
    return {path[len(str(folder)) + 1 :] for path in truth.links}


def test_a_renamed_project_is_recognised_and_joined(run: Recovery) -> None:
    assert f"reconstitute alias {run.old} {run.new}" in run.hint
    assert run.scores["joined"].refused == {}
    assert run.scores["joined"].exact == sum(len(note.files) for note in (*run.of(run.old), *run.of(run.new)))
