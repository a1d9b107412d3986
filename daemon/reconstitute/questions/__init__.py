"""The questions asked of every target, as data.

A model answers `ask` in single statements, each with the messages it stands on. Without a model the facts of the folder
stand under the same headings, and only a person's own question is searched for. No logic beyond the choice between code
and documents, and turning a person's own question into the same shape.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from daemon.model import Target
from daemon.recall.query.parse import parse
from daemon.reconstitute.questions.always import DEAD_ENDS, DECISIONS, OPEN, PURPOSE
from daemon.reconstitute.questions.code import CONFIGURATION, RUN, STRUCTURE
from daemon.reconstitute.questions.documents import READERS, SAYS, STATE
from daemon.reconstitute.questions.question import Question

__all__ = [
    "CODE",
    "CONFIGURATION",
    "DEAD_ENDS",
    "DECISIONS",
    "DOCUMENTS",
    "OPEN",
    "PURPOSE",
    "READERS",
    "RUN",
    "SAYS",
    "STATE",
    "STRUCTURE",
    "Question",
    "of",
    "own",
]

CODE = (PURPOSE, RUN, STRUCTURE, CONFIGURATION, DECISIONS, DEAD_ENDS, OPEN)
"""What is asked of a folder that holds programs, or of which too little is known."""
DOCUMENTS = (PURPOSE, SAYS, READERS, STATE, DECISIONS, DEAD_ENDS, OPEN)
"""What is asked of a folder that holds mostly documents."""

_DOCUMENT_ENDINGS = frozenset(
    {".md", ".markdown", ".rst", ".txt", ".tex", ".bib", ".doc", ".docx", ".odt", ".rtf", ".adoc", ".org", ".pdf",
     ".epub", ".ppt", ".pptx", ".odp", ".typ", ".wiki"}
)  # fmt: skip


def own(text: str) -> Question:
    """A person's question: recall is asked for its own words."""
    words = parse(text)
    return Question(
        id="own-" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12],
        heading=text.strip(),
        ask=text.strip(),
        queries=(text.strip(), " ".join((*words.named, *words.words))),
    )


def of(target: Target, paths: Iterable[str] = ()) -> Sequence[Question]:
    """The default questions for what `paths` (those beneath the target) hold, then the target's own, each once."""
    texts = dict.fromkeys(text.strip() for text in target.questions if text.strip())
    return (*(DOCUMENTS if _are_documents(paths) else CODE), *(own(text) for text in texts))


def _are_documents(paths: Iterable[str]) -> bool:
    """Whether more than half of `paths` are texts for people, by their names."""
    endings = [PurePosixPath(path).suffix.lower() for path in paths]
    return 2 * sum(ending in _DOCUMENT_ENDINGS for ending in endings) > len(endings)
