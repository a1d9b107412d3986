"""A tool part as a person reads it: title, how it ended, what it printed."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.reconstitute.facts.session import calls
from daemon.reconstitute.facts.session_values import Call, CallStatus
from daemon.redact import redact
from tests.support.secrets.canaries import SECRETS
from tests.support.stores.records import BASE, message, session, tool

_KIND, _SECRET, _TEXT = SECRETS[0]


def made(part: dict[str, Any], *, is_over: bool = False) -> Call:
    whole = message(part, role="assistant")
    return calls.of(whole.parts[0], whole, session(), redact, is_over=is_over)


TITLES: list[tuple[str, dict[str, Any], str]] = [
    ("write", {"filePath": f"{BASE}/app.py", "content": "x"}, "write app.py"),
    ("edit", {"filePath": "src/app.py", "oldString": "a", "newString": "b"}, "edit src/app.py"),
    ("edit", {"path": f"{BASE}/app.py"}, "edit app.py"),
    ("read", {"filePath": "/etc/hosts"}, "read /etc/hosts"),
    ("read", {"filePath": f"{BASE}-old/app.py"}, f"read {BASE}-old/app.py"),
    ("bash", {"command": "make   test", "description": "Run the tests"}, "make test"),
    ("bash", {"command": "cat > a <<'E'\nhello\nE"}, "cat > a <<'E' …"),
    ("bash", {"command": f"echo {'x' * 300}"}, f"echo {'x' * 154}…"),
    ("grep", {"pattern": "x+", "path": f"{BASE}/src"}, 'grep "x+" in src'),
    ("glob", {"pattern": "**/*.py", "path": BASE}, "glob **/*.py"),
    ("apply_patch", {"patchText": "*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch"}, "apply_patch a.py"),
    ("webfetch", {"url": "https://example.org/a", "format": "text"}, "webfetch https://example.org/a"),
    ("todowrite", {"todos": [{"content": "a"}]}, "todowrite 1 entry"),
    ("task", {"description": "Review it", "prompt": "Look at app.py."}, "task Review it"),
    ("skill", {"name": "changelog"}, "skill changelog"),
    ("question", {"questions": [{"question": "Which one?"}]}, "question Which one?"),
    ("batch", {"tool_calls": [{"tool": "read"}, {"tool": "bash"}]}, "batch read, bash"),
    ("invalid", {"tool": "nosuch", "error": "unavailable"}, "invalid nosuch"),
    ("tickets_close", {"number": "7", "body": "y" * 500}, "tickets_close number=7"),
    ("reconstitute_recall", {"query": "where is it"}, "reconstitute_recall"),
    ("list", {}, "list"),
    ("bash", {}, "bash"),
]


@pytest.mark.parametrize(("name", "given", "title"), TITLES)
def test_a_title_says_what_was_done(name: str, given: dict[str, Any], title: str) -> None:
    assert made(tool(name, given)).title == title


def test_a_title_hides_what_a_field_names_a_secret() -> None:
    title = made(tool("tickets_login", {"user": "ann", "password": "tulip7Garden!x"})).title
    assert title.startswith("tickets_login user=ann, password=[REDACTED:password:")


def _shell(exit: int | None, output: str = "", **more: Any) -> dict[str, Any]:  # noqa: A002 - OpenCode's name
    return tool("bash", {"command": "make"}, output, metadata={"exit": exit}, **more)


STATUSES: list[tuple[dict[str, Any], CallStatus]] = [
    (tool("write", {"filePath": "a"}), CallStatus.OK),
    (_shell(0), CallStatus.OK),
    (_shell(3), CallStatus.FAILED),
    (_shell(None, "begin\n\n<bash_metadata>\nUser aborted the command\n</bash_metadata>"), CallStatus.STOPPED),
    (_shell(None), CallStatus.UNKNOWN),
    (tool("bash", {"command": "make"}), CallStatus.UNKNOWN),
    (tool("invalid", {"tool": "nosuch", "error": "unavailable tool"}), CallStatus.FAILED),
    (tool("edit", {}, "oldString not found in content", status="error"), CallStatus.FAILED),
    (tool("bash", {}, "EACCES: permission denied", status="error"), CallStatus.FAILED),
    (tool("bash", {}, "Tool execution aborted", status="error"), CallStatus.STOPPED),
    (tool("bash", {}, "The user rejected permission to use this specific tool call.", status="error"),
     CallStatus.REFUSED),
    (tool("edit", {}, "The user has specified a rule which prevents you from using this specific tool call. []",
          status="error"), CallStatus.REFUSED),
    (tool("question", {}, "The user dismissed this question", status="error"), CallStatus.REFUSED),
    (tool("bash", {}, status="running"), CallStatus.UNKNOWN),
    (tool("write", {}, status="pending"), CallStatus.UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("part", "status"), STATUSES)
def test_how_a_call_ended(part: dict[str, Any], status: CallStatus) -> None:
    assert made(part).status is status


@pytest.mark.parametrize("status", ["running", "pending"])
def test_a_call_without_an_end_was_stopped_once_something_followed(status: str) -> None:
    assert made(tool("bash", {"command": "make"}, status=status), is_over=True).status is CallStatus.STOPPED


def test_of_a_long_output_the_end_is_kept_and_of_an_error_the_beginning() -> None:
    long = "".join(f"line {number}\n" for number in range(5000))
    shown = made(_shell(1, long))
    assert long.rstrip("\n").endswith(shown.output)
    assert 0 < len(shown.output) <= calls.MOST_OUTPUT
    error = made(tool("write", {}, long, status="error")).error
    assert long.startswith(error)
    assert 0 < len(error) <= calls.MOST_OUTPUT


def test_an_output_is_without_what_opencode_adds_for_the_model() -> None:
    output = "3 passed\n\n<bash_metadata>\nbash tool truncated output\n</bash_metadata>"
    assert made(_shell(0, output)).output == "3 passed"


def test_a_secret_at_the_edge_of_an_output_is_hidden() -> None:
    planted = _TEXT.format(_SECRET)
    for behind in (0, calls.MOST_OUTPUT - len(planted) // 2, calls.MOST_OUTPUT - 5):
        output = "first line\n" * 2000 + planted + "\n" + "." * behind
        assert _SECRET[-12:] not in made(_shell(0, output)).output


def test_what_our_own_commands_print_is_left_out() -> None:
    quoted = tool("bash", {"command": "reconstitute search cart"}, "an old message", metadata={"exit": 0})
    assert (made(quoted).title, made(quoted).output) == ("reconstitute search cart", "")


CHANGED: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    (tool("write", {"filePath": "a.py"}), (f"{BASE}/a.py",)),
    (tool("read", {"filePath": "a.py"}), ()),
    (tool("edit", {"filePath": "a.py"}, "no", status="error"), ()),
    (tool("apply_patch", {"patchText": "*** Begin Patch\n*** Delete File: a.py\n*** End Patch"}), (f"{BASE}/a.py",)),
    (tool("apply_patch", {}, metadata={"files": [{"filePath": f"{BASE}/a", "movePath": f"{BASE}/b"}]}),
     (f"{BASE}/a", f"{BASE}/b")),
]  # fmt: skip


@pytest.mark.parametrize(("part", "paths"), CHANGED)
def test_the_paths_that_a_record_says_were_changed(part: dict[str, Any], paths: tuple[str, ...]) -> None:
    assert made(part).changed == paths


def test_a_task_names_the_session_of_its_sub_agent() -> None:
    assert made(tool("task", {"description": "Review"}, metadata={"sessionId": "ses_child"})).child == "ses_child"
