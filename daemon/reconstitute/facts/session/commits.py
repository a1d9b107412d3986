"""The commits made in each session, and those that a later git command undid, perhaps in a later session.

They are known from the commands and their output. A commit is left out if it may have been undone: somebody may commit
between two sessions, so ``HEAD~1`` alone does not say whose commit a later session undid.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from daemon.reconstitute.facts.session_values import Call, CallStatus, Turn
from daemon.reconstitute.facts.shell import runs
from daemon.reconstitute.facts.shell.groups import arguments
from daemon.redact import redact
from daemon.transcript.shell.known_programs import Program
from daemon.transcript.shell.names import words as names

_LONGEST = 300
"""Characters of a subject."""
_COMMITTED = re.compile(r"^\[[^\]\n]*?\b([0-9a-f]{7,40})\] (\S.*)$", re.MULTILINE)
_NOW_AT = re.compile(r"^HEAD is now at ([0-9a-f]{7,40})\b", re.MULTILINE)
_GIT_VALUES = names("-C -c --git-dir --work-tree --exec-path --namespace")
_MESSAGE = re.compile(r"-[a-zA-Z]*m|--message")
_MAY_COUNT = re.compile(r"commit|reset|revert|\b(?:merge|pull|rebase|cherry-pick|am|checkout|switch)\b")
_ELSEWHERE = names("merge pull rebase cherry-pick am checkout switch")
"""After these, the earlier commits may be others than those made here."""
_BACK = re.compile(r"(?:HEAD|@)(?:~(\d*)|(\^+))?")
_HASH = re.compile(r"[0-9a-f]{7,40}")


@dataclass(slots=True, eq=False)
class _Commit:
    """`is_valid` is None if it may have been undone; `undoes` is the commit that this ``git revert`` undid."""

    subject: str
    hash: str = ""
    is_valid: bool | None = True
    undoes: _Commit | None = None
    session: str = ""


@dataclass(slots=True)
class _Branch:
    """What was committed in one folder; `tip` are the newest commits that surely follow each other.

    `session` is the one that runs git now.
    """

    commits: list[_Commit] = field(default_factory=list)
    tip: list[_Commit] = field(default_factory=list)
    session: str = ""

    def add(self, commit: _Commit) -> None:
        commit.session = self.session
        self.commits.append(commit)
        self.tip.append(commit)

    def amend(self, commit: _Commit) -> None:
        if self.tip:
            self.commits.remove(self.tip.pop())
        self.add(commit)

    def back(self, steps: int | None, *, is_good: bool | None, is_sure: bool) -> None:
        """Remove the newest `steps` commits; None: an unknown number. `is_sure`: git named the commit it went to."""
        if steps is None or steps > len(self.tip):
            self.tip.clear()
            return
        for _ in range(steps):
            commit = self.tip.pop()
            is_known = is_sure or commit.session == self.session
            commit.is_valid = False if is_good and is_known else None
            if commit.undoes is not None:
                commit.undoes.is_valid = True if is_known else None

    def steps(self, target: str) -> int | None:
        """How many commits were made after `target`; None if that is not known."""
        back = _BACK.fullmatch(target)
        if back is not None:
            return len(back[2]) if back[2] else int(back[1] or 1) if back[1] is not None else 0
        if not _HASH.fullmatch(target):
            return None
        after = (
            number for number, commit in enumerate(reversed(self.tip)) if commit.hash and _is_same(commit.hash, target)
        )
        return next(after, None)


def of(sessions: Mapping[str, Iterable[Turn]]) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """For each session the subjects of its valid commits, in order, and of those that were undone.

    `sessions` are the turns by the session's id, oldest first. An amended commit has its last subject.
    """
    calls = [(session, call) for session, turns in sessions.items() for turn in turns for call in turn.calls]
    branches: dict[tuple[str, ...], _Branch] = {}
    order: list[_Branch] = []
    for session, call in sorted(calls, key=lambda pair: pair[1].started):
        if not _MAY_COUNT.search(call.command):
            continue
        for place, args, is_good, printed in _git(call):
            branch = branches.setdefault(place, _Branch())
            order += [branch] if branch not in order else []
            branch.session = session
            heads = _NOW_AT.findall(call.output)
            _apply(branch, args, printed, heads[0] if len(heads) == 1 else "", is_good=is_good)
    commits = [commit for branch in order for commit in branch.commits if commit.undoes is None]
    return {
        session: (
            tuple(commit.subject for commit in commits if commit.session == session and commit.is_valid),
            tuple(commit.subject for commit in commits if commit.session == session and commit.is_valid is False),
        )
        for session in sessions
    }


def _apply(
    branch: _Branch, args: Sequence[str], printed: list[tuple[str, str]], head: str, *, is_good: bool | None
) -> None:
    """Apply a git command to the branch; `head` is the commit at which it printed that HEAD is now."""
    verb, options = args[0], args[1:]
    if is_good is False and not printed:
        return
    if verb == "commit":
        if "--dry-run" in options:
            return
        hash_, subject = printed.pop(0) if printed else ("", _message(options) if is_good else "")
        if not subject:
            branch.tip.clear()  # there may be an unknown commit
            return
        commit = _Commit(redact(subject.strip())[:_LONGEST], hash_)
        (branch.amend if "--amend" in options else branch.add)(commit)
    elif verb == "reset":
        operands = [word for word in options if not word.startswith("-")]
        if len(operands) == 1 and "--" not in options:
            branch_name = next(
                (
                    hash_name
                    for hash_name in (head, operands[0])
                    if _HASH.fullmatch(hash_name) and branch.steps(hash_name) is not None
                ),
                "",
            )
            branch.back(branch.steps(branch_name or operands[0]), is_good=is_good, is_sure=bool(branch_name))
    elif verb == "revert":
        _revert(branch, options, printed, is_good=is_good)
    elif verb in _ELSEWHERE and "--" not in options:
        branch.tip.clear()


def _revert(branch: _Branch, options: Sequence[str], printed: list[tuple[str, str]], *, is_good: bool | None) -> None:
    operands = [word for word in options if not word.startswith("-")]
    steps = branch.steps(operands[0]) if len(operands) == 1 else None
    if steps is None or steps >= len(branch.tip) or {"-n", "--no-commit", "--abort", "--quit"} & set(options):
        branch.tip.clear()
        return
    undone = branch.tip[-1 - steps]
    hash_, subject = printed.pop(0) if printed else ("", "")
    is_named = bool(_HASH.fullmatch(operands[0])) or subject == f'Revert "{undone.subject}"'
    is_sure = is_named or undone.session == branch.session
    undone.is_valid = False if is_sure and (is_good or subject) else None
    branch.add(_Commit(subject, hash_, undoes=undone))


def _git(call: Call) -> Iterator[tuple[tuple[str, ...], list[str], bool | None, list[tuple[str, str]]]]:
    """The git commands of a call: where each ran, its words, whether it succeeded, and the commits that it printed."""
    printed = [(match[1], match[2]) for match in _COMMITTED.finditer(call.output)]
    ended = {CallStatus.OK: True, CallStatus.FAILED: False}
    for run in runs.of(call):
        is_good = ended.get(run.status)
        where, args = _words(run.program)
        if args:
            yield (call.folder, *where), args, is_good, printed


def _words(program: Program) -> tuple[list[str], list[str]]:
    """The arguments of git: the options before its subcommand, and the words from that on."""
    args = arguments(program) if program.name == "git" else []
    before: list[str] = []
    while args and args[0].startswith("-"):
        count = 2 if args[0] in _GIT_VALUES else 1
        before, args = [*before, *args[:count]], args[count:]
    return before, args


def _message(args: Sequence[str]) -> str:
    """The first line of the message that a commit command gives."""
    for option, value in zip(args, [*args[1:], ""], strict=False):
        if _MESSAGE.fullmatch(option):
            return value.strip().partition("\n")[0]
        if option.startswith("--message="):
            return option.partition("=")[2].strip().partition("\n")[0]
    return ""


def _is_same(hash_: str, other_hash: str) -> bool:
    return hash_.startswith(other_hash) or other_hash.startswith(hash_)
