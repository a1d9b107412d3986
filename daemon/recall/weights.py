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
"""What each of fuse.Features counts at most."""
WINDOW_FADES = 600.0
"""Characters of a message at which its window counts half: short ones need their neighbours to be understood."""
UNRELATED, ALIKE = 0.1, 0.8
"""The cosines of texts that have nothing to do with each other, and of those that say the same: meaning 0 and 1."""
VERBATIM = 0.1
"""A text that the word index missed, but that holds a name or phrase as it stands."""
NAMES = {Tier.WHOLE: 0.7, Tier.SOME: 0.4, Tier.INSIDE: 0.15}
"""A text that holds the names of a question that says more than these: all of them, some, or inside longer ones."""
DAY = 3.0
"""A message of a day that the query names: as much as one that means just the same."""
MONTH = 0.5
"""A message of a month that the query names, as a share of DAY."""
DAYS_AFTER = (0.6, 0.4, 0.4)
"""A message of the next days, as a share of DAY: things are told when they are over."""

# -- the share of its weight that meaning has --------------------------------------------------------------------------

MEANING_OF_NAMES = 0.05
"""Where only a name is asked for: meaning is a poor guide to a name, and decides only among equals."""
MEANING_BESIDE_NAMES = 0.5
"""Where a query has one word besides, and a text holds the name: it stands first by other rules anyway."""
MEANING_OF_UNKNOWN_WORDS = 0.3
"""Where the model knows none of a question's words, as in a language that it was not made for: what it spells out of
pieces is similar by spelling, which still helps a little. It rises to 1 where half of the letters stand in known words.
Of 20 sets it took Dutch and Swedish manuals down by .02, which stay above words alone, and no other by more than .001;
it put Turkish, Spanish and Portuguese ones level with words, and left English questions alone (docs/benchmarks.md)."""
MEANING_IN_PART = 0.3
"""While only some messages have vectors: what has none yet must not stand below what has."""

# -- what is near enough ---------------------------------------------------------------------------------------------

LEAST_COSINE = 0.25
"""Below this a text that shares no word with the query is no result. The built-in model, of the MiniLM family, puts
unrelated texts at about -0.15 to 0.2 and related ones from 0.4 on (measured)."""
SHORT_COSINE = 0.3
"""Added to LEAST_COSINE, divided by the square of the text's words: one word needs 0.55, two 0.33, five 0.26.
With the built-in model "ok", "Done." and their like have up to 0.5 to other words, texts of two words up to 0.35, of
three 0.26 (measured: 15 texts, 13 words)."""
LEAST_OF_BEST_COSINE = 0.5
"""The same, as a share of the best cosine; low, so that a question keeps its lesser answers."""
COMMON_NAME = 0.1
"""A capitalised word in a larger share of all texts tells nothing: in the text to be embedded it becomes I or my."""

# -- the order of results --------------------------------------------------------------------------------------------

TIER_SHARES = {Tier.WHOLE: 1.0, Tier.SOME: 0.75, Tier.INSIDE: 0.5, Tier.NONE: 0.35}
"""What is shown of a score, by how well a text holds the query's names. The tiers' order is a rule, not a weight."""
SIMILAR_SPELLING_SHARE = 0.6
"""The same where a text has only near spellings."""
KIND_SHARES = {Kind.REASONING: 0.9, Kind.TASK: 0.9, Kind.TOOL_INPUT: 0.8, Kind.TOOL_OUTPUT: 0.7}
"""The score shown of a literal or regex match, by its kind; all others 1. The order there is by time."""
FURTHER = 0.3
"""Each further message of a session or project adds this much of what the one before it would."""
COUNTED = 3
"""Messages of a session or project that count, so that nothing is gained by length alone."""
COMPARABLE = 0.5
"""A result of another session goes before one too many of the same if it has at least this share of its score."""
