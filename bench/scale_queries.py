"""Queries of the speed benchmarks: known items, few words, common words, questions, patterns, similar spellings."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.scale_words import Vocabulary

ITEMS = 30
_QUESTIONS = (
    "why did we change the {0} of the {1} and what was the {2}",
    "how do I {0} the {1} when the {2} is missing",
    "where is the {0} for {1} and {2} defined",
    "what did we decide about the {0} and the {1} {2}",
    "which {0} failed after the {1} was moved to {2}",
)


def items(words: Vocabulary, seed: int) -> list[dict[str, Any]]:
    """Known items to plant: a sentence, the query for it, and a witness word beside that no query has.

    A third of the queries are a single word, a third that word and two common ones, a third an identifier.
    """
    random = np.random.default_rng(seed + 50)
    used_words = {str(word).lower() for word in words.words}
    planted = []
    for number in range(ITEMS):
        name, witness = _unheard(random, used_words), _unheard(random, used_words)
        common = [str(words.words[place]) for place in random.choice(words.content[:80], size=4, replace=False)]
        form = ("word", "words", "identifier")[number % 3]
        written_name = f"parse{name.capitalize()}Frame" if form == "identifier" else name
        query = f"{common[0]} {name} {common[1]}" if form == "words" else written_name
        sentence = f"Remember {common[0]} {written_name} {common[1]} {witness} {common[2]} {common[3]}"
        kind = ("prompt", "answer")[number % 2]
        planted.append(
            {"query": query, "name": written_name, "witness": witness, "form": form, "kind": kind, "sentence": sentence}
        )
    return planted


def _unheard(random: np.random.Generator, used_words: set[str]) -> str:
    """A word that the vocabularies never make, with consonants that none of their syllables end with."""
    onsets, vowels, codas = ("zw", "vl", "kr", "dw", "pf"), "aeiou", ("lk", "rn", "mp", "ft", "nd")
    while True:
        word = "".join(
            onsets[int(random.integers(5))] + vowels[int(random.integers(5))] + codas[int(random.integers(5))]
            for _ in range(2)
        )
        if word not in used_words:
            used_words.add(word)
            return word


def plan(words: Vocabulary, planted: list[dict[str, Any]], seed: int, example: dict[str, Any]) -> dict[str, Any]:
    """Queries by their kind; `example` is a session in the middle, for filters."""
    random = np.random.default_rng(seed + 60)
    head = [str(words.words[place]) for place in words.content]
    edge = 400 if words.name == "small" else 4000
    few = [
        " ".join(words.among(random, 120, edge) for _ in range(2 + number % 2))
        for number in range(ITEMS)
    ]  # fmt: skip
    common = [
        " ".join(head[0:4]), " ".join(head[4:8]), " ".join(head[1:9:2]), " ".join(head[0:3]),
        f"the {head[0]} in the {head[1]}", " ".join(head[2:8]),
    ]  # fmt: skip
    questions = [
        _QUESTIONS[number % 5].format(*(words.among(random, 40, 700) for _ in range(3))) for number in range(15)
    ]
    return {
        "known": planted,
        "few": few,
        "common": common,
        "question": questions,
        "near": [{**item, "query": _typo(item["name"], number)} for number, item in enumerate(planted)],
        "regex": {
            "known": [f"{item['name'][:-5]}\\w{{3}}{item['name'][-2:]}" for item in planted],
            "few": [r"[a-z]+ed\s+" + few[number].split()[0] for number in range(10)],
            "common": [
                rf"{head[0]}\s+{head[1]}", rf"\b{head[2]}s?\b", r"[A-Z]\w+Error\b",
                r"\bE[A-Z]{4,}_[A-Z]{4,}\b", r"\b\d{4,5}\b",
            ],
        },
        "warm": [words.among(random, 100, edge) for _ in range(8)],
        "chunks": [" ".join(words.draw(random, 200).tolist())[:900] for _ in range(30)],
        "example": example,
    }  # fmt: skip


def _typo(name: str, number: int) -> str:
    """One letter dropped, doubled or swapped, never the first two."""
    at = 3 + number % max(1, len(name) - 5)
    if number % 3 == 0:
        return name[:at] + name[at + 1 :]
    if number % 3 == 1:
        return name[:at] + name[at] + name[at:]
    return name[:at] + name[at + 1] + name[at] + name[at + 2 :]
