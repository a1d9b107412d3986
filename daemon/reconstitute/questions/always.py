"""Asked of every target, whatever it holds."""

from __future__ import annotations

from daemon.model import Kind
from daemon.reconstitute.questions.question import Question

PURPOSE = Question(
    id="purpose",
    heading="Purpose",
    ask=(
        "What is this for? Say first, in one statement, what it is and what it does. Then, each in a statement of its "
        "own: who uses it, which problem it solves, and what it was explicitly not meant to do."
    ),
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
DECISIONS = Question(
    id="decisions",
    heading="Decisions",
    ask=(
        "What was decided, and why? One statement for each decision, oldest first: what was chosen, in place of which "
        "alternative, and by whom if that is said; the reason that was given goes with it. Where a later decision "
        "undid an earlier one, say so."
    ),
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
DEAD_ENDS = Question(
    id="dead-ends",
    heading="Dead ends",
    ask=(
        "What was tried and failed, or was given up? One statement for each attempt, oldest first: what was tried, "
        "what happened (the error message, if there was one), why it was given up, and what was done instead. Leave "
        "out failures that the same approach overcame later."
    ),
    queries=(
        "tried and did not work, gave up",
        "reverted, rolled back, removed again because it failed",
        "workaround instead, another approach",
    ),
    cues=(
        (r"\b(tried|attempt(s|ed)?|experiment(s|ed)?)\b", 1.4),
        (r"\b((did|does|do|could)(n'?t| not)|won'?t) (work|help|build|fit|scale)\b", 1.8),
        (r"\b(g[ai]ve(n)? up|giving up|abandon\w*|dead[- ]end|no way to|(is|was|turned out) impossible)\b", 2.5),
        (r"\b(revert\w*|roll(ed|ing)? (it |this |that )?back|undo|undid|undone|back(ed)? out|dropped again)\b", 1.8),
        (r"\b(instead|work ?around|another (way|approach)|different approach|too (slow|big|complex|fragile))\b", 1.0),
        (r"\b(fail(s|ed|ing)?|broke|rejected|unsupported|not supported)\b", 1.0),
    ),
    kinds={Kind.ANSWER: 1.2, Kind.PROMPT: 1.1, Kind.REASONING: 0.9, Kind.TASK: 0.5},
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
