"""Every weight of the ranking, in one place.

They were fitted on 2026-11-23 with the built-in model by bench/fit.py, on six question sets at once (conversations, web
questions over code, frequently asked questions, commands, functions with and without their names), and judged by
leave-one-set-out, then rounded towards what words alone do best with. The figures are in docs/benchmarks.md ("How
good"). After a change here run bench/quality.py: hybrid must be below the better of its halves nowhere by more than the
interval.

Kinds of text are weighed against each other in the lexical index (index/lexical/schema.py, GROUPS): what was said 1,
reasoning 0.8, tool inputs 0.5, tool outputs 0.25.
"""

from __future__ import annotations

from daemon.model import Kind
from daemon.recall.query.parse import Tier

# -- what a message's score is made of -------------------------------------------------------------------------------

FEATURES = {"words": 0.6, "window": 1.9, "coverage": 1.2, "proximity": 0.1, "meaning": 3.0}
"""The most that each of fuse.Features adds to a score."""
WINDOW_FADES = 600.0
"""The length of a message, in characters, at which its window counts half: short messages depend on neighbours."""
UNRELATED, ALIKE = 0.1, 0.8
"""The cosines of unrelated texts and of texts with the same meaning, mapped to meaning 0 and 1."""
VERBATIM = 0.1
"""For a text that the word index missed, but that holds a name or phrase verbatim."""
NAMES = {Tier.WHOLE: 0.7, Tier.SOME: 0.4, Tier.INSIDE: 0.15}
"""For a text that holds names of a question with other words: all of them, some, or only inside longer ones."""
DAY = 3.0
"""For a message of a day that the query names: as much as for one with the same meaning."""
MONTH = 0.5
"""For a message of a month that the query names, as a share of DAY."""
DAYS_AFTER = (0.6, 0.4, 0.4)
"""For a message of the following days, as shares of DAY: people talk about things afterwards."""

# -- the share of its weight at which meaning counts ------------------------------------------------------------------

MEANING_OF_NAMES = 0.05
"""For a bare name: meaning is a poor guide to names, and decides only ties."""
MEANING_BESIDE_NAMES = 0.5
"""For a name with one other word, if a text holds the name, which ranks first by other rules anyway."""
MEANING_OF_UNKNOWN_WORDS = 0.3
"""For a question of which the model knows no word, as in a language that it was not made for. Then vectors compare the
spelling, which still helps a little. The share rises to 1 when half of the letters are in known words. Of 20 sets it
lowered Dutch and Swedish manuals by .02, which stay above words alone, and no other by more than .001. It raised
Turkish, Spanish and Portuguese ones to the level of words, and did not change English ones (docs/benchmarks.md)."""
MEANING_IN_PART = 0.3
"""While only some messages have vectors: those without must not rank below those with one."""

# -- what is similar enough ------------------------------------------------------------------------------------------

LEAST_COSINE = 0.25
"""A text without words of the query is no result below this cosine. The built-in model, of the MiniLM family, puts
unrelated texts at about -0.15 to 0.2 and related ones from 0.4 on (measured)."""
SHORT_COSINE = 0.3
"""Added to LEAST_COSINE, divided by the square of the text's words: one word needs 0.55, two 0.33, five 0.26.
With the built-in model "ok", "Done." and their like have up to 0.5 to other words, texts of two words up to 0.35, of
three 0.26 (measured: 15 texts, 13 words)."""
LEAST_OF_BEST_COSINE = 0.5
"""The same, as a share of the best cosine; low, so that weaker answers of a question stay."""
COMMON_NAME = 0.1
"""A capitalised word in a larger share of all texts becomes "I" or "my" in the text to embed."""

# -- the order of results --------------------------------------------------------------------------------------------

TIER_SHARES = {Tier.WHOLE: 1.0, Tier.SOME: 0.75, Tier.INSIDE: 0.5, Tier.NONE: 0.35}
"""Factors of the shown score, by how well a text holds the query's names. Their order is a rule, not a weight."""
SIMILAR_SPELLING_SHARE = 0.6
"""The same for a text with only similar spellings."""
KIND_SHARES = {Kind.REASONING: 0.9, Kind.TASK: 0.9, Kind.TOOL_INPUT: 0.8, Kind.TOOL_OUTPUT: 0.7}
"""The shown score of a literal or regex match, by kind; 1 for others. These matches are ordered by time."""
FURTHER = 0.3
"""Each further message of a session or project adds this much of what the one before it would."""
COUNTED = 3
"""Messages of a session or project that count, so that length alone gains nothing."""
COMPARABLE = 0.5
"""A result of another session replaces one too many of the same session if it has at least this share of its score."""
