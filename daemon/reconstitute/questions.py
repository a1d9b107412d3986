"""The questions asked of every target, and a person's own in the same shape.

A model answers `ask` in single statements, each with the messages it stands on. Without a model the facts of the folder
stand under the same headings, and only a person's own question is searched for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from daemon.model import Target
from daemon.recall.query.parse import parse


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `ask` is its wording; `queries` go to recall (none: it is not searched for).

    `in_time_order`: its statements are told oldest first, each with its day.
    """

    id: str
    heading: str
    ask: str
    queries: tuple[str, ...] = ()
    in_time_order: bool = False


PURPOSE = Question(
    id="purpose",
    heading="Purpose",
    ask=(
        "What is this for? Say first, in one statement, what it is and what it does. Then, each in a statement of its "
        "own: who uses it, which problem it solves, and what it was explicitly not meant to do."
    ),
)
DECISIONS = Question(
    id="decisions",
    heading="Decisions",
    ask=(
        "What was decided, and why? One statement for each decision, oldest first: what was chosen, in place of which "
        "alternative, and by whom if that is said; the reason that was given goes with it. Where a later decision "
        "undid an earlier one, say so."
    ),
    in_time_order=True,
)
DEAD_ENDS = Question(
    id="dead-ends",
    heading="Dead ends",
    ask=(
        "What was tried and failed, or was given up? One statement for each attempt, oldest first: what was tried, "
        "what happened (the error message, if there was one), why it was given up, and what was done instead. Leave "
        "out failures that the same approach overcame later."
    ),
    in_time_order=True,
)
OPEN = Question(
    id="open",
    heading="Open problems",
    ask=(
        "What is unfinished, broken, uncertain or planned? One statement for each problem that was still open when the "
        "records end: what is wrong or missing, where (path, error message), and what was going to be done about it. "
        "Leave out what a later message shows to be done."
    ),
)
RUN = Question(
    id="run",
    heading="How to run it",
    ask=(
        "How is it installed, started and tested? One statement for each step, in the order a newcomer needs them, "
        "with the exact command, the folder it is run in, and what it needs first. Prefer commands that are recorded "
        "to have succeeded, and say which ones failed."
    ),
)
STRUCTURE = Question(
    id="structure",
    heading="Structure",
    ask=(
        "How is it organised? One statement for each part (folder, module, service, table): its path, what it does, "
        "and which other parts it calls or is called by. Begin with the part where the work starts."
    ),
)
CONFIGURATION = Question(
    id="configuration",
    heading="Configuration",
    ask=(
        "Which settings, environment variables, ports, credentials (by name, never by value) and outside services does "
        "it use? One statement for each: its exact name, where it is set, what it controls, and its value or default. "
        "Where it was changed: from what to what, and why."
    ),
)
SAYS = Question(
    id="says",
    heading="What it says",
    ask=(
        "What do these documents say? One statement for each document or chapter: its path, its subject, and its main "
        "claim, result or instruction. Say which document builds on which."
    ),
)
READERS = Question(
    id="readers",
    heading="For whom",
    ask=(
        "For whom was it written, and what for? One statement each for its readers, the occasion or deadline, where it "
        "was to be published or sent, and what was asked of its style, language and length."
    ),
)
STATE = Question(
    id="state",
    heading="In what state it is",
    ask=(
        "In what state is each document? One statement for each: finished, in revision, a draft or only an outline; "
        "what the last change to it was; and what was still to be written, checked or agreed upon."
    ),
)

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


def of_target(target: Target, paths: Iterable[str] = ()) -> Sequence[Question]:
    """The default questions for what `paths` (those beneath the target) hold, then the target's own, each once."""
    texts = dict.fromkeys(text.strip() for text in target.questions if text.strip())
    return (*(DOCUMENTS if _are_documents(paths) else CODE), *(own(text) for text in texts))


def _are_documents(paths: Iterable[str]) -> bool:
    """Whether more than half of `paths` are texts for people, by their names."""
    endings = [PurePosixPath(path).suffix.lower() for path in paths]
    return 2 * sum(ending in _DOCUMENT_ENDINGS for ending in endings) > len(endings)


def of_folder(relative: str) -> Question:
    """What is an inner folder for? `relative` is its path beneath the target."""
    return Question(
        id=f"purpose:{relative}",
        heading="Purpose",
        ask=(
            f"What is the folder {relative} for? What do the files in it do, and how does the rest use them? Describe "
            "the folder in the first statement, in one sentence; then only what matters most about it."
        ),
        queries=(f"{relative} purpose", relative.rsplit("/", 1)[-1]),
    )


def of_path(relative: str) -> Question:
    """What was a path that a model newly recorded, because messages speak of it?"""
    return Question(
        id=f"path:{relative}",
        heading=relative,
        ask=(
            f"What is {relative}? What was it for, and what became of it? Describe it in the first statement, in one "
            "sentence."
        ),
        queries=(relative, relative.rsplit("/", 1)[-1]),
    )
