"""What the error of a failed call tells of a file: its old text was not there, or no file was; or who refused it.

The wordings are those of the released bundles; an error that could mean something else tells nothing.
"""

from __future__ import annotations

import re

from daemon import records
from daemon.transcript.evidence import reads
from daemon.transcript.tool_calls import Call, absolute

MODIFIED = "OpenCode found it modified since it was last read"
"""The note of what a call that was refused for this tells: the change came from outside, before the call."""

_NOT_FOUND = re.compile(r"(?:Error: )?(?:oldString not found in content$|Could not find oldString in the file\.)")
"""1.0; 1.1.65 and later, and OpenCode 2, which looks for exact matches only. Up to 0.1 one text stood for "not found"
and "found twice", so that it is none of these."""
_BEFORE_WORK = re.compile(
    r"invalid arguments|unavailable tool|permission|rejected|denied|must have been read|has been modified since|"
    r"must be different|file not found|not found:|is a directory",
    re.IGNORECASE,
)
_BY_USER = re.compile(
    r"(?:Error: )?The user (?:rejected permission to use|has specified a rule which prevents you from using) this\b"
)
_NO_FILE = re.compile(r"(?:Error: )?File not found: ")
_SUGGESTION = "\n\nDid you mean one of these?\n"
_FIRST_WITH_FOLDERS = (1, 1, 65)


def is_not_found(made: Call) -> bool:
    """Whether an edit was refused because its old text was not found in the file."""
    return made.status == "error" and not made.is_aborted and _NOT_FOUND.match(_error(made)) is not None


def saw_change(made: Call) -> bool:
    """Whether a call was refused because the file had changed since it was last read."""
    return made.status == "error" and "has been modified since it was last read" in _error(made)


def is_by_user(made: Call) -> bool:
    """Whether the user, or a rule of theirs, did not allow the call."""
    return made.status == "error" and _BY_USER.match(_error(made)) is not None


def is_before_work(made: Call) -> bool:
    """Whether the call was refused as a whole, before anything was done."""
    error = _error(made)
    return is_by_user(made) or (_NOT_FOUND.match(error) is None and _BEFORE_WORK.search(error) is not None)


def found_no_file(made: Call, version: str, path: str) -> bool:
    """Whether a read found nothing at `path`. Versions before 1.1.65 said so of a folder, too: then it is not known."""
    number = reads.release(version)
    error = _error(made)
    begin = _NO_FILE.match(error)
    if made.status != "error" or begin is None or number is None or number < _FIRST_WITH_FOLDERS:
        return False
    return absolute(error[begin.end() :].partition(_SUGGESTION)[0], made.base) == path


def _error(made: Call) -> str:
    return records.text(made.state.get("error"))
