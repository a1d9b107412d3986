"""The recall commands as people and scripts meet them: a real process, a real socket, a scripted service behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner

from daemon.cli import reconstitute, terminal
from daemon.control.calls import CALLS as BY_REQUEST
from daemon.errors import BadRequest
from daemon.exports import Export
from daemon.hints import ARGUMENTS, OPTIONS, for_commands
from daemon.recall.query import CALLS
from daemon.recall.query.arguments import read
from tests.support.processes.command_line import Cli
from tests.support.servers.scripted_service import ScriptedService, serving

RESULT = {
    "sessionID": "ses_1",
    "sessionTitle": "Limit the rate\nof requests",
    "directory": "/home/ada/shop",
    "projectID": "p",
    "messageID": "msg_1",
    "role": "assistant",
    "time": 1_780_000_000_000,
    "partID": "prt_1",
    "partType": "tool",
    "kind": "tool_output",
    "toolName": "read",
    "snippet": "def rate_limit(per_minute: int) -> None:\n    bucket = Bucket(per_minute)\x1b[2J",
    "score": 0.9,
    "matchMode": "hybrid",
    "matchedTerms": ["bucket"],
}
ITEM = {
    "message": {"id": "msg_1", "role": "assistant", "time": 1_780_000_000_000, "agent": "build", "model": "m"},
    "parts": [
        {"id": "prt_1", "type": "text", "pruned": False, "content": "I look.\nThen I act."},
        {
            "id": "prt_2", "type": "tool", "pruned": True, "toolName": "bash", "status": "completed",
            "title": "List it", "input": {"command": "ls"}, "output": "a.py",
        },
    ],
}  # fmt: skip
WHERE = {"sessionID": "ses_1", "sessionTitle": "Limit the rate", "directory": "/home/ada/shop", "projectID": "p"}


@pytest.fixture
def service() -> ScriptedService:
    return ScriptedService()


@pytest.fixture
def cli(service: ScriptedService, tmp_path: Path) -> Iterator[Cli]:
    (tmp_path / "run").mkdir(mode=0o700)
    with serving(service, tmp_path / "run" / "reconstitute" / "control.sock"):
        yield Cli(service, tmp_path)


def answered(**more: Any) -> dict[str, Any]:
    return {"ok": True, "results": [RESULT], "warnings": [], "suggestions": [], "nearMisses": [], **more}


def test_a_result_shows_title_role_time_kind_place_ids_and_snippet(cli: Cli) -> None:
    cli.service.answers["recall"] = answered()
    done = cli("recall", "rate", "limit")
    assert (done.returncode, done.stderr) == (0, "")
    assert cli.service.calls == [("recall", "recall", {"query": "rate limit"}, str(cli.home))]
    assert done.stdout.splitlines() == [
        "Limit the rate of requests · assistant · 2026-05-28 20:26 · tool_output/read",
        "    /home/ada/shop · ses_1 · msg_1",
        "    def rate_limit(per_minute: int) -> None:",
        "        bucket = Bucket(per_minute)␛[2J",
        "",
    ]


def test_the_words_that_matched_stand_out_on_a_terminal(cli: Cli) -> None:
    cli.service.answers["recall"] = answered()
    shown = cli.on_terminal("recall", "bucket", NO_COLOR="")
    assert "\x1b[1mbucket\x1b[0m = \x1b[1mBucket\x1b[0m(per_minute)" in shown
    assert "\x1b[2J" not in shown


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"matchMode": "fuzzy", "near": [["bukcet", "bucket"]]}, ["near match", "near: bucket for bukcet"]),
        ({"matchMode": "semantic"}, ["by meaning"]),
        ({"hitCount": 7}, ["7 hits"]),
        ({"archived": True, "deleted": True}, ["archived", "deleted in OpenCode"]),
        ({"matchReasons": ["contains bucket", "kind answer"]}, ["score 0.9: contains bucket; kind answer"]),
    ],
)
def test_what_is_special_about_a_result_is_said(cli: Cli, more: dict[str, Any], says: list[str]) -> None:
    cli.service.answers["recall"] = answered(results=[RESULT | more])
    shown = cli("recall", "x").stdout
    assert [words for words in says if words not in shown] == []


@pytest.mark.parametrize("is_only_similar", [False, True])
def test_results_that_are_only_similar_begin_with_a_line_that_says_so(cli: Cli, is_only_similar: bool) -> None:
    cli.service.answers["recall"] = answered(onlySimilar=is_only_similar)
    shown = cli("recall", "x").stdout
    assert shown.startswith("No message contains what you searched for.") is is_only_similar
    assert json.loads(cli("recall", "x", "--json").stdout)["onlySimilar"] is is_only_similar


@pytest.mark.parametrize(("near", "labelled"), [([], False), ([["bukcet", "bucket"]], True)])
def test_only_what_is_near_is_labelled_so(cli: Cli, near: list[list[str]], labelled: bool) -> None:
    cli.service.answers["recall"] = answered(results=[RESULT | {"matchMode": "fuzzy", "near": near}])
    assert ("near match" in cli("recall", "bucket", "--match", "fuzzy").stdout) is labelled


@pytest.mark.parametrize("blank", ["", " "])
@pytest.mark.parametrize("words", [["recall", "x", "--path"], ["recall", "x", "--directory"], ["recall-files"]])
def test_a_blank_path_is_not_the_current_folder(cli: Cli, words: list[str], blank: str) -> None:
    cli(*words, blank)
    [(_, _, sent, here)] = cli.service.calls
    assert here not in sent.values()
    assert {name: value for name, value in sent.items() if value.strip()} == ({"query": "x"} if words[1:] else {})


@pytest.mark.parametrize("command", ["recall", "search"])
def test_a_query_that_looks_like_an_option_is_told_how_to_be_asked(cli: Cli, command: str) -> None:
    done = cli(command, "--max-shard-count")
    assert (done.returncode, cli.service.calls, done.stderr.count("\n")) == (64, [], 1)
    assert f"{command} -- --max-shard-count" in done.stderr
    cli.service.answers["recall"] = answered()
    cli("recall", "--", "--max-shard-count")
    assert cli.service.calls[-1][2] == {"query": "--max-shard-count"}


def test_an_expansion_shown_before_is_named(cli: Cli) -> None:
    entry = {"resultIndex": 1, "mode": "context", "messages": [], "shownBefore": [{"messageID": "m", "resultIndex": 0}]}
    cli.service.answers["recall"] = answered(expanded=[entry])
    assert "in part shown above, with result 1" in cli("recall", "x").stdout


def test_few_results_come_with_suggestions_and_warnings_go_to_stderr(cli: Cli) -> None:
    cli.service.answers["recall"] = answered(
        results=[],
        warnings=["3 archived messages still waiting"],
        suggestions=[{"reason": "similar spellings: 'bucket'", "action": "search for 'bucket'", "example": {}}],
        nearMisses=[{"title": "Rates", "sessionID": "ses_2", "reason": "outside the directory", "terms": ["rate"]}],
    )
    done = cli("recall", "bukcet")
    assert done.returncode == 4
    assert done.stderr == "reconstitute: 3 archived messages still waiting\n"
    assert done.stdout.splitlines() == [
        "Nothing found for 'bukcet'.",
        "near: Rates · ses_2: outside the directory (rate)",
        "try: search for 'bucket' (similar spellings: 'bucket')",
    ]


def test_expansions_are_shown_below_the_results(cli: Cli) -> None:
    chat = {"role": "tool", "tool_name": "bash", "content": "a.py"}
    for entry in (
        {"resultIndex": 0, "mode": "message", "message": ITEM},
        {"resultIndex": 0, "mode": "context", "messages": [ITEM]},
    ):
        cli.service.answers["recall"] = answered(expanded=[entry])
        assert (
            "Result 1 in full\n\nassistant · 2026-05-28 20:26 · build · m · msg_1\n    I look."
            in cli("recall", "x").stdout
        )
    cli.service.answers["recall"] = answered(expanded=[{"resultIndex": 0, "mode": "messages", "messages": [chat]}])
    assert "tool (bash)\n    a.py" in cli("recall", "x").stdout


def fields_of(call: str) -> dict[str, str]:
    """Argument, as clients write it -> field."""
    return {field.encode_name: field.name for field in msgspec.structs.fields(CALLS[call])}


def options_of(call: str) -> dict[str, str]:
    """Argument -> its option, as click knows them."""
    command = reconstitute.get_command(None, call)
    assert command is not None
    return {p.name or "": p.opts[0] for p in command.params if p.param_type_name == "option"}


@pytest.mark.parametrize("call", CALLS)
def test_every_argument_of_a_call_has_its_option_or_place(call: str) -> None:
    places = {"recall": {"query"}, "recall_get": {"messageID"}, "recall_context": {"messageID"}}
    places |= {"recall_messages": {"sessionID"}, "recall_sessions": {"search"}, "recall_timeline": {"anchor"}}
    places |= {"recall_files": {"path"}}
    fields, options = fields_of(call), options_of(call)
    assert {name for name in fields if fields[name] not in options} == places[call]
    for argument, option in OPTIONS.items():
        if argument in fields and argument not in places[call]:
            assert options[fields[argument]] == option


@pytest.mark.parametrize(("call", "argument"), [(call, name) for call in CALLS for name in fields_of(call)])
def test_an_error_names_what_was_typed_on_the_command_line(call: str, argument: str) -> None:
    """Every argument of every call: its option, or the word that stands for it in the command's usage."""
    command = reconstitute.get_command(None, call)
    assert command is not None
    options = {parameter.name: parameter.opts[0] for parameter in command.params if isinstance(parameter, click.Option)}
    usage = command.get_usage(click.Context(command, info_name=call)).split()
    typed = options.get(fields_of(call)[argument]) or usage[-1].strip("[].")
    odd = ["no value"] if argument == "where" else {"no": "value"}  # which takes an object
    with pytest.raises(BadRequest) as caught:
        read(call, {argument: odd})
    assert for_commands(str(caught.value), call).startswith(f"{typed}: {odd} is not understood; use ")


def test_every_argument_of_every_call_is_known_to_the_hints() -> None:
    structures = [*CALLS.values(), *BY_REQUEST, Export]
    names = {field.encode_name for structure in structures for field in msgspec.structs.fields(structure)}
    assert names - {"call", "arguments", "here", "source"} <= ARGUMENTS
    assert ARGUMENTS - names == {"list"}  # `alias(list=true)`


def test_an_option_is_named_to_whoever_typed_it(tmp_path: Path) -> None:
    """Through the command, the engine and back, where the engine has read the arguments."""
    (tmp_path / "c.toml").write_text(
        f'[opencode]\ndata_dir = "{tmp_path}/oc"\n[archive]\ndir = "{tmp_path}/a"\n[chat]\nprovider = "none"\n'
    )
    (tmp_path / "run").mkdir(mode=0o700)
    cli = Cli(None, tmp_path)
    for words, says in {
        ("search", "x", "--kind", "promt"): "--kind: 'promt' is not understood; use prompt, answer",
        ("search", "x", "--tool", "bash", "--type", "text"): "--tool 'bash' with --type text finds nothing",
        (
            "search",
            "x",
            "--match",
            "literal",
            "--session",
            "ses_x",
        ): "session 'ses_x' is not in the archive; `reconstitute recall-sessions`",
        ("search", "x", "--threshold", "2"): "--threshold: '2' is not understood; use a number from 0 to 1",
        ("recall-get", " "): "MESSAGE is missing or blank; give it a value",
        ("recall-timeline", "soon"): "ANCHOR 'soon': not a date or time",
        ("recall-timeline", "--project", "nobody"): "--project 'nobody' is not in the archive",
        ("export", "--format", "jsonl", "--since", "soon"): "--since 'soon': not a date or time",
        ("files", "/w", "--at", "soon"): "--at 'soon': not a date or time",
    }.items():
        done = cli("--config", "c.toml", *words)
        assert (done.returncode, done.stderr.splitlines()[-1].startswith(f"reconstitute: {says}")) == (64, True), done


def test_every_recall_option_sends_exactly_its_argument(cli: Cli) -> None:
    given = [
        "--match=smart", "--scope=project", "--session=s", "--project=p", "--directory=sub", "--within=exact",
        "--fallback", "--type=tool", "--kind=prompt", "--kind=answer", "--role=user", "--tool=bash", "--path=a.py",
        "--title=t", "--before=2026-01-31", "--after=1", "--last=7d", "--from=30d ago", "--to=now", "--since=1d",
        "--until=now", "--archived=only", "--deleted=exclude", "--group=session", "--results=500", "--width=80",
        "--explain", "--expand=context", "--expand-results=2", "--window=auto", "--expand-budget-messages=3",
        "--expand-budget-chars=900", "--expand-budget-tokens=0", "--sessions=9",
        "--sort=newest", "--threshold=0.5", "--offset=20", '--where={"role": "user"}',
    ]  # fmt: skip
    assert {word.partition("=")[0] for word in given} == set(options_of("recall").values()) - {"--json"}
    cli.service.answers["recall"] = answered()
    assert cli("recall", "x", *given).returncode == 0
    [(_, call, sent, here)] = cli.service.calls
    assert (call, here) == ("recall", str(cli.home))
    assert sent == {
        "query": "x", "match": "smart", "scope": "project", "sessionID": "s", "projectID": "p",
        "directory": f"{cli.home}/sub", "within": "exact", "fallback": True, "type": "tool",
        "kinds": ["prompt", "answer"], "role": "user", "toolName": "bash", "path": f"{cli.home}/a.py", "title": "t",
        "before": "2026-01-31", "after": "1", "last": "7d", "from": "30d ago", "to": "now", "since": "1d",
        "until": "now", "archived": "only", "deleted": "exclude", "group": "session", "results": "500",
        "width": "80", "explain": True, "expand": "context", "expandResults": "2", "window": "auto",
        "expandBudgetMessages": "3", "expandBudgetChars": "900", "expandBudgetTokens": "0", "sessions": "9",
        "sort": "newest", "threshold": "0.5", "offset": "20", "where": '{"role": "user"}',
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "call", "sent"),
    [
        (["recall-get", "msg_1", "--max-chars", "9"], "recall_get", {"messageID": "msg_1", "maxChars": "9"}),
        (["recall_get", "msg_1"], "recall_get", {"messageID": "msg_1"}),
        (["recall-context", "msg_1", "--before", "0"], "recall_context", {"messageID": "msg_1", "before": "0"}),
        (["recall-messages"], "recall_messages", {}),
        (["recall-messages", "ses_1", "--reverse"], "recall_messages", {"sessionID": "ses_1", "reverse": True}),
        (["recall-sessions", "rate", "limit"], "recall_sessions", {"search": "rate limit"}),
        (["recall-sessions", "--no-children"], "recall_sessions", {"children": False}),
        (["recall-sessions", "--children"], "recall_sessions", {"children": True}),
        (["recall-timeline"], "recall_timeline", {}),
        (["recall-timeline", "3d ago", "--kind", "file"], "recall_timeline", {"anchor": "3d ago", "kinds": ["file"]}),
        (["recall-timeline", "--project", "p1"], "recall_timeline", {"project": "p1"}),
        (["recall-timeline", "--project", "."], "recall_timeline", {"project": "{home}"}),
        (["recall_files", "a.py", "--mentions"], "recall_files", {"path": "{home}/a.py", "mentions": True}),
    ],
)
def test_the_other_commands_send_what_was_written(cli: Cli, words: list[str], call: str, sent: dict[str, Any]) -> None:
    done = cli(*words, "--json")
    sent = {
        name: value.replace("{home}", str(cli.home)) if isinstance(value, str) else value
        for name, value in sent.items()
    }
    assert cli.service.calls == [("recall", call, sent, str(cli.home))]
    assert json.loads(done.stdout) == cli.service.answers["recall"]


@pytest.mark.parametrize(
    ("words", "answer", "lines"),
    [
        (
            ["recall-get", "msg_1"],
            {**ITEM, "context": WHERE},
            [
                "Limit the rate · /home/ada/shop · ses_1",
                "assistant · 2026-05-28 20:26 · build · m · msg_1",
                "    I look.",
                "    bash · completed · List it · pruned in OpenCode",
                "      command: ls",
                "      a.py",
            ],
        ),
        (
            ["recall-context", "msg_1"],
            {"messages": [ITEM | {"center": True}], "context": WHERE, "hasMoreBefore": True, "hasMoreAfter": True},
            ["… more before; --before N shows it", "▶ assistant · 2026-05-28 20:26 · build · m · msg_1"],
        ),
        (
            ["recall-context", "msg_1", "--format", "messages"],
            {"messages": [{"role": "user", "content": "Why?"}], "context": WHERE},
            ["user", "    Why?"],
        ),
        (
            ["recall-messages"],
            {"messages": [ITEM], "context": WHERE, "pagination": {"offset": 10, "returned": 1, "total": 30, "hasMore": True}},
            ["11 to 11 of 30 messages; more: --offset 11"],
        ),
        (
            ["recall-sessions"],
            {
                "sessions": [
                    {"id": "ses_1", "title": "Rates", "directory": "/s", "parentID": "ses_0", "messages": 1, "archived": True,
                     "time": {"updated": 1_780_000_000_000}}
                ],
                "hasMore": True, "total": 9,
            },
            ["Rates · 2026-05-28 20:26 · 1 message · archived · sub-agent", "    /s · ses_1", "1 of 9; --limit or --offset shows more"],
        ),
        (
            ["recall-timeline"],
            {
                "entries": [
                    {"type": "prompt", "time": 1_780_000_000_000, "sessionTitle": "Rates", "messageID": "msg_1", "text": "Why?", "anchor": True},
                    {"type": "file", "time": 1_780_000_000_000, "sessionTitle": "Rates", "messageID": "msg_2", "operation": "write",
                     "path": "/s/a.py", "text": "/s/a.py"},
                ],
                "hasMoreBefore": True, "hasMoreAfter": False,
            },
            ["▶ 2026-05-28 20:26  prompt   Why?", "    Rates · msg_1", "  2026-05-28 20:26  file     write /s/a.py"],
        ),
        (
            ["recall-files", "/s"],
            {
                "sessions": [
                    {"sessionID": "ses_1", "title": "Rates", "directory": "/s", "last": 1_780_000_000_000, "changes": 2, "reads": 1,
                     "unclear": 1, "files": ["/s/a.py"], "moreFiles": 3}
                ],
                "total": 4,
            },
            ["Rates · 2026-05-28 20:26 · 2 changes · 1 read · 1 unclear", "    /s/a.py", "    and 3 more", "1 of 4; --limit shows more"],
        ),
    ],
)  # fmt: skip
def test_their_answers_are_good_to_read(cli: Cli, words: list[str], answer: dict[str, Any], lines: list[str]) -> None:
    cli.service.answers["recall"] = {"ok": True, "warnings": ["odd"], **answer}
    done = cli(*words)
    assert (done.returncode, done.stderr) == (0, "reconstitute: odd\n")
    assert [line for line in lines if line not in done.stdout.splitlines()] == [], done.stdout


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["recall", "x"], {"results": []}),
        (["recall-messages"], {"messages": [], "context": WHERE, "pagination": {}}),
        (["recall-sessions"], {"sessions": []}),
        (["recall-timeline"], {"entries": []}),
        (["recall-files", "/s"], {"sessions": []}),
    ],
)
def test_nothing_found_ends_with_4_also_in_json(cli: Cli, words: list[str], answer: dict[str, Any]) -> None:
    cli.service.answers["recall"] = {"ok": True, "warnings": [], **answer}
    assert [cli(*words).returncode, cli(*words, "--json").returncode] == [4, 4]


@pytest.mark.parametrize(
    "words",
    [
        ["recall"],
        ["recall", "x", "--match", "psychic"],
        ["recall", "x", "--colour"],
        ["recall-get"],
        ["recall-files"],
        ["recall-timeline", "--format", "long"],
        ["recall-nothing"],
    ],
)
def test_a_usage_error_is_said_without_asking_anybody(cli: Cli, words: list[str]) -> None:
    done = cli(*words)
    assert (done.returncode, done.stdout, cli.service.calls) == (64, "", [])
    assert done.stderr.count("\n") == 1


def test_what_the_service_refuses_is_a_usage_error(cli: Cli) -> None:
    cli.service.failure = BadRequest("recall: `kinds`: 'x' is not understood; use prompt")
    done = cli("recall", "x", "--kind", "x")
    assert (done.returncode, done.stderr) == (64, "reconstitute: --kind: 'x' is not understood; use prompt\n")


def test_the_help_lists_the_recall_commands_first() -> None:
    shown = CliRunner().invoke(reconstitute, ["--help"]).output
    listed = shown[shown.index("Find:") :]
    assert listed.index("search ") < listed.index("recall ") < listed.index("recall-files") < listed.index("restore ")


CHANGE = {"type": "file", "time": 1_780_000_000_000, "messageID": "msg_2", "path": "/s/src/a.py", "operation": "write"}


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("write src/a.py", []),
        ("write /s/src/a.py", []),
        ("write src/a.py: made executable", ["    write src/a.py: made executable"]),
        ("write src/a.py -> src/b.py", ["    write src/a.py -> src/b.py"]),
    ],
)
def test_a_change_is_said_once(cli: Cli, text: str, rest: list[str]) -> None:
    cli.service.answers["recall"] = {"ok": True, "warnings": [], "entries": [CHANGE | {"text": text}]}
    shown = cli("recall-timeline").stdout.splitlines()
    assert shown == ["  2026-05-28 20:26  file     write /s/src/a.py", "    msg_2", *rest]


def test_the_help_of_the_timeline_lists_its_kinds(cli: Cli) -> None:
    assert "session, prompt, file" in " ".join(cli("recall-timeline", "--help").stdout.split())


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("    deep one", 8, ["    deep", "one"]),
        ("a" * 9, 4, ["aaaa", "aaaa", "a"]),
        ("日本語のテキスト", 6, ["日本語", "のテキ", "スト"]),
        ("see 日本語", 6, ["see 日", "本語"]),
        ("e\u0301" * 4, 4, ["e\u0301" * 4]),
        ("🙂🙂🙂", 4, ["🙂🙂", "🙂"]),
        ("", 4, []),
    ],
)
def test_text_is_folded_by_the_columns_it_takes(text: str, room: int, lines: list[str]) -> None:
    assert terminal.wrap(text, room) == lines
    assert all(terminal.columns(line) <= room for line in lines)


@pytest.mark.parametrize(
    ("text", "room", "short"),
    [
        ("one  two", 7, "one two"),
        ("one two three", 9, "one two…"),
        ("aaaaaaaaaa", 5, "aaaa…"),
        ("日本語のテキスト", 8, "日本語…"),
    ],
)
def test_a_title_is_shortened_to_the_columns_there_are(text: str, room: int, short: str) -> None:
    assert terminal.shorten(text, room) == short


def test_a_snippet_of_wide_characters_fits_the_terminal(cli: Cli) -> None:
    wide = "検索の結果を端末の幅に合わせて折り返す" * 6
    cli.service.answers["recall"] = answered(results=[RESULT | {"snippet": wide, "sessionTitle": wide}])
    shown = cli("recall", "x").stdout.splitlines()
    assert max(map(terminal.columns, shown)) <= 80
    assert "".join(line.strip() for line in shown[2:-1]) == wide
