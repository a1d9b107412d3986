"""What a failed call tells of a file, and the lines that an edit's result shows."""

from __future__ import annotations

import pytest

from daemon.model import FileEdit, Operation
from daemon.transcript.evidence.edits import edits
from daemon.transcript.evidence.unified_diffs import NO_NEWLINE, hunks
from tests.support.stores.records import BASE, edit, message, session, tool, write

A = f"{BASE}/a.py"
NOT_FOUND = (
    "Could not find oldString in the file. It must match exactly, including whitespace, indentation, and line endings."
)


def of(record: dict[str, object], version: str = "1.18.33") -> list[FileEdit]:
    return edits(message(record, role="assistant"), session(version=version))


def failed(name: str, given: dict[str, object], error: str, version: str = "1.18.33") -> list[FileEdit]:
    return of(tool(name, given, error, status="error"), version)


@pytest.mark.parametrize(
    ("error", "operations"),
    [
        (NOT_FOUND, ["refused"]),
        (f"Error: {NOT_FOUND}", ["refused"]),
        ("Error: oldString not found in content", ["refused"]),
        (
            "Could not find oldString in the file. It must match exactly, including whitespace and indentation.",
            ["refused"],
        ),
        ("Error: oldString not found in content or was found multiple times", []),
        ("Error: Found multiple matches for oldString. Provide more surrounding context to make the match unique.", []),
        ("Error: The edit tool was called with invalid arguments: oldString not found in content", []),
        ("The user rejected permission to use this specific tool call.", ["refused"]),
        (f"File {A} not found", []),
        ("Tool execution aborted", ["unclear"]),
    ],
)
def test_an_edit_that_failed(error: str, operations: list[str]) -> None:
    found = failed("edit", {"filePath": A, "oldString": "x", "newString": "y", "replaceAll": True}, error)
    assert [one.operation.value for one in found] == operations
    if operations == ["refused"] and "user" not in error:
        assert (found[0].path, found[0].old, found[0].new, found[0].replace_all) == (A, "x", "y", True)


@pytest.mark.parametrize(
    ("error", "operations"),
    [
        ("Error: oldString not found in content", ["unclear"]),
        ("Error: Found multiple matches for oldString", ["unclear"]),
        ("Error: The multiedit tool was called with invalid arguments: []", []),
        ("Model tried to call unavailable tool 'multiedit'.", []),
        ("The user rejected permission to use this specific tool call.", ["refused"]),
        ("Tool execution aborted", ["unclear"]),
    ],
)
def test_a_multiedit_that_failed(error: str, operations: list[str]) -> None:
    given = {"filePath": A, "edits": [{"oldString": "a", "newString": "b"}, {"oldString": "c", "newString": "d"}]}
    assert [one.operation.value for one in failed("multiedit", given, error)] == operations


@pytest.mark.parametrize(
    ("error", "version", "count"),
    [
        (f"File not found: {A}", "1.18.33", 1),
        (f"Error: File not found: {A}", "1.1.65", 1),
        (f"File not found: {A}\n\nDid you mean one of these?\n{BASE}/aa.py", "1.18.33", 1),
        (f"Error: File not found: {A}", "1.0.61", 0),  # it said so of a folder, too
        (f"File not found: {BASE}/other.py", "1.18.33", 0),
        ("Failed to read file: Permission denied", "1.18.33", 0),
        ("Error: offset must be greater than or equal to 1", "1.1.65", 0),
    ],
)
def test_a_read_that_failed(error: str, version: str, count: int) -> None:
    found = failed("read", {"filePath": A}, error, version)
    assert [(one.path, one.operation, one.content, one.blob) for one in found] == [
        (A, Operation.STATE, None, "")
    ] * count
    assert all(one.note == "a read found no file there" for one in found)


HEAD = f"Index: {A}\n===\n--- {A}\n+++ {A}\n"
DIFF = HEAD + "@@ -1,2 +1,2 @@\n one\n-two\n+deux\n\\ No newline at end of file\n"
SHOWN = (("@@ -1,2 +1,2 @@", ("one", "two"), ("one", "deux", NO_NEWLINE), False),)


@pytest.mark.parametrize(
    ("diff", "expected"),
    [
        (DIFF, SHOWN),
        (HEAD + "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
         (("@@ -1,1 +1,1 @@", ("a", NO_NEWLINE), ("b", NO_NEWLINE), False),)),
        (HEAD + "@@ -1,2 +1,1 @@\n-a\n b\n\\ No newline at end of file",
         (("@@ -1,2 +1,1 @@", ("a", "b", NO_NEWLINE), ("b", NO_NEWLINE), False),)),
        (HEAD + "@@ -0,0 +1,1 @@\n+b\n", (("@@ -0,0 +1,1 @@", (), ("b",), False),)),
        (HEAD + "@@ -1,1 +1,1 @@\n--- x\n+++ y\n", (("@@ -1,1 +1,1 @@", ("-- x",), ("++ y",), False),)),
        (HEAD + "@@ -1,1 +1,1 @@\n-a\n+b\n@@ -9,1 +9,2 @@\n c\n+d\n",
         (("@@ -1,1 +1,1 @@", ("a",), ("b",), False), ("@@ -9,1 +9,2 @@", ("c",), ("c", "d"), False))),
        (HEAD + "@@ -1,3 +1,2 @@\n one\n-two\n", ()),
        (HEAD + "@@ -1,1 +1,1 @@\n-a\n+b\nstray\n", ()),
        (HEAD, ()),
        ("", ()),
        (HEAD + "@@ -1,1 +1,1 @@\n-a\n+" + "x" * 262_144 + "\n", ()),
    ],
)  # fmt: skip
def test_hunks_of_a_diff(diff: str, expected: object) -> None:
    assert hunks(diff) == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"filediff": {"file": A, "patch": DIFF}}, SHOWN),
        ({"diff": DIFF}, SHOWN),
        ({"files": [{"file": A, "patch": DIFF, "status": "modified"}]}, SHOWN),
        ({"files": [{"file": "b.py", "patch": DIFF, "status": "modified"}]}, ()),
        ({"diff": DIFF, "filediff": {"before": "one\ntwo", "after": "one\ndeux"}}, ()),
        ({}, ()),
    ],
)
def test_an_edit_has_the_hunks_that_its_result_shows(metadata: dict[str, object], expected: object) -> None:
    (one,) = of(edit(A, "two", "deux", metadata=metadata))
    assert (one.operation, one.old, one.new, one.hunks) == (Operation.EDIT, "two", "deux", expected)


def test_a_path_may_hold_a_newline() -> None:
    (one,) = of(write(f"{BASE}/a\nb", "x"))
    assert one.path == f"{BASE}/a\nb"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("write", {"filePath": A, "content": "x"}),
        ("edit", {"filePath": A, "oldString": "x", "newString": "y"}),
        ("multiedit", {"filePath": A, "edits": [{"oldString": "a", "newString": "b"}]}),
        ("apply_patch", {"patchText": "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"}),
    ],
)
@pytest.mark.parametrize(
    "error",
    [
        "The user rejected permission to use this specific tool call.",
        "Error: The user rejected permission to use this specific tool call with the following feedback: not there",
        "The user has specified a rule which prevents you from using this specific tool call. Here are the rules: []",
    ],
)
def test_what_the_user_refused_is_known_and_tells_nothing_of_the_file(
    name: str, given: dict[str, object], error: str
) -> None:
    [one] = failed(name, given, error)
    assert (one.operation, one.path, one.old, one.new, one.content) == (Operation.REFUSED, A, None, None, None)
