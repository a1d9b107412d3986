"""Every call, mode, filter and error of recall through its three doors: the socket, the command line, MCP.

One daemon over a sample archive and a few sessions of the test's own. A case is a call and its arguments, as a client
would write them; each is asked at every door from the same directory, and the three answers must be the same.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from daemon.hints import for_commands, for_tools, rendered
from daemon.mcp.compact import compact
from tests.conftest import unpack
from tests.e2e.talk import Talk
from tests.support.processes.daemon_process import CHECKOUT, Daemon
from tests.support.stores.make_opencode import T0, JsonStore, session, text, user

pytestmark = pytest.mark.timeout(900)

GARDEN, KITCHEN = "/home/dev/garden", "/home/dev/kitchen"
BEDS = f"{GARDEN}/beds.lua"
NAMES = {"sessionID": "session", "projectID": "project", "toolName": "tool", "kinds": "kind"}
"""Options that are not called as their argument is."""
PLACES = {
    "recall": "query", "recall_get": "messageID", "recall_context": "messageID", "recall_messages": "sessionID",
    "recall_sessions": "search", "recall_timeline": "anchor", "recall_files": "path",
}  # fmt: skip
"""The argument that the command takes without an option."""
FOUND = {
    "recall": "results", "recall_messages": "messages", "recall_sessions": "sessions", "recall_timeline": "entries",
    "recall_files": "sessions",
}  # fmt: skip
"""What ends the command with 4 when it is empty."""


class Mcp:
    """A client of the official SDK, in a thread with an event loop of its own, talking to `reconstitute mcp`."""

    def __init__(self, daemon: Daemon, place: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._end = asyncio.Event()
        ready = asyncio.run_coroutine_threadsafe(self._open(daemon, place), self._loop)
        self._task = ready.result(60)

    async def _open(self, daemon: Daemon, place: Path) -> asyncio.Task[None]:
        # The SDK wants to be left in the task that entered it.
        opened = self._loop.create_future()
        task = self._loop.create_task(self._hold(daemon, place, opened))
        await opened
        return task

    async def _hold(self, daemon: Daemon, place: Path, opened: asyncio.Future[None]) -> None:
        program, *words = daemon.command("mcp")
        environment = daemon.environment | {"PYTHONPATH": str(CHECKOUT)}
        parameters = StdioServerParameters(command=program, args=words, env=environment, cwd=place)
        async with AsyncExitStack() as stack:
            streams = await stack.enter_async_context(stdio_client(parameters))
            self._session = await stack.enter_async_context(ClientSession(*streams))
            await self._session.initialize()
            opened.set_result(None)
            await self._end.wait()

    def __call__(self, call: str, arguments: dict[str, Any]) -> tuple[bool, str, Any]:
        """Whether it is an error, its text, and its data."""
        asked = asyncio.run_coroutine_threadsafe(self._session.call_tool(call, arguments), self._loop)
        result = asked.result(120)
        [content] = result.content
        return result.isError, content.text, result.structuredContent

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)

        async def ended() -> None:
            await self._task

        asyncio.run_coroutine_threadsafe(ended(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


TRIED_IN_TIME = ("suggestions", "nearMisses")
"""Each is tried before it is offered, for some milliseconds: a slow machine offers fewer."""


def assert_same(one: Any, other: Any) -> None:
    """Two answers are equal, but for what one of them had no time to try."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in TRIED_IN_TIME:
            few, many = sorted((one.get(key, []), other.get(key, [])), key=len)
            assert [item for item in few if item not in many] == []
        one, other = ({key: value for key, value in each.items() if key not in TRIED_IN_TIME} for each in (one, other))
    assert one == other


def quoted(said: str) -> Any:
    """The JSON between the marks of an answer over MCP."""
    _, answer, _ = said.split("\n")
    return json.loads(answer)


@dataclass
class Doors:
    """One daemon, and what stands in its archive: name -> message id."""

    daemon: Daemon
    place: Path
    http: httpx.Client
    mcp: Mcp
    store: JsonStore
    ids: dict[str, str]

    def fill(self, value: Any) -> Any:
        """`value` with ``{name}`` replaced by the id of that message."""
        return re.sub(r"\{(\w+)\}", lambda m: self.ids[m[1]], value) if isinstance(value, str) else value

    def by_socket(self, call: str, arguments: dict[str, Any]) -> tuple[int, Any]:
        answer = self.http.post(f"/recall/{call}", json={"arguments": arguments, "here": str(self.place)})
        return answer.status_code, answer.json()

    def by_command(self, call: str, arguments: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        words = [word for name, value in arguments.items() if name != PLACES.get(call) for word in option(name, value)]
        named = arguments.get(PLACES.get(call, ""), "")
        words = [call.replace("_", "-"), "--json", *words, *(["--", str(named)] if named else [])]
        return self.daemon.ask(*words, cwd=self.place)

    def ask(self, call: str, arguments: dict[str, Any]) -> Any:
        """The answer, when it is the same at every door."""
        arguments = {name: self.fill(value) for name, value in arguments.items()}
        status, answer = self.by_socket(call, arguments)
        assert (status, answer.get("ok")) == (200, True), answer
        is_error, _, structured = self.mcp(call, {**arguments, "full": True})
        assert not is_error
        assert_same(structured, rendered(answer, for_tools))
        is_error, said, structured = self.mcp(call, arguments)
        assert (is_error, structured) == (False, None)
        assert_same(quoted(said), compact(call, rendered(answer, for_tools)))
        words = partial(for_commands, call=call)
        done = self.by_command(call, arguments)
        assert_same(json.loads(done.stdout), rendered(answer, words))
        assert done.returncode == (0 if call not in FOUND or answer[FOUND[call]] else 4)
        assert done.stderr.splitlines() == [f"reconstitute: {words(warning)}" for warning in answer["warnings"]]
        return answer


def option(name: str, value: Any) -> list[str]:
    """An argument as the command line takes it."""
    dashed = re.sub(r"[A-Z]+", lambda m: "-" + m[0].lower(), NAMES.get(name, name)).replace("_", "-")
    if value is True or value is False:
        return [f"--{'' if value else 'no-'}{dashed}"]
    return [f"--{dashed}={item}" for item in (value if isinstance(value, list) else [value])]


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory, quick_embedder: dict[str, dict[str, Any]]) -> Iterator[Doors]:
    root = tmp_path_factory.mktemp("doors")
    place = root / "work"
    place.mkdir()
    sample = unpack("sqlite", root / "sample")
    # Beside the database, the tree of an OpenCode before it: both are read.
    (sample.data_dir / "storage").rename(root / "kept-aside")
    store = JsonStore(sample.data_dir)
    ids = plant(store, str(place))
    with Daemon(sample.data_dir, root / "ours", tables=quick_embedder) as daemon:
        daemon.run()
        daemon.wait_until_drained(400)
        store.drop_message("ses_kitchen", ids["dropped"])
        daemon.ask("index", "--wait", timeout_s=240)
        daemon.wait_until_drained(200)
        with daemon.client() as http:
            http.timeout = httpx.Timeout(240)
            mcp = Mcp(daemon, place)
            try:
                yield Doors(daemon, place, http, mcp, store, ids)
            finally:
                mcp.close()


def plant(store: JsonStore, place: str) -> dict[str, str]:
    garden, kitchen = Talk(store, "ses_garden", GARDEN, "Pumpkin plans"), Talk(store, "ses_kitchen", KITCHEN, "Stock")
    here = Talk(store, "ses_here", place, "Where we stand")
    store.session(session("ses_child", GARDEN, "Count the seeds", parentID="ses_garden"))
    store.session(
        session(
            "ses_old",
            "/home/dev/attic",
            "Attic",
            projectID="attic",
            time={"created": T0, "updated": T0, "archived": T0},
        )
    )
    store.message(
        user("msg_old1", "ses_old", T0 - 400 * 86_400_000),
        text("prt_old1", "msg_old1", "ses_old", "An old zebrafinch nest"),
    )
    reasoning = {
        "type": "reasoning",
        "text": "A zebrafinch would weigh it by feathers.",
        "time": {"start": T0, "end": T0},
    }
    return {
        "asked": garden.ask("Why is the zebrafinch bed a list of rowNumbers?"),
        "said": garden.answer(
            "Because rowNumbers keep the order of the zebrafinch nests; the hose said ECONNREFUSED.", reasoning
        ),
        "ran": garden.call("bash", {"command": "npm run zebrafinch-count"}, "counted 12 zebrafinch nests"),
        "wrote": garden.write(BEDS, "rowNumbers = [1, 2]  # zebrafinch\n"),
        "cjk": garden.ask("今日の収穫は何ですか"),
        "kitchen": kitchen.ask("How many zebrafinch eggs are in stock?"),
        "count": kitchen.answer("Three, and a lantern."),
        "dropped": kitchen.answer("A zebrafinch that flew away."),
        "here": here.ask("A zebrafinch where we stand"),
        "old": "msg_old1",
    }


ALL = {"asked", "said", "ran", "wrote", "kitchen", "dropped", "here", "old"}
"""Who says zebrafinch."""

RECALL = [
    ("literal", {"query": "zebrafinch", "match": "literal"}, ALL),
    ("literal with its spaces", {"query": "a zebrafinch where", "match": "literal"}, {"here"}),
    ("literal, half a word", {"query": "ebrafin", "match": "literal"}, ALL),
    ("smart, any order", {"query": "nest order zebrafinch", "match": "smart", "results": 1}, {"said"}),
    ("smart, separators folded", {"query": "row-numbers", "match": "smart"}, {"asked", "said", "wrote"}),
    ("smart, stemmed", {"query": "feathered weights", "match": "smart"}, {"said"}),
    ("fuzzy", {"query": "ECONNREFUSD", "match": "fuzzy"}, {"said"}),
    ("regex", {"query": r"npm run \w+-count", "match": "regex"}, {"ran"}),
    ("Japanese", {"query": "収穫", "match": "literal"}, {"cjk"}),
    ("session", {"query": "zebrafinch", "match": "literal", "sessionID": "ses_kitchen"}, {"kitchen", "dropped"}),
    ("scope session", {"query": "zebrafinch", "match": "literal", "scope": "session"}, {"here"}),
    ("project", {"query": "zebrafinch", "match": "literal", "projectID": "attic"}, {"old"}),
    ("directory", {"query": "zebrafinch", "match": "literal", "directory": KITCHEN}, {"kitchen", "dropped"}),
    ("directory above", {"query": "zebrafinch", "match": "literal", "directory": "/home/dev"}, ALL - {"here"}),
    ("directory exactly", {"query": "zebrafinch", "match": "literal", "directory": "/home/dev", "within": "exact"}, set()),
    ("its project", {"query": "zebrafinch", "match": "literal", "directory": KITCHEN, "within": "project"}, ALL - {"old"}),
    ("text", {"query": "zebrafinch", "match": "literal", "type": "text"}, ALL - {"ran", "wrote"}),
    ("tool", {"query": "zebrafinch", "match": "literal", "type": "tool"}, {"ran", "wrote"}),
    ("reasoning", {"query": "zebrafinch", "match": "literal", "type": "reasoning"}, {"said"}),
    ("kinds", {"query": "zebrafinch", "match": "literal", "kinds": ["prompt", "tool_output"]}, {"asked", "ran", "kitchen", "here", "old"}),
    ("role", {"query": "zebrafinch", "match": "literal", "role": "user"}, {"asked", "kitchen", "here", "old"}),
    ("tool name", {"query": "zebrafinch", "match": "literal", "toolName": "write"}, {"wrote"}),
    ("path", {"query": "zebrafinch", "match": "literal", "path": BEDS}, {"wrote"}),
    ("title", {"query": "zebrafinch", "match": "literal", "title": "stock"}, {"kitchen", "dropped"}),
    ("before", {"query": "zebrafinch", "match": "literal", "before": T0 - 1}, {"old"}),
    ("after, as text", {"query": "zebrafinch", "match": "literal", "after": str(T0)}, ALL - {"old"}),
    ("between dates", {"query": "zebrafinch", "match": "literal", "from": "2020-01-01", "to": "2026-06-01"}, {"old"}),
    ("archived only", {"query": "zebrafinch", "match": "literal", "archived": "only"}, {"old"}),
    ("archived not", {"query": "zebrafinch", "match": "literal", "archived": "exclude"}, ALL - {"old"}),
    ("deleted only", {"query": "zebrafinch", "match": "literal", "deleted": "only"}, {"dropped"}),
    ("deleted not", {"query": "zebrafinch", "match": "literal", "deleted": "exclude"}, ALL - {"dropped"}),
    ("nothing", {"query": "xyzzyplugh", "match": "literal"}, set()),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "expected"), [case[1:] for case in RECALL], ids=[case[0] for case in RECALL])
def test_recall_finds_the_same_at_every_door(doors: Doors, arguments: dict[str, Any], expected: set[str]) -> None:
    answer = doors.ask("recall", arguments)
    names = {message_id: name for name, message_id in doors.ids.items()}
    assert {names.get(result["messageID"], "?") for result in answer["results"]} == expected


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "why is the bed a list"},
        {"query": "how many birds do we have", "match": "semantic", "results": 3},
        {"query": "zebrafinch", "explain": True, "width": 60},
        {"query": "zebrafinch", "group": "part", "results": 50},
        {"query": "zebrafinch", "group": "session"},
        {"query": "zebrafinch", "group": "project"},
        {"query": "zebrafinch", "directory": KITCHEN, "fallback": True},
        {"query": "rowNumbers", "expand": "message", "expandResults": 2},
        {"query": "rowNumbers", "expand": "context", "window": 1},
        {"query": "rowNumbers", "expand": "context", "window": "auto", "expandBudgetMessages": 2},
        {"query": "rowNumbers", "expand": "messages", "expandBudgetTokens": 2000},
        {"query": "zebrafinch", "expand": "context", "expandBudgetChars": 500},
        {"query": "zebrafinch", "sessions": 1, "directory": KITCHEN},
        {"query": "zebrafinch", "last": "3650d"},
        {"query": "zebrafinch", "since": "3650d", "until": "now"},
        {"query": "zebrafinch", "scope": "project"},
        {"query": "zebrafinch", "results": 500, "width": "5"},
        {"query": "zebrafinch", "before": -1},
        {"query": "zebrafinch", "from": "yesteryear"},
        {"query": "zebrafinch", "sort": "newest"},
        {"query": "zebrafinch", "sort": "oldest", "match": "literal", "results": 3},
        {"query": "zebrafinch", "threshold": 0.5},
        {"query": "zebrafinch", "where": '{"$or": [{"role": "user"}, {"kind": "reasoning"}]}'},
        {"query": "zebrafinsh", "match": "smart"},
    ],
    ids=lambda arguments: " ".join(f"{name}={value}" for name, value in arguments.items())[:60],
)
def test_recall_answers_the_same_at_every_door(doors: Doors, arguments: dict[str, Any]) -> None:
    answer = doors.ask("recall", arguments)
    assert answer["results"]
    assert ("expanded" in answer) == (arguments.get("expand", "none") != "none")


@pytest.mark.parametrize(
    ("call", "arguments", "key"),
    [
        ("recall_get", {"messageID": "{ran}"}, "parts"),
        ("recall_get", {"messageID": "{ran}", "sessionID": "ses_kitchen", "maxChars": 5}, "warnings"),
        ("recall_context", {"messageID": "{said}"}, "messages"),
        ("recall_context", {"messageID": "{said}", "before": 0, "after": 1, "maxChars": 10}, "hasMoreBefore"),
        ("recall_context", {"messageID": "{said}", "window": 99}, "warnings"),
        ("recall_context", {"messageID": "{ran}", "format": "messages", "budgetTokens": 4000}, "messages"),
        ("recall_messages", {}, "warnings"),
        ("recall_messages", {"sessionID": "ses_garden", "limit": 2, "offset": 1}, "messages"),
        ("recall_messages", {"sessionID": "ses_garden", "role": "user", "reverse": True}, "messages"),
        ("recall_messages", {"sessionID": "ses_garden", "query": "ECONNREFUSED", "maxChars": 20}, "messages"),
        ("recall_messages", {"sessionID": "ses_garden", "query": "xyzzyplugh"}, "pagination"),
        ("recall_sessions", {}, "sessions"),
        ("recall_sessions", {"search": "PUMPKIN"}, "sessions"),
        ("recall_sessions", {"directory": GARDEN, "within": "exact", "children": False}, "sessions"),
        ("recall_sessions", {"projectID": "attic", "archived": "only", "deleted": "exclude"}, "sessions"),
        ("recall_sessions", {"scope": "project", "limit": 1, "offset": 1}, "sessions"),
        ("recall_sessions", {"search": "xyzzyplugh"}, "ok"),
        ("recall_timeline", {"anchor": "{ran}", "depth_before": 2, "depth_after": 2}, "entries"),
        ("recall_timeline", {"anchor": "ses_kitchen", "format": "full"}, "entries"),
        ("recall_timeline", {"anchor": str(T0 + 2500), "kinds": ["prompt", "file"]}, "entries"),
        ("recall_timeline", {"anchor": "2020-01-01", "depth_after": 1, "project": KITCHEN}, "entries"),
        ("recall_timeline", {"anchor": str(T0), "sessionID": "ses_garden"}, "entries"),
        ("recall_files", {"path": BEDS}, "sessions"),
        ("recall_files", {"path": GARDEN, "mentions": True, "limit": 1}, "sessions"),
        ("recall_files", {"path": "/nowhere"}, "path"),
    ],
)  # fmt: skip
def test_the_other_calls_answer_the_same_at_every_door(
    doors: Doors, call: str, arguments: dict[str, Any], key: str
) -> None:
    answer = doors.ask(call, arguments)
    assert answer[key] or answer[key] is False or key == "hasMoreBefore"


@pytest.mark.parametrize(
    ("call", "arguments", "named"),
    [
        ("recall", {}, "query|QUERY"),
        ("recall", {"query": " "}, "query|QUERY"),
        ("recall", {"query": "x", "match": "psychic"}, "psychic"),
        ("recall", {"query": "x", "group": "galaxy"}, "galaxy"),
        ("recall", {"query": "x", "kinds": ["limerick"]}, "limerick"),
        ("recall", {"query": "x", "results": "many"}, "many"),
        ("recall", {"query": "x", "window": "wide"}, "wide"),
        ("recall", {"query": "x", "threshold": "2"}, "a number from 0 to 1"),
        ("recall", {"query": "x", "where": '{"colour": "red"}'}, "colour"),
        ("recall", {"query": "x", "where": '{"$and": [{"role": "user"}, {"role": "assistant"}]}'}, "contradicts"),
        ("recall", {"query": "x", "sort": "loudest"}, "loudest"),
        ("recall", {"query": "x", "after": "2026-02-02", "before": "2026-01-01"}, "before|after"),
        ("recall", {"query": "(unclosed", "match": "regex"}, "regular expression"),
        ("recall", {"query": "x" * 20_000}, "quer"),
        ("recall_get", {}, "messageID|MESSAGE"),
        ("recall_get", {"messageID": "msg_nowhere"}, "msg_nowhere"),
        ("recall_context", {"messageID": "msg_nowhere"}, "msg_nowhere"),
        ("recall_context", {"messageID": "{said}", "format": "song"}, "song"),
        ("recall_messages", {"sessionID": "ses_nowhere"}, "ses_nowhere"),
        ("recall_messages", {"limit": "few"}, "few"),
        ("recall_sessions", {"scope": "galaxy"}, "galaxy"),
        ("recall_timeline", {"anchor": "msg_nowhere"}, "msg_nowhere"),
        ("recall_timeline", {"anchor": "yesteryear"}, "yesteryear"),
        ("recall_timeline", {"kinds": ["poem"]}, "poem"),
        ("recall_files", {}, "path|PATH"),
        ("recall_files", {"path": "/x", "limit": "few"}, "few"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_an_error_names_the_same_thing_at_every_door(
    doors: Doors, call: str, arguments: dict[str, Any], named: str
) -> None:
    arguments = {name: doors.fill(value) for name, value in arguments.items()}
    status, answer = doors.by_socket(call, arguments)
    assert (status, answer["error"]["type"], answer["error"]["exitCode"]) == (400, "BadRequest", 64)
    assert re.search(named, answer["error"]["message"])
    is_error, said, structured = doors.mcp(call, arguments)
    assert (is_error, said, structured) == (True, for_tools(answer["error"]["message"]), None)
    done = doors.by_command(call, arguments)
    assert (done.returncode, json.loads(done.stdout)["error"]["exitCode"]) == (64, 64)
    assert done.stderr.startswith("reconstitute: ")
    assert re.search(named, done.stderr)


def test_unknown_calls_are_errors_and_unknown_arguments_are_warnings(doors: Doors) -> None:
    """This holds for the socket, MCP and the command alike."""
    status, answer = doors.by_socket("recal", {"query": "x"})
    assert (status, "did you mean recall?" in answer["error"]["message"]) == (400, True)
    assert doors.mcp("recal", {"query": "x"})[:2] == (True, answer["error"]["message"])
    assert doors.by_command("recal", {}).returncode == 64
    status, answer = doors.by_socket("recall", {"query": "zebrafinch", "limit": 3})
    assert (status, "did you mean results?" in answer["warnings"][0]) == (200, True)
    assert doors.mcp("recall", {"query": "zebrafinch", "limit": 3, "full": True})[2] == answer


def test_files_are_told_and_read_through_mcp_as_by_the_commands(doors: Doors) -> None:
    history = doors.mcp("file_history", {"path": BEDS, "full": True})[2]
    assert history == json.loads(doors.daemon.ask("history", BEDS, "--json").stdout)
    content = quoted(doors.mcp("read_file", {"path": BEDS})[1])
    assert (content["content"], content["grade"]) == ("rowNumbers = [1, 2]  # zebrafinch\n", "proven")
    piece = quoted(doors.mcp("read_file", {"path": BEDS, "offset": 3, "limit": 7})[1])
    assert (piece["content"], piece["pagination"]) == (
        "Numbers",
        {"offset": 3, "returned": 7, "total": 34, "hasMore": True},
    )
    for name in ("offset", "limit"):
        is_error, said, _ = doors.mcp("read_file", {"path": BEDS, name: -1})
        assert (is_error, f"`{name}` -1 is below 0; use 0 or more" in said) == (True, True)
    is_error, said, _ = doors.mcp("read_file", {"path": f"{GARDEN}/bed.lua"})
    assert is_error
    assert f"{GARDEN}/bed.lua: no session touched it" in said
    assert BEDS in said
    run = doors.mcp("reconstitute", {"path": BEDS, "full": True})[2]
    assert (run["target"], run["files"]["proven"], run["warnings"]) == (BEDS, 1, [])
    assert run["pages"] > 0
    assert Path(run["output"]).is_relative_to(doors.daemon.output_dir)
    assert "rowNumbers" in "".join(page.read_text() for page in doors.daemon.output_dir.rglob("*.md"))


def test_what_is_wrong_is_said_before_what_was_odd(doors: Doors) -> None:
    answer = doors.ask("recall", {"query": "zebrafinch", "results": 500, "width": 5})
    assert [warning.partition(":")[0] for warning in answer["warnings"][:2]] == ["`results`", "`width`"]


def test_what_a_session_quotes_of_recall_is_not_found_again(doors: Doors) -> None:
    _, said, _ = doors.mcp("recall", {"query": "ECONNREFUSD", "match": "fuzzy"})
    assert "ECONNREFUSED" in said
    quoting = Talk(doors.store, "ses_quoting", "/home/dev/quotes", "Quotes")
    asked = quoting.ask(f"It told me:\n{said}\nIs that plumblossom right?")
    quoting.call("reconstitute_recall", {"query": "hose"}, said)
    doors.daemon.wait_until_found({"plumblossom": asked}, 60)
    found = doors.by_socket("recall", {"query": "ECONNREFUSED", "match": "literal"})[1]["results"]
    assert [result["messageID"] for result in found] == [doors.ids["said"]]


@pytest.mark.parametrize("query", ["zebrafinch", "error", "test"])
def test_ten_results_cost_an_agent_at_most_half_of_the_full_answer(doors: Doors, query: str) -> None:
    """By structure alone: snippets are the same in both, so the rest must shrink to far less than half."""
    full = doors.mcp("recall", {"query": query, "full": True})
    short = doors.mcp("recall", {"query": query})
    assert [each["snippet"] for each in quoted(short[1])["results"]] == [each["snippet"] for each in full[2]["results"]]
    assert 2 * len(short[1]) <= len(full[1])


def test_a_command_against_a_warm_daemon_costs_little_of_its_own(doors: Doors) -> None:
    """CPU time, since others use the machine: a quarter of a second of wall clock on an idle one."""
    code = (
        "import resource, sys; from daemon.cli import main; code = main(sys.argv[1:]);"
        "print(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]), file=sys.stderr); sys.exit(code)"
    )
    program, _, _, *words = doors.daemon.command("recall", "zebrafinch", "--json")
    spent = []
    for _ in range(5):
        done = subprocess.run(
            [program, "-c", code, *words], cwd=CHECKOUT, env=doors.daemon.environment,
            capture_output=True, text=True, check=True, timeout=240,
        )  # fmt: skip
        spent.append(float(done.stderr.splitlines()[-1]))
    assert min(spent) < 0.4
