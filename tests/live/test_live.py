"""The daemon beside a real OpenCode at work: what is finished is searchable within seconds, and nothing is lost.

One run per OpenCode version, which the tests below look at from different sides. Three sessions work at once, in two git
projects and a plain folder; then a turn is undone and a session deleted, as people do.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from daemon.archive import Archive
from tests.live.opencode import OpenCode, make_project
from tests.live.recorded import Recorded, differences, read_quiet_source, read_source
from tests.live.scenario import Scenario, Turn, expected
from tests.live.scripted_model import ScriptedModel, Step
from tests.support.processes.daemon_process import Daemon, waiting

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

TURNS = 3
REQUEST = "rebuild-garden.txt"


@dataclass
class LiveRun:
    """What was seen. `holder` and `label` say of each token which message holds it and what it marks."""

    garden: Path
    daemon: Daemon
    turns: list[Turn] = field(default_factory=list)
    holder: dict[str, str] = field(default_factory=dict)
    label: dict[str, str] = field(default_factory=dict)
    latency_s: dict[str, float] = field(default_factory=dict)
    hits: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    requested: Turn | None = None
    results: list[Path] = field(default_factory=list)
    removed: dict[str, Recorded] = field(default_factory=dict)
    source: dict[str, Recorded] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    exit_code: int | None = None


@pytest.fixture(scope="module")
def run(binary: Path, model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRun]:
    root = tmp_path_factory.mktemp("live")
    garden = make_project(root / "work" / "garden", {"README.md": "# Garden\n"})
    kitchen = make_project(root / "work" / "kitchen", {"README.md": "# Kitchen\n"})
    scratch = root / "work" / "scratch"
    scratch.mkdir()
    daemon = Daemon(root / "oc" / "data" / "opencode", root / "ours")
    seen = LiveRun(garden, daemon)
    scenario = Scenario(model, seed=11)
    try:
        daemon.start()
        daemon.wait_until_ready()
        with OpenCode(binary, root / "oc", model.url) as opencode:
            with ThreadPoolExecutor(3) as workers:
                first = workers.submit(_session, seen, opencode, scenario, garden, "Garden plans", _drop_request)
                others = [
                    workers.submit(_session, seen, opencode, scenario, place, title)
                    for place, title in ((kitchen, "Kitchen stock"), (scratch, ""))
                ]
                for each in (first, *others):
                    each.result()
            _undo_and_delete(seen, opencode, scenario, model, kitchen)
        seen.results = daemon.wait_for_results(1)
        seen.status = daemon.wait_until_drained()
        seen.hits = {token: daemon.search(token) for token in seen.holder}
        seen.source = read_source(opencode.data_dir)
        seen.exit_code, _ = daemon.terminate()
        yield seen
    finally:
        daemon.close()


def _session(
    seen: LiveRun,
    opencode: OpenCode,
    scenario: Scenario,
    project: Path,
    title: str,
    after_first: Callable[[LiveRun, Turn], None] | None = None,
) -> str:
    """Some turns in one session; each is looked for as soon as OpenCode says that it is finished."""
    session = opencode.create_session(project, title)
    for number in range(TURNS):
        turn = scenario.turn(project, f"{project.name}-{number}")
        _say(seen, opencode, session, turn)
        if number == 0 and after_first is not None:
            after_first(seen, turn)
    return session


def _say(seen: LiveRun, opencode: OpenCode, session: str, turn: Turn) -> None:
    opencode.prompt(session, turn.prompt)
    finished = time.monotonic()
    holder = expected(turn, opencode.messages(session))
    asked_s = time.monotonic() - finished
    found = seen.daemon.wait_until_found(holder)
    seen.turns.append(turn)
    seen.holder |= holder
    seen.label |= turn.kinds
    seen.latency_s |= {token: asked_s + seconds for token, seconds in found.items()}


def _drop_request(seen: LiveRun, turn: Turn) -> None:
    """Ask for the project as a person would, while the sessions go on."""
    seen.daemon.drop_request(REQUEST, f"{seen.garden}\n")
    seen.requested = turn


def _undo_and_delete(
    seen: LiveRun, opencode: OpenCode, scenario: Scenario, model: ScriptedModel, project: Path
) -> None:
    """A session whose turn is undone, and one that is deleted; the archive has seen both."""
    undone, deleted = (opencode.create_session(project, title) for title in ("Undone", "Deleted"))
    for session, name in ((undone, "undone"), (deleted, "deleted")):
        _say(seen, opencode, session, scenario.turn(project, name))
    before = read_quiet_source(opencode.data_dir)
    opencode.revert(undone, opencode.messages(undone)[0]["info"]["id"])
    # The next prompt makes an undo final: only now do the messages go.
    model.add("Start over", [Step(text="I start over.")])
    opencode.prompt(undone, "Start over")
    opencode.delete(deleted)
    after = read_quiet_source(opencode.data_dir)
    seen.removed = {message: record for message, record in before.items() if message not in after}


def test_every_finished_message_is_searchable_without_another_look(
    run: LiveRun, record_property: Callable[[str, object], None]
) -> None:
    ordered = sorted(run.latency_s.values())
    summary = f"{len(ordered)} tokens, median {ordered[len(ordered) // 2]:.2f} s, slowest {ordered[-1]:.2f} s"
    record_property("latency", summary)
    print(summary)
    never = [(run.label[token], run.holder[token]) for token in run.holder.keys() - run.latency_s.keys()]
    assert never == []


def test_a_word_is_found_in_the_message_that_holds_it_and_in_no_other(run: LiveRun) -> None:
    assert {token: [hit["messageID"] for hit in hits] for token, hits in run.hits.items()} == {
        token: [message] for token, message in run.holder.items()
    }


def test_a_hit_says_what_kind_of_text_it_is(run: LiveRun) -> None:
    kinds = {label: label for label in ("prompt", "reasoning", "answer")} | {"last answer": "answer"}
    kinds |= {f"{tool} input": "tool_input" for tool in ("write", "edit", "bash")}
    kinds |= {f"{tool} output": "tool_output" for tool in ("read", "bash")}
    told = {(run.label[token], hit["kind"]) for token, hits in run.hits.items() for hit in hits}
    assert told == set(kinds.items())


def test_a_dropped_request_file_is_done_and_its_result_stands_beside_it(run: LiveRun) -> None:
    assert len(run.results) == 1
    assert json.loads(run.results[0].read_bytes())
    assert run.daemon.request_files() == sorted([f"done/{REQUEST}", f"done/{run.results[0].name}"])


def test_the_requested_project_has_pages_with_the_content_its_tools_wrote(run: LiveRun) -> None:
    assert run.requested is not None
    tree = run.daemon.output_dir / str(run.garden).lstrip("/")
    assert (tree / "README.md").read_text()
    page = (tree / f"{run.requested.written.name}.md").read_text()
    assert run.requested.content in page


def test_the_status_counts_what_was_seen_and_nothing_waits(run: LiveRun) -> None:
    assert waiting(run.status) == 0
    sources = run.status["sources"]
    assert {source["state"] for source in sources} == {"ok"}
    assert sum(source["kept"] for source in sources) >= len(run.source)
    assert [(source["seen"] - source["kept"], source["quarantined"]) for source in sources] == [(0, 0)] * len(sources)
    assert run.status["errors"] == []


def test_sigterm_ends_the_daemon_with_success_and_leaves_no_process(run: LiveRun) -> None:
    assert run.exit_code == 0, run.daemon.log_end()
    assert run.daemon.survivors() == []


def test_the_archive_holds_exactly_what_opencode_recorded(run: LiveRun) -> None:
    with Archive(run.daemon.archive_dir) as archive:
        assert differences(run.source, archive) == []


def test_what_opencode_undid_and_deleted_is_kept_and_marked(run: LiveRun) -> None:
    assert len({record.session for record in run.removed.values()}) == 2
    with Archive(run.daemon.archive_dir) as archive:
        for message_id, record in run.removed.items():
            message = archive.message(message_id)
            assert message is not None
            assert archive.is_deleted(message_id)
            assert {part.id: part.data for part in message.parts} == record.parts


def test_the_log_holds_no_word_of_the_sessions(run: LiveRun) -> None:
    log = run.daemon.log_path.read_text()
    assert [token for token in run.holder if token in log] == []
