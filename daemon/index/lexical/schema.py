"""The schema of the index: its fields, and the documents of a message.

A message has one document for each section, and one for itself. That one has the words of its window but no text, and
its key identifies the message when we filter. Each group of kinds has its own fields, so that prose is searched apart
from tool output without a filter: then a plain disjunction of terms, which tantivy prunes block by block, is enough.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version

import tantivy

from daemon.index import PROSE, Entry, number_of, tokens
from daemon.model import Kind, Section

SCHEMA = 7
"""Raise it whenever fields, tokens or windows change; an index of another number is rebuilt."""

END = "\0\0"
"""Appended to every text, so that each of its characters begins a trigram."""


@dataclass(frozen=True, slots=True)
class Group:
    """Kinds of text that are searched together, with the weight of their matches.

    A group without order has all tokens in its bag, and no other field. `complete` is the factor for a text with every
    word; it is 1 for windows of several messages, where words meet by chance. `usual` is the usual number of tokens.
    """

    name: str
    kinds: frozenset[str]
    weight: float
    usual: int
    has_order: bool = True
    complete: float = 4.0

    @property
    def is_prose(self) -> bool:
        """Whether all its kinds are prose."""
        return self.kinds <= PROSE

    @property
    def words(self) -> str:
        """The field of tokens in order."""
        return f"{self.name}_words"

    @property
    def bag(self) -> str:
        """The field of stems and pieces."""
        return f"{self.name}_bag"

    @property
    def spelt(self) -> str:
        """The field of unstemmed words and pieces."""
        return f"{self.name}_spelt"


GROUPS = (
    Group("said", frozenset({"prompt", "answer", "title"}), 1.0, 32),
    Group("thought", frozenset({"reasoning", "task"}), 0.8, 32),
    Group("input", frozenset({"tool_input"}), 0.5, 32),
    Group("output", frozenset({"tool_output"}), 0.25, 32),
)
"""Prose ranks above tool output. Each group is searched separately, so that none crowds out another."""

WINDOW = Group("window", frozenset(), 1.0, 64, has_order=False, complete=1.0)

_FILLER = "~"
_GROUP_OF = {kind: group for group in GROUPS for kind in group.kinds}


def _blank(group: Group) -> str:
    return " ".join([_FILLER] * group.usual)


def _fillers(own: Group) -> list[tuple[str, str]]:
    """Filler of usual length, without words, for the fields of all groups but a document's own.

    BM25 compares a text with the mean length of its field, and tantivy takes the mean over all documents. Empty fields
    would lower it, so that every text would seem long.
    """
    fillers = []
    for group in (*GROUPS, WINDOW):
        if group is not own:
            text = _blank(group)
            fillers += [(name, text) for name in ((group.words, group.bag) if group.has_order else (group.bag,))]
    return fillers


_FILLED = {group.name: _fillers(group) for group in (*GROUPS, WINDOW)}


def mark() -> str:
    """The versions that the index depends on: our schema, tantivy, the stemmer."""
    return f"{SCHEMA} {version('tantivy')} {version('pystemmer')}"


def schema() -> tantivy.Schema:
    """The fields; `mark` names their version."""
    builder = tantivy.SchemaBuilder()
    for name in ("message_id", "part_id", "kind", "tool"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("session_id", "role", "project_id", "directory", "path", "deleted", "every", "part"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("key", indexed=True, fast=True)
    builder.add_integer_field("created", indexed=True, fast=True)
    builder.add_integer_field("length", fast=True)
    for group in GROUPS:
        builder.add_text_field(group.words, tokenizer_name="whitespace", index_option="position")
        builder.add_text_field(group.bag, tokenizer_name="whitespace", index_option="freq")
        builder.add_text_field(group.spelt, tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field(WINDOW.bag, tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("trigrams", tokenizer_name="trigram", index_option="basic")
    builder.add_bytes_field("text", stored=True)
    return builder.build()


def documents(entry: Entry) -> Iterator[tuple[tantivy.Document, str]]:
    """The documents of a message, each with the words that it adds to the vocabulary, separated by spaces."""
    shared = _document(_shared(entry))
    shared.add_integer("created", entry.created)
    for number, section in enumerate(entry.document.sections):
        yield _part(entry, shared, section, number)
    if entry.document.sections:
        yield _window(entry, shared), ""


def clean(text: str) -> str:
    """`text` without lone surrogates, which tantivy refuses (docs/reliability.md, S14)."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def normal_path(path: str) -> str:
    """The path in the form that is indexed and queried; "" stays ""."""
    return posixpath.normpath(path) if path else ""


def _shared(entry: Entry) -> list[tuple[str, str]]:
    """Fields that every document of the message has, for filters."""
    above = dict.fromkeys(place for path in entry.document.paths for place in _above(path))
    return [
        ("message_id", clean(entry.document.message_id)),
        ("session_id", clean(entry.document.session_id)),
        ("role", clean(entry.role)),
        ("project_id", clean(entry.project_id)),
        ("every", "1"),
        *(("directory", place) for place in _above(entry.directory)),
        *(("path", place) for place in above),
    ]


@lru_cache(maxsize=1 << 12)
def _above(path: str) -> tuple[str, ...]:
    """The path and every folder above it, so that one term answers "here or below"."""
    path, above = normal_path(clean(path)), []
    while path:
        above.append(path)
        parent = posixpath.dirname(path)
        path = parent if parent != path else ""
    return tuple(above)


def _document(values: Sequence[tuple[str, str]], base: tantivy.Document | None = None) -> tantivy.Document:
    document = copy(base) if base is not None else tantivy.Document()
    for name, value in values:
        document.add_text(name, value)
    return document


def _part(entry: Entry, shared: tantivy.Document, section: Section, number: int) -> tuple[tantivy.Document, str]:
    text = clean(section.text)
    group = _GROUP_OF[Kind(section.kind)]
    indexed = tokens.fields(text)
    is_deleted = entry.deleted or section.part_id in entry.gone
    own = [
        ("part", "1"),
        ("deleted", "1" if is_deleted else "0"),
        ("part_id", clean(section.part_id)),
        ("kind", str(Kind(section.kind))),
        ("tool", clean(section.tool)),
        (group.words, indexed.words),
        (group.bag, indexed.bag),
        (group.spelt, indexed.spelt),
        ("trigrams", tokens.caseless(text) + END),
    ]
    document = _document([*_FILLED[group.name], *own], shared)
    document.add_integer("key", number_of(f"{entry.document.message_id}/{number}"))
    document.add_bytes("text", text.encode())
    return document, f"{indexed.spelt} {indexed.words}"


def _window(entry: Entry, shared: tantivy.Document) -> tantivy.Document:
    """The document of the message itself; it passes the filters that any of its parts passes."""
    sections = entry.document.sections
    is_deleted = entry.deleted or all(section.part_id in entry.gone for section in sections)
    own = [
        ("part", "0"),
        ("deleted", "1" if is_deleted else "0"),
        *(("kind", kind) for kind in dict.fromkeys(str(Kind(section.kind)) for section in sections)),
        *(("tool", clean(tool)) for tool in dict.fromkeys(section.tool for section in sections if section.tool)),
        # A window without words gets a filler too, so that it does not lower the mean length.
        (WINDOW.bag, tokens.loose(clean(entry.window)) if entry.window else _blank(WINDOW)),
    ]
    document = _document([*_FILLED[WINDOW.name], *own], shared)
    document.add_integer("key", number_of(entry.document.message_id))
    document.add_integer("length", sum(len(section.text) for section in sections if str(Kind(section.kind)) in PROSE))
    return document
