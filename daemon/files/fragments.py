"""What is known of a file that is known only in part: runs of lines, with or without their place.

A read of some lines gives a run with a place. An edit whose old text stands in a run changes it and moves the runs
behind it; any other edit leaves only what it wrote, without a place, since where the runs are now is not known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Run:
    """Known lines in a row, without their ends; `first` counts from 1, None where their place is not known.

    Without a place, the first and the last may be parts of lines.
    """

    first: int | None
    lines: tuple[str, ...]

    @property
    def first_line(self) -> int:
        """`first`, where the place is known."""
        return self.first or 0

    @property
    def end(self) -> int:
        """The number of the line behind the last."""
        return self.first_line + len(self.lines)


@dataclass(frozen=True, slots=True)
class Fragments:
    """The known runs, those with a place first, in the file's order, apart from one another.

    `is_all`: they are all lines of the file, and only their ends are not known. `newline`: whether a newline ends the
    file, None where that is not known. `is_stale`: so it was once, and something may have changed it since.
    """

    runs: tuple[Run, ...] = ()
    is_all: bool = False
    newline: bool | None = None
    is_stale: bool = False

    def seen(self, first: int, lines: tuple[str, ...]) -> Fragments:
        """With these lines seen in place; an older run that contradicts them is dropped."""
        new = Run(first, lines)
        others = []
        for run in self.runs:
            if run.first is None or run.end < new.first_line or run.first > new.end:
                others.append(run)
            elif (joined := _joined(run, new)) is not None:
                new = joined
        if not self.has_gaps and self.runs == (new,):
            return self
        placed = sorted([*(run for run in others if run.first is not None), new], key=lambda run: run.first or 0)
        return Fragments((*placed, *(run for run in others if run.first is None)))

    def edited(self, old: str, new: str, *, everywhere: bool = False) -> Fragments:
        """After an edit that replaced `old`: once, where it stands once in the file, or each time (`everywhere`)."""
        grown = new.count("\n") - old.count("\n")
        runs: list[Run] = []
        replaced, shift, is_all = 0, 0, self.is_all
        for run in self.runs:
            text = "\n".join(run.lines)
            times = text.count(old) if old else 0
            first = None if run.first is None else run.first + shift
            inner = {line.rstrip("\r") for line in old.split("\n")} - {""}
            left = set(text.replace(old, "").split("\n")) if everywhere and old else set()
            if times and (everywhere or times == 1) and not (replaced and not everywhere) and not inner & left:
                lines = tuple(text.replace(old, new).split("\n"))
                if len(lines) > 1 and lines[-1] == "" != run.lines[-1]:
                    # An empty line follows only if a newline ended the run, which no record shows.
                    lines, is_all = lines[:-1], False
                runs.append(Run(first, lines))
                replaced += times
                shift += grown * times
            elif (times and not everywhere) or not (inner & set(run.lines) or _reaches_into(inner, run)):
                # Known lines that the old text may reach into are given up.
                runs.append(replace(run, first=first))
        # A place is only known behind an edit whose own place is, and as long as no unseen line was edited too.
        is_placed = not grown or (not everywhere and replaced == 1 and self._has_place(old))
        if not is_placed:
            runs = [replace(run, first=None) for run in runs]
        written = new.removeprefix("\n").removesuffix("\n")  # an end of the line before, and of its own last one
        if not replaced and written:
            runs = [
                *(replace(run, first=None) if grown else run for run in runs),
                Run(None, tuple(written.split("\n"))),
            ]
        return Fragments(tuple(runs), is_all and bool(replaced))

    def added(self, text: str) -> Fragments:
        """With `text` after the last line. If no newline is known to end that line, it may continue in `text`."""
        if not text:
            return self
        if not self.has_gaps and self.newline is not None:
            lines = "\n".join(self.runs[0].lines) + "\n" * self.newline + text
            return Fragments((Run(1, _lines(lines)),), is_all=True, newline=text.endswith("\n"))
        placed = [run for run in self.runs if run.first is not None]
        runs = [replace(run, lines=run.lines[:-1]) if run in placed[-1:] else run for run in self.runs]
        return Fragments((*(run for run in runs if run.lines), Run(None, _lines(text))))

    def _has_place(self, old: str) -> bool:
        return any(run.first is not None and old in "\n".join(run.lines) for run in self.runs)

    @property
    def count(self) -> int:
        """How many lines are known."""
        return sum(len(run.lines) for run in self.runs)

    @property
    def has_gaps(self) -> bool:
        """Whether lines are missing; without, only their ends are not known."""
        return not (self.is_all and len(self.runs) == 1 and self.runs[0].first == 1)

    def marked(self) -> str:
        """The known lines with the gaps marked, for people; without gaps all lines, ended as far as is known."""
        if not self.has_gaps:
            return "\n".join(self.runs[0].lines) + ("" if self.newline is False else "\n")
        pieces = ["<<< so it was once: any of these lines may have changed since >>>"] if self.is_stale else []
        line = 1
        for run in self.runs:
            if run.first is None:
                pieces.append(
                    f"<<< {len(run.lines)} known lines, their place is not known; the outer ones may be parts >>>"
                )
            elif run.first > line:
                pieces.append(f"<<< lines {line} to {run.first - 1} are not known >>>")
            pieces += run.lines
            line = run.end if run.first is not None else line
        pieces.append(f"<<< whether anything follows{f' line {line - 1}' if line > 1 else ''} is not known >>>")
        return "\n".join(pieces) + "\n"


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.removesuffix("\r") for line in text.removesuffix("\n").split("\n"))


def _reaches_into(lines: set[str], run: Run) -> bool:
    """Whether one of these lines may hold what of a run without a place is only a part of a line."""
    return run.first is None and any(part in line for part in (run.lines[0], run.lines[-1]) for line in lines)


def _joined(run: Run, new: Run) -> Run | None:
    """Both as one where they meet or overlap and agree; None where they do not agree."""
    first = run.first or 0
    start, end = max(first, new.first_line), min(run.end, new.end)
    if run.lines[start - first : end - first] != new.lines[start - new.first_line : end - new.first_line]:
        return None
    if first <= new.first_line:
        return Run(first, run.lines[: new.first_line - first] + new.lines + run.lines[max(0, new.end - first) :])
    return Run(
        new.first, new.lines[: first - new.first_line] + run.lines + new.lines[max(0, run.end - new.first_line) :]
    )
