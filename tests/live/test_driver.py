"""The live tests' own tools: what they say OpenCode did must be what OpenCode recorded."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.fetched import NotAvailableError
from tests.live.opencode import OpenCode, install, make_project
from tests.live.recorded import Recorded, read_quiet_source, read_source
from tests.live.scenario import PROMPT, Scenario, expected
from tests.live.scripted_model import Call, ScriptedModel, Step

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def opencode(binary: Path, model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenCode]:
    """One for the tests that leave it running; each has a project and a session of its own."""
    with OpenCode(binary, tmp_path_factory.mktemp("opencode"), model.url) as running:
        yield running


def _recorded(opencode: OpenCode, session: str) -> dict[str, Recorded]:
    return {m: record for m, record in read_source(opencode.data_dir).items() if record.session == session}


def test_a_scripted_turn_is_recorded_as_one_message_per_step(
    opencode: OpenCode, model: ScriptedModel, tmp_path: Path
) -> None:
    project = make_project(tmp_path / "project", {"README.md": "# Project\n"})
    scenario = Scenario(model, seed=1)
    turn = scenario.turn(project, "one", filler_bytes=2000)
    session = opencode.create_session(project, "A titled session")
    answer = opencode.prompt(session, turn.prompt)
    told = opencode.messages(session)

    source = _recorded(opencode, session)

    assert {m: r.parts.keys() for m, r in source.items()} == {
        m["info"]["id"]: {part["id"] for part in m["parts"]} for m in told
    }
    assert [r.data["role"] for _, r in sorted(source.items())] == ["user"] + ["assistant"] * 4
    holders = {t: [m for m, r in source.items() if t in str(list(r.parts.values()))] for t in turn.steps}
    assert holders == {token: [message] for token, message in expected(turn, told).items()}
    tools = [p for r in source.values() for p in r.parts.values() if p["type"] == "tool"]
    assert sorted((p["tool"], p["state"]["status"]) for p in tools) == [
        (tool, "completed") for tool in ("bash", "edit", "read", "read", "write")
    ]
    assert answer["info"]["id"] == max(source)
    assert turn.written.read_text() == turn.content
    assert PROMPT in turn.steps.values()


def test_each_version_writes_the_storage_its_tests_stand_for(
    binary: Path, opencode: OpenCode, model: ScriptedModel, tmp_path: Path
) -> None:
    project = make_project(tmp_path / "project", {"README.md": "# Project\n"})
    model.add("Say something", [Step(text="Something.")])
    opencode.prompt(opencode.create_session(project), "Say something")

    has_database = (opencode.data_dir / "opencode.db").exists()
    has_messages = any((opencode.data_dir / "storage").glob("message/*/*.json"))
    is_sqlite = "/1.18." in str(binary)
    assert (has_database, has_messages) == (is_sqlite, not is_sqlite)


def test_revert_and_delete_remove_messages_from_the_source(
    opencode: OpenCode, model: ScriptedModel, tmp_path: Path
) -> None:
    project = make_project(tmp_path / "project", {"README.md": "# Project\n"})
    written = project / "kept.md"
    model.add(
        "Write the file", [Step(calls=(Call("write", {"filePath": str(written), "content": "text\n"}),)), Step("Done.")]
    )
    model.add("Something else", [Step("Yes.")])
    session = opencode.create_session(project, "Undone")
    opencode.prompt(session, "Write the file")
    asked = opencode.messages(session)[0]["info"]["id"]
    opencode.revert(session, asked)
    assert not written.exists()
    opencode.unrevert(session)
    assert written.read_text() == "text\n"
    opencode.revert(session, asked)
    opencode.prompt(session, "Something else")
    read_quiet_source(opencode.data_dir)
    left = _recorded(opencode, session)
    assert asked not in left
    assert len(left) == 2
    opencode.delete(session)
    assert _recorded(opencode, session) == {}


def test_a_killed_opencode_leaves_its_turn_unfinished(binary: Path, model: ScriptedModel, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", {"README.md": "# Project\n"})
    model.add(
        "Wait long", [Step(text="I wait.", calls=(Call("bash", {"command": "sleep 60", "description": "Wait"}),))]
    )
    with OpenCode(binary, tmp_path / "oc", model.url) as opencode:
        session = opencode.create_session(project, "Killed")
        opencode.prompt_async(session, "Wait long")
        while not any(
            p.get("state", {}).get("status") == "running" for m in opencode.messages(session) for p in m["parts"]
        ):
            assert opencode.process.poll() is None
            time.sleep(0.05)
        opencode.kill()

    answers = [r for r in read_source(opencode.data_dir).values() if r.data["role"] == "assistant"]
    assert ["completed" in r.data["time"] for r in answers] == [False]


def test_a_missing_npm_is_named_as_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RECONSTITUTE_TEST_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotAvailableError, match="npm is not installed"):
        install("1.18.33")


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_an_unreachable_registry_skips_and_an_unknown_version_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RECONSTITUTE_TEST_CACHE", str(tmp_path))
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    # Port 9 of loopback: nothing listens there, the connection is refused at once.
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    with pytest.raises(NotAvailableError, match="the registry cannot be reached"):
        install("1.18.33")
    assert [path for path in (tmp_path / "opencode-binary").iterdir() if path.is_dir()] == []


def test_a_version_without_a_binary_for_this_machine_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    npm = tmp_path / "npm"  # called with: install --prefix PREFIX PACKAGE@VERSION …
    npm.write_text(
        '#!/bin/sh\nset -e\nbin="$3/node_modules/${4%@*}/bin"\nmkdir -p "$bin"\n'
        """printf '#!/bin/sh\\nexit 3\\n' > "$bin/opencode"\nchmod +x "$bin/opencode"\n"""
    )
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("RECONSTITUTE_TEST_CACHE", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"no binary of OpenCode 0\.0\.0 runs here: (\S+ ended with 3(, )?){4}$"):
        install("0.0.0")
    assert [path for path in (tmp_path / "opencode-binary").iterdir() if path.is_dir()] == []


def test_the_scripted_model_answers_by_position_and_not_by_memory() -> None:
    with ScriptedModel() as model:
        model.add("Count", [Step("one"), Step("two")])
        asked = {"role": "user", "content": [{"type": "text", "text": "Count"}]}
        said = {"role": "assistant", "content": "…"}
        texts = [model.step([asked, *[said] * n]).text for n in (1, 0, 1, 2)]
    assert texts == ["two", "one", "two", "There is nothing more to do."]


def test_opencode_sees_nothing_of_the_callers_environment(
    binary: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "planted")
    environment = OpenCode(binary, tmp_path / "oc", "http://127.0.0.1:9/v1").environment()
    assert "planted" not in environment.values()
    assert subprocess.run([binary, "--version"], env=environment, check=True, capture_output=True).stdout.strip()
