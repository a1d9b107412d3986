"""Expands the words of a command as bash does, if its text alone determines them.

A field is exact if it depends on nothing outside the text: quotes, escapes, braces, ``~`` and variables that the same
command sets are understood. Of any other field we know only the literal beginning. Globs are never exact.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["bare", "quoted", "variable", "quoted variable", "unknown"]
Piece: TypeAlias = tuple[Kind, str]

_NAME = re.compile(r"\$(?:([A-Za-z_]\w*|[0-9])|\{([A-Za-z_]\w*|[0-9]+)\})", re.ASCII)
_OWN_FOLDER = re.compile(
    r'\$\((?P<absolute>cd (?:-- )?"?\$\()?dirname (?:-- )?"?'
    r'\$(?:0|\{0\}|(?P<source>BASH_SOURCE|\{BASH_SOURCE(?:\[0\])?\}))"?\)(?(absolute)"? *&& *pwd\))'
)
"""How a script finds its own folder."""
_PWD = re.compile(r"\$\(pwd\)")
_NO_EXPANSION = re.compile(r"\$(?![A-Za-z_0-9{(@*#?$!\[-])")
_RUN = re.compile(r"[^\\'\"`$]+")
_RUN_QUOTED = re.compile(r"[^\\\"`$]+")
_RUN_BODY = re.compile(r"[^\\`$]+")
_BREAKS = re.compile(r"[ \t\n;&|<>()]")
_GLOB = re.compile(r"[*?\[]")
_SPLITS = re.compile(r"[ \t\n*?\[\\]")
_RANGE = re.compile(r"(0|-?[1-9]\d{0,3})\.\.(0|-?[1-9]\d{0,3})")
_LONGEST_BRACES = 4096
_LONGEST_VALUE = 1 << 16
_MOST_FIELDS = 512
OWN_FOLDER, SOURCE_FOLDER, _FROM_HERE = "folder of $0", "folder of $BASH_SOURCE", "from here: "
SIMPLE_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """One argument. Where it is not exact, `text` is the literal beginning: ``./`` for what surely lies beneath the
    working directory, such as ``*.py``, and empty where nothing is known. `has_home`: it begins with the home folder,
    which is only likely.
    """

    text: str
    exact: bool = True
    has_home: bool = False


@dataclass(slots=True)
class Scope:
    """What words may refer to: the variables set so far, and the home folder and the working directory, if known.

    `parameters`: the positional parameters of a script, by number, and its folder (OWN_FOLDER, SOURCE_FOLDER).
    """

    home: str | None
    cwd: str | None
    variables: dict[str, Field] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str) -> Field | None:
        if name in self.variables:
            return self.variables[name]
        if name.startswith(_FROM_HERE):
            folder = self.parameters.get(name.removeprefix(_FROM_HERE))
            is_known = folder is not None and (folder.startswith("/") or self.cwd is not None)
            return Field(posixpath.normpath(posixpath.join(self.cwd or "/", folder))) if folder and is_known else None
        known: dict[str, str | None] = {"HOME": self.home, "PWD": self.cwd, **self.parameters}
        text = known.get(name)
        return None if text is None else Field(text)


def fields(raw: str, scope: Scope) -> list[Field]:
    """The arguments that one word becomes; none where it expands to nothing."""
    fields_so_far = []
    for alternative in _braced(pieces(raw)):
        joined = _joined(alternative, scope, splits=True)
        if joined is not None:
            fields_so_far.append(joined)
    return fields_so_far


def value(raw: str, scope: Scope) -> str | None:
    """The value of a word in an assignment or a here-string; None if uncertain."""
    joined = _joined(pieces(raw), scope, splits=False)
    if joined is None:
        return ""
    return joined.text if joined.exact and not joined.has_home and len(joined.text) <= _LONGEST_VALUE else None


def body(text: str, scope: Scope) -> str | None:
    """The text of a here-document with an unquoted delimiter; None where that is not certain."""
    joined = _joined(_double(text, 0, _RUN_BODY, "")[0], scope, splits=False)
    return "" if joined is None else joined.text if joined.exact and not joined.has_home else None


def pieces(raw: str) -> list[Piece]:
    """The pieces of a word, split at its quotes; after the first unreadable character the piece is unknown."""
    pieces_so_far: list[Piece] = []
    at = 0
    while at < len(raw):
        char = raw[at]
        if char == "'":
            end = raw.find("'", at + 1)
            piece: list[Piece] = [("quoted", raw[at + 1 : end])] if end >= 0 else [("unknown", "")]
            at = end + 1
        elif char == '"':
            piece, at = _double(raw, at + 1, _RUN_QUOTED, '"')
        elif char == "\\":
            bare = raw[at + 1 : at + 2]
            piece = [("quoted", bare)] if bare != "\n" else []
            at += 2
        elif char in "$`":
            piece, at = _dollar(raw, at, is_quoted=False)
        else:
            run = _RUN.match(raw, at)
            text = run[0] if run else char
            piece = [("unknown", "")] if _BREAKS.search(text) else [("bare", text)]
            at += len(text)
        pieces_so_far += piece
        if piece and piece[-1][0] == "unknown":
            break
    return pieces_so_far


def _double(raw: str, at: int, run: re.Pattern[str], end: str) -> tuple[list[Piece], int]:
    """The text between double quotes, or of a here-document, from `at` on; and where it ends."""
    pieces: list[Piece] = [("quoted", "")]
    escapable = '$`"\\' if end else "$`\\"
    while at < len(raw):
        char = raw[at]
        if end and char == end:
            return pieces, at + 1
        if char == "\\":
            after = raw[at + 1 : at + 2]
            if after == "\n":
                pass
            elif after and after in escapable:
                pieces.append(("quoted", after))
            else:
                pieces.append(("quoted", "\\" + after))
            at += 2
        elif char in "$`":
            piece, at = _dollar(raw, at, is_quoted=True)
            pieces += piece
            if piece[-1][0] == "unknown":
                return pieces, at
        else:
            text = run.match(raw, at)
            pieces.append(("quoted", text[0] if text else char))
            at += len(pieces[-1][1])
    return ([*pieces, ("unknown", "")] if end else pieces), at


def _dollar(raw: str, at: int, *, is_quoted: bool) -> tuple[list[Piece], int]:
    own = _OWN_FOLDER.match(raw, at)
    if own:
        key = (_FROM_HERE if own["absolute"] else "") + (SOURCE_FOLDER if own["source"] else OWN_FOLDER)
        return [("quoted variable" if is_quoted else "variable", key)], own.end()
    pwd = _PWD.match(raw, at)
    if pwd:
        return [("quoted variable" if is_quoted else "variable", "PWD")], pwd.end()
    name = _NAME.match(raw, at)
    if name:
        return [("quoted variable" if is_quoted else "variable", name[1] or name[2])], name.end()
    if not is_quoted and raw.startswith("$'", at):
        return _ansi(raw, at + 2)
    if _NO_EXPANSION.match(raw, at) and (is_quoted or not raw.startswith('$"', at)):
        return [("quoted" if is_quoted else "bare", "$")], at + 1
    return [("unknown", "")], len(raw)


_ANSI = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)


def _ansi(raw: str, at: int) -> tuple[list[Piece], int]:
    text: list[str] = []
    while at < len(raw):
        if raw[at] == "'":
            return [("quoted", "".join(text))], at + 1
        match = _ANSI.match(raw, at)
        if match is None:
            end = min((e for e in (raw.find("'", at), raw.find("\\", at)) if e >= 0), default=len(raw))
            text.append(raw[at : max(end, at + 1)])
            at = max(end, at + 1)
            continue
        char = escaped(match.groups(), "'\"?")
        if char is None:
            break
        text.append(char)
        at = match.end()
    return [("unknown", "")], len(raw)


def escaped(groups: tuple[str | None, ...], plain: str) -> str | None:
    """The character of a backslash escape (groups: x, u, U, octal, letter); None where bytes or tools decide."""
    hexadecimal, short, long, octal, letter = groups
    if letter is not None:
        return SIMPLE_ESCAPES.get(letter) or (letter if letter in plain else None)
    code = int(hexadecimal or short or long or octal or "0", 8 if octal is not None else 16)
    if code == 0 or (code > 0x7F and not (short or long)) or code > 0x10FFFF or 0xD800 <= code < 0xE000:
        return None
    return chr(code) if code not in (1, 0x7F) else None


# -- braces ------------------------------------------------------------------------------------------------------


def _braced(word: list[Piece]) -> list[list[Piece]]:
    """The words that brace expansion makes of one; unknown where braces nest."""
    if not any(kind == "bare" and "{" in text for kind, text in word):
        return [word]
    if sum(len(text) for _, text in word) > _LONGEST_BRACES:
        return [[("unknown", "")]]
    flat: list[Piece] = []
    for kind, text in word:
        flat += [(kind, char) for char in text] if kind == "bare" else [(kind, text)]
    parts: list[list[list[Piece]]] = []
    count = 1
    while flat:
        part, flat = _next_part(flat)
        parts.append(part)
        count *= len(part)
        if count > _MOST_FIELDS:
            return [[("unknown", "")]]
    return [[piece for part in chosen for piece in part] for chosen in product(*parts)]


def _next_part(flat: list[Piece]) -> tuple[list[list[Piece]], list[Piece]]:  # noqa: PLR0911 - kinds of braces
    """The first piece, or the first pair of braces as its alternatives, and what follows."""
    if flat[0] != ("bare", "{"):
        return [[flat[0]]], flat[1:]
    if ("bare", "}") not in flat:
        return [[flat[0]]], flat[1:]
    end = flat.index(("bare", "}"))
    inner = flat[1:end]
    if ("bare", "{") in inner:
        return [[("unknown", "")]], []
    if ("bare", ",") in inner:
        alternatives: list[list[Piece]] = [[]]
        for piece in inner:
            if piece == ("bare", ","):
                alternatives.append([])
            else:
                alternatives[-1].append(piece)
        return alternatives, flat[end + 1 :]
    text = "".join(text for _, text in inner)
    span = _RANGE.fullmatch(text)
    if span and all(kind == "bare" for kind, _ in inner):
        first, last = int(span[1]), int(span[2])
        step = 1 if first <= last else -1
        return [[("quoted", str(number))] for number in range(first, last + step, step)], flat[end + 1 :]
    if ".." in text:
        return [[("unknown", "")]], []
    return [flat[: end + 1]], flat[end + 1 :]


# -- joining -----------------------------------------------------------------------------------------------------


def _joined(word: list[Piece], scope: Scope, *, splits: bool) -> Field | None:
    """One field out of the pieces of a word; None where nothing is left of it."""
    text: list[str] = []
    is_kept = False
    tilde = _tilde(word, scope)
    if tilde is not None:
        if tilde == "":
            return Field("", exact=False)
        text.append(tilde)
        word = [("bare", word[0][1][1:]), *word[1:]]
    for at, (kind, piece) in enumerate(word):
        values = _value_of(kind, piece, scope, splits=splits)
        if values is None:
            head = _GLOB.split(piece)[0] if kind == "bare" else ""
            rest = (piece[len(head) :] if kind == "bare" else "") + "".join(piece for _, piece in word[at + 1 :])
            begun = "".join(text) + head or _least(kind, piece, scope)
            dots = begun.rpartition("/")[2] in (".", "..") or rest.partition("/")[0] in (".", "..")
            return Field("" if dots or ".." in rest.split("/") else begun, exact=False)
        text.append(values)
        is_kept = is_kept or kind.startswith("quoted") or values != ""
    has_home = tilde is not None or any(piece == "HOME" and kind.endswith("variable") for kind, piece in word)
    return Field("".join(text), has_home=has_home) if is_kept or tilde else None


def _least(kind: Kind, piece: str, scope: Scope) -> str:
    """What is known of a word that begins with a piece without a certain value: a pattern, a variable."""
    if kind == "bare":
        return "./"
    known = scope.get(piece) if kind.endswith("variable") else None
    return "" if known is None or known.exact else known.text


def _value_of(kind: Kind, piece: str, scope: Scope, *, splits: bool) -> str | None:
    if kind == "quoted":
        return piece
    if kind == "bare":
        uncertain = (splits and _GLOB.search(piece)) or "=~" in piece or ":~" in piece
        return None if uncertain else piece
    if kind == "unknown":
        return None
    known = scope.get(piece)
    if known is None or not known.exact or (kind == "variable" and splits and _SPLITS.search(known.text)):
        return None
    return known.text


def _tilde(word: list[Piece], scope: Scope) -> str | None:
    """The value of a leading ``~``: None if there is none, empty if unknown."""
    if not word or word[0][0] != "bare" or not word[0][1].startswith("~"):
        return None
    suffix = word[0][1][1:]
    if suffix.startswith("/") or (not suffix and len(word) == 1):
        return scope.home or ""
    return ""
