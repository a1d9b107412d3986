"""One pass: source → transcript → archive (cursor last) → outbox → embed → index.

`intake` takes a source's changes into the archive, `drain` takes the outbox into the indexes. Either can stop anywhere
and is simply begun again: the cursor moves in the commit that holds its data, and an outbox entry goes only after the
index has it.
"""

from daemon.ingest.capture import Capture, Captured
from daemon.ingest.evidence import Evidence
from daemon.ingest.indexes import Chosen, Upkeep
from daemon.ingest.outbox import Drained, Entries, LexicalDrain, SemanticDrain, entry_of
from daemon.ingest.scan import Intake
from daemon.ingest.session_scan import ScanResult

__all__ = [
    "Capture",
    "Captured",
    "Chosen",
    "Drained",
    "Entries",
    "Evidence",
    "Intake",
    "LexicalDrain",
    "ScanResult",
    "SemanticDrain",
    "Upkeep",
    "entry_of",
]
