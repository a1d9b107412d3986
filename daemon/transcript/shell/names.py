"""Finds the files that a shell command names, for commands that cannot be parsed.

It returns candidates for "may have changed", and prefers one too many. It cannot see changes of files that are not
named (a script's output, ``git checkout .``). Commands that only read name nothing. It never raises.
"""

from __future__ import annotations

import re
import shlex

from daemon.transcript.tool_calls import absolute

SYSTEM = re.compile(r"/(?:dev(?!/shm/)|proc|sys)(?:/|\Z)")
"""Devices and files of the kernel; `/dev/shm` holds ordinary files."""


def words(text: str) -> frozenset[str]:
    """The words of `text`, as a set."""
    return frozenset(text.split())


READERS = words(
    "cat head tail less more ls ll dir tree wc stat file du df diff cmp md5sum sha1sum sha256sum grep egrep fgrep rg "
    "ag fd echo printf pwd which type whereis true false test [ sleep date env id whoami uname ps mkdir rmdir od xxd "
    "chmod chown chgrp seq cd hexdump strings cut uniq basename dirname realpath readlink export set unset source ."
)
"""Commands whose arguments change no file's content; a redirection still can."""
RUNNERS = words("python python3 node bash sh zsh ruby deno bun pytest php go cargo make npm npx uv poetry tsx ts-node")
"""Their first argument is the program; it is read, not written."""
_WRITERS = words("rm mv cp touch tee truncate install ln unlink dd rsync patch")
"""Any plain word after these may be a file, also without a suffix."""
WRITING = {
    "sed": re.compile(r"-\w*i.*|--in-place.*"),
    "perl": re.compile(r"-\w*i.*"),
    "awk": re.compile(r"-i|inplace"),
    "find": re.compile(r"-delete|-exec(dir)?|-ok(dir)?"),
    "sort": re.compile(r"-o.*|--output.*"),
    "git": re.compile(r"checkout|restore|rm|mv|stash|reset|apply|am|clean|revert|merge|pull|switch|rebase|cherry-pick"),
}
"""Commands that write only if one of their words matches."""
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1([^\n]*)\n(?:.*?\n)?[ \t]*\2[ \t]*(?=\n|$)", re.DOTALL)
_BREAKS = frozenset({";", "&&", "||", "|", "&", "\n", "(", ")", ";;", "|&"})
LIKE_FILE = re.compile(
    r"(?:[\w.@+~ -]*/)*(?:[\w.@+~ -]*[\w-]\.[A-Za-z][\w-]{0,9}|\.[A-Za-z][\w.-]{1,24}|[A-Z][a-z]+file)"
)
_NO_FILES = re.compile(r"[$`*?\[\]{}!<>|;&()=:,'\"\\\n]|^-|^~")
_MOST = 64
_LONGEST = 20_000  # characters that are taken apart word by word
_MAY_WRITE = re.compile(
    r">|\b(?:rm|mv|cp|tee|sed|perl|dd|ln|unlink|rmdir|truncate|touch|install|rsync|patch|xargs|find|eval|git|trap)\b"
)


def may_write(command: str) -> bool:
    """Whether a command that we cannot parse contains anything that changes files, named or not."""
    return _MAY_WRITE.search(command) is not None


def named_files(command: str, base: str) -> list[str]:
    """Absolute paths that `command` names and may have changed, run in `base`; in order, each once, bounded."""
    paths: dict[str, None] = {}
    segment: list[str] = []
    command = command[:_LONGEST]
    for token in [*_tokens(_HEREDOC.sub(r"<<\2\3\n", command)), ";"]:
        if token not in _BREAKS:
            segment.append(token)
            continue
        if segment[:1] == ["cd"] and len(segment) == 2 and not _NO_FILES.search(segment[1]):
            base = absolute(segment[1], base) or base
        for name in _candidates(segment):
            path = absolute(name, base)
            if path in (None, "/") or SYSTEM.match(path):
                continue
            # A folder that holds the working directory is named to say where, unless it is being taken away.
            if not f"{base}/".startswith(f"{path}/") or segment[0] in ("rm", "mv"):
                paths[path] = None
        segment = []
    return list(paths)[:_MOST]


def _tokens(command: str) -> list[str]:
    lexer = shlex.shlex(command.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # an open quote: take the words as they stand
        return re.findall(r"[();<>|&]+|[^\s();<>|&'\"]+", command)


def _candidates(segment: list[str]) -> list[str]:
    """Words of one simple command that may be files it changes."""
    names = []
    spoken: list[str] = []
    is_target = False
    for token in segment:
        if set(token) <= set("<>&|"):
            is_target = ">" in token and "<" not in token
        elif is_target:
            names += [] if token.isdigit() else [token]
            is_target = False
        else:
            spoken.append(token)
    while spoken and re.fullmatch(r"\w+=.*|sudo|time|env|command|exec|nohup", spoken[0], re.DOTALL):
        spoken = spoken[1:]
    if spoken:
        names += _arguments(spoken[0].rsplit("/", 1)[-1], spoken[1:])
    return [name for name in names if not _NO_FILES.search(name) and name not in (".", "..", "/")]


def _arguments(verb: str, words: list[str]) -> list[str]:
    """The arguments of one command that may be files it changes."""
    plain = [word for word in words if not word.startswith("-")]
    if verb in ("cp", "ln", "install", "rsync"):
        return plain[-1:]  # the others are only read
    if verb in _WRITERS:
        return plain
    if verb in WRITING:
        if not any(WRITING[verb].fullmatch(word) for word in words):
            return []
        return plain[1:] if verb in ("sed", "perl", "git") and not {"-e", "-f"} & set(words) else plain
    if verb in READERS:
        return []
    operands = plain[1:] if verb in RUNNERS else plain  # the program, or the module behind -m
    return [word for word in operands if "/" in word or LIKE_FILE.fullmatch(word)]
