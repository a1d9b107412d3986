"""What the read tool's output shows of a file, and whether that proves its whole content.

Three forms were seen (opencode-formats.md, Records and Tools): ``<file>`` with ``00001| `` (1.0), ``<content>1: ``
(1.1.65) and ``<content>`` on its own line with ``1: `` behind (1.18). Up to 1.1.65 the text is split at newlines only,
so that final newline and CR are in what is shown; later versions show neither. No version shows a byte order mark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from daemon import records
from daemon.model import Json
from daemon.transcript.tool_calls import release, valid_text

_HEADER = re.compile(r"(?:<path>(?P<path>[^\n]*)</path>\n<type>file</type>\n<content>(?P<break>\n?)|<file>\n)")
_TOTAL = re.compile(r"\(End of file - total (\d+) lines\)")
_LONGEST_LINE = 2000  # UTF-16 units; a longer line has been cut
_FIRST_INEXACT = (1, 1, 66)


@dataclass(frozen=True, slots=True)
class ReadLines:
    """Lines of a file as shown: `first` counts from 1; `path` is as the output names it, empty where it does not.

    `is_whole`: these are all lines, none cut. `is_exact`: joined by newlines they are the file's text, but for a byte
    order mark; otherwise final newline and line ends are not known. `is_cut`: some line is not shown to its end.
    """

    lines: tuple[str, ...]
    first: int
    is_whole: bool
    is_exact: bool
    is_cut: bool
    path: str = ""

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def span(self) -> str:
        return f"lines {self.first} to {self.first + len(self.lines) - 1}"


def read_lines(output: str, metadata: Json, version: str) -> ReadLines | None:
    """The lines that a read shows; None for a folder, an image, or a form that is not known."""
    header = _HEADER.match(output)
    if header is None:
        return None
    is_old = header["path"] is None
    lines, first, rest = _numbered(output[header.end() :].split("\n"), is_old=is_old)
    if not lines and first != 1:
        return None
    is_cut = any(len(line.encode("utf-16-le", "surrogatepass")) > 2 * _LONGEST_LINE for line in lines)
    display = records.table(metadata.get("display"))
    number = release(version)
    is_streamed = bool(header["break"]) or bool(display) or number is None or number >= _FIRST_INEXACT
    return ReadLines(
        lines=tuple(valid_text(line) for line in lines),
        first=first,
        is_whole=first == 1
        and not is_cut
        and metadata.get("truncated") is not True
        and _ends(rest, len(lines), is_old),
        is_exact=not is_streamed,
        is_cut=is_cut,
        path=header["path"] or "",
    )


def _numbered(lines: list[str], *, is_old: bool) -> tuple[list[str], int, list[str]]:
    """The numbered lines, the first one's number, and what stands behind them."""
    form = re.compile(r"(\d{5,})\| " if is_old else r"(\d+): ")
    start = form.match(lines[0])
    if start is None:
        return [], 1, lines
    first = int(start[1])
    numbered = []
    for number, line in enumerate(lines, first):
        prefix = f"{number:05d}| " if is_old else f"{number}: "
        if not line.startswith(prefix):
            break
        numbered.append(line[len(prefix) :])
    return numbered, first, lines[len(numbered) :]


def _ends(rest: list[str], count: int, is_old: bool) -> bool:
    """Whether what follows the last line says that it was the last."""
    if is_old and rest[:1] == ["</file>"]:
        return count > 0  # 1.0.61 says something only when lines are left
    if not count and rest[:1] == [""]:
        rest = rest[1:] if rest[1:2] == [""] else rest
    total = _TOTAL.fullmatch(rest[1]) if len(rest) > 2 and rest[0] == "" else None
    return total is not None and int(total[1]) == count and rest[2] in ("</content>", "</file>")
