"""A shell command as a tree of a few kinds of statements; the only place that knows tree-sitter.

The grammar says how statements nest; words.py interprets the text of each word. If the pieces of a command do not lie
as bash would split them, it is kept but marked as not sound, and we conclude nothing from it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import tree_sitter
import tree_sitter_bash

from daemon.transcript.shell.heredocs import Body, NotUnderstood, skeleton

_MOST_NODES = 60_000
_DEEPEST = 60
_COMPOUND = {
    "if_statement", "for_statement", "c_style_for_statement", "while_statement", "case_statement", "negated_command",
    "function_definition", "test_command", "ternary_expression",
}  # fmt: skip
_PLAIN = {"command", "variable_assignment", "variable_assignments", "declaration_command", "unset_command"}
_RESERVED = frozenset("{ } if then elif else fi for while until do done case esac function select ! [[".split())  # noqa: SIM905 - as words
_SUBSTITUTIONS = {"command_substitution", "process_substitution"}
_GAP = re.compile(rb"[ \t]*")
_AFTER = b" \t\n;&|)"


@dataclass(frozen=True, slots=True)
class Redirect:
    """One redirection: its descriptor as written, its operator, and the raw word it goes to."""

    descriptor: str
    operator: str
    target: str


@dataclass(frozen=True, slots=True)
class Simple:
    """A simple command: raw words; assignments before them are in `assigned`. `inner`: substitutions in its words."""

    assigned: tuple[str, ...]
    words: tuple[str, ...]
    redirects: tuple[Redirect, ...]
    inner: tuple[Sequence, ...]
    sound: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """``first && second || ...``: `links` are the operators, each with the statement after it."""

    first: Statement
    links: tuple[tuple[str, Statement], ...]

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All statements of the chain, in order."""
        return (self.first, *(statement for _, statement in self.links))


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Statements that each read the output of the one before; `merges`: some ``|&`` passes errors on, too."""

    parts: tuple[Statement, ...]
    merges: bool


@dataclass(frozen=True, slots=True)
class Sequence:
    """Statements one after another, each with whether it goes to the background."""

    items: tuple[tuple[Statement, bool], ...]


@dataclass(frozen=True, slots=True)
class Block:
    """``( ... )`` or ``{ ...; }`` with its redirections."""

    body: Sequence
    is_subshell: bool
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class Compound:
    """A statement that decides what runs, and how often: conditions, loops, functions, negations.

    `variable` of a ``for`` takes the values of `words`, which are raw.
    """

    kind: str
    inner: tuple[Statement, ...]
    variable: str = ""
    words: tuple[str, ...] = ()


Statement: TypeAlias = Simple | Chain | Pipeline | Block | Compound


@dataclass(frozen=True, slots=True)
class Script:
    """A whole command, and the here-documents that its words refer to."""

    body: Sequence
    bodies: tuple[Body, ...]
    has_functions: bool


def parse(command: str) -> Script:
    """The command as a tree.

    Raises:
        NotUnderstood: no valid bash, too deep or too large.
    """
    text, bodies = skeleton(command)
    source = text.encode("utf-8", "replace")
    root = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language())).parse(source).root_node
    if root.has_error or root.descendant_count > _MOST_NODES:
        raise NotUnderstood
    reader = _Reader(source)
    return Script(reader.sequence(root, 0), tuple(bodies), reader.has_functions)


def _chained(first: Statement, links: tuple[tuple[str, Statement], ...]) -> Chain:
    """``first`` and the links as one chain, also if `first` is a chain, because the operators associate to the left."""
    return Chain(first.first, (*first.links, *links)) if isinstance(first, Chain) else Chain(first, links)


def _ending_in(whole: Statement, last: Statement) -> Statement:
    """A pipeline, negated or at the end of a chain, with another last part."""
    if isinstance(whole, Pipeline):
        return Pipeline((*whole.parts[:-1], last), whole.merges)
    if isinstance(whole, Chain):
        operator, piped = whole.links[-1]
        return Chain(whole.first, (*whole.links[:-1], (operator, _ending_in(piped, last))))
    if isinstance(whole, Compound) and isinstance(whole.inner[0], Pipeline):
        return Compound("negated_command", (_ending_in(whole.inner[0], last),))
    raise NotUnderstood


@dataclass(slots=True)
class _Reader:
    source: bytes
    has_functions: bool = False

    def sequence(self, node: tree_sitter.Node, depth: int) -> Sequence:
        items: list[tuple[Statement, bool]] = []
        for child in node.children:
            if child.is_named and child.type != "comment":
                items.append((self.statement(child, depth + 1), False))
            elif child.type == "&" and items:
                items[-1] = (items[-1][0], True)
            elif child.type in (";;", ";&", ";;&"):
                raise NotUnderstood
        return Sequence(tuple(items))

    def statement(self, node: tree_sitter.Node, depth: int) -> Statement:
        if depth > _DEEPEST:
            raise NotUnderstood
        kind = node.type
        if kind in _PLAIN:
            return self._simple([node], (), depth)
        if kind == "redirected_statement":
            return self._redirected(node, depth)
        if kind == "list":
            return self._chain(node, depth)
        if kind == "pipeline":
            return self._pipeline(node, depth)
        if kind == "subshell" or (kind == "compound_statement" and node.children[0].type == "{"):
            return Block(self.sequence(node, depth), kind == "subshell", ())
        if kind in _COMPOUND or kind == "compound_statement":
            self.has_functions = self.has_functions or kind == "function_definition"
            variable, *words = self._loop(node) or [""]
            return Compound(kind, tuple(self._within(node, depth)), variable, tuple(words))
        raise NotUnderstood

    def _loop(self, node: tree_sitter.Node) -> list[str]:
        """The variable of a ``for`` and the words that it takes; nothing for any other statement."""
        if node.type != "for_statement":
            return []
        return [self._text(child) for name in ("variable", "value") for child in node.children_by_field_name(name)]

    def _within(self, node: tree_sitter.Node, depth: int) -> Iterator[Statement]:
        """Every statement somewhere in a compound one, whatever decides about it."""
        if depth > _DEEPEST:
            raise NotUnderstood
        for child in node.children:
            if (
                child.type in _PLAIN
                or child.type in ("redirected_statement", "list", "pipeline", "subshell")
                or child.type in _COMPOUND
                or child.type == "compound_statement"
            ):
                yield self.statement(child, depth + 1)
            elif child.is_named:
                yield from self._within(child, depth + 1)

    def _chain(self, node: tree_sitter.Node, depth: int) -> Chain:
        links: list[tuple[str, Statement]] = []
        while node.type == "list":
            left, operator, right = _three(node)
            links.append((operator.type, self.statement(right, depth + 1)))
            node = left
        return _chained(self.statement(node, depth + 1), tuple(reversed(links)))

    def _pipeline(self, node: tree_sitter.Node, depth: int) -> Statement:
        children = [child for child in node.children if child.type != "comment"]
        parts = tuple(self.statement(child, depth + 1) for child in children if child.is_named)
        merges = any(child.type == "|&" for child in children)
        if isinstance(parts[0], Chain):
            # In ``a && b 2>&1 | c`` the grammar takes the chain for the pipe's first part; bash pipes b alone.
            operator, last = parts[0].links[-1]
            piped = Pipeline((last, *parts[1:]), merges)
            return Chain(parts[0].first, (*parts[0].links[:-1], (operator, piped)))
        whole = Pipeline(parts, merges)
        return Compound("negated_command", (whole,)) if children[0].type == "negated_command" else whole

    def _redirected(self, node: tree_sitter.Node, depth: int) -> Statement:
        redirects = [child for child in node.children if child.type in ("file_redirect", "herestring_redirect")]
        statements = [child for child in node.children if child.is_named and child not in redirects]
        if len(statements) > 1:
            raise NotUnderstood
        return self._attach(statements[0] if statements else None, redirects, depth)

    def _attach(self, node: tree_sitter.Node | None, redirects: list[tree_sitter.Node], depth: int) -> Statement:
        """A statement with redirections; the grammar hangs those of a list's last command on the whole list."""
        if depth > _DEEPEST:
            raise NotUnderstood
        if node is None or node.type in _PLAIN:
            return self._simple([*([node] if node else []), *redirects], (), depth)
        if node.type == "redirected_statement":
            inner = [c for c in node.children if c.is_named]
            plain = [c for c in inner if c.type not in ("file_redirect", "herestring_redirect")]
            own = [c for c in inner if c not in plain]
            return self._attach(plain[0] if plain else None, [*own, *redirects], depth + 1)
        if node.type == "list":
            left, operator, right = _three(node)
            return _chained(
                self.statement(left, depth + 1), ((operator.type, self._attach(right, redirects, depth + 1)),)
            )
        if node.type == "pipeline":
            last = self._attach([c for c in node.children if c.is_named][-1], redirects, depth + 1)
            return _ending_in(self._pipeline(node, depth), last)
        inner_statement = self.statement(node, depth + 1)
        read = self._simple(redirects, (), depth)
        if isinstance(inner_statement, Block):
            return Block(inner_statement.body, inner_statement.is_subshell, read.redirects)
        if isinstance(inner_statement, Compound):
            return replace(inner_statement, inner=(*inner_statement.inner, read))
        raise NotUnderstood

    # -- simple commands -------------------------------------------------------------------------------------------

    def _simple(self, nodes: list[tree_sitter.Node], inner: tuple[Sequence, ...], depth: int) -> Simple:
        """One simple command out of its own node and the redirections around it."""
        items = sorted(self._items(nodes), key=lambda item: item[0].start_byte)
        assigned: list[str] = []
        words: list[str] = []
        redirects: list[Redirect] = []
        substitutions = [*inner]
        for node, role in items:
            if role in ("word", "assignment"):
                (assigned if role == "assignment" and not words else words).append(self._text(node))
            elif role == "redirect":
                redirects.append(self._redirect(node, words))
            substitutions += self._substitutions(node, depth)
        if _RESERVED & {*words[:1], *(words[1:3] if words[:1] == ["time"] else ())}:
            raise NotUnderstood  # behind "!" and "time" the grammar takes "{" and "if" for names of commands
        return Simple(tuple(assigned), tuple(words), tuple(redirects), tuple(substitutions), self._is_sound(items))

    def _items(self, nodes: list[tree_sitter.Node]) -> Iterator[tuple[tree_sitter.Node, str]]:
        for node in nodes:
            if node.type == "variable_assignment":
                yield node, "assignment"
            elif node.type in ("file_redirect", "herestring_redirect"):
                yield node, "redirect"
            else:
                yield from self._own_items(node)

    def _own_items(self, node: tree_sitter.Node) -> Iterator[tuple[tree_sitter.Node, str]]:
        is_declaration = node.type in ("declaration_command", "unset_command")
        for child in node.children:
            if child.type == "variable_assignment":
                yield child, "word" if is_declaration else "assignment"
            elif child.type in ("file_redirect", "herestring_redirect"):
                yield child, "redirect"
            elif child.is_named or is_declaration:
                yield child, "word"
            else:
                raise NotUnderstood

    def _redirect(self, node: tree_sitter.Node, words: list[str]) -> Redirect:
        descriptor = operator = ""
        targets = []
        for child in node.children:
            if child.type == "file_descriptor":
                descriptor = self._text(child)
            elif not child.is_named:
                operator = child.type
            else:
                targets.append(self._text(child))
        words += targets[1:]  # the grammar takes the words behind a target for targets
        return Redirect(descriptor, operator, targets[0] if targets else "")

    def _substitutions(self, node: tree_sitter.Node, depth: int) -> Iterator[Sequence]:
        if depth > _DEEPEST:
            raise NotUnderstood
        for child in node.children:
            if child.type in _SUBSTITUTIONS:
                yield self.sequence(child, depth + 1)
            elif child.child_count:
                yield from self._substitutions(child, depth + 1)
        if node.type in _SUBSTITUTIONS:
            yield self.sequence(node, depth + 1)

    def _is_sound(self, items: list[tuple[tree_sitter.Node, str]]) -> bool:
        """Whether the pieces lie as bash splits them: blanks between them, an operator or an end behind the last."""
        spans = [span for node, role in items for span in self._spans(node, role)]
        for (_, end, joins), (start, _, follows) in itertools.pairwise(spans):
            gap = self.source[end:start]
            if _GAP.fullmatch(gap) is None or (not gap and not joins and not follows):
                return False
            if not gap and follows and not joins and self.source[end - 1 : end].isdigit() and not joins:
                return False
        after = self.source[spans[-1][1] : spans[-1][1] + 1] if spans else b""
        return not after or after in _AFTER

    def _spans(self, node: tree_sitter.Node, role: str) -> Iterator[tuple[int, int, bool]]:
        """(start, end, whether it is an operator that may touch its neighbours)."""
        if role != "redirect":
            yield node.start_byte, node.end_byte, False
            return
        children = node.children
        first = 2 if children[0].type == "file_descriptor" else 1
        before = self.source[max(node.start_byte - 1, 0) : node.start_byte]
        is_apart = first == 1 or node.start_byte == 0 or before in b" \t\n;&|("
        yield node.start_byte, children[first - 1].end_byte, is_apart
        for child in children[first:]:
            yield child.start_byte, child.end_byte, False

    def _text(self, node: tree_sitter.Node) -> str:
        text = self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")
        if text.startswith("\n"):
            raise NotUnderstood  # after a declaration or a redirection the grammar takes "\n\rm a" for more of it
        return text


def _three(node: tree_sitter.Node) -> tuple[tree_sitter.Node, tree_sitter.Node, tree_sitter.Node]:
    children = [child for child in node.children if child.type != "comment"]
    if len(children) != 3 or children[1].type not in ("&&", "||"):
        raise NotUnderstood
    return children[0], children[1], children[2]
