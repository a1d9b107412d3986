"""The questions asked of every target, as data: what a model is asked, and what the extractive answer looks for.

`ask` is for a model that answers in single statements, each with the messages it stands on. `queries` go to recall;
`cues` are patterns with weights by which a passage is scored; both are English, as is most of what is recorded, and
other languages still answer through recall's ranks and the target's own names. No logic beyond the choice between code
and documents, and turning a person's own question into the same shape.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from daemon.model import Kind, Target
from daemon.recall.rank import parse
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
    """A person's question: it looks for its own words, and has no cues."""
    words = parse(text)
    return Question(
        id="own-" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12],
        heading=text.strip(),
        ask=text.strip(),
        queries=(text.strip(), " ".join((*words.named, *words.words))),
        kinds={Kind.ANSWER: 1.1, Kind.PROMPT: 1.0, Kind.REASONING: 0.8, Kind.TASK: 0.7},
    )


def of(target: Target, paths: Iterable[str] = ()) -> Sequence[Question]:
    """The default questions for what `paths` (those beneath the target) hold, then the target's own, each once."""
    texts = dict.fromkeys(text.strip() for text in target.questions if text.strip())
    return (*(DOCUMENTS if _are_documents(paths) else CODE), *(own(text) for text in texts))


def _are_documents(paths: Iterable[str]) -> bool:
    """Whether more than half of `paths` are texts for people, by their names."""
    endings = [PurePosixPath(path).suffix.lower() for path in paths]
    return 2 * sum(ending in _DOCUMENT_ENDINGS for ending in endings) > len(endings)
