"""Which commands can still be run as they were, and how a project is started that nobody started yet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from daemon.model import Operation
from daemon.reconstitute.facts import usage
from daemon.reconstitute.facts.usage import scripts
from daemon.reconstitute.recover import State
from tests.unit.facts.folder_facts import START, TARGET, call, file, revision, session, turn


def gone(path: str, to: str = ""):
    """A file that was deleted, or moved to another path."""
    operation = Operation.MOVE if to else Operation.DELETE
    last = revision(None, operation=operation, deleted=True, moved_to=f"{TARGET}/{to}" if to else "")
    return file(path, None, revision("x\n"), last, state=State.DELETED)


def lasting(*calls, files=()):
    ran = usage.find(TARGET, [session(turn("Do it.", *calls))])
    return [(one.command, one.ran_as) for one in usage.runnable(TARGET, ran, files)]


MOVED = [
    ("python3 ozet.py", [gone("ozet.py", "aylik.py"), file("aylik.py")], [("python3 aylik.py", "python3 ozet.py")]),
    ("./go.sh -v 2", [gone("go.sh", "bin/go.sh"), file("bin/go.sh")], [("./bin/go.sh -v 2", "./go.sh -v 2")]),
    ("python3 a.py", [gone("a.py", "b.py"), gone("b.py", "c.py"), file("c.py")], [("python3 c.py", "python3 a.py")]),
    ("python3 a.py", [gone("a.py", "b.py"), gone("b.py")], []),
    ("python3 a.py", [gone("a.py", "b.py"), gone("b.py", "a.py")], []),
    ("python3 a.py", [gone("a.py")], []),
    ("python3 -m shop.till", [gone("shop/till.py")], []),
    ("cd web && node a.js", [gone("web/a.js", "web/b.js"), file("web/b.js")], [("node b.js", "node a.js")]),
    ("python3 a.py data.csv", [gone("data.csv")], [("python3 a.py data.csv", "")]),
    ("python3 a.py", [gone("old/a.py"), file("a.py")], [("python3 a.py", "")]),
    ("npm test", [gone("npm")], [("npm test", "")]),
]


@pytest.mark.parametrize(("command", "files", "expected"), MOVED)
def test_a_command_of_a_script_that_is_gone_is_left_out_or_renamed(command, files, expected):
    assert lasting(call(command), files=files) == expected


def test_a_moved_script_that_ran_from_its_new_place_is_one_command():
    files = [gone("a.py", "b.py"), file("b.py")]
    assert lasting(call("python3 a.py"), call("python3 b.py"), files=files) == [("python3 b.py", "")]


@pytest.mark.parametrize(
    ("calls", "left"),
    [
        ([("npm install", 1, 1), ("npm test", 0, 2)], ["npm test"]),
        ([("npm install", 1, 1), ("npm test", 1, 2)], ["npm install", "npm test"]),
        ([("npm test", 0, 1), ("npm install", 1, 2)], ["npm install", "npm test"]),
        ([("npm install", 1, 1), ("npm install", 0, 2), ("npm test", 0, 3)], ["npm install", "npm test"]),
        ([("luac -p a.lua", 127, 1)], []),
        ([("luac -p a.lua", 1, 1)], ["luac -p a.lua"]),
    ],
)
def test_what_failed_and_was_not_needed_is_no_way_to_run_it(calls, left):
    made = [call(command, code, started=START + at, ended=START + at) for command, code, at in calls]
    assert [command for command, _ in lasting(*made)] == left


STARTS = [
    ("Start it with `bin/rails server`.", [], ["bin/rails server"]),
    ("## Run\n\n```sh\n$ uvicorn shop:app --reload\n```\n", [], ["uvicorn shop:app --reload"]),
    ("Lauf:\n\n    python3 laden.py\n", ["laden.py"], ["python3 laden.py"]),
    ("See `src/shop.py` and `docs/a.md`.", [], []),
    ("We serve the best coffee\nopen the door", [], []),
    ("`npm test`, `pip install x`, `make`", [], []),
    ("`npm install && npm start`", [], []),
    ("nothing", ["Cargo.toml", "src/main.rs"], ["cargo run"]),
    ("nothing", ["Cargo.toml", "src/lib.rs"], []),
]


@pytest.mark.parametrize(("readme", "others", "expected"), STARTS)
def test_a_readme_says_how_the_project_is_started(readme, others, expected):
    read = file("README.md", readme)
    found = scripts.starts(TARGET, [read, *(file(one) for one in others)], [read])
    assert [(one.invocation, one.group) for one in found] == [(one, "run") for one in expected]


def test_a_start_command_of_a_script_that_is_gone_is_not_told():
    read = file("README.md", "`python3 shop.py`")
    assert scripts.starts(TARGET, [read, gone("shop.py")], [read]) == ()
    assert scripts.starts(TARGET, [read, replace(file("shop.py"))], [read]) != ()
