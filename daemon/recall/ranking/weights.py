"""Every weight of the ranking, in one place.

They were chosen in November 2026 with the built-in model, as one set for conversations (bench/quality_locomo.py) and
code (bench/quality_code.py): values with which both halves of both question sets do well. So no half is untouched, and
other data may do worse. The figures, and what each ingredient earned, are in docs/benchmarks.md ("How good"). Run
both benchmarks before and after a change here: they ask the engine that everybody gets.

Kinds of text are weighed against each other in the lexical index (index/lexical/schema.py, GROUPS): what was said 1,
reasoning 0.8, tool inputs 0.5, tool outputs 0.25.
"""

from __future__ import annotations

from daemon.model import Kind
from daemon.recall.query.parse import Tier

# -- what a message's score is made of -------------------------------------------------------------------------------

WINDOWS = 0.7
"""The best text that is read together with its neighbours, if it holds all of the query."""
LEXICAL = 0.1
"""The best part by its words (BM25)."""
COVERAGE = 0.3
"""A part that holds all of the query, however long it is and however often it says it."""
PROXIMITY = 0.25
"""At most, for words that stand near each other in a part as in the query: each such pair counts its share of the
query's rarity."""
VERBATIM = 0.1
"""A text that the word index missed, but that holds a name or phrase as it stands."""
DAY = 0.8
"""A message of a day that the query names: about half of the best that words and meaning give."""
MONTH = 0.5
"""A message of a month that the query names, as a share of DAY."""
DAYS_AFTER = (0.6, 0.4, 0.4)
"""A message of the next days, as a share of DAY: things are told when they are over."""

# -- what a cosine of 1 counts; it counts squared, because unrelated texts still have one of 0.2 -----------------------

SEMANTIC = 1.8
SEMANTIC_OF_NAMES = 0.1
"""Where only a name is asked for: meaning is a poor guide to a name, and decides only among equals."""
SEMANTIC_BESIDE_NAMES = 0.9
"""Where a query says more than the names in it: what holds them stands first by other rules anyway."""
SEMANTIC_IN_PART = 0.5
"""While only some messages have vectors: what has none yet must not stand below what has."""

# -- what is near enough ---------------------------------------------------------------------------------------------

LEAST_COSINE = 0.25
"""Below this a text that shares no word with the query is no result. The built-in model, of the MiniLM family, puts
unrelated texts at about -0.15 to 0.2 and related ones from 0.4 on (measured)."""
LEAST_OF_BEST_COSINE = 0.5
"""The same, as a share of the best cosine; low, so that a question keeps its lesser answers."""
COMMON_NAME = 0.1
"""A capitalised word in a larger share of all texts tells nothing: in the text to be embedded it becomes I or my."""

# -- the order of results --------------------------------------------------------------------------------------------

TIER_SHARES = {Tier.WHOLE: 1.0, Tier.SOME: 0.75, Tier.INSIDE: 0.5, Tier.NONE: 0.35}
"""What is shown of a score, by how well a text holds the query's names. The tiers' order is a rule, not a weight."""
NEAR_SPELLING_SHARE = 0.6
"""The same where a text has only near spellings."""
KIND_SHARES = {Kind.REASONING: 0.9, Kind.TASK: 0.9, Kind.TOOL_INPUT: 0.8, Kind.TOOL_OUTPUT: 0.7}
"""The score shown of a literal or regex match, by its kind; all others 1. The order there is by time."""
FURTHER = 0.3
"""Each further message of a session or project adds this much of what the one before it would."""
COUNTED = 3
"""Messages of a session or project that count, so that nothing is gained by length alone."""
COMPARABLE = 0.5
"""A result of another session goes before one too many of the same if it has at least this share of its score."""
