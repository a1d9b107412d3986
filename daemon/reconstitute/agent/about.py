"""The questions that are asked of one inner folder, and of one path that a model newly recorded."""

from __future__ import annotations

from daemon.reconstitute.questions import Question


def folder(relative: str) -> Question:
    """What an inner folder is for, by its path beneath the target."""
    return Question(
        id=f"purpose:{relative}",
        heading="Purpose",
        ask=(
            f"What is the folder {relative} for? What do the files in it do, and how does the rest use them? Describe "
            "the folder in the first statement, in one sentence; then only what matters most about it."
        ),
        queries=(f"{relative} purpose", relative.rsplit("/", 1)[-1]),
    )


def path(relative: str) -> Question:
    """What is known of a path that messages speak of."""
    return Question(
        id=f"path:{relative}",
        heading=relative,
        ask=(
            f"What is {relative}? What was it for, and what became of it? Describe it in the first statement, in one "
            "sentence."
        ),
        queries=(relative, relative.rsplit("/", 1)[-1]),
    )
