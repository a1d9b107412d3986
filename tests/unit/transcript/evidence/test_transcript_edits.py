"""Every shape of a file-changing call that was seen, and some that may come, as file edits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.files.replay.track import started
from daemon.model import FileEdit, Operation
from daemon.transcript.evidence.edits import NEVER_ENDED, edits, from_json, to_json
from tests.support.stores.records import (
    BASE,
    START,
    apply_patch,
    bash,
    edit,
    message,
    part,
    read,
    session,
    text,
    tool,
    write,
)

A, B = f"{BASE}/a.py", f"{BASE}/b.py"


def _of(*records: dict[str, Any], version: str = "1.18.33", **fields: Any) -> list[FileEdit]:
    return edits(message(*records, role="assistant", **fields), session(version=version))


def _told(found: list[FileEdit]) -> list[dict[str, Any]]:
    """What each edit says beyond where and when it was made."""
    blank = FileEdit("", 0, "", "", "", "", Operation.READ)
    names = (
        "path",
        "operation",
        "content",
        "old",
        "new",
        "replace_all",
        "hunks",
        "before",
        "after",
        "other",
        "existed",
    )
    return [
        {
            name: getattr(one, name)
            for name in names
            if getattr(one, name) != getattr(blank, name) or name == "operation"
        }
        for one in found
    ]


SHAPES: dict[str, tuple[Any, Any]] = {
    "write": (
        write(A, "x\n"),
        [{"path": A, "operation": "write", "content": "x\n", "existed": False}],
    ),
    "write of OpenCode 2": (
        tool("write", {"path": "a.py", "content": "x"}),
        [{"path": A, "operation": "write", "content": "x"}],
    ),
    "write without content": (tool("write", {"filePath": A}), [{"path": A, "operation": "unclear"}]),
    "edit up to 1.2.1": (
        edit(A, "1", "2", metadata={"filediff": {"before": "a1", "after": "a2"}}),
        [{"path": A, "operation": "edit", "old": "1", "new": "2", "before": "a1", "after": "a2"}],
    ),
    "edit of 1.18": (
        edit(A, "1", "2", replace_all=True, metadata={"filediff": {"file": A, "patch": "…"}}),
        [{"path": A, "operation": "edit", "old": "1", "new": "2", "replace_all": True}],
    ),
    "edit of OpenCode 2": (
        tool("edit", {"path": "a.py", "oldString": "1", "newString": "2"}, metadata={"files": [{"file": A, "patch": "…", "status": "modified"}]}),
        [{"path": A, "operation": "edit", "old": "1", "new": "2"}],
    ),
    "edit that names the file in its result only": (
        tool("edit", {"oldString": "1", "newString": "2"}, metadata={"files": [{"file": "a.py", "patch": "…"}]}),
        [{"path": A, "operation": "edit", "old": "1", "new": "2"}],
    ),
    "edit without texts": (tool("edit", {"filePath": A}), [{"path": A, "operation": "unclear"}]),
    "multiedit": (
        tool("multiedit", {"filePath": A, "edits": [{"oldString": "1", "newString": "2"}, {"oldString": "2", "newString": "3", "replaceAll": True}]}),
        [
            {"path": A, "operation": "edit", "old": "1", "new": "2"},
            {"path": A, "operation": "edit", "old": "2", "new": "3", "replace_all": True},
        ],
    ),
    "patch that adds, updates, deletes": (
        apply_patch("*** Begin Patch\n*** Add File: a.py\n+x\n*** Update File: sub/../b.py\n@@ f\n k\n-x\n+y\n*** Delete File: c\n*** End Patch"),
        [
            {"path": A, "operation": "write", "content": "x\n"},
            {"path": B, "operation": "patch", "hunks": (("f", ("k", "x"), ("k", "y"), False),)},
            {"path": f"{BASE}/c", "operation": "delete"},
        ],
    ),
    "patch with recorded texts": (
        apply_patch(
            "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch",
            metadata={"files": [{"filePath": A, "type": "update", "before": "x\n", "after": "y\n"}]},
        ),
        [{"path": A, "operation": "patch", "hunks": (("", ("x",), ("y",), False),), "before": "x\n", "after": "y\n"}],
    ),
    "patch that moves": (
        apply_patch("*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n-x\n+y\n*** End Patch"),
        [
            {"path": A, "operation": "move", "other": B},
            {"path": B, "operation": "patch", "other": A, "hunks": (("", ("x",), ("y",), False),)},
        ],
    ),
    "patch known by its result only": (
        tool("patch", {}, metadata={"files": [{"file": "a.py", "patch": "…", "status": "modified"}, {"file": "b.py", "status": "deleted"}]}),
        [{"path": A, "operation": "unclear"}, {"path": B, "operation": "delete"}],
    ),
    "patch of OpenCode 2 that shows the whole file": (
        tool("patch", {}, metadata={"files": [{"file": "a.py", "patch": "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n-x\n+y\n z\n", "status": "modified"}]}),
        [{"path": A, "operation": "patch", "before": "x\nz\n", "after": "y\nz\n"}],
    ),
    "patch of 1.18 by its result only, where indentation is lost": (
        tool("patch", {}, metadata={"files": [{"filePath": A, "patch": "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n-x\n+y\n z\n", "status": "modified"}]}),
        [{"path": A, "operation": "unclear"}],
    ),
    "read": (read(A, "x\n"), [{"path": A, "operation": "read", "content": "x"}]),
    "batch": (tool("batch", {"tool_calls": [{"tool": "write", "parameters": {"filePath": A, "content": "x"}}]}), []),
    "bash": (bash("sed -i s/a/b/ a.py > b.py"), [{"path": B, "operation": "unclear"}, {"path": A, "operation": "unclear"}]),
    "bash elsewhere": (
        tool("bash", {"command": "rm x.py", "workdir": "/srv"}),
        [{"path": "/srv/x.py", "operation": "delete", "existed": True}],
    ),
    "unknown tool that writes": (tool("mcp_fs_write_file", {"path": A, "content": "x"}), [{"path": A, "operation": "unclear"}]),
    "unknown tool that moves": (
        tool("mcp_fs_move_file", {"source": A, "destination": B}),
        [{"path": A, "operation": "unclear"}, {"path": B, "operation": "unclear"}],
    ),
    "unknown tool that looks": (tool("mcp_fs_stat", {"path": A}), []),
    "known tools that change nothing": (tool("grep", {"pattern": "x", "path": A}), []),
    "invalid call": (tool("invalid", {"tool": "multiedit", "error": "…"}), []),
    "input of no known shape": (tool("write", "text"), []),
    "path of no known shape": (tool("write", {"filePath": 12, "content": "x"}), []),
    "edit without its new text": (tool("edit", {"filePath": A, "oldString": "1"}), [{"path": A, "operation": "unclear"}]),
    "edit whose old text is a number": (
        tool("edit", {"filePath": A, "oldString": 1, "newString": 2}, metadata={"filediff": {"before": "a1", "after": "a2"}}),
        [{"path": A, "operation": "edit", "before": "a1", "after": "a2"}],
    ),
    "edit that names no file": (tool("edit", {"oldString": "1", "newString": "2"}), []),
    "multiedit of two files with recorded texts": (
        tool(
            "multiedit",
            {"filePath": A, "edits": [{"oldString": "1", "newString": "2"}, {"filePath": "b.py", "oldString": "3", "newString": "4"}]},
            metadata={"results": [{"filediff": {"before": "a1", "after": "a2"}}]},
        ),
        [
            {"path": A, "operation": "edit", "old": "1", "new": "2", "before": "a1", "after": "a2"},
            {"path": B, "operation": "edit", "old": "3", "new": "4"},
        ],
    ),
    "patch whose new file was formatted": (
        apply_patch("*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch", metadata={"files": [{"filePath": A, "after": "X\n"}]}),
        [{"path": A, "operation": "write", "content": "X\n"}],
    ),
    "patch that moves, with recorded texts": (
        apply_patch(
            "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n-x\n+y\n*** End Patch",
            metadata={"files": [{"filePath": A, "before": "x\n", "after": "y\n", "movePath": B}]},
        ),
        [
            {"path": A, "operation": "move", "other": B},
            {"path": B, "operation": "patch", "other": A, "hunks": (("", ("x",), ("y",), False),), "before": "x\n", "after": "y\n"},
        ],
    ),
    "patch that names a file twice": (
        apply_patch("*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Delete File: b.py\n*** Update File: a.py\n@@\n-z\n+w\n*** End Patch"),
        [{"path": A, "operation": "unclear"}, {"path": B, "operation": "delete"}, {"path": A, "operation": "unclear"}],
    ),
    "patch known by its result only, with texts, a deletion and a move": (
        tool(
            "patch",
            {},
            metadata={
                "files": [
                    {"file": "a.py", "before": "x\n", "after": "y\n"},
                    {"file": "b.py", "type": "delete"},
                    {"file": "c", "before": "x\n", "after": "y\n", "movePath": "d"},
                ]
            },
        ),
        [
            {"path": A, "operation": "patch", "before": "x\n", "after": "y\n"},
            {"path": B, "operation": "delete"},
            {"path": f"{BASE}/c", "operation": "unclear"},
            {"path": f"{BASE}/d", "operation": "unclear"},
        ],
    ),
    "patch under another name": (
        tool("patch", {"patch": "*** Begin Patch\n*** Delete File: a.py\n*** End Patch"}),
        [{"path": A, "operation": "delete"}],
    ),
    "patch as input": (
        tool("patch", {"input": "*** Begin Patch\n*** Delete File: a.py\n*** End Patch"}),
        [{"path": A, "operation": "delete"}],
    ),
    "write whose record does not say if there was a file": (
        write(A, "x", metadata={"exists": "perhaps"}),
        [{"path": A, "operation": "write", "content": "x"}],
    ),
    "unknown tool with lists of files": (
        tool("edit_many", {"paths": ["a.py"], "files": [{"path": "b.py"}], "filePaths": ["c"], "file_paths": [{"filePath": "d"}]}),
        [{"path": path, "operation": "unclear"} for path in (A, B, f"{BASE}/c", f"{BASE}/d")],
    ),
    "unknown tool with one path for a list": (tool("edit_many", {"path": A, "files": "b.py"}), [{"path": A, "operation": "unclear"}]),
    "unknown tool that moves, with relative paths": (
        tool("move_it", {"from": "a.py", "to": "b.py"}),
        [{"path": A, "operation": "unclear"}, {"path": B, "operation": "unclear"}],
    ),
    "shell of OpenCode 2": (tool("shell", {"command": "printf x > a.py"}), [{"path": A, "operation": "write", "content": "x"}]),
    "batch, whose calls have parts of their own": (tool("batch", {"path": A, "content": "x"}), []),
    "read of a picture": (tool("read", {"filePath": A}, "Image read successfully"), [{"path": A, "operation": "read_range"}]),
    "unknown tool that writes and names no file": (tool("save_all", {}), [{"path": BASE, "operation": "unclear"}]),
    "unknown tool that writes a text": (tool("save_text", {"path": "two\nlines"}), [{"path": BASE, "operation": "unclear"}]),
    "unknown tool that runs something": (tool("my_exec", {"path": A}), [{"path": BASE, "operation": "unclear"}]),
    "unknown tool that takes content": (tool("mcp_put", {"path": A, "code": "x"}), [{"path": A, "operation": "unclear"}]),
    "unknown tool that has not begun": (tool("save_all", {"path": A}, status="pending"), []),
    "unknown tool that failed": (tool("save_all", {"path": A}, "no", status="error"), []),
    "unknown tool that was cut off": (
        tool("save_all", {"path": A}, "Tool execution aborted", status="error"),
        [{"path": A, "operation": "unclear"}],
    ),
    "todos that are written": (tool("todowrite", {"todos": [{"content": "x"}]}), []),
    "path with NUL": (tool("write", {"filePath": "a\0b", "content": "x"}), []),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_a_call_of_this_shape_is_understood(name: str) -> None:
    record, expected = SHAPES[name]
    found = _of(record)
    assert _told(found) == [{**one, "operation": Operation(one["operation"])} for one in expected]
    assert {one.version for one in found} <= {"1.18.33"}
    assert all(started(one) == START and one.session_id == "ses_1" for one in found)


@pytest.mark.parametrize(
    ("record", "note"),
    [
        (bash("printf x >> a.py\nls"), "shell: printf x >> a.py"),
        (tool("write", {"filePath": A}), "a write without content"),
        (tool("edit", {"filePath": A}), "edit without old and new text"),
        (tool("my_exec", {}), "changed by my_exec, which is not known here"),
        (tool("save_all", {"path": A}), "changed by save_all, which is not known here"),
        (SHAPES["patch that names a file twice"][0], "named twice in one patch"),
        (SHAPES["patch known by its result only"][0], "a patch whose text is not recorded"),
        (tool("read", {"filePath": A}, f"File not found: {A}", status="error"), "a read found no file there"),
        (
            tool("multiedit", {"filePath": A, "edits": [{"filePath": "b.py"}]}, "oldString not found", status="error"),
            "a multiedit failed; its first edits may have been applied",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_edit_that_is_not_clear_says_what_was_done(record: dict[str, Any], note: str) -> None:
    one = _of(record)[0]
    assert (one.note, one.version) == (note, "1.18.33")


@pytest.mark.parametrize(
    ("given", "is_told"),
    [
        ({"oldString": "1", "newString": "2"}, True),
        ({"oldString": "1", "newString": "2", "replaceAll": True}, True),
        ({"oldString": "", "newString": "2"}, False),
        ({"oldString": "1", "newString": "1"}, False),
        ({"oldString": 1, "newString": "2"}, False),
        ({"oldString": "1", "newString": 2}, False),
        ({"oldString": "1"}, False),
        ({"oldString": "1", "newString": "2", "filePath": None}, False),
    ],
)
def test_a_refused_edit_tells_that_its_old_text_was_not_there(given: dict[str, Any], is_told: bool) -> None:
    found = _of(tool("edit", {"filePath": A} | given, "Could not find oldString in the file.", status="error"))
    all_ = {"replace_all": True} if given.get("replaceAll") else {}
    refused = {"path": A, "operation": Operation.REFUSED, "old": "1", "new": "2"} | all_
    assert _told(found) == ([refused] if is_told else [])
    assert {one.version for one in found} <= {"1.18.33"}


@pytest.mark.parametrize(
    "name",
    [
        "source",
        "destination",
        "src",
        "dst",
        "from",
        "to",
        "old_path",
        "new_path",
        "oldPath",
        "newPath",
        "relative_path",
        "relativePath",
        "target",
    ],
)
def test_an_unknown_tool_may_name_a_file_under_this_key(name: str) -> None:
    assert _told(_of(tool("relocate_and_save", {name: "a.py"}))) == [{"path": A, "operation": Operation.UNCLEAR}]
    assert _of(tool("look_up", {name: "a.py"})) == []


@pytest.mark.parametrize(
    "verb",
    [
        "write",
        "edit",
        "patch",
        "replace",
        "insert",
        "append",
        "create",
        "delete",
        "remove",
        "move",
        "copy",
        "save",
        "restore",
    ],
)
def test_an_unknown_tool_with_this_verb_in_its_name_changes_files(verb: str) -> None:
    assert _told(_of(tool(f"my_{verb}_it", {"path": A}))) == [{"path": A, "operation": Operation.UNCLEAR}]


@pytest.mark.parametrize("name", ["my_exec", "save_all"])
def test_an_unknown_tool_in_an_unknown_folder_puts_nothing_in_doubt(name: str) -> None:
    assert _of(tool(name, {}), cwd="not/absolute") == []


def test_opencode_2_may_read_hunks_behind_the_end_of_a_file() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End of File\n@@\n-z\n+w\n*** End Patch"
    hunks = (("", ("x",), ("y",), True),)
    texts = {"before": "x\n", "after": "y\n"}
    done = {"path": A, "operation": Operation.PATCH, "hunks": hunks}
    assert _told(_of(apply_patch(patch))) == [done]
    (one,) = _of(apply_patch(patch), version="2.0.0")
    assert (one.path, one.operation, one.version) == (A, Operation.UNCLEAR, "2.0.0")
    assert one.note == "a patch with lines that not every version reads alike"
    recorded = apply_patch(patch, metadata={"files": [{"filePath": A} | texts]})
    assert _told(_of(recorded, version="2.0.0")) == [done | texts]


def test_an_edit_without_a_recorded_start_begins_when_it_ends() -> None:
    assert started(FileEdit(A, 7, "ses_1", "msg_1", "prt_1", "write", Operation.WRITE)) == 7


def test_origin_time_and_version_stand_in_every_edit() -> None:
    (one,) = _of(write(A, "x", start=START + 5, end=START + 25, id="prt_x"), id="msg_x", session_id="ses_x")
    assert (one.session_id, one.message_id, one.part_id, one.tool, one.version) == (
        "ses_x",
        "msg_x",
        "prt_x",
        "write",
        "1.18.33",
    )
    assert (started(one), one.time) == (START + 5, START + 25)


def test_edits_of_one_part_are_numbered_in_their_order() -> None:
    changes = [{"oldString": str(number), "newString": "x"} for number in range(3)]
    found = _of(write(A, "012"), tool("multiedit", {"filePath": A, "edits": changes}), write(B, ""))
    assert [(one.tool, one.number) for one in found] == [
        ("write", 0),
        ("multiedit", 0),
        ("multiedit", 1),
        ("multiedit", 2),
        ("write", 0),
    ]


def test_a_call_without_times_takes_its_messages() -> None:
    record = write(A, "x")
    del record["state"]["time"]
    (one,) = _of(record, created=START + 77)
    assert one.time == START + 77


def test_relative_paths_start_at_the_messages_directory_then_the_sessions() -> None:
    assert [one.path for one in _of(write("x/../a.py", "x"), cwd="/srv/other")] == ["/srv/other/a.py"]
    assert [one.path for one in _of(write("./a.py", "x"), cwd="")] == [A]
    assert edits(message(write("a.py", "x")), None) == []


@pytest.mark.parametrize("status", ["pending", "error"])
def test_failed_and_pending_calls_are_no_edits(status: str) -> None:
    for record in (
        write(A, "x"),
        edit(A, "1", "2"),
        apply_patch("*** Begin Patch\n*** Delete File: a.py\n*** End Patch"),
        read(A, "x"),
    ):
        record["state"]["status"] = status
        record["state"]["error"] = "Could not find oldString in the file"
        assert _of(record) == []


@pytest.mark.parametrize(("status", "error"), [("running", None), ("error", "Tool execution aborted")])
def test_calls_that_were_cut_off_are_unclear(status: str, error: str | None) -> None:
    for record in (
        write(A, "x"),
        edit(A, "1", "2"),
        apply_patch("*** Begin Patch\n*** Delete File: a.py\n*** End Patch"),
    ):
        record["state"] |= {"status": status, "error": error}
        until = NEVER_ENDED if status == "running" else None
        assert [(one.path, one.operation, one.until) for one in _of(record)] == [(A, Operation.UNCLEAR, until)]


def test_a_cut_off_patch_puts_all_files_that_it_names_in_doubt() -> None:
    record = apply_patch(
        "*** Begin Patch\n*** Delete File: a.py\n*** End Patch", metadata={"files": [{"file": "b.py"}]}
    )
    record["state"] |= {"status": "running"}
    assert sorted((one.path, one.operation) for one in _of(record)) == [(A, Operation.UNCLEAR), (B, Operation.UNCLEAR)]


@pytest.mark.parametrize(("version", "name"), [("1.1.65", "a.py"), ("1.18.33", "a.py: old")])
def test_a_cut_off_patch_is_read_as_its_version_did(version: str, name: str) -> None:
    """Up to 1.2.6 a file's name ended at a colon."""
    record = apply_patch("*** Begin Patch\n*** Delete File: a.py: old\n*** End Patch")
    record["state"] |= {"status": "running"}
    assert [one.path for one in _of(record, version=version)] == [f"{BASE}/{name}"]


def test_a_multiedit_that_failed_may_have_changed_all_files_that_it_names() -> None:
    given = {"filePath": A, "edits": [{"oldString": "1", "newString": "2"}, {"filePath": "b.py", "oldString": "3"}]}
    found = _of(tool("multiedit", given, "oldString not found", status="error"))
    assert [(one.path, one.operation) for one in found] == [(A, Operation.UNCLEAR), (B, Operation.UNCLEAR)]


@pytest.mark.parametrize("name", ["edit", "multiedit"])
def test_edits_of_one_file_end_in_the_order_in_which_they_were_made(name: str) -> None:
    """The first one waited for diagnostics; another file and another tool have times of their own."""

    def change(path: str, end: int) -> dict[str, Any]:
        texts = {"oldString": "1", "newString": "2"}
        given = texts if name == "edit" else {"edits": [texts]}
        return tool(name, {"filePath": path} | given, end=START + end)

    found = _of(change(A, 9), change(A, 5), change(B, 5), write(A, "x", end=START + 5), change(A, 10))
    assert [one.time - START for one in found] == [9, 9, 5, 5, 10]


def test_attached_files_are_read_also_where_answers_come_in_another_order() -> None:
    shown = read(A, "x\n", "1.1.65")["state"]["output"]
    found = edits(
        message(
            text("look"),
            text(f'Called the Read tool with the following input: {{"filePath":"{A}"}}', synthetic=True),
            text(f'Called the Read tool with the following input: {{"filePath":"{BASE}/docs"}}', synthetic=True),
            text(f"<path>{BASE}/docs</path>\n<type>directory</type>\n<entries>\nx\n</entries>", synthetic=True),
            text(shown, synthetic=True),
            text(shown),  # typed by a person: no read
        ),
        session(version="1.1.65"),
    )
    assert _told(found) == [{"path": A, "operation": Operation.READ, "content": "x\n"}]


def test_an_attachment_of_1_0_takes_its_path_from_the_call() -> None:
    shown = read(A, "x\n", "1.0.61")["state"]["output"]
    call = f'Called the Read tool with the following input: {{"filePath":"{A}"}}'
    found = edits(message(text(call, synthetic=True), text(shown, synthetic=True)), session(version="1.0.61"))
    assert _told(found) == [{"path": A, "operation": Operation.READ, "content": "x\n"}]


def test_a_read_without_a_path_belongs_to_no_file() -> None:
    shown = read(A, "x\n", "1.0.61")["state"]["output"]
    assert edits(message(text(shown, synthetic=True)), session(version="1.0.61")) == []


def test_an_attachment_takes_version_and_folder_from_the_session() -> None:
    shown = read(A, "x\n", "1.0.61")["state"]["output"]
    call = 'Called the Read tool with the following input: {"filePath":"a.py"}'
    (found,) = edits(message(text(call, synthetic=True), text(shown, synthetic=True)), session(version="1.0.61"))
    assert (found.path, found.version) == (A, "1.0.61")


def test_lone_surrogates_become_what_javascript_writes() -> None:
    (one,) = _of(write(A, "x\ud800y"))
    assert one.content == "x\ufffdy"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["a.py", "/x/a.py", "1", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
_NAMES = [
    "filePath",
    "path",
    "content",
    "oldString",
    "newString",
    "replaceAll",
    "edits",
    "patchText",
    "command",
    "source",
    "files",
]
_STATES = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["completed", "completed", "error", "running", "odd"]) | _JSON,
        "input": st.dictionaries(st.sampled_from(_NAMES), _JSON, max_size=5) | _JSON,
        "output": _JSON | st.just("<file>\n00001| x\n</file>"),
        "metadata": st.dictionaries(st.sampled_from(["files", "filediff", "results", "display", "exists"]), _JSON)
        | _JSON,
        "time": st.dictionaries(st.sampled_from(["start", "end"]), _JSON) | _JSON,
    },
)
_OTHERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["step-start", "step-finish", "patch", "file", "text"])},
    optional={
        "snapshot": st.just("a" * 40) | _JSON,
        "hash": st.just("a" * 40) | _JSON,
        "files": st.lists(_JSON, max_size=3) | _JSON,
        "url": st.just("data:,x") | _JSON,
        "source": st.dictionaries(st.just("path"), _JSON),
        "synthetic": st.booleans(),
        "text": _JSON,
    },
)
_TOOLS = st.sampled_from(
    ["write", "edit", "multiedit", "apply_patch", "patch", "read", "bash", "batch", "mcp_write", "grep"]
)


@given(
    st.lists(
        st.fixed_dictionaries({"type": st.just("tool"), "tool": _TOOLS | _JSON, "state": _STATES | _JSON}) | _OTHERS,
        max_size=3,
    )
)
def test_records_of_any_shape_are_read_and_survive_the_archive(records: list[dict[str, Any]]) -> None:
    made = message(role="assistant")
    made = replace(made, parts=tuple(part(record) for record in records))
    for one in edits(made, session()):
        assert one.path.startswith("/")
        assert from_json(to_json(one)) == one


_CLEAN = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_EDITS = st.builds(
    FileEdit,
    path=_CLEAN, time=st.integers(0, 2**50), session_id=_CLEAN, message_id=_CLEAN, part_id=_CLEAN, tool=_CLEAN,
    operation=st.sampled_from(list(Operation)), content=st.none() | _CLEAN, old=st.none() | _CLEAN, new=st.none() | _CLEAN,
    replace_all=st.booleans(), before=st.none() | _CLEAN, after=st.none() | _CLEAN, other=st.none() | _CLEAN,
    hunks=st.lists(st.tuples(_CLEAN, st.lists(_CLEAN, max_size=2).map(tuple), st.lists(_CLEAN, max_size=2).map(tuple), st.booleans()), max_size=2).map(tuple),
    existed=st.none() | st.booleans(), version=_CLEAN, note=_CLEAN,
)  # fmt: skip


@given(_EDITS)
def test_an_edit_comes_back_from_its_json_as_it_was(one: FileEdit) -> None:
    assert from_json(to_json(one)) == one
    assert to_json(from_json(to_json(one))) == to_json(one)
