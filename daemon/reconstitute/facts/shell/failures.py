"""What a failed command tells: nothing if it only looked for something, else the line that says what went wrong.

A search without a match is no failure. The line is recognised by the forms in which the tools of all ecosystems print a
cause. The message of a wrapper counts less than the one it wraps; a notice ("Node.js v20") and a mere status
("make: *** … Error 1") do not count. Pure, never raises.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TypeAlias

from daemon.reconstitute.facts.session_values import Call, CallStatus
from daemon.reconstitute.facts.shell.runs import ASKS
from daemon.transcript.shell.names import words

Line: TypeAlias = tuple[int, str]
"""A line of output with its number."""

_NOT_FOUND = 127
"""The shell's status for a program that it did not find."""
_OUT_OF_TIME = 124
"""The status of `timeout` when it ended a command."""

# -- commands that only look -------------------------------------------------------------------------------------

_LOOKS = words(
    "grep egrep fgrep zgrep rg ag ack test [ [[ diff cmp comm which type hash whereis locate ls ll tree cat bat head "
    "tail less more find fd stat file wc du df pgrep pidof ps readlink realpath echo printf true false : sleep cd pwd "
    "env printenv whoami id hostname uname date sort uniq cut tr nl column basename dirname xxd od strings sha256sum "
    "md5sum"
)
_ANSWERS_1 = words("grep egrep fgrep zgrep rg ag ack test [ [[ diff cmp pgrep false")
_GIT_LOOKS = words(
    "status log show diff rev-parse ls-files ls-tree branch blame grep remote describe tag cat-file check-ignore "
    "reflog shortlog"
)
_TEXT_EDITORS = words("sed awk perl ripgrep")
_ASSIGNED = re.compile(r"\w+=")
_BETWEEN = frozenset({"&&", "||", ";", "|", "&", "|&", ";;", "(", ")"})
_FAILS_ON_PURPOSE = re.compile(r"\bexit [1-9]|(?:^|[;&|]\s*)false\s*$")
_LONGEST_COMMAND = 4000


def is_tool(name: str) -> bool:
    """Whether a word names a program to look with, or to edit text with."""
    return name.strip() in _LOOKS | _TEXT_EDITORS


def is_look(name: str) -> bool:
    """Whether a program only looks or prints; an empty name runs nothing."""
    return name in _LOOKS or not name


def fails_on_purpose(command: str) -> bool:
    """Whether a command is written so that it fails."""
    return _FAILS_ON_PURPOSE.search(command) is not None


def only_looks(command: str, status: int | None) -> bool:
    """Whether a command that ended with `status` only looked, or answered "no" with it."""
    commands = parts(command)
    if not commands:
        return False
    if status == _NOT_FOUND and any(len(args) > 1 and args[1] in ASKS for _, args in commands):
        return False  # whoever asks for its version wanted to use it
    if all(_is_look(args) for _, args in commands):
        return True
    if status == _OUT_OF_TIME and any("timeout" in args[:2] for _, args in commands):
        return True
    between, last = commands[-1]
    return status == 1 and between in {"|", ";"} and last[0] in _ANSWERS_1


def parts(command: str) -> list[tuple[str, tuple[str, ...]]]:
    """The simple commands of a line, each with the operator before it; none if the line has a here-document."""
    if "<<" in command or len(command) > _LONGEST_COMMAND:
        return []
    lexer = shlex.shlex(command.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        return []
    pieces: list[tuple[str, list[str]]] = [("", [])]
    for token in tokens:
        if token in _BETWEEN:
            pieces.append((token, []))
        else:
            pieces[-1][1].append(token)
    return [(between, simple) for between, args in pieces if (simple := _without_assignments(args))]


def _without_assignments(args: Sequence[str]) -> tuple[str, ...]:
    start = next((place for place, word in enumerate(args) if not _ASSIGNED.match(word)), len(args))
    return tuple(args[start:])


def _is_look(args: Sequence[str]) -> bool:
    name = args[0].rsplit("/", 1)[-1]
    if name == "git":
        return next((word for word in args[1:] if not word.startswith("-")), "") in _GIT_LOOKS
    if name == "command":
        return args[1:2] in {("-v",), ("-V",)}
    if name == "find" and ("-delete" in args or "-exec" in args):
        return False
    return name in _LOOKS or (len(args) == 2 and args[1] in ASKS)


# -- the line that says what went wrong --------------------------------------------------------------------------

_MAX_CHARS = 32_000
"""Characters of an output's end that are searched."""
_LONGEST = 1000
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
"""How OpenCode tells the model that a call was not permitted; the rest lists the rules."""
_MESSAGE = re.compile(r"[^\s:]{1,80}:\s+\S|[^\W\d_a-z]{4,}\b(?!=)|[^\W\d_]+\s.*[^\s.\\][.!]$|"
                      r"[^\W\d_a-z][^\W\d_]+(?:\s+[^\s=/$\\]+)+$|[^\x00-\x7f]{3}")  # fmt: skip
"""A line that cannot be a command echoed by ``make``: it has a label, is in capitals or a sentence, or begins with a
capital or a non-Latin letter.
"""
_CLOSING = re.compile(r"(?:[^\W\d_]+ ?){1,3}")
_NAMES_SOMETHING = re.compile(r"[^\s:]: +\S|：\S")


def cause(call: Call) -> str:
    """What went wrong with a call: the line of a command's output that says it, the first line of another error."""
    if call.status is CallStatus.REFUSED and (refused := _REFUSED.match(call.error)) is not None:
        feedback = " ".join((refused["feedback"] or "").split())
        return "by a permission rule" if refused["rule"] else f"by the user: {feedback}" if feedback else "by the user"
    if call.command:
        return error_line(call.error or call.output)
    return next((line.strip() for line in call.error.splitlines() if line.strip()), "")


def missing_program(call: Call) -> str:
    """The program that a shell did not find: the one its message names, else a word of the command in the message."""
    if call.exit != _NOT_FOUND:
        return ""
    message = cause(call)
    if (match := _NO_SUCH_PROGRAM.search(message)) is not None:
        return str(next(filter(None, match.groups())))
    return next((word for _, args in parts(call.command) for word in args if f" {word}:" in f" {message}"), "")


def error_line(text: str) -> str:
    """The line of `text` that says most about what went wrong; empty if none says more than that something did."""
    raw_lines = [_last_state(raw) for raw in _ESCAPES.sub("", text[-_MAX_CHARS:]).splitlines()]
    if (exception := _raised(raw_lines)) is not None:
        return exception
    lines = [(number, text) for number, raw in enumerate(raw_lines) if (text := _FRAME.sub("", raw.strip())[:_LONGEST])]
    notable = [line for line in lines if not _NOTICE.match(line[1])]
    own_lines = [
        line
        for line in notable
        if not _STATUS.match(line[1]) and not _WRAPPER.match(line[1]) and not _NOTHING_WRONG.search(line[1])
    ]
    causes = [line for line in own_lines if _CAUSE.match(line[1]) or _SAYS_CAUSE.search(line[1])]
    failures = [line for line in own_lines if _FAILED.match(line[1])]
    mentions = [line for line in own_lines if _MENTIONS.search(line[1])]
    wrappers = [line for line in notable if _WRAPPER.match(line[1]) and not _STATUS.match(line[1])]
    is_wrapped = any(_STATUS.match(text) for _, text in notable)
    candidates = _before_status(notable, own_lines) if is_wrapped else _before_closing(own_lines) or lines[-1:]
    chosen = _root(causes) or failures[:1] or mentions[-1:] or wrappers[:1] or candidates
    return _with_continuation(chosen[0], lines) if chosen else ""


def _before_status(notable: Sequence[Line], lines: Sequence[Line]) -> list[Line]:
    """The line printed before ``make`` and its like gave up, unless it may be the command that they echoed."""
    status = next(number for number, text in notable if _STATUS.match(text))
    before = [line for line in lines if line[0] < status][-1:]
    return [line for line in before if _MESSAGE.match(line[1])]


def _before_closing(lines: list[Line]) -> list[Line]:
    """The last line; if that only closes a report in a few words, the last line before it that names something."""
    last = lines[-1:]
    if last and _CLOSING.fullmatch(last[0][1]):
        return [line for line in lines if _NAMES_SOMETHING.search(line[1])][-1:] or last
    return last


def _last_state(raw: str) -> str:
    """What a terminal shows of a line that was written over."""
    return next((piece for piece in reversed(raw.split("\r")) if piece.strip()), "").rstrip()


def _raised(lines: Sequence[str]) -> str | None:
    """The exception at the end of Python's last traceback; if it has no message, with the line that raised it."""
    starts = [(number, match[1]) for number, raw in enumerate(lines) if (match := _TRACEBACK.match(raw))]
    for start, indent in reversed(starts):
        for number in range(start + 1, len(lines)):
            exception = lines[number].removeprefix(indent)
            if not exception.startswith((" ", "\t")) and _RAISED.match(exception):
                source = [line.strip() for line in lines[start + 1 : number] if re.search(r"\w", line)]
                has_source = ":" not in exception and source and not source[-1].startswith("File ")
                return f"{exception}: {source[-1]}"[:_LONGEST] if has_source else exception[:_LONGEST]
    return None


def _root(causes: list[Line]) -> list[Line]:
    """The first cause; of a chain of causes the last, which began it."""
    roots = [line for line in causes if line[1].startswith("Caused by:")]
    return roots[-1:] or causes[:1]


def _with_continuation(chosen: Line, lines: Sequence[Line]) -> str:
    """The text of a line; if it ends with a colon, with the next line."""
    number, text = chosen
    if not text.endswith(":"):
        return text
    following = next((line_ for place, line_ in lines if place > number), "")
    return f"{text.removeprefix('* ')} {following}"[:_LONGEST].rstrip()
