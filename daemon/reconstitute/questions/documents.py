"""Asked of a target that holds mostly documents."""

from __future__ import annotations

from daemon.reconstitute.questions.question import Question

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
