"""Of which programs it is known what they may write: for scripts, which are read in place of taking all to be written.

What is not in any table here is another program, of which nothing is known.
"""

from __future__ import annotations

from daemon.transcript.shell.known_programs import packages, possible_writes, tables
from daemon.transcript.shell.known_programs.wrappers import PYTHON
from daemon.transcript.shell.names import READERS, WRITING, words

_FILTERS = words(
    "tr jq nl paste join comm column fold fmt expr bc rev tac base64 cksum sum shasum b2sum sha512sum kill wait "
    "hostname nproc uptime getconf tput clear pgrep ps lsof yes shuf factor numfmt pr expand unexpand look mktemp git "
    "awk find xargs parallel : [["
)
_NOT_HERE = words("tree less fd env tar unzip cpio 7z patch")
"""Readers and others with options that write, of which the tables do not know."""
_KNOWN = frozenset(
    {
        *READERS, *WRITING, *_FILTERS, *possible_writes.KNOWN, *packages.MANAGERS, *tables.DIALECTS, *tables.RUNNING,
        *tables.RUNNING_UNLESS, *tables.TESTING, *tables.LOOKING, "make", "gmake", "npx", "bunx", "pnpx", "uvx",
    }
) - _NOT_HERE  # fmt: skip


def is_known(name: str) -> bool:
    """Whether the tables tell what a program of this name may write."""
    return name in _KNOWN or PYTHON.fullmatch(name) is not None
