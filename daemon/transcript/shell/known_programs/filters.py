"""What programs that mostly only print can write: by an option, or by a program in a language of their own.

Each is known by all of its options. One that is not in its table, or an inner program that is not plainly harmless,
answers None: then it may have written anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from daemon.transcript.shell.names import words
from daemon.transcript.shell.words import Field

_Parsed = tuple[list[tuple[str, Field]], list[Field]]

_SED_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*+/[IM]*)"
_SED_COMMAND = re.compile(
    rf"""[\s;]*+ (?:{_SED_ADDRESS}[ \t]*(?:,[ \t]*[+~]?{_SED_ADDRESS})?)?+ [\s!]*+
    (?: s([^\w\s\\])(?:(?!\1)[^\\\n]|\\.)*+\1(?:(?!\1)[^\\\n]|\\.)*+\1[gpiIM\d]*+(?=[\s;}}]|\Z)
      | y([^\w\s\\])(?:(?!\2)[^\\\n]|\\.)*+\2(?:(?!\2)[^\\\n]|\\.)*+\2(?=[\s;}}]|\Z)
      | [pdnNDPgGhHxlz=qQ](?:[ \t]*\d+)?(?=[ \t]*(?:[;}}\n]|\Z)) | [{{}}]
      | [:btT][ \t]*[\w.]*+(?=[ \t]*(?:[;}}\n]|\Z)) | [aicrR][^\n]*+(?:(?<=\\)\n[^\n]*+)*+ | \#[^\n]*+ | \Z)""",
    re.VERBOSE | re.DOTALL,
)
"""One command of sed that writes nothing and runs nothing: not ``w``, ``W``, ``e``, nor ``s`` with such a flag."""
_AWK_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"', re.DOTALL)
_AWK_WRITES = re.compile(r"print.*[>|]|system|\|\s*getline|\|&|@|\|\s*\"", re.DOTALL)
_LONGEST = 20_000

_SED_LONG = words("quiet silent regexp-extended null-data separate unbuffered posix debug sandbox follow-symlinks")
_SORT_LONG = words(
    "reverse numeric-sort unique general-numeric-sort human-numeric-sort version-sort ignore-case stable check "
    "ignore-leading-blanks dictionary-order month-sort random-sort zero-terminated merge debug"
)
_ASKING = words("--version --help")
_DECOMPRESSED = {".gz": "", ".tgz": ".tar", ".bz2": "", ".xz": "", ".zst": "", ".lzma": ""}
_SUFFIX = {"gzip": ".gz", "bzip2": ".bz2", "xz": ".xz"}


def written(verb: str, fields: Sequence[Field]) -> list[Field] | None:
    """The files that one of KNOWN may write with these arguments; None: any in its folder."""
    if _ASKING & {field.text for field in fields[:1]}:
        return []
    return _READERS[verb](verb, fields)


def _parsed(fields: Sequence[Field], letters: str, long: frozenset[str], long_values: frozenset[str]) -> _Parsed | None:
    """Options with their values, and operands, as getopt parses them; None if one is unknown.

    In `letters`, ``:`` follows those that take a value, ``?`` those with one that stands behind it without a blank.
    """
    options: list[tuple[str, Field]] = []
    operands: list[Field] = []
    remaining = list(fields[::-1])
    while remaining:
        field = remaining.pop()
        text = field.text
        if text == "--":
            return options, [*operands, *remaining[::-1]]
        if not text.startswith("-") or text == "-":
            operands.append(field)
        elif text.startswith("--"):
            name, is_given, value = text[2:].partition("=")
            if name in long_values and (is_given or remaining):
                options.append((name, Field(value, field.exact) if is_given else remaining.pop()))
            elif name in long and not is_given and field.exact:
                options.append((name, Field("")))
            else:
                return None
        else:
            cluster = _cluster(field, letters, remaining)
            if cluster is None:
                return None
            options += cluster
    return options, operands


def _cluster(field: Field, letters: str, remaining: list[Field]) -> list[tuple[str, Field]] | None:
    options: list[tuple[str, Field]] = []
    for at in range(1, len(field.text)):
        letter, tail = field.text[at], field.text[at + 1 :]
        place = letters.find(letter) if letter not in ":?" else -1
        if place < 0:
            return None
        kind = letters[place + 1 : place + 2]
        if kind == ":" and not tail and not remaining:
            return None
        if kind in (":", "?"):
            value = remaining.pop() if kind == ":" and not tail else Field(tail, field.exact)
            return [*options, (letter, value)]
        if not field.exact:
            return None
        options.append((letter, Field("")))
    return options


def _sed(_: str, fields: Sequence[Field]) -> list[Field] | None:
    # A bare --in-place takes no value; with one it is as -i.
    spoken = [Field("-i") if field.exact and field.text == "--in-place" else field for field in fields]
    parsed = _parsed(spoken, "nErszube:f:i?l:", _SED_LONG, words("expression file in-place line-length"))
    if parsed is None:
        return None
    options, operands = parsed
    programs = [value for name, value in options if name in ("e", "expression")]
    if any(name in ("f", "file") for name, _ in options):
        return None
    if not programs:
        programs, operands = operands[:1], operands[1:]
    if not all(field.exact and is_harmless_sed(field.text) for field in programs):
        return None
    suffixes = [value for name, value in options if name in ("i", "in-place")]
    if any(not field.exact or "*" in field.text or "/" in field.text for field in suffixes):
        return None
    copies = [
        Field(field.text + suffixes[-1].text, field.exact) for field in operands if suffixes and suffixes[-1].text
    ]
    return [*operands, *copies] if suffixes else []


def is_harmless_sed(text: str) -> bool:
    """Whether a program of sed surely writes to no file and runs no command."""
    at = 0
    while at < len(text) <= _LONGEST:
        match = _SED_COMMAND.match(text, at)
        if match is None or (match.end() == at and at < len(text)):
            return False
        at = match.end()
    return at >= len(text)


def _awk(_: str, fields: Sequence[Field]) -> list[Field] | None:
    if [field.text for field in fields[:2]] == ["-i", "inplace"] and fields[2:3] and fields[2].text[:1] != "-":
        return None if _awk("awk", fields[2:3]) is None else list(fields[3:])
    remaining = list(fields[::-1])
    while remaining:
        field = remaining.pop()
        if field.text in ("-F", "-v") and remaining:
            remaining.pop()
        elif field.text == "--":
            field = remaining.pop() if remaining else Field("")
            return [] if field.exact and is_harmless_awk(field.text) else None
        elif not field.text.startswith("-"):
            return [] if field.exact and is_harmless_awk(field.text) else None
        elif not re.match(r"-[Fv].", field.text, re.DOTALL):
            return None
    return []


def is_harmless_awk(text: str) -> bool:
    """Whether a program of awk surely writes to no file and runs no command."""
    plain = text if "/" in text else _AWK_STRING.sub('""', text)  # a quote in a pattern is no string's
    return len(text) <= _LONGEST and not _AWK_WRITES.search(plain)


def _sort(_: str, fields: Sequence[Field]) -> list[Field] | None:
    values = words("output key field-separator buffer-size temporary-directory parallel sort batch-size")
    parsed = _parsed(fields, "bcCdfghiMmnRrsuVzk:o:S:t:T:", _SORT_LONG, values)
    return None if parsed is None else [value for name, value in parsed[0] if name in ("o", "output")]


def _shuf(_: str, fields: Sequence[Field]) -> list[Field] | None:
    values = words("output input-range head-count random-source")
    parsed = _parsed(fields, "erzi:n:o:", words("echo repeat zero-terminated"), values)
    return None if parsed is None else [value for name, value in parsed[0] if name in ("o", "output")]


def _uniq(_: str, fields: Sequence[Field]) -> list[Field] | None:
    values = words("skip-fields skip-chars check-chars group all-repeated")
    parsed = _parsed(fields, "cdDiuzf:s:w:", words("count repeated unique ignore-case zero-terminated group"), values)
    return None if parsed is None else parsed[1][1:]  # what it reads, then what it writes


def _pressed(verb: str, fields: Sequence[Field]) -> list[Field] | None:
    long = words(
        "keep force stdout to-stdout decompress uncompress test list verbose quiet best fast recursive no-name"
    )
    parsed = _parsed(fields, "cdfkltvqrnN0123456789ez", long, frozenset())
    if parsed is None:
        return None
    options, operands = {name for name, _ in parsed[0]}, parsed[1]
    if options & words("c stdout to-stdout t test l list"):
        return []
    written = list(operands)
    for field in operands:
        stem, dot, _ = field.text.rpartition(".")
        suffix = field.text[len(stem) :] if dot else ""
        if verb in _SUFFIX and not options & words("d decompress uncompress"):
            written.append(Field(field.text + _SUFFIX[verb], field.exact))
        elif suffix in _DECOMPRESSED:
            written.append(Field(stem + _DECOMPRESSED[suffix], field.exact))
        else:
            return None
    return written


def _none(_: str, __: Sequence[Field]) -> None:
    """It may write anything, or a file that its words do not name."""


def _unless(pattern: str) -> Callable[[str, Sequence[Field]], list[Field] | None]:
    """It writes nothing, unless a word is like this."""
    writes = re.compile(pattern, re.DOTALL)
    return lambda _, fields: None if any(writes.match(field.text) for field in fields) else []


_READERS: dict[str, Callable[[str, Sequence[Field]], list[Field] | None]] = {
    "sed": _sed, "gsed": _sed, "awk": _awk, "gawk": _awk, "mawk": _awk, "nawk": _awk, "sort": _sort, "shuf": _shuf,
    "uniq": _uniq, **dict.fromkeys(words("gzip bzip2 xz gunzip bunzip2 unxz"), _pressed),
    **dict.fromkeys(
        words("ed red ex vi vim nvim view rview rvim vimdiff emacs nano split csplit script openssl flock rename "
              "busybox"),
        _none,
    ),
    "mktemp": _unless(r"-\w*p|--tmpdir|[^-]"), "tree": _unless(r"-\w*[oR]|--output"),
    "less": _unless(r"-\w*[oOk]|--(?:log|LOG|lesskey)|\+"), "fd": _unless(r"-\w*[xX]|--exec"),
    "rg": _unless(r"--pre|--hostname-bin"), "file": _unless(r"-\w*C|--compile"),
}  # fmt: skip
KNOWN = frozenset(_READERS)
"""Programs of which all options are known, or all doubted."""
