"""The same text as its layers of writing hide it: escapes undone, colours and markup taken out, lines put together.

A secret in a transcript seldom stands as it was typed: a tool prints JSON, a log colours it, a diff or a listing puts
something before each line. In place of rules that know all of that, the rules look at these views of a text, and what
they find there is traced back to the text itself. A view is only looked at, never handed out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

_CONTROLS = {"n": "\n", "r": "\n", "t": "\t", "b": " ", "f": " ", "v": " ", "a": " ", "0": " "}
_ENTITIES = {"quot": '"', "apos": "'", "lt": "<", "gt": ">", "amp": "&", "nbsp": " "}
_INVISIBLE = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f"
)
_ESCAPE = r"(?:\x1b|\\{1,8}(?:u001[bB]|x1[bB]|033|e))"
_LAYERS = re.compile(
    rf"{_ESCAPE}(?:\[[0-9;:?]{{0,40}}[A-Za-z]|\][^\x07\x1b\\\n]{{0,200}}(?:\x07|\x1b\\)?|[()][A-Z0-9])"
    r"|\[\d{0,3}(?:;\d{1,3}){0,5}[mK](?![\w\])])"  # a colour whose escape character was taken out before
    r"|(?:\\{1,16}(?:u(?P<four>[0-9a-fA-F]{4})|x(?P<two>[0-9a-fA-F]{2})|(?P<control>[nrtbfva0])|(?P<same>[^\w\s\\])))"
    r"|%(?:25){0,3}(?P<percent>[0-7][0-9a-fA-F])"
    r"|&(?:amp;){0,3}(?:(?P<entity>quot|apos|lt|gt|amp|nbsp)|#(?P<decimal>\d{1,4})|#[xX](?P<hexadecimal>[0-9a-fA-F]{1,4}));"
    r'|(?P<doubled>"")'
    r"|\*{2,3}|(?<![A-Za-z0-9_])__?(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])__?(?![A-Za-z0-9_])"
    rf"|[{_INVISIBLE}]"
)
_COLOURED = re.compile(r"\[\d{0,3}(?:;\d{1,3}){0,5}[mK]")
_MARKS = ("\\", "%", "&", "\x1b", '""', "**", "_")
_NOT_PLAIN = re.compile(rf"[{_INVISIBLE}]")
_URL_BLANK = re.compile(r"[^\s\"'<>]*%[0-9A-Fa-f]{2}[^\s\"'<>]*")

_LEAD = re.compile(
    r"(?m)^(?:[ \t]{0,12}(?:\d{1,6}[ \t]{0,2}[|:\t→│)-]|[>#*│┃║|]|//|--(?!-)|;)[ \t]?)?(?:[ \t]{0,40}(?:[+<>]|-(?!-)|\|)[ \t]?)?"
)
_TAIL = r"[ \t]{0,8}(?:[|│┃║\\]|\",?|',?|\"[ \t]?\+|'[ \t]?\+)?[ \t]{0,8}\r?"
_WRAPPED = re.compile(
    rf"(?<=[A-Za-z0-9_+/=.-]{{16}}){_TAIL}\n[ \t\"']{{0,16}}(?=(?P<next>[A-Za-z0-9_+/.-]{{4,400}}={{0,2}})(?:{_TAIL})(?:[\n<]|\Z))"
)
_MIXED = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])|(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])")


class View:
    """A text made of pieces of another one, and where each of its characters comes from."""

    def __init__(self, text: str, starts: list[int], sources: list[tuple[int, int]]) -> None:
        self.text = text
        self._starts = starts
        self._sources = sources

    @cached_property
    def lowered(self) -> str:
        """Lower case of the same length."""
        return lower(self.text)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters from `start` to `end` (not included, and not before `start`) stand in the source."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, at: int) -> tuple[int, int]:
        number = bisect_right(self._starts, at) - 1
        begin, end = self._sources[number]
        if end:  # one character that stands for several
            return begin, end
        return begin + at - self._starts[number], begin + at - self._starts[number] + 1


def lower(text: str) -> str:
    """Lower case of the same length; a few letters would grow, and then only ASCII is lowered."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.translate(_ASCII_LOWER)


_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def peeled(text: str) -> View | None:
    """Without escapes (JSON, repr, URL, HTML, CSV), colours, emphasis and invisible characters; None where it has none.

    Escapes of escapes are undone in one go, however deep: it does not matter what exactly a layer was.
    """
    if not any(mark in text for mark in _MARKS) and not _NOT_PLAIN.search(text) and not _COLOURED.search(text):
        return None
    if "%" in text and "+" in text:
        text = _URL_BLANK.sub(lambda run: run[0].replace("+", " "), text)
    return _changed(text, ((match.start(), match.end(), _decoded(match)) for match in _LAYERS.finditer(text)))


def unwrapped(text: str) -> View | None:
    """Without what a diff, a listing or a quotation puts before each line, and with runs of key material that a line
    break cuts put together; None where there is nothing of the kind.
    """
    if "\n" not in text and text[:1] not in "+-> |0123456789":
        return None
    bare = _changed(text, ((match.start(), match.end(), "") for match in _LEAD.finditer(text) if match[0]))
    whole = bare.text if bare is not None else text
    joined = _changed(whole, ((m.start(), m.end(), "") for m in _WRAPPED.finditer(whole) if _MIXED.match(m["next"])))
    if joined is None or bare is None:
        return joined or bare
    return _Composed(joined, bare)


class _Composed(View):
    def __init__(self, outer: View, inner: View) -> None:
        super().__init__(outer.text, [], [])
        self._outer, self._inner = outer, inner

    def origin(self, start: int, end: int) -> tuple[int, int]:
        return self._inner.origin(*self._outer.origin(start, end))


def composed(outer: View, inner: View | None) -> View:
    """The view `outer` of the text of `inner`, traced back to the source of `inner`."""
    return outer if inner is None else _Composed(outer, inner)


def _changed(text: str, changes: Iterable[tuple[int, int, str]]) -> View | None:
    pieces: list[str] = []
    starts: list[int] = []
    sources: list[tuple[int, int]] = []
    done = size = 0
    for begin, end, new in changes:
        if begin > done:
            starts.append(size)
            sources.append((done, 0))
            pieces.append(text[done:begin])
            size += begin - done
        if new:
            starts.append(size)
            sources.append((begin, end))
            pieces.append(new)
            size += len(new)
        done = end
    if not done and not pieces:
        return None
    starts.append(size)
    sources.append((done, 0))
    pieces.append(text[done:])
    return View("".join(pieces), starts, sources)


def _decoded(match: re.Match[str]) -> str:
    kind = match.lastgroup
    found = match[kind] if kind is not None else ""
    return _DECODERS[kind](found) if kind is not None else ""


def _character(code: int) -> str:
    return chr(code) if 32 <= code < 0xD800 and code != 127 else {9: "\t", 10: "\n", 13: "\n"}.get(code, "")


_DECODERS: dict[str, Callable[[str], str]] = {}


def _named() -> Iterator[tuple[str, Callable[[str], str]]]:
    for name in ("four", "two", "percent", "hexadecimal"):
        yield name, lambda found: _character(int(found, 16))
    yield "decimal", lambda found: _character(int(found))
    yield "control", lambda found: _CONTROLS[found]
    yield "same", lambda found: found
    yield "entity", lambda found: _ENTITIES[found]
    yield "doubled", lambda _: '"'


_DECODERS.update(_named())
