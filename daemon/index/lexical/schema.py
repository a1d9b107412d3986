"""What tantivy keeps of a message: fields, and the documents that fill them.

A message is one document a section, and one for itself, which has the words of its window but no text, and which tells
by its key that the message passes a filter. Each group of kinds has fields of its own: so what was said is searched
apart from what tools printed without a filter, and a plain disjunction of terms, which tantivy prunes block by block,
answers from the whole index.
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
"""Stands after every text, so that each of its characters begins a trigram."""


@dataclass(frozen=True, slots=True)
class Group:
    """Kinds of text that are searched together; `weight` is what a match among them counts.

    One without order has all its tokens in its bag, and no other field. `complete`: how much more a text counts that
    holds every word; next to nothing in a text of several messages, where words meet by chance. `usual`: tokens of a
    text of usual length.
    """

    name: str
    kinds: frozenset[str]
    weight: float
    usual: int
    has_order: bool = True
    complete: float = 4.0

    @property
    def is_prose(self) -> bool:
        """Whether it is of what was said."""
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
"""What was said ranks above what tools printed; each group is searched for itself, so none crowds out another."""

WINDOW = Group("window", frozenset(), 1.0, 64, has_order=False, complete=1.0)

_FILLER = "~"
_GROUP_OF = {kind: group for group in GROUPS for kind in group.kinds}


def _blank(group: Group) -> str:
    return " ".join([_FILLER] * group.usual)


def _fillers(own: Group) -> list[tuple[str, str]]:
    """Text of usual length, with no word in it, for the fields of all groups but a document's own.

    BM25 measures a text against the mean length of its field, and tantivy takes that over all documents: those without
    the field would make every text that has it a long one, all the more the more kinds of documents there are.
    """
    fillers = []
    for group in (*GROUPS, WINDOW):
        if group is not own:
            text = _blank(group)
            fillers += [(name, text) for name in ((group.words, group.bag) if group.has_order else (group.bag,))]
    return fillers


_FILLED = {group.name: _fillers(group) for group in (*GROUPS, WINDOW)}


def mark() -> str:
    """Identity of what writes the index: our schema, tantivy's version and the stemmer's."""
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
    """Without lone surrogates, which tantivy cannot take (docs/reliability.md, S14); all else as it is."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def normal_path(path: str) -> str:
    """As it is indexed and asked for; "" stays "", which is no path."""
    return posixpath.normpath(path) if path else ""


def _shared(entry: Entry) -> list[tuple[str, str]]:
    """What every document of the message has: values of the fields that filter."""
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
    """It passes the filters that any part of its own message passes."""
    sections = entry.document.sections
    is_deleted = entry.deleted or all(section.part_id in entry.gone for section in sections)
    own = [
        ("part", "0"),
        ("deleted", "1" if is_deleted else "0"),
        *(("kind", kind) for kind in dict.fromkeys(str(Kind(section.kind)) for section in sections)),
        *(("tool", clean(tool)) for tool in dict.fromkeys(section.tool for section in sections if section.tool)),
        # Without a word it is as long as usual all the same: it must not make the others seem long.
        (WINDOW.bag, tokens.loose(clean(entry.window)) if entry.window else _blank(WINDOW)),
    ]
    document = _document([*_FILLED[WINDOW.name], *own], shared)
    document.add_integer("key", number_of(entry.document.message_id))
    document.add_integer("length", sum(len(section.text) for section in sections if str(Kind(section.kind)) in PROSE))
    return document
