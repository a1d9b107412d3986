"""Every error of ours, and what the caller does about it.

ReconstituteError
├── Retry                     may work later: keep the work queued, try again
│   ├── DiskFull              there is no room on our disk: what was to be written stays queued
│   ├── SourceBusy            the record is being written, or the database is locked
│   ├── SourceMissing         OpenCode's data is gone or of unknown layout: nothing follows from that, scan again
│   ├── ArchiveLocked         another process holds the archive: wait until it has ended
│   ├── IndexBroken           the index failed a check: it is rebuilt from the archive
│   ├── ModelUnavailable      the model cannot be reached or loaded
│   └── DaemonUnreachable     nothing answers on the control socket
│       └── ServesAnother     a service answers there, but keeps another archive
├── Skip                      this one item is unusable: give the reason, go on with the others
│   ├── BadRecord             a record of OpenCode's that cannot be read
│   │   └── Unreadable        the system refuses to read it now: it is tried again at every look
│   ├── BadInput              a text the embedder cannot take
│   ├── BadReply              a model's reply that cannot be used; it is told what was wrong
│   ├── ContextLost           a model server dropped part of what it was sent: this answer is void
│   ├── BadBackup             a backup that is damaged or cannot be read by this version
│   ├── OutputRefused         a place that is not ours to write to
│   │   └── OutputFailed      it is, and could not be written to, in a way that may pass
│   └── BadRequest            a request file or a control call that makes no sense
│       └── NotRecorded       nothing is recorded of the path it names
└── Stop                      going on would lose or damage something: end with this message
    ├── ConfigError           the configuration is wrong
    └── ArchiveCorrupt        the archive failed a checksum

Code that goes on after an error catches `Retry` and `Skip` and lets a `Stop` through, which ends the command, the call
or the service. A message names the thing, the cause and the fix, in that order.
"""

from __future__ import annotations


class ReconstituteError(Exception):
    """Root of the tree; `exit_code` is what the command line ends with, `status` a more exact HTTP status, if any."""

    exit_code = 1
    status: int | None = None


class Retry(ReconstituteError):
    """May work later."""

    exit_code = 75  # EX_TEMPFAIL


class DiskFull(Retry):
    """The disk is full. Nothing is lost, because the work stays queued until there is space."""


class SourceBusy(Retry):
    """The record is being written at this moment, or the database is locked."""


class ModelUnavailable(Retry):
    """The model server does not answer or does not have the model, or the built-in model cannot be loaded."""


class SourceMissing(Retry):
    """OpenCode's data is not there, or its layout is unknown. Nothing is concluded from that."""

    exit_code = 66  # EX_NOINPUT


class ArchiveLocked(Retry):
    """Another process holds the archive."""

    exit_code = 73  # EX_CANTCREAT


class IndexBroken(Retry):
    """The index failed a check. It is rebuilt from the archive."""

    exit_code = 74  # EX_IOERR


class DaemonUnreachable(Retry):
    """Nothing answers on the control socket."""

    exit_code = 69  # EX_UNAVAILABLE


class ServesAnother(DaemonUnreachable):
    """A service answers on the control socket, but keeps another archive than the caller means."""


class Skip(ReconstituteError):
    """One item is unusable; the rest goes on."""

    exit_code = 65  # EX_DATAERR


class BadRecord(Skip):
    """A record of OpenCode's that cannot be read."""


class Unreadable(BadRecord):
    """A record of OpenCode's that the system refuses to read now, whatever for; its content may be good."""


class BadInput(Skip):
    """A text that the embedder cannot take."""


class BadReply(Skip):
    """What a model replied cannot be used; the message is written for the model, and says what was wrong.

    `reply` is its text, where it had one: the model is to see what it is told about.
    """

    def __init__(self, message: str, reply: str = "") -> None:
        super().__init__(message)
        self.reply = reply


class ContextLost(Skip):
    """A model server dropped part of a conversation without saying so: whatever it answered is void."""


class BadBackup(Skip):
    """A backup that is damaged, is none, or was made by a newer version."""


class OutputRefused(Skip):
    """A place that is not ours to write to."""

    exit_code = 73


class OutputFailed(OutputRefused):
    """A place of ours that could not be written to, in a way that may pass."""


class BadRequest(Skip):
    """A request file or a control call that makes no sense."""

    exit_code = 64  # EX_USAGE


class NotRecorded(BadRequest):
    """Nothing is recorded of a path; the message names those that are near it."""

    exit_code = 4  # as of commands that find nothing


class Stop(ReconstituteError):
    """Going on would lose or damage something: nobody catches it and goes on."""


class ConfigError(Stop):
    """The configuration is wrong."""

    exit_code = 78  # EX_CONFIG


class ArchiveCorrupt(Stop):
    """The archive failed a checksum."""

    exit_code = 74


def described(error: BaseException, message: str) -> dict[str, str | int]:
    """An error as every door says it in JSON; `message` is its text, redacted."""
    code = error.exit_code if isinstance(error, ReconstituteError) else ReconstituteError.exit_code
    return {"type": type(error).__name__, "message": message, "exitCode": code}
