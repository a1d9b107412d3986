"""Removes here-documents from a command before it is parsed, because only so is their text exact.

The result is the skeleton: a redirection from a name replaces each body, and line continuations are gone. If quoting
and nesting leave a doubt about where a body begins or ends, there is no skeleton, because a command that we do not
understand is no evidence. One pass, linear in the command's length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MARK = "_HERE_DOCUMENT_"
"""Begins the file name, before its number, that replaces a here-document."""
STRING_MARK = "_HERE_STRING_"
"""Marks the word of a here-string, because the grammar does not know it in every position."""
_STOPS = re.compile(r"[\\'\"`$(){}<#\n]")
_DELIMITER = re.compile(r"[ \t]*((?:[^\s;&|<>()'\"\\`$]|'[^'\n]*'|\"[^\"\n\\$`]*\"|\\[^\n])+)")
_ODD = re.compile(r"[^\S \t\n]|[\0-\x08\x0b-\x1f\x7f]")
_CLOSED_BY = {"$(": ")", "(": ")", "((": ")", "${": "}", "`": "`", '"': '"'}
_DEEPEST = 40


@dataclass(frozen=True, slots=True)
class Body:
    """The text of a here-document, tabs stripped as ``<<-`` asks; `literal`: its delimiter was quoted."""

    text: str
    literal: bool


class NotUnderstood(Exception):  # the answer "no", never an error that anybody sees
    """The command cannot be read with certainty."""


def skeleton(command: str) -> tuple[str, list[Body]]:
    """The command without here-documents, and their bodies by number.

    Raises:
        NotUnderstood: quotes or brackets that do not close, an unterminated body, characters that shells read
            differently.
    """
    if MARK in command or STRING_MARK in command or "\0" in command:
        raise NotUnderstood
    text, bodies = _Reader(command).read()
    if _ODD.search(text):
        raise NotUnderstood
    return text, bodies


@dataclass(slots=True)
class _Reader:
    text: str
    at: int = 0
    pieces: list[str] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)
    pending: list[tuple[str, bool, bool, int]] = field(default_factory=list)  # delimiter, literal, strips tabs, depth
    bodies: list[Body] = field(default_factory=list)

    def read(self) -> tuple[str, list[Body]]:
        while (stop := _STOPS.search(self.text, self.at)) is not None:
            self._keep(stop.start())
            self._step(stop[0])
            if len(self.stack) > _DEEPEST:
                raise NotUnderstood
        self._keep(len(self.text))
        if self.stack or self.pending:
            raise NotUnderstood
        return "".join(self.pieces), self.bodies

    def _keep(self, to: int) -> None:
        if to > self.at:
            self.pieces.append(self.text[self.at : to])
            self.at = to

    @property
    def _inside(self) -> str:
        return self.stack[-1] if self.stack else ""

    def _step(self, char: str) -> None:
        """Takes what begins with `char`, which is not yet in `pieces`."""
        if char == "\\":
            self._backslash()
        elif char in "'\"`":
            self._quote(char)
        elif char == "$":
            self._dollar()
        elif char == "\n":
            self._line_end()
        elif self._inside == '"':
            self._keep(self.at + 1)
        elif char == "#" and self._inside != "${":
            self._hash()
        elif char == "<" and self._inside != "${":
            self._less()
        else:
            self._bracket(char)

    def _backslash(self) -> None:
        if self.text.startswith("\\\n", self.at) and self._inside not in ('"', "`"):
            self.at += 2
        else:
            self._keep(min(self.at + 2, len(self.text)))

    def _quote(self, char: str) -> None:
        inside = self._inside
        if char == "'" and inside == "${" and '"' in self.stack:
            raise NotUnderstood  # whether it quotes there depends on the kind of expansion
        if char == "'" and inside != '"':
            end = self.text.find("'", self.at + 1)
            if end < 0 or (self.pending and "\n" in self.text[self.at : end]):
                raise NotUnderstood
            self._keep(end + 1)
            return
        if char != "'":
            if inside == char:
                self.stack.pop()
            elif char in self.stack[-3:] and char == "`":
                raise NotUnderstood  # backticks within backticks
            else:
                self.stack.append(char)
        self._keep(self.at + 1)

    def _dollar(self) -> None:
        following = self.text[self.at + 1 : self.at + 3]
        if following == "((":
            self.stack.append("((")
            self.stack.append("(")
            self._keep(self.at + 3)
        elif following[:1] in ("(", "{"):
            self.stack.append("$" + following[0])
            self._keep(self.at + 2)
        elif following[:1] == "'" and self._inside != '"':
            end = re.compile(r"(?:[^'\\]|\\.)*'", re.DOTALL).match(self.text, self.at + 2)
            if end is None or (self.pending and "\n" in end[0]):
                raise NotUnderstood
            self._keep(end.end())
        else:
            self._keep(self.at + 1)

    def _bracket(self, char: str) -> None:
        inside = self._inside
        if char == "(" and inside != "${":
            self.stack.append("((" if inside == "((" else "(")
        elif char in ")}" and self.stack and _CLOSED_BY.get(inside) == char:
            self.stack.pop()
            if any(depth > len(self.stack) for *_, depth in self.pending):
                raise NotUnderstood
        self._keep(self.at + 1)

    def _hash(self) -> None:
        before = self.text[self.at - 1 : self.at]
        if before in ("", " ", "\t", "\n", ";", "&", "|", "(", ")"):
            if self._inside == "`":
                raise NotUnderstood
            if self.pieces and not self.pieces[-1][-1:].isspace() and before in " \t\n" and before:
                raise NotUnderstood
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end  # a comment is left out
        else:
            self._keep(self.at + 1)

    def _less(self) -> None:
        if self.text.startswith("<<<", self.at):
            if self.text[self.at - 1 : self.at].isdigit():
                raise NotUnderstood
            self.pieces.append(f" < {STRING_MARK}")
            self.at += 3
            while self.text[self.at : self.at + 1] in (" ", "\t"):
                self.at += 1
        elif self.text.startswith("<<", self.at):
            self._heredoc()
        else:
            self._keep(self.at + 1)

    def _heredoc(self) -> None:
        strips = self.text.startswith("<<-", self.at)
        delimiter = _DELIMITER.match(self.text, self.at + (3 if strips else 2))
        before = self.text[self.at - 1 : self.at]
        if delimiter is None or before.isdigit() or "((" in self.stack or "`" in self.stack:
            raise NotUnderstood
        if self.text[delimiter.end() : delimiter.end() + 1] in ("'", '"', "\\", "`", "$"):
            raise NotUnderstood
        raw = delimiter[1]
        literal = any(char in raw for char in "'\"\\")
        name = re.sub(r"\\(.)|['\"]", r"\1", raw)
        self.pieces.append(f" < {MARK}{len(self.bodies) + len(self.pending)} ")
        self.pending.append((name, literal, strips, len(self.stack)))
        self.at = delimiter.end()

    def _line_end(self) -> None:
        self._keep(self.at + 1)
        if not self.pending:
            return
        if any(depth != len(self.stack) for *_, depth in self.pending):
            raise NotUnderstood
        for name, literal, strips, _ in self.pending:
            self.bodies.append(self._body(name, literal=literal, strips=strips))
        self.pending.clear()

    def _body(self, name: str, *, literal: bool, strips: bool) -> Body:
        lines: list[str] = []
        while True:
            if self.at >= len(self.text):
                raise NotUnderstood
            line = self._one_line(joins=not literal)
            if strips:
                line = line.lstrip("\t")
            if line in (name, name + "\n"):
                if not line.endswith("\n"):
                    self.at = len(self.text)
                return Body("".join(lines), literal)
            lines.append(line)

    def _one_line(self, *, joins: bool) -> str:
        """The next line of a body; one that ends in an unescaped backslash goes on with the line after it."""
        pieces: list[str] = []
        while True:
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end + 1
            line = self.text[self.at : end]
            self.at = end
            bare = line.removesuffix("\n")
            if not joins or bare == line or (len(bare) - len(bare.rstrip("\\"))) % 2 == 0:
                return "".join([*pieces, line])
            pieces.append(bare[:-1])
