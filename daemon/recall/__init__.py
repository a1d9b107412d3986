"""The act of searching: a question in, hits that exist in the archive out.

`search` asks the indexes and answers with hits, `rank` decides their order, `snippet` cuts the shown text, `context`
turns hits into a `messages[]` array for a model. An answer never hides that something was unavailable or left out: it
says so in its warnings. Nothing here writes, and nothing here asks a chat model.
"""

from __future__ import annotations

from daemon.recall.context import window
from daemon.recall.search import Answer, Recall

__all__ = ["Answer", "Recall", "window"]
