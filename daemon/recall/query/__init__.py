"""What may be asked of the archive, as clients write it: one structure a call, with our defaults.

Names and meaning are those of OpenCode's recall plugin, which agents know: `recall`, `recall_get`, `recall_context`,
`recall_messages`, `recall_sessions`; `recall_timeline` and `recall_files` are ours. Clients send what they like, so
`arguments.read` is lenient where nothing can go wrong (a number as text, a blank, a limit that is too large: kept
within bounds, with a warning). It is strict where the answer would be to another question (an unknown mode, a time that
cannot be read). Light to load: the command line and the MCP server describe the calls without opening anything.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

Match = Literal["hybrid", "literal", "smart", "fuzzy", "regex", "semantic"]
Scope = Literal["session", "project", "global"]
Type = Literal["all", "text", "tool", "reasoning"]
Role = Literal["all", "user", "assistant"]
Group = Literal["part", "message", "session", "project"]
Expand = Literal["none", "message", "context", "messages"]
Archived = Literal["include", "only", "exclude"]
Sort = Literal["relevance", "newest", "oldest"]
Within = Literal["below", "exact", "project"]
Moment = int | float | str

MOST_OFFSET = 10_000
"""Results of a search that may be skipped; a larger `offset` becomes this one."""


def _a(description: str, **bounds: int) -> Meta:
    return Meta(description=description, extra_json_schema=bounds or None)


class Recall(Struct, frozen=True, kw_only=True):
    """Search everything that was said, done and printed in all recorded sessions."""

    query: Annotated[str, _a("What to look for: words, a question, an identifier, a path, an error message.")]
    match: Annotated[
        Match,
        _a(
            "hybrid: words and meaning. literal: the text as it stands. smart: words in any order, stemmed. "
            "fuzzy: also similar spellings. regex. semantic: meaning only."
        ),
    ] = "hybrid"
    scope: Annotated[Scope, _a("Everything, this project, or the session at hand.")] = "global"
    sessionID: Annotated[str, _a("Only this session; overrides `scope`.")] = ""
    projectID: Annotated[str, _a("Only this project.")] = ""
    directory: Annotated[str, _a("Only sessions of this directory (see `within`).")] = ""
    within: Annotated[Within, _a("The directory and below, exactly it, or all of its project.")] = "below"
    fallback: Annotated[bool, _a("With `directory`: fill up from the same project, then from everywhere.")] = False
    type: Annotated[Type, _a("text: prompts, answers, titles. tool: what tools were given and printed. reasoning.")] = (
        "all"
    )
    kinds: Annotated[
        list[str], _a("Any of prompt, answer, reasoning, tool_input, tool_output, title, task; narrower than `type`.")
    ] = []
    role: Annotated[Role, _a("Whose messages.")] = "all"
    toolName: Annotated[str, _a("Only this tool, by its exact name.")] = ""
    path: Annotated[str, _a("Only messages that touched or mention this absolute path, or one beneath it.")] = ""
    title: Annotated[str, _a("Only sessions whose title contains this.")] = ""
    before: Annotated[Moment | None, _a("Only earlier than this: epoch ms, 2026-01-31, '3 May', 'last week'.")] = None
    after: Annotated[Moment | None, _a("Only this or later: epoch ms, 2026-01-31, '3 May', yesterday.")] = None
    last: Annotated[str, _a("Only the last while: 2h, 7d, 3w.")] = ""
    from_: Annotated[str, _a("Only since: '30d ago', a date, a time.")] = msgspec.field(name="from", default="")
    to: Annotated[str, _a("Only until: 'now', '2d ago', a date, a time.")] = ""
    since: Annotated[str, _a("The same as `from`.")] = ""
    until: Annotated[str, _a("The same as `to`.")] = ""
    where: Annotated[
        dict[str, Any],
        _a(
            "Conditions on role, kind, tool, session, project, directory and time: "
            '{"role": "user", "time": {"$gte": "7d"}}; with '
            "$eq, $ne, $in, $nin, $gt, $gte, $lt, $lte, $and and $or."
        ),
    ] = {}
    threshold: Annotated[
        float,
        _a("Only results of at least this score, 0 to 1; of `match=semantic` it is the cosine.", minimum=0, maximum=1),
    ] = 0.0
    archived: Annotated[Archived, _a("Sessions that were archived in OpenCode.")] = "include"
    deleted: Annotated[Archived, _a("Messages that OpenCode has deleted since.")] = "include"
    group: Annotated[Group, _a("One result for each part, message, session or project.")] = "message"
    sort: Annotated[Sort, _a("The best first, or all that hold the words by date.")] = "relevance"
    results: Annotated[int, _a("The most results to return.", minimum=1, maximum=50)] = 10
    offset: Annotated[int, _a("Results to skip.", minimum=0, maximum=MOST_OFFSET)] = 0
    width: Annotated[int, _a("Characters of a snippet.", minimum=50, maximum=1000)] = 200
    explain: Annotated[bool, _a("Explain each score.")] = False
    expand: Annotated[
        Expand, _a("Add the best results in full (message), with neighbours (context), or as chat messages (messages).")
    ] = "none"
    expandResults: Annotated[int, _a("How many results to expand.", minimum=1, maximum=10)] = 1
    window: Annotated[
        int | Literal["auto"], _a("Messages on each side for `expand=context`, or auto.", minimum=0, maximum=50)
    ] = 3
    expandBudgetMessages: Annotated[int, _a("Messages of all expansions.", minimum=1, maximum=200)] = 30
    expandBudgetChars: Annotated[int, _a("Characters of all expansions.", minimum=500, maximum=400_000)] = 30_000
    expandBudgetTokens: Annotated[
        int, _a("Tokens of `expand=messages`, estimated; 0: limited by characters alone.", minimum=0, maximum=200_000)
    ] = 0
    sessions: Annotated[int, _a("Only the newest so many sessions that fit; 0: all.", minimum=0)] = 0


class RecallGet(Struct, frozen=True, kw_only=True):
    """One message in full, all its parts, tool outputs as they were before OpenCode pruned them."""

    messageID: Annotated[str, _a("The message.")]
    sessionID: Annotated[str, _a("Its session, if known.")] = ""
    maxChars: Annotated[int, _a("At most so many characters of each part; 0: all.", minimum=0)] = 0


class RecallContext(Struct, frozen=True, kw_only=True):
    """The messages around one message."""

    messageID: Annotated[str, _a("The message in the middle.")]
    sessionID: Annotated[str, _a("Its session, if known.")] = ""
    window: Annotated[int, _a("Messages on each side.", minimum=0, maximum=50)] = 3
    before: Annotated[int | None, _a("Messages before it, instead of `window`.", minimum=0, maximum=50)] = None
    after: Annotated[int | None, _a("Messages after it, instead of `window`.", minimum=0, maximum=50)] = None
    maxChars: Annotated[int, _a("At most so many characters of each part; 0: all.", minimum=0)] = 4000
    format: Annotated[Literal["parts", "messages"], _a("Parts as recorded, or chat messages for a model.")] = "parts"
    budgetTokens: Annotated[
        int, _a("With `format=messages`: at most so many tokens, estimated.", minimum=100, maximum=200_000)
    ] = 12_000


class RecallMessages(Struct, frozen=True, kw_only=True):
    """A session's messages in order, a page at a time."""

    sessionID: Annotated[str, _a("The session; without it the latest of the current directory.")] = ""
    limit: Annotated[int, _a("Messages of a page.", minimum=1, maximum=50)] = 10
    offset: Annotated[int, _a("Messages to skip.", minimum=0)] = 0
    role: Annotated[Role, _a("Whose messages.")] = "all"
    reverse: Annotated[bool, _a("Newest first.")] = False
    query: Annotated[str, _a("Only messages that contain this text.")] = ""
    maxChars: Annotated[int, _a("At most so many characters of each part; 0: all.", minimum=0)] = 4000


class RecallSessions(Struct, frozen=True, kw_only=True):
    """Sessions, latest first."""

    scope: Annotated[Literal["project", "global"], _a("This project, or everything.")] = "global"
    search: Annotated[str, _a("Only sessions whose title contains this.")] = ""
    directory: Annotated[str, _a("Only sessions of this directory (see `within`).")] = ""
    within: Annotated[Within, _a("The directory and below, exactly it, or all of its project.")] = "below"
    projectID: Annotated[str, _a("Only this project.")] = ""
    archived: Annotated[Archived, _a("Sessions that were archived in OpenCode.")] = "include"
    deleted: Annotated[Archived, _a("Sessions that OpenCode has deleted since.")] = "include"
    children: Annotated[bool, _a("Sessions of sub-agents too.")] = True
    limit: Annotated[int, _a("The most to return.", minimum=1, maximum=100)] = 20
    offset: Annotated[int, _a("Sessions to skip.", minimum=0)] = 0


class RecallTimeline(Struct, frozen=True, kw_only=True):
    """What happened around a message, a session or a moment: sessions, prompts and file changes, in order of time."""

    anchor: Annotated[str, _a("A message id, a session id, or a time: ISO, a date, epoch ms, '3d ago'.")] = "now"
    depth_before: Annotated[int, _a("Entries before it.", minimum=0, maximum=50)] = 10
    depth_after: Annotated[int, _a("Entries after it.", minimum=0, maximum=50)] = 10
    format: Annotated[Literal["index", "full"], _a("A line an entry, or their texts.")] = "index"
    project: Annotated[str, _a("Only this project: its id, or a directory.")] = ""
    sessionID: Annotated[str, _a("Only this session.")] = ""
    kinds: Annotated[list[Literal["session", "prompt", "file"]], _a("Which entries; empty: all.")] = []


class RecallFiles(Struct, frozen=True, kw_only=True):
    """Which sessions touched a path, or anything beneath it."""

    path: Annotated[str, _a("An absolute path, a file or a folder.")]
    mentions: Annotated[bool, _a("Also sessions that only mention it.")] = False
    limit: Annotated[int, _a("The most sessions to return.", minimum=1, maximum=100)] = 20


CALLS: dict[str, type[Struct]] = {
    "recall": Recall,
    "recall_get": RecallGet,
    "recall_context": RecallContext,
    "recall_messages": RecallMessages,
    "recall_sessions": RecallSessions,
    "recall_timeline": RecallTimeline,
    "recall_files": RecallFiles,
}
