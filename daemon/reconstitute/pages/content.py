"""A recovered content as a page shows it: text in a fence, with a note for everything that is not as it was.

Guarantees: secrets are replaced, what is no text is not shown, long text is cut, and each of these is said. It makes no
Markdown but its own notes; the fence does the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from daemon import markdown
from daemon.display import visible
from daemon.files import Revision
from daemon.redact import redact

MOST_SHOWN = 256 * 1024
"""Characters of a file's content on its page."""
MOST_BESIDE = 8 * 1024 * 1024
"""Bytes of a file up to which the whole of a text that is cut on its page stands beside it."""
_UNPRINTED = 0.02


@dataclass(frozen=True, slots=True)
class Content:
    """A file's content as a page shows it; `text` is None where it is not shown, `notes` say what was changed.

    `whole` is all of a `text` that was cut, as a text file that is harmless to print; else None.
    """

    text: str | None
    notes: tuple[markdown.Markdown, ...]
    whole: str | None = None


def shown(content: bytes | None, *, proven: bool = True) -> Content:
    """`content` as a page shows it: text, redacted, cut at 256 kB, with a note for everything that is not as it was.

    How a text ends is only said where it is `proven`: a read of OpenCode does not record a last newline.
    """
    if content is None:
        return Content(None, ())
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return _hidden(f"The content ({len(content)} bytes) is not UTF-8 text and is not shown.")
    unprinted = sum(1 for character in text if character < " " and character not in "\t\n\r\f")
    if "\0" in text or unprinted > _UNPRINTED * len(text):
        return _hidden(f"The content ({len(content)} bytes) is binary and is not shown.")
    safe = redact(text)
    part = safe if len(safe) <= MOST_SHOWN else safe[:MOST_SHOWN].rpartition("\n")[0] + "\n"
    lines = part.replace("\r\n", "\n")
    notes = (
        (safe != text, "Secrets in it were replaced by markers."),
        (part != safe, f"Only the first {len(part)} of {len(safe)} characters are shown."),
        (part != lines, "Its lines end in CRLF."),
        (lines != visible(lines), "Characters that cannot be seen are named."),
        (proven and text and not text.endswith(("\n", "\r")), "It has no newline at its end."),
        (not text, "The file is empty."),
    )
    whole = visible(safe.replace("\r\n", "\n")) if part != safe else None
    return Content(part, tuple(markdown.Markdown(note) for applies, note in notes if applies), whole)


def size_beside(revision: Revision | None) -> int:
    """The bytes of a content that may have to stand beside its page, for the page cuts it; 0 where it fits or may not.

    Only a proven content does: what is not certain is shown with its marks, on the page.
    """
    size = revision.size or 0 if revision is not None and revision.proven else 0
    return size if MOST_SHOWN < size <= MOST_BESIDE else 0


def of_revision(revision: Revision | None) -> Content:
    """What a revision held: its content, or of a partial one the known lines with the gaps marked."""
    if revision is None:
        return Content(None, ())
    if revision.whole is None and revision.fragments is not None:
        return shown(revision.fragments.marked().encode("utf-8", "replace"), proven=False)
    if revision.whole is not None and revision.content is None:
        return _hidden("The content is known by its hash, but it was not kept.")
    return shown(revision.content, proven=revision.proven)


def _hidden(note: str) -> Content:
    return Content(None, (markdown.Markdown(note),))
