"""What OpenCode's snapshots borrow from the project's own .git is kept while that is there, and told as lost when not."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from daemon.app import open_engine
from daemon.config import load
from tests.live.conftest import SQLITE
from tests.live.fetched import NotAvailableError
from tests.live.opencode import install, make_project
from tests.live.recovery_opencode import Workshop
from tests.live.recovery_truth import contents
from tests.live.recovery_work import read, write
from tests.live.scripted_model import ScriptedModel, Step
from tests.support.processes.daemon_process import Daemon

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

COMMITTED = {"docs/guide.md": "# Guide\n", "docs/deep/notes.txt": "deep\n", "README.md": "# Shop\n"}


@dataclass
class State:
    """The newest of what is known of a path."""

    grade: str
    is_proven: bool
    content: bytes | None
    told: str


@dataclass
class Run:
    """The project's files at the end, and what archives made before and after it was deleted know of it."""

    folder: Path
    truth: dict[str, bytes]
    before: dict[str, State]
    after: dict[str, State]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    try:
        binary = install(SQLITE)
    except NotAvailableError as reason:
        pytest.skip(str(reason))
    root = tmp_path_factory.mktemp("borrowed")
    folder = make_project(root / "work" / "shop", COMMITTED)
    with ScriptedModel(chunk=64) as model, Workshop(binary, root / "oc", model.url) as opencode:
        session = opencode.create_session(folder, "one change")
        step = Step(text="Next.", calls=(write(folder / "new.txt", "new\n"), read(folder / "README.md")))
        model.add("Make one.", [step, Step(text="Done.")])
        opencode.say(session, "Make one.")
        before, after = (Daemon(opencode.data_dir, root / name) for name in ("before", "after"))
        truth = contents(folder)
        _known(before, folder)
        shutil.rmtree(folder)
        return Run(folder, truth, _known(before, folder), _known(after, folder))


def _known(archive: Daemon, folder: Path) -> dict[str, State]:
    with open_engine(load(archive.config)) as engine:
        engine.scan(everything=True, patient=False)
        return {
            history.path: State(str(last.grade), last.proven, last.content, f"{last.note} {last.evidence}")
            for history in engine.recorded.histories(str(folder))
            if (last := history.latest) is not None
        }


def test_what_is_borrowed_is_captured_while_the_project_is_there(run: Run) -> None:
    assert {path: state.content for path, state in run.before.items()} == run.truth
    assert all(state.is_proven for state in run.before.values())


def test_what_was_borrowed_from_a_project_that_is_gone_is_listed_as_lost(run: Run) -> None:
    lost = {path: state for path, state in run.after.items() if state.grade == "lost"}
    assert f"{run.folder}/docs" in lost
    assert all("snapshot tree" in state.told for state in lost.values())
    for path in run.truth:
        assert any(path == known or path.startswith(known + "/") for known in run.after), path
