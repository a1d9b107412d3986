"""What lists and pages say of a file's state is so: who changed it last, if anybody, and what is in no list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daemon import cli
from tests.recovery.calls import APP
from tests.recovery.case import Case
from tests.recovery.story import Story
from tests.recovery.test_recovery import configured, taken_in

BUILT: dict[str, Any] = {
    "id": "built",
    "shows": "",
    "git": True,
    "ignored": ["dist/app.bin"],
    "disk": {"kept.lua": "kept\n", "read.lua": "read\n", "mine.lua": "mine\n"},
    "events": [
        {"bash": "git status"},
        {"write": "made.lua", "content": "made\n"},
        {"read": "read.lua"},
        {"bash": "./build.sh", "leaves": {"out.lua": "out\n", "dist/app.bin": "1"}},
        {"outside": {"mine.lua": "mine, again\n"}},
        {"bash": "git status"},
    ],
    "expect": [],
}


@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_only_what_changed_has_a_last_change(kind: str, tmp_path: Path) -> None:
    """A command makes every file doubtful and the next tree proves it again: that is no change."""
    with taken_in(Case(kind, BUILT), tmp_path) as (_, engine):
        listed = {file["path"][len(APP) + 1 :]: file for file in engine.files(APP)["files"]}
        then = {file["path"][len(APP) + 1 :]: file for file in engine.files(APP, at="2030-01-01")["files"]}

    assert {file["grade"] for file in listed.values()} <= {"proven", "verified"}
    changes = {name: file["lastChange"] and file["lastChange"]["tool"] for name, file in listed.items()}
    assert changes == {
        "kept.lua": None,
        "read.lua": None,
        "made.lua": "write",
        "out.lua": "snapshot",
        "mine.lua": "outside OpenCode",
    }
    assert listed["mine.lua"]["lastChange"]["sessionID"] == ""
    assert {name: file["lastChange"] for name, file in then.items()} == {
        name: file["lastChange"] for name, file in listed.items()
    }


@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_a_page_names_what_may_have_written_files_in_no_list(kind: str, tmp_path: Path) -> None:
    Story(Case(kind, BUILT), tmp_path / "data", tmp_path / "scratch").play()
    assert cli.main([*configured(tmp_path), APP]) == 0
    page = (tmp_path / "out" / APP.strip("/") / "README.md").read_text()
    standing = next(line for line in page.splitlines() if line.startswith("**Where it stands**"))
    assert "All 5 files are known exactly" in standing
    assert "`./build.sh` may have written files that are not listed here[^" in page.partition("## Files")[2]
    row = next(line for line in page.splitlines() if "read.lua" in line and line.startswith("|"))
    assert row.endswith("| exactly | seen only |")


@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_a_page_says_that_all_is_proven_where_all_is(kind: str, tmp_path: Path) -> None:
    quiet = BUILT | {"events": [{"bash": "git status"}, {"write": "made.lua", "content": "made\n"}], "ignored": []}
    Story(Case(kind, quiet), tmp_path / "data", tmp_path / "scratch").play()
    assert cli.main([*configured(tmp_path), APP]) == 0
    page = (tmp_path / "out" / APP.strip("/") / "README.md").read_text()
    standing = next(line for line in page.splitlines() if line.startswith("**Where it stands**"))
    assert "All 4 files are known exactly" in standing
    assert "no record lists" not in page
    assert "What came after" not in page
