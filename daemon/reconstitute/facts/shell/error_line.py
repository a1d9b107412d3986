"""The one line of an output that says what went wrong, whatever tool printed it.

Known by the forms in which the tools of all ecosystems print a cause. What a wrapper adds counts less than what it
wraps, a notice ("Node.js v20") or a mere status ("make: *** …
Error 1") for nothing. Pure, never raises.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from daemon.reconstitute.facts.session_values import Call, CallStatus
from daemon.reconstitute.facts.shell.read_only import parts

_MOST = 32_000
"""Characters of an output's end that are looked at."""
_LONGEST = 1000
_NOT_FOUND = 127
"""The shell's status for a program that it did not find."""
_NO_SUCH_PROGRAM = re.compile(
    r"(?:^|: )([\w@./+-]+): (?:command )?not found$|command not found: ([\w@./+-]+)|"
    r"unknown command:? ['\"]?([\w@./+-]+)|(?:^|: )['‘]?([\w@./+-]+)['’]?: No such file or directory$",
    re.IGNORECASE,
)
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_FRAME = re.compile(r"^(?:[│┃╷╵╭╰╮╯├└─━▶»]+\s*|E\s{2,}(?=\S)|#\d+ [\d.]+ )+")
"""What some tools draw before each line."""
_TRACEBACK = re.compile(r"^([ \t|+]*)Traceback \(most recent call last\):$")
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?::.*)?$")
_ERROR_WORDS = "error|errors?|fehler|erreur|errore|erro|błąd|fout|ошибка|错误|錯誤|エラー"

_NOTICE = re.compile(
    r"""
    [\W\d_]*$ | Node\.js\ v | npm\ (?:notice|warn|WARN)\b | (?:note|hint|help|warning|tip|info)\b\s*[:\[]
    | \[notice\] | \d+:\ +(?:0x|<unknown>|\w+::)
    | (?:at|from|in|by)\ \S+(?:\ \(.*\)|:\d+\S*)?$ | at\ .*\(.*\)$ | File\ " | \.\.\.\ \d+\ more | \^+
    | goroutine\ \d+ | stack\ backtrace:
    | usage: | see\ (?:also|')\S* | try\ [`'"\w-]+.*(?:--help|-h)\b | for\ more\ (?:information|details)\b
    | (?:re-?)?run\ .*\b(?:with|again)\b
    | exit\ (?:status|code)\b | process\ (?:exited|finished)\b | command\ exited\b | (?:real|user|sys)\s+\d+m
    | done\ in\ [\d.]+
    | \(use\ `node\b | to\ see\ the\ full\b | \[error\]\ *(?:to\ see|re-run|for\ more|\[help\ 1\]|->|$)
    | build\ failed\ in\b | \*\ (?:try|get\ more\ help):?
    | >\ (?:run|get)\ | compilation\ terminated | \d+\ (?:errors?|warnings?)(?:\ generated)?\.?$
    | make(?:\[\d+\])?:\ (?:leaving|entering)\b
    | (?:npm\ (?:err!|error)\s+)?(?:a\ complete\ log\b|.*-debug-\d*\.log) | <?https?://\S+>?$ | -->
    | deprecated\ gradle | \S+warning:\ | warn\w*\b
    | if\ you\ (?:believe|think|want)\b | -{3,}.*-{3,}$ | _{3,}.*_{3,}$ | (?:full\ )?trace(?:back)?\b
    | error:\ *$ | thrown\ at:
    """,
    re.VERBOSE | re.IGNORECASE,
)
_WRAPPER = re.compile(
    r"""
    npm\ (?:ERR!|error) | pnpm:?\ .*exit | collect2: | clang(?:\+\+)?:\ error:\ linker
    | error:\ (?:could\ not\ compile|aborting\ due|test\ failed|build\ failed|process\ didn't|\d+\ targets?\ failed)
    | (?:ERROR:\ )?failed\ to\ solve\b
    | \[ERROR\]\ (?:Failed\ to\ execute|COMPILATION\ ERROR|There\ are\ test\ failures) | FAILURE:\ Build\ failed
    | FAILED$ | FAIL$
    | subprocess\.CalledProcessError | Found\ \d+\ errors?\b
    | ERROR:\ InvocationError | error:\ subprocess-exited | Oh\ no!
    """,
    re.VERBOSE,
)
_STATUS = re.compile(
    r"""
    (?:g?make|ninja)\S*:\ .*(?:\ Error\ \d+|build\ stopped|not\ remade) | .*\bELIFECYCLE\b
    | (?:npm\ (?:ERR!|error)|error:?)\s(?:code|errno|path|command|location|workspace|syscall|Lifecycle)\b
    | npm\ (?:ERR!|error)\s(?:Exit\ status|Failed\ at)\b
    | error:?\ (?:Command|Script|Recipe)\b.*(?:exit|failed)
    | .*\b(?:exited|failed|terminated)\ with\ (?:exit\ )?(?:code|status)\ \d+\.?$
    """,
    re.VERBOSE,
)
"""What says no more than the exit status does."""
_CAUSE = re.compile(
    r"""
    (?:(?:Uncaught|Unhandled(?:\ exception[.:])?|Caused\ by:|Exception\ in\ thread\ \S+|\[?cause\]?:|Error:)\s+){0,2}
        (?:[\w$]+(?:\.|::|\\))*(?:[A-Z]\w*)?(?:Error|Exception|Interrupt|Fault|Panic)(?:\ \[\w+\])?(?::\s*\S|$)
    | \S{1,300}?[:(\[]\d+(?:[:,.-]\d+)*[)\]]?:?\ *(?:-\ )?(?:fatal\ |syntax\ |parse\ |type\ )?error\b
    | (?:[\w./@+-]+:\ (?:line\ )?(?:\d+:\ )?){0,3}(?:[\w-]+\ ){0,2}(?:fatal|panic|ERRORS)\b[^:]{0,60}:\s*\S
    | \[?(?:ERROR|FATAL|CRITICAL|SEVERE|panic|fatal|error)\]?:?\s+\S | E:\ \S | !\ \S | \*\*\ \( | CONFLICT\b
    | !\ \[rejected\] | ERR_\w+\s | curl:\ \(\d+\)
    | \d+:\d+\s+error\s+\S | \*\ What\ went\ wrong: | (?:PHP\ )?(?:Fatal|Parse|Syntax)\ error\b | CMake\ Error\b
    | ×\ \S
    | thread\ .*\ panicked\ at\b | Segmentation\ fault | Bus\ error | Aborted\b | Killed$
    | \S+:\d+:in\ .*\(\w+\)$
    """.replace("ERRORS", _ERROR_WORDS),
    re.VERBOSE | re.IGNORECASE,
)  # fmt: skip
_SAYS_CAUSE = re.compile(
    r"command not found|: not found\b|no such (?:file|module|option|command|table)|no rule to make target|"
    r"permission denied|is not recognized as|"
    r"undefined reference to|core dumped|connection refused|address already in use|"
    r"unknown (?:flag|option|command|argument)|unrecognized (?:arguments?|options?)|invalid option|missing script|"
    r"no space left|operation not permitted|out of memory|version solving failed|cannot (?:find|open|import|resolve)\b",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"(?:FAILED|FAIL:?|ERROR)\s+\S|--- FAIL|not ok \d+|[●✗✖✕✘]\s+\S|Failure/Error:|assert|expected\b|"
    r"\S+\.\w+:\d+(?::\d+)?:(?:in)? \S|would reformat|\d+\) \S",
    re.IGNORECASE,
)
_MENTIONS = re.compile(
    rf"\b(?:{_ERROR_WORDS}|fail(?:ed|s|ures?)?|unable|cannot|can't|could not|couldn't|invalid|denied)\b", re.IGNORECASE
)
_NOTHING_WRONG = re.compile(r"\b(?:0|no|without|zero) (?:errors?|fail(?:ed|ures?|ing)?)\b", re.IGNORECASE)


_REFUSED = re.compile(
    r"(?:Error: )?The user (?:(?P<rule>has specified a rule)|rejected permission)(?:.*?feedback: (?P<feedback>.+))?",
    re.DOTALL,
)
"""OpenCode's words for a call that was not permitted, to the model; the rest lists the rules."""
_MESSAGE = re.compile(r"[^\s:]{1,80}:\s+\S|[^\W\d_a-z]{4,}\b(?!=)|[^\W\d_]+\s.*[^\s.\\][.!]$|"
                      r"[^\W\d_a-z][^\W\d_]+(?:\s+[^\s=/$\\]+)+$|[^\x00-\x7f]{3}")  # fmt: skip
"""A line that is surely no command as ``make`` echoes it: it names what it is of, is in capitals, or is a sentence, or
begins with a capital or in no Latin letters.
"""
_CLOSING = re.compile(r"(?:[^\W\d_]+ ?){1,3}")
_NAMES_SOMETHING = re.compile(r"[^\s:]: +\S|：\S")


def of(call: Call) -> str:
    """What went wrong with a call: of a command the line that tells it, of any other tool the first of its error."""
    if call.status is CallStatus.REFUSED and (refused := _REFUSED.match(call.error)) is not None:
        said = " ".join((refused["feedback"] or "").split())
        return "by a permission rule" if refused["rule"] else f"by the user: {said}" if said else "by the user"
    if call.command:
        return line(call.error or call.output)
    return next((one.strip() for one in call.error.splitlines() if one.strip()), "")


def missing_program(call: Call) -> str:
    """The program that a shell did not find, by its status and its words, or by a word of the command among them."""
    if call.exit != _NOT_FOUND:
        return ""
    said = of(call)
    if (found := _NO_SUCH_PROGRAM.search(said)) is not None:
        return str(next(filter(None, found.groups())))
    return next((word for _, words in parts(call.command) for word in words if f" {word}:" in f" {said}"), "")


def line(text: str) -> str:
    """The line of `text` that tells most of what went wrong; empty where it says no more than that something did."""
    lines = [_bare(raw) for raw in _ESCAPES.sub("", text[-_MOST:]).splitlines()]
    if (raised := _raised(lines)) is not None:
        return raised
    kept = [(number, one) for number, raw in enumerate(lines) if (one := _FRAME.sub("", raw.strip())[:_LONGEST])]
    told = [pair for pair in kept if not _NOTICE.match(pair[1])]
    own = [
        pair
        for pair in told
        if not _STATUS.match(pair[1]) and not _WRAPPER.match(pair[1]) and not _NOTHING_WRONG.search(pair[1])
    ]
    causes = [pair for pair in own if _CAUSE.match(pair[1]) or _SAYS_CAUSE.search(pair[1])]
    failed = [pair for pair in own if _FAILED.match(pair[1])]
    mentions = [pair for pair in own if _MENTIONS.search(pair[1])]
    wrapped = any(_STATUS.match(said) for _, said in told)
    wrappers = [pair for pair in told if _WRAPPER.match(pair[1]) and not _STATUS.match(pair[1])]
    rest = _before_status(told, own) if wrapped else _before_closing(own) or kept[-1:]
    chosen = _root(causes) or failed[:1] or mentions[-1:] or wrappers[:1] or rest
    return _whole(chosen[0], kept) if chosen else ""


def _before_status(told: Sequence[tuple[int, str]], own: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """The line printed before ``make`` and its like gave up, if it is surely not the command that they had begun."""
    status = next(number for number, said in told if _STATUS.match(said))
    before = [pair for pair in own if pair[0] < status][-1:]
    return [pair for pair in before if _MESSAGE.match(pair[1])]


def _before_closing(own: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The last line; of a few words that only close a report, the last line before it that names something."""
    last = own[-1:]
    if last and _CLOSING.fullmatch(last[0][1]):
        return [pair for pair in own if _NAMES_SOMETHING.search(pair[1])][-1:] or last
    return last


def _bare(raw: str) -> str:
    """What a terminal shows of a line: of one that was written over, the last state."""
    return next((piece for piece in reversed(raw.split("\r")) if piece.strip()), "").rstrip()


def _raised(lines: Sequence[str]) -> str | None:
    """The exception at the end of Python's last traceback; one without a message with the line that raised it."""
    starts = [(number, found[1]) for number, raw in enumerate(lines) if (found := _TRACEBACK.match(raw))]
    for start, indent in reversed(starts):
        for number in range(start + 1, len(lines)):
            said = lines[number].removeprefix(indent)
            if not said.startswith((" ", "\t")) and _RAISED.match(said):
                source = [one.strip() for one in lines[start + 1 : number] if re.search(r"\w", one)]
                has_source = ":" not in said and source and not source[-1].startswith("File ")
                return f"{said}: {source[-1]}"[:_LONGEST] if has_source else said[:_LONGEST]
    return None


def _root(causes: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The first of them, or of a chain of causes the last, which began it."""
    roots = [pair for pair in causes if pair[1].startswith("Caused by:")]
    return roots[-1:] or causes[:1]


def _whole(chosen: tuple[int, str], kept: Sequence[tuple[int, str]]) -> str:
    """A line that ends with a colon goes on in the next one."""
    number, said = chosen
    if not said.endswith(":"):
        return said
    following = next((one for place, one in kept if place > number), "")
    return f"{said.removeprefix('* ')} {following}"[:_LONGEST].rstrip()
