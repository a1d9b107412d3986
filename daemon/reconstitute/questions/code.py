"""Asked of a target that holds programs."""

from __future__ import annotations

from daemon.reconstitute.questions.question import Question

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
