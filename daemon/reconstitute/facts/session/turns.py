"""A session's messages become turns: a prompt, and everything up to the next one. Every message is in exactly one.

`closing_words` are what came of a session in the agent's words: the last sentences of its last whole answer.

They say what no list of files does: what a review found, which way was chosen, what does not work. Questions and offers
at the end are no result, nor is an answer that only repeats the prompt. The quote consists of sentences of one message,
in their order, with "…" where something between them is left out. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from daemon import records
from daemon.model import Kind, Message, Part, Session
from daemon.reconstitute.facts.language import cues, sentences, subjects
from daemon.reconstitute.facts.language.sentences import Sentence
from daemon.reconstitute.facts.session import calls
from daemon.reconstitute.facts.session_values import Call, CallStatus, Citation, Ending, Reply, SessionFacts, Turn
from daemon.redact import redact
from daemon.transcript.document import redacted_end, without_recall
from daemon.transcript.tool_calls import valid_text

LONGEST_PROMPT = 4000
"""Characters of a prompt, and of a reply."""
SILENCE_MS = 600_000
"""An answer without an end was cut off if another session was written to so long after it: no call may take longer.

No clock decides it, so that the same records always give the same result.
"""

_MARGIN = 8192
"""Characters behind it that are searched for secrets, too."""
_MOST_TEXTS = 1024
_RAN_BY_USER = "The following tool was executed by the user"
_INIT = re.compile(r"Please analyze this codebase and create an AGENTS\.md file|Create or update `AGENTS\.md` for this")
"""How the prompt of OpenCode's own command ``/init`` begins."""
_ABORTED = re.compile(r"Abort|Interrupt|Cancel")


def divided(messages: Sequence[Message]) -> list[list[Message]]:
    """The messages of each turn, in order. A prompt begins a turn; so do a shell command of the user and `/compact`.

    What OpenCode tells the model on its own in the user's name does not.
    """
    groups: list[list[Message]] = []
    for message in messages:
        if not groups or _begins(message):
            groups.append([])
        groups[-1].append(message)
    return groups


def of(messages: Sequence[Message], session: Session, newest: int) -> list[Turn]:
    """The turns of a session. `newest` (epoch ms) is when anything was last recorded anywhere."""
    groups = divided(messages)
    hide = lru_cache(maxsize=_MOST_TEXTS)(redact)
    return [
        _turn(group, groups[number][0] if number < len(groups) else None, session, newest, hide)
        for number, group in enumerate(groups, start=1)
    ]


def _turn(group: Sequence[Message], after: Message | None, session: Session, newest: int, hide: calls.Hide) -> Turn:
    first = group[0] if group[0].role == "user" else None
    latest = max(map(_last_time, group))
    is_over = after is not None or newest - latest > SILENCE_MS
    turn_calls = tuple(_calls(group, session, hide, is_over=is_over))
    command = _shell_prompt(first, turn_calls) if first is not None else ""
    prompt = _prompt(first) if first is not None else ""
    is_compaction = first is not None and not prompt and _has(first, "compaction")
    ending, error = _ending(group, after, turn_calls, is_over=is_over)
    return Turn(
        prompt_id=first.id if first is not None else "",
        time=group[0].created,
        ended=latest,
        prompt=command or prompt,
        ending=ending,
        message_ids=tuple(message.id for message in group),
        calls=turn_calls,
        replies=tuple(_replies(group)),
        error=error,
        agent=next(filter(None, (valid_text(records.text(message.data.get("agent"))) for message in group)), ""),
        is_command=bool(command) or (first is not None and _is_command(first, session)),
        is_compaction=is_compaction,
    )


# -- prompts -----------------------------------------------------------------------------------------------------


def _begins(message: Message) -> bool:
    if message.role != "user":
        return False
    return _is_shell(message) or any(_is_of_user(part) for part in message.parts) or not message.parts


def _is_of_user(part: Part) -> bool:
    """Whether the user caused a part: a text, a file, a command or `/compact`. OpenCode also compacts on its own."""
    if part.type == "text":
        return part.data.get("synthetic") is not True
    return part.data.get("auto") is not True if part.type == "compaction" else part.type in {"file", "agent", "subtask"}


def _is_shell(message: Message) -> bool:
    """Whether the user ran a shell command from the prompt: OpenCode 2 stores it in the message, 1.x in the answer."""
    return any(
        part.type == "tool" or (part.type == "text" and records.text(part.data.get("text")).startswith(_RAN_BY_USER))
        for part in message.parts
    )


def _shell_prompt(first: Message, turn_calls: Sequence[Call]) -> str:
    """``!command``, as the user typed it."""
    is_typed = any(_is_of_user(part) for part in first.parts)
    return (
        f"!{turn_calls[0].command}"
        if turn_calls and turn_calls[0].command and _is_shell(first) and not is_typed
        else ""
    )


def _prompt(message: Message) -> str:
    """What the person wrote, without attachments and what OpenCode added."""
    texts = [records.text(part.data.get("text")) for part in message.parts if part.type == "text" and _is_of_user(part)]
    tasks = [records.text(part.data.get("prompt")) for part in message.parts if part.type == "subtask"]
    return _bounded(_unquoted("\n\n".join(filter(str.strip, [*texts, *tasks]))))


def _bounded(text: str) -> str:
    """A text without quotations of our own answers, redacted and cut to LONGEST_PROMPT."""
    clean = without_recall(valid_text(text), Kind.PROMPT).strip()
    short = redacted_end(clean, LONGEST_PROMPT, 1, _MARGIN)
    return f"{short.rstrip()} …" if len(clean) > LONGEST_PROMPT else short


def _unquoted(text: str) -> str:
    """`text` without the quotes that ``opencode run "a b"`` stores around its prompt."""
    inner = text.strip()[1:-1]
    is_quoted = len(inner) > 0 and text.strip() == f'"{inner}"' and '"' not in inner.replace('\\"', "")
    return inner if is_quoted else text


def _is_command(message: Message, session: Session) -> bool:
    if session.parent_id is not None or _has(message, "subtask"):
        return True
    texts = (records.text(part.data.get("text")) for part in message.parts if part.type == "text")
    return any(_INIT.match(text) for text in texts)


def _has(message: Message, type_: str) -> bool:
    return any(part.type == type_ for part in message.parts)


# -- answers -----------------------------------------------------------------------------------------------------


def _is_summary(message: Message) -> bool:
    return message.role == "assistant" and message.data.get("summary") is True


def _replies(group: Sequence[Message]) -> Iterator[Reply]:
    for message in group:
        if message.role != "assistant" or _is_summary(message):
            continue
        texts = [
            records.text(part.data.get("text"))
            for part in message.parts
            if part.type == "text" and part.data.get("synthetic") is not True and part.data.get("ignored") is not True
        ]
        text = _bounded("\n\n".join(text.strip() for text in texts if text.strip()))
        if text:
            yield Reply(message.id, message.created, text)


def _calls(group: Sequence[Message], session: Session, hide: calls.Hide, *, is_over: bool) -> Iterator[Call]:
    for place, message in enumerate(group):
        is_past = is_over or place + 1 < len(group) or message.is_complete
        for part in message.parts:
            if part.type == "tool":
                yield calls.of(part, message, session, hide, is_over=is_past)


def _last_time(message: Message) -> int:
    ends = (
        records.integer(records.table(records.table(part.data.get("state")).get("time")).get("end"))
        for part in message.parts
        if part.type == "tool"
    )
    return max(message.created, message.completed or 0, *ends, 0)


def _ending(
    group: Sequence[Message], after: Message | None, turn_calls: Sequence[Call], *, is_over: bool
) -> tuple[Ending, str]:
    """How a turn ended, and its error if it failed."""
    answers = [message for message in group if message.role == "assistant"]
    if not answers:
        is_done = any(call.status is not CallStatus.UNKNOWN for call in turn_calls)  # a shell command in OpenCode 2
        return (Ending.ANSWERED if is_done else Ending.OPEN), ""
    last = answers[-1]
    name, error_text = _error(last)
    if name or error_text:
        if _ABORTED.search(name):
            return Ending.STOPPED, ""
        return Ending.FAILED, redact(": ".join(filter(None, (name, error_text))))[:LONGEST_PROMPT]
    if last.is_complete and not _goes_on(last):
        return Ending.ANSWERED, ""
    if last.is_complete and after is not None and after.created <= (last.completed or last.created):
        return Ending.ANSWERED, ""  # the user wrote meanwhile, and the next step answers both
    was_refused = any(call.status is CallStatus.REFUSED for call in turn_calls if call.message_id == last.id)
    return (Ending.REFUSED if was_refused else Ending.STOPPED if is_over else Ending.OPEN), ""


def _goes_on(last: Message) -> bool:
    """Whether the model waited for the results of its calls, so that another step had to follow."""
    finish = records.text(last.data.get("finish"))
    reasons = (records.text(part.data.get("reason")) for part in last.parts if part.type == "step-finish")
    return (finish or next(reversed(list(chain([""], reasons))))) == "tool-calls"


def _error(message: Message) -> tuple[str, str]:
    """The name and the text of a message's error; some versions store only a text."""
    error = message.data.get("error")
    table = records.table(error)
    text = records.text(error) or records.text(records.table(table.get("data")).get("message"))
    return valid_text(records.text(table.get("name")) or records.text(table.get("type"))), valid_text(
        text or records.text(table.get("message"))
    )


# -- the agent's last words --------------------------------------------------------------------------------------------


_FEWEST_NEW = 2
"""Words that an answer must have beyond the prompt, the names of the files and the commonest words."""
_FEWEST_IN_TALK = 4
"""The same without tool calls: such an answer may only confirm what was said."""
_SHORTEST_WORD = 3
"""A shorter one is a pair of characters; in a script without blanks a word has about two of these."""
_LAST_TURNS = 3
_LEFT_OUT = " … "


def closing_words(facts: SessionFacts, limit: int, texts: Collection[str] = ()) -> Citation | None:
    """The result, quoted in at most `limit` characters; None if the answer says nothing of its own.

    None, too, if each of its sentences is in one of the `texts`. An answer that was stopped or taken back, and
    what was said before the last tool call, is no result. The newest of the last turns that says something counts,
    unless a later turn overtakes it.
    """
    turns = [turn for turn in facts.exchanges if turn.prompt and not turn.taken_back]
    for number, turn in enumerate(reversed(turns[-_LAST_TURNS:])):
        reply = _final(turn) if turn.ending is Ending.ANSWERED else None
        chosen = _chosen(reply, limit) if reply is not None else []
        if reply is not None and chosen and _says_something(chosen, turn, facts):
            quote = sentences.shorten(_joined(reply.text, chosen), limit)
            is_known = all(any(sentence.text in candidate for candidate in texts) for sentence in chosen)
            later = turns[len(turns) - number :]
            is_overtaken = any(_overtakes(candidate, turn, quote) for candidate in later)
            return None if is_known or is_overtaken else Citation(facts.id, reply.message_id, reply.time, quote)
    return None


def _overtakes(later: Turn, turn: Turn, quote: str) -> bool:
    """Whether a later turn is about what the answer says, or changed the same files."""
    paths = [{path for call in turn_.calls for path in call.changed} for turn_ in (later, turn)]
    return bool(paths[0] & paths[1] or subjects.of(later.prompt) & subjects.of(quote))


def _final(turn: Turn) -> Reply | None:
    """The text after the last tool call, if it is recorded to its end."""
    reply = next(reversed(turn.replies), None)
    if reply is None or reply.text.endswith("…"):
        return None
    places = {message: place for place, message in enumerate(turn.message_ids)}
    worked = max((places.get(call.message_id, 0) for call in turn.calls), default=-1)
    return reply if places.get(reply.message_id, -1) > worked else None


def _chosen(reply: Reply, limit: int) -> list[Sentence]:
    """As many sentences from the end as fit, at least one; without the questions and offers after them."""
    pieces = [*sentences.split(reply.text)]
    while pieces and _asks(pieces[-1], reply.text):
        pieces.pop()
    chosen: list[Sentence] = []
    for piece in reversed(pieces):
        if chosen and len(_joined(reply.text, [piece, *chosen])) > limit:
            break
        chosen.insert(0, piece)
    return chosen


def _asks(sentence: Sentence, context: str) -> bool:
    languages = cues.of(sentence.bare, context)
    kinds = ("offer", "closer")
    return sentence.is_question or any(language.find(kind, sentence.bare) for kind in kinds for language in languages)


def _joined(text: str, chosen: Sequence[Sentence]) -> str:
    """The sentences as they stand in `text`, with "…" where something between two of them is left out."""
    line, quote, end = " ".join(text.split()), "", 0
    for sentence in chosen:
        start = line.find(sentence.text, end)
        between = line[end:start] if start >= 0 else _LEFT_OUT
        quote += (between if not between.strip() else _LEFT_OUT) if quote else ""
        quote += sentence.text
        end = max(start, end) + len(sentence.text)
    return quote


def _says_something(chosen: Sequence[Sentence], turn: Turn, facts: SessionFacts) -> bool:
    """Whether the sentences have words of their own."""
    names = [change.path.rsplit("/", 1)[-1] for change in facts.changes]
    prompt_subjects = subjects.of(" ".join([turn.prompt, *names]))
    new_subjects = subjects.of(" ".join(sentence.text for sentence in chosen)) - prompt_subjects
    pairs = sum(len(word) < _SHORTEST_WORD and not word.isascii() for word in new_subjects)
    return len(new_subjects) - pairs / 2 >= (_FEWEST_NEW if turn.calls else _FEWEST_IN_TALK)
