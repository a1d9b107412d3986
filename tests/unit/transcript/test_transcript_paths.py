"""Which paths a message is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.transcript.paths import MOST, paths, unquoted
from tests.support.stores.records import BASE, apply_patch, bash, message, part, read, session, text, tool, write

HOME = "/home/dev"


def _of(*records: dict[str, Any], role: str = "assistant", **fields: Any) -> list[str]:
    return list(paths(message(*records, role=role, **fields), session()))


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (write("src/a.py", "x"), ["src/a.py"]),
        (read("/etc/../srv/./x.conf", "x"), ["/srv/x.conf"]),
        (tool("edit", {"path": "a.py"}, metadata={"filediff": {"file": "b.py"}}), ["a.py", "b.py"]),
        (
            apply_patch("*** Begin Patch\n*** Update File: a.py\n*** Move to: lib/b.py\n*** End Patch"),
            ["a.py", "lib/b.py"],
        ),
        (
            tool("x", {}, metadata={"files": [{"filePath": "/w/a", "movePath": "/w/b"}, {"file": "c"}]}),
            ["/w/a", "/w/b", "c"],
        ),
        ({"type": "patch", "hash": "x", "files": [f"{BASE}/a.py", "b.py", 7]}, ["a.py", "b.py"]),
        ({"type": "file", "filename": "a b.md", "url": f"file://{BASE}/a%20b.md?start=1"}, ["a b.md"]),
        ({"type": "file", "url": "data:image/png;base64,AA=="}, []),
    ],
)
def test_touched(record: dict[str, Any], expected: list[str]) -> None:
    assert _of(record) == [name if name.startswith("/") else f"{BASE}/{name}" for name in expected]


def test_a_summarys_files_are_below_the_work_tree_or_the_directory() -> None:
    diffs = {"diffs": [{"file": "docs/a.md"}, {"file": '"we\\"ird\\t.txt"'}, {"nothing": 1}]}
    assert _of(role="user", summary=diffs) == [f"{BASE}/docs/a.md", f'{BASE}/we"ird\t.txt']
    assert (
        _of(role="user", summary=diffs, path={"cwd": f"{BASE}/docs", "root": "/srv/clone"})[0] == "/srv/clone/docs/a.md"
    )
    assert _of(role="user", summary=diffs, path={"cwd": BASE, "root": "/"})[0] == f"{BASE}/docs/a.md"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("see /home/dev/other/x.py.", ["/home/dev/other/x.py"]),
        ("look at src/app.py:12:3, please", [f"{BASE}/src/app.py"]),
        ("(in ./tools/run.sh)", [f"{BASE}/tools/run.sh"]),
        ("from ../lib/core.rs#L10-L20", ["/home/dev/projects/lib/core.rs"]),
        ("my ~/notes/todo.md", [f"{HOME}/notes/todo.md"]),
        ("open `Makefile.am` and `docs/Über plan.md`", [f"{BASE}/Makefile.am", f"{BASE}/docs/Über plan.md"]),
        ("nothing in https://example.org/a/b.html or http://x.io/home/y.py", []),
        ("nothing in example.com/a.html, www.x.de/y.js, 10.0.0.1/x.txt", []),
        ("GET /todos and POST /api/v1/items and </b>", []),
        ("and/or, 1/2, TCP/IP, Node.js, e.g. x", []),
        ("`rm -rf x.py` and `a = b/c`", []),
        ("mail me@example.org", []),
    ],
)
def test_mentioned(words: str, expected: list[str]) -> None:
    assert _of(text(words)) == expected


@pytest.mark.parametrize("space", [" ", "\n", "\t", "\x1c", "\x85", "\u2028", "\u3000"])
def test_any_white_space_parts_words(space: str) -> None:
    record = {"type": "text", "text": f"word{space}src/a.py{space}word{space}b/c.py,d/e.py{space}x"}
    assert _of(record) == [f"{BASE}/{name}" for name in ("src/a.py", "b/c.py", "d/e.py")]


def test_touched_paths_come_before_mentioned_ones_and_outputs_come_last() -> None:
    found = _of(bash("cat x/one.py", "x/two.py:3: error"), text("see x/three.py"), write("z.py", ""))
    assert found == [f"{BASE}/{name}" for name in ("z.py", "x/one.py", "x/three.py", "x/two.py")]


def test_there_is_a_bound() -> None:
    assert len(_of(text("\n".join(f"a/{n}.py" for n in range(2000))))) == MOST


def test_without_any_directory_only_absolute_paths_are_known() -> None:
    assert paths(message(text("a/b.py /home/x/c.py")), None) == ("/home/x/c.py",)


@pytest.mark.parametrize(
    ("name", "real"),
    [
        ("plain é.txt", "plain é.txt"),
        ('"tab\\there"', "tab\there"),
        ('/w/"\\303\\251\\".txt"', '/w/é".txt'),
        ('"\\377.bin"', ""),
        ('a"b"', 'a"b"'),
        ('"', '"'),
    ],
)
def test_gits_quoting_is_taken_off(name: str, real: str) -> None:
    assert unquoted(name) == real


_ANY = st.none() | st.integers() | st.text(max_size=30) | st.lists(st.text(max_size=9), max_size=2)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["text", "tool", "patch", "file"])},
            optional={"text": _ANY, "files": _ANY, "url": _ANY, "state": _ANY},
        ),
        max_size=3,
    ),
    st.text(max_size=80),
)
def test_paths_of_any_record_are_absolute_and_plain(records: list[dict[str, Any]], words: str) -> None:
    made = replace(message(), parts=tuple(part(record) for record in [*records, text(words)]))
    for path in paths(made, session()):
        assert path.startswith("/")
        assert "/../" not in path + "/"
        assert "//" not in path
