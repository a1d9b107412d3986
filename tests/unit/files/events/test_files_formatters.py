"""Which changes a formatter may have followed, by OpenCode's version and by what is known of its configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.app.engine import Engine
from daemon.config import ArchiveSection, Config, OpenCode
from daemon.files.apply import edit_diffs
from daemon.files.events import formatters
from daemon.model import FileEdit, Operation
from daemon.opencode import configuration
from daemon.opencode.configuration import UNKNOWN, Settings
from daemon.transcript.evidence.unified_diffs import hunks
from tests.recovery.calls import APP
from tests.recovery.case import Case
from tests.recovery.forms import trimmed
from tests.recovery.story import Story
from tests.support.servers.plain_service import PlainService

ON = Settings(is_on=True)


def _write(path: str, version: str, tool: str = "write") -> FileEdit:
    return FileEdit(path, 1, "ses", "msg", "prt", tool, Operation.WRITE, content="x", version=version)


@pytest.mark.parametrize(
    ("path", "version", "settings", "may"),
    [
        ("/p/a.py", "1.1.65", Settings(), True),
        ("/p/a.py", "1.3.2", Settings(), True),
        ("/p/a.py", "1.14.34", Settings(), False),
        ("/p/a.py", "1.18.33", Settings(), False),
        ("/p/a.py", "1.18.33", ON, True),
        ("/p/a.py", "", Settings(), True),
        ("/p/a.lua", "1.1.65", ON, False),
        ("/p/a.lua", "1.18.33", Settings(extensions=frozenset({".lua"})), True),
        ("/p/a.lua", "1.18.33", UNKNOWN, True),
        ("/p/a.clj", "1.1.65", Settings(), False),
        ("/p/a.clj", "1.2.1", Settings(), True),
        ("/p/a.R", "1.1.65", Settings(), True),
        ("/p/a.r", "1.1.65", Settings(), False),
        ("/p/a.PY", "1.1.65", Settings(), False),
        ("/p/.py", "1.1.65", Settings(), False),
        ("/p.py/Makefile", "1.1.65", Settings(), False),
    ],
)
def test_a_formatter_may_follow_by_extension_version_and_settings(
    path: str, version: str, settings: Settings, may: bool
) -> None:
    assert formatters.may_run(_write(path, version), settings) is may
    assert not formatters.may_run(_write(path, version, tool="bash"), settings)


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("{}", Settings()),
        ('{"formatter": false}', Settings()),
        ('{"formatter": true}', ON),
        ('{"formatter": {}}', ON),
        ('{"formatter": {"a": {"extensions": [".x", 1]}, "b": {"disabled": true}}}', Settings(True, frozenset({".x"}))),
        ('{ // "formatter": true\n "a": "http://x", /* , */ "formatter": false, }', Settings()),
        ('\ufeff{"formatter": {"a": {"extensions": [".x",],},},}', Settings(True, frozenset({".x"}))),
        ("[1]", Settings()),
        ("{", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_a_configuration_is_read_as_json_with_comments(text: str, settings: Settings) -> None:
    assert configuration.settings_in(text) == settings
    assert configuration.from_json(configuration.to_json(settings)) == settings


WRITTEN = {"id": "w", "shows": "", "events": [{"write": "a.py", "content": "x=1\n"}], "expect": []}


def _engine(tmp_path: Path, name: str = "archive") -> PlainService:
    places = OpenCode(data_dir=str(tmp_path / "data")), ArchiveSection(dir=str(tmp_path / name))
    return PlainService(Engine(Config(opencode=places[0], archive=places[1])))


def _grades(engine: PlainService) -> tuple[str, str]:
    engine.scan(everything=True, patient=False)
    [row] = [row for row in engine.recorded.rows("/") if row.path == f"{APP}/a.py"]
    return row.grade, str(engine.recorded.history(f"{APP}/a.py").grade)


def test_the_users_own_configuration_counts_and_is_remembered(tmp_path: Path, clean_environment: Path) -> None:
    """No record tells of it; what was switched on while we looked stays known when it is switched off."""
    Story(Case("sqlite", WRITTEN), tmp_path / "data", tmp_path / "scratch").play()
    with _engine(tmp_path) as engine:
        assert _grades(engine) == ("proven", "proven")
    own = clean_environment / ".config" / "opencode" / "opencode.jsonc"
    own.parent.mkdir(parents=True)
    own.write_text(json.dumps({"formatter": True}))
    with _engine(tmp_path) as engine:
        assert _grades(engine) == ("stale", "stale")
        assert engine.recorded.history(f"{APP}/a.py").revisions[-1].note == formatters.AS_WRITTEN
    own.unlink()
    with _engine(tmp_path) as engine:
        assert _grades(engine) == ("stale", "stale")
    with _engine(tmp_path, "another") as engine:
        assert _grades(engine) == ("proven", "proven")


def test_rows_that_older_rules_made_are_made_anew(tmp_path: Path) -> None:
    Story(Case("json", WRITTEN), tmp_path / "data", tmp_path / "scratch").play()
    with _engine(tmp_path) as engine:
        assert _grades(engine) == ("stale", "stale")
        kept = {f"{APP}/a.py": b'{"path":"%s/a.py","grade":"proven"}' % APP.encode()}
        engine.archive.commit_views([f"{APP}/a.py"], kept, {})
        assert _grades(engine) == ("proven", "stale")
        engine.archive.set_note("file rows", "1")
        assert _grades(engine) == ("stale", "stale")


_LINES = st.sampled_from(["", "a", "b", "  a", "    b", "\tc", " "])
_ENDS = st.sampled_from(["", "\n"])
_TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, st.lists(_LINES, max_size=12), _ENDS)
_SHORT = st.builds(lambda lines, end: "\n".join(["top", *lines]) + end, st.lists(_LINES, max_size=3), _ENDS)


@given(_TEXTS, _TEXTS)
def test_a_recorded_diff_gives_the_text_after_it_or_none(before: str, after: str) -> None:
    assert edit_diffs.text_after(before, hunks(trimmed("a", before, after))) in (None, after)


@given(_SHORT, _SHORT)
def test_a_diff_with_a_line_that_is_not_indented_gives_the_text_after_it(before: str, after: str) -> None:
    if before != after:
        assert edit_diffs.text_after(before, hunks(trimmed("a", before, after))) == after


@pytest.mark.parametrize("name", ["opencode.json", "opencode.jsonc"])
def test_the_managed_configuration_counts(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"formatter": true}')
    environment = {"HOME": str(tmp_path / "home"), "OPENCODE_TEST_MANAGED_CONFIG_DIR": str(tmp_path)}
    assert configuration.on_disk("/nowhere", environment).is_on
    assert "/etc/opencode/" + name in configuration._of_machine({})


def test_a_relative_configuration_is_looked_for_in_the_sessions_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"formatter": {"own": {"extensions": [".q"]}}}')
    environment = {"HOME": str(tmp_path / "home"), "OPENCODE_CONFIG": "mine.json"}
    assert configuration.on_disk(str(tmp_path), environment).extensions == {".q"}
