"""Views of a text without its layers of encoding: escapes resolved, colours and markup removed, lines joined.

A secret in a transcript is rarely in its original form: a tool prints JSON, a log colours it, a diff or a listing adds
something before each line. So that rules need not know all of that, they search these views, and each match is traced
back to the text itself. A view is only searched, never returned to callers.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from daemon.display import INVISIBLE

_CONTROLS = {"n": "\n", "r": "\n", "t": "\t", "b": " ", "f": " ", "v": " ", "a": " ", "0": " "}
_ENTITIES = {"quot": '"', "apos": "'", "lt": "<", "gt": ">", "amp": "&", "nbsp": " "}
_COLOUR = r"(?:\[[0-9;:?]{0,40}[A-Za-z]|\][^\x07\x1b\\\n]{0,200}(?:\x07|\x1b\\)?|[()][A-Z0-9])"
_LAYERS = (
    # Each alternative begins with a letter of its own: the engine then looks only at places that begin so.
    rf"\x1b{_COLOUR}|\\\\{{0,7}}(?:u001[bB]|x1[bB]|033|e){_COLOUR}"
    r"|\[\d{1,3}(?:;\d{1,3}){0,5}m|\[[mK](?=\[|[ \t\r\n]|\Z)"  # colours whose escape character was taken out before
    r"|</?(?:b|i|u|a|em|strong|code|span|mark|font|tt|kbd|samp|var|del|ins)(?:[ \t][^<>\n]{0,200})?>"
    r"|<(?P<broken>/?(?:br|p|div|pre|li|h[1-6])(?:[ \t][^<>\n]{0,200})?/?>)"
    r"|\\(?P<raw>\\{0,7}x[89a-f][0-9a-f](?:\\{1,8}x[89a-f][0-9a-f]){1,59})"
    r"|\\\\{0,15}(?:u(?P<four>[0-9a-fA-F]{4})|x(?P<two>[0-9a-fA-F]{2})|(?P<control>[nrtbfva0])|(?P<same>[^\w\s\\]))"
    r"|%(?P<bytes>[89a-fA-F][0-9a-fA-F](?:%[89a-fA-F][0-9a-fA-F]){1,59})"
    r"|%(?:25){0,3}(?P<percent>[0-7][0-9a-fA-F])"
    r"|&(?:amp;){0,3}(?:(?P<entity>quot|apos|lt|gt|amp|nbsp)|#(?P<decimal>\d{1,4})|#[xX](?P<hexadecimal>[0-9a-fA-F]{1,4}));"
    r'|"(?P<doubled>")'
    r"|\*\*\*?|_(?<![^\s(*\"'|>]_)_?(?=[A-Za-z0-9])|_(?<=[A-Za-z0-9]_)_?(?=[\s).,;:!?*|<]|\Z)"
)
_PLAIN_LAYERS = re.compile(_LAYERS)
_ALL_LAYERS = re.compile(rf"{_LAYERS}|[{INVISIBLE}]")
_MARKS = ("\\", "%", "&", "\x1b", '""', "**", "_", "<", "[")
_DEEPER = re.compile(r"\\[\"'nrt/]|%[2-7][0-9A-F]|&(?:quot|amp|lt|gt|#\d{2});|\"\"")
_NOT_PLAIN = re.compile(rf"[{INVISIBLE}]")
_URL_RUN = re.compile(r"[^\s\"'<>]+")
_LONGEST_URL = 4000
_URL_MARK = re.compile(r"%[0-9A-Fa-f]{2}|&[\w.-]{1,40}=")

JOINED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=.-"
"""Characters of key material."""
WIDE = 28
"""A line that goes on in the next one ends with so many of them, at least."""
_GREP = r"[\w./-]{1,100}[:-]\d{1,6}[:-]"  # what grep puts before a line
_MARGIN = r"[ \t]{0,12}(?:\d{1,6}[ \t]{0,2}[|:\t→│)-]|[>#*│┃║|]|//|--(?!-)|;)[ \t]?"
_SIGN = r"[ \t]{0,40}(?:\+|[<>](?= )|-(?!-)|\|)[ \t]?"
_LEAD = rf"(?:{_GREP}(?:{_MARGIN})?(?:{_SIGN})?|{_MARGIN}(?:{_SIGN})?|{_SIGN})"
_FIRST_LEAD = re.compile(_LEAD)
# Begins with a letter, so that the engine looks only at the ends of lines.
_NEXT_LEAD = re.compile(rf"\n(?P<lead>{_LEAD})")
_BOXED_LEAD = re.compile(
    r"(?m)[ \t]{0,80}[│┃][ \t]{0,8}$"  # the right side of a box
    rf"|^{_LEAD}"
)
_LINE_END = re.compile(
    rf"(?<=[A-Za-z0-9_+/=.-]{{{WIDE}}})[ \t]{{0,8}}(?:[|│┃║\\]|\",?|',?|\"[ \t]?\+|'[ \t]?\+)?[ \t]{{0,8}}\r?\Z"
)
_LONGEST_END = 20
_NEXT_LINE = re.compile(
    r"\n[ \t\"']{0,16}+"
    r"(?=(?P<next>[A-Za-z0-9_+/.-]{4,400}+(?:={1,2}|=[0-9A-Fa-f]{8})?)(?P<rest>[;<]|)"
    r"(?:(?<=[;<])|[\"'`);,}\]│|\\ \t]{0,80}(?:\r?\n|\Z)))"
)
_DIGITS_TOO = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z]).{8}")
_MIXED = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])|(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])")


class View:
    """A text made of pieces of another one, with the origin of each character."""

    def __init__(self, text: str, starts: list[int], sources: list[tuple[int, int]]) -> None:
        self.text = text
        self._starts = starts
        self._sources = sources

    @cached_property
    def lowered(self) -> str:
        """Lower case of the same length."""
        return lower(self.text)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """The place in the source of the characters from `start` to `end` (exclusive, at least `start`)."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, at: int) -> tuple[int, int]:
        number = bisect_right(self._starts, at) - 1
        begin, end = self._sources[number]
        if end:  # one character that stands for several
            return begin, end
        return begin + at - self._starts[number], begin + at - self._starts[number] + 1


def raw(text: str) -> bytes:
    """The text's bytes, for searches that know no letters; lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def lower(text: str) -> str:
    """Lower case of the same length; if a letter would grow, only ASCII is lowered."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.translate(_ASCII_LOWER)


_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def peeled(text: str) -> View | None:
    """Without escapes (JSON, repr, URL, HTML, CSV), colours, emphasis and invisible characters; None if it has none.

    Nested escapes are resolved in one pass, however deep, because it does not matter what exactly a layer was.
    """
    if not any(map(text.__contains__, _MARKS)) and not _NOT_PLAIN.search(text):
        return None
    spaced = _with_blanks(text) if "+" in text and ("%" in text or "&" in text) else text
    first = _peeled(spaced) or (View(spaced, [0], [(0, 0)]) if spaced != text else None)
    if first is None or not _DEEPER.search(first.text):
        return first
    second = _peeled(first.text)
    return first if second is None else _Composed(second, first)


def _peeled(text: str) -> View | None:
    layers = _ALL_LAYERS if _NOT_PLAIN.search(text) else _PLAIN_LAYERS
    return _changed(text, ((match.start(), match.end(), _decoded(match)) for match in layers.finditer(text)))


def _with_blanks(text: str) -> str:
    """A form's fields write a blank as ``+``."""
    pieces, done, at = [], 0, text.find("+")
    while at >= 0:
        before = _URL_RUN.match(text[max(done, at - _LONGEST_URL) : at][::-1])
        start = at - (before.end() if before is not None else 0)
        behind = _URL_RUN.match(text, at, at + _LONGEST_URL)
        end = behind.end() if behind is not None else at + 1
        run = text[start:end]
        pieces += [text[done:start], run.replace("+", " ") if _URL_MARK.search(run) else run]
        done = end
        at = text.find("+", done)
    return "".join([*pieces, text[done:]])


def unwrapped(text: str) -> View | None:
    """The text without the line prefixes of a diff, a listing or a quotation, and with key material joined across line
    breaks; None if there are none.
    """
    bare = _changed(text, _leads(text))
    whole = bare.text if bare is not None else text
    joined = _changed(whole, _breaks(whole))
    if joined is None or bare is None:
        return joined or bare
    return _Composed(joined, bare)


def _leads(text: str) -> Iterator[tuple[int, int, str]]:
    if "│" in text or "┃" in text:
        yield from ((*match.span(), "") for match in _BOXED_LEAD.finditer(text))
        return
    first = _FIRST_LEAD.match(text)
    if first is not None:
        yield 0, first.end(), ""
    yield from ((*match.span("lead"), "") for match in _NEXT_LEAD.finditer(text))


def _breaks(text: str) -> Iterator[tuple[int, int, str]]:
    """Line breaks within key material, with what stands around them."""
    for match in _NEXT_LINE.finditer(text):
        at = match.start()
        end = _LINE_END.search(text, max(0, at - _LONGEST_END), at)
        if end is not None and _goes_on(match):
            yield end.start(), match.end(), ""


def _goes_on(match: re.Match[str]) -> bool:
    """Whether the next line begins with key material, not with a word or name."""
    return (
        _MIXED.match(match["next"]) is not None if not match["rest"] else _DIGITS_TOO.match(match["next"]) is not None
    )


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
    code = match[kind] if kind is not None else ""
    return _DECODERS[kind](code) if kind is not None else ""


def _character(code: int) -> str:
    return chr(code) if 32 <= code < 0xD800 and code != 127 else {9: "\t", 10: "\n", 13: "\n"}.get(code, "")


_DECODERS: dict[str, Callable[[str], str]] = {}


def _named() -> Iterator[tuple[str, Callable[[str], str]]]:
    for name in ("four", "two", "percent", "hexadecimal"):
        yield name, lambda code: _character(int(code, 16))
    yield "decimal", lambda code: _character(int(code))
    yield "control", lambda code: _CONTROLS[code]
    yield "same", lambda code: code
    yield "entity", lambda code: _ENTITIES[code]
    yield "bytes", lambda code: bytes.fromhex(code.replace("%", "")).decode("utf-8", "replace")
    yield "raw", lambda code: bytes.fromhex(re.sub(r"\\*x", "", code)).decode("utf-8", "replace")
    yield "doubled", lambda _: '"'
    yield "broken", lambda _: "\n"


_DECODERS.update(_named())
