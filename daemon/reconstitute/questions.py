"""The questions asked of every target, as data: what a model is asked, and what the extractive answer looks for.

`ask` is for a model. `queries` go to recall; `cues` are patterns with weights by which a passage is scored; both are
English, as is most of what is recorded, and other languages still answer through recall's ranks and the target's own
names. No logic beyond turning a person's own question into the same shape.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from daemon.model import Kind, Target
from daemon.recall.rank import parse


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `kinds` weighs what a passage was, `favours` is ``early``, ``late`` or empty.

    `cues` are (regular expression, weight); without a cue or a shared word a passage is no answer. `commands` says
    whether shell commands that ended well may answer too; `in_time_order`: the best quotes, oldest first.
    """

    id: str
    heading: str
    ask: str
    queries: tuple[str, ...]
    cues: tuple[tuple[str, float], ...] = ()
    kinds: dict[str, float] = field(default_factory=dict)
    favours: str = ""
    opening: float = 0.0
    commands: bool = False
    in_time_order: bool = False


PURPOSE = Question(
    id="purpose",
    heading="Purpose",
    ask="What is this for? Who uses it, and what problem does it solve?",
    queries=("purpose goal overview of this project", "build create a new application service tool library"),
    cues=(
        (r"\b(purpose|goal|aim|idea) (of|is|was)\b|\bin order to\b|\bso that\b", 2.0),
        (r"\b(build|create|make|write|implement|design|set up|start) (me )?(an?|the|some|my|our)\b", 1.5),
        (
            r"\bis (an?|the) [\w -]{0,40}?(tool|service|app|api|library|script|module|project|program|site|game|bot)",
            2.0,
        ),
        (r"\b(want|need|would like)s? (to|an?|the|you to)\b", 1.0),
        (r"\bthis (project|folder|repo(sitory)?|module|package|file|script|app|tool|service)\b", 1.5),
    ),
    kinds={Kind.PROMPT: 1.5, Kind.ANSWER: 1.0, Kind.REASONING: 0.4, Kind.TASK: 0.8},
    favours="early",
    opening=2.0,
)
STRUCTURE = Question(
    id="structure",
    heading="Structure",
    ask="How is it organised? Which parts are there, what does each do, and how do they work together?",
    queries=("structure architecture layout modules components", "which file contains which part"),
    cues=(
        (r"\b(structure|architecture|layout|organi[sz]ed|layers?|components?|modules?|packages?)\b", 1.2),
        (r"\b(lives?|sits?|stands?|goes|placed|kept|defined|stored) (in|under|beneath)\b", 1.6),
        (r"\b(consists? of|depends on|calls|imports|contains|split into|talks to|wraps)\b", 1.2),
        (r"[\w/-]+\.\w{1,5}\W{0,3}(:|[-–—]|is|has|holds|contains)\s", 1.2),
    ),
    kinds={Kind.ANSWER: 1.2, Kind.PROMPT: 1.0, Kind.REASONING: 0.7, Kind.TASK: 0.7},
)
DECISIONS = Question(
    id="decisions",
    heading="Decisions",
    ask="What was decided, when and why? Which alternatives were rejected?",
    queries=("decided decision because trade-off", "use this instead of that, rather than", "why did we choose"),
    cues=(
        (r"\b(decid\w+|decisions?|chose|chosen|choos\w+|opted|settled on|agreed|picked)\b", 2.5),
        (r"\b(instead of|rather than|in favou?r of|over the alternative|trade-?offs?|rejected|ruled out)\b", 2.0),
        (r"\b(because|since it|the reason|so that|therefore|that is why|which is why)\b", 1.2),
        (r"\b(let'?s|we'?ll|we will|we should|i'?ll|going to|go with|stick (to|with)|switch(ed)? to)\b", 0.8),
        (r"\b(rather|must|should|always|never|don'?t|do not|prefer\w*|rename|move|drop|replace|keep)\b", 0.8),
    ),
    kinds={Kind.PROMPT: 1.3, Kind.ANSWER: 1.1, Kind.REASONING: 0.8, Kind.TASK: 0.5},
    in_time_order=True,
)
OPEN = Question(
    id="open",
    heading="Open problems",
    ask="What is unfinished, broken, uncertain or planned?",
    queries=("todo not yet done open problem remaining", "fails failing broken bug error", "next steps later"),
    cues=(
        (r"(?-i:\b(TODO|FIXME|XXX|HACK|WIP)\b)", 2.5),
        (
            r"\b(not yet|still (to|need\w*|missing|fail\w*|open|broken)|unfinished|incomplete|remaining|left to do)\b",
            2.0,
        ),
        (r"\b(fail(s|ed|ing|ure)?|broken|bugs?|does(n'?t| not) work|crash\w*|wrong|regression|flaky)\b", 1.4),
        (r"\b(known (issue|problem|limitation)s?|limitations?|caveats?|missing|unclear|unsure|not implemented)\b", 1.6),
        (r"\b(next steps?|later|follow[- ]up|for now|in the future|should also|would (still )?(add|need))\b", 1.2),
    ),
    kinds={Kind.ANSWER: 1.2, Kind.PROMPT: 1.1, Kind.REASONING: 0.7, Kind.TASK: 0.5},
    favours="late",
)
RUN = Question(
    id="run",
    heading="How to run it",
    ask="How is it installed, configured, started and tested?",
    queries=("how to run start install test it", "run the tests", "command to start the server"),
    cues=(
        (r"\b(run|start|launch|install|deploy|serve|execute|test)(s|ed|ning|ing)? (it|with|by|the|via|using)\b", 1.5),
        (r"\b((npm|pnpm|yarn|bun) (run|install|start|test|i)\b|npx \w|pip3? install|uv (run|sync))", 2.0),
        (r"\b(python3? (-m |\S+\.py)|pytest\b|flask run|cargo (run|build|test)|go (run|build|test)|docker \w)", 2.0),
        (r"`(make|\./[\w./-]+)( [\w-]+)?`|(^|\s)\./[\w/-]+\.sh\b", 2.0),
        (r"\b(usage|listens? on|port \d{2,5}|environment variables?|requirements?|prerequisites?)\b", 1.4),
        (r"\bhttps?://(localhost|127\.0\.0\.1)", 1.2),
    ),
    kinds={Kind.ANSWER: 1.2, Kind.PROMPT: 0.8, Kind.REASONING: 0.4, Kind.TASK: 0.4},
    favours="late",
    commands=True,
)

DEFAULT = (PURPOSE, STRUCTURE, DECISIONS, OPEN, RUN)


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


def of(target: Target) -> Sequence[Question]:
    """The default questions, then the target's own, each once."""
    texts = dict.fromkeys(text.strip() for text in target.questions if text.strip())
    return (*DEFAULT, *(own(text) for text in texts))
