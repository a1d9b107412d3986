"""Asked of every target, whatever it holds."""

from __future__ import annotations

from daemon.reconstitute.questions.question import Question

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
