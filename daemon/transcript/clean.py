"""A message's replay without its secrets, for whoever hands it out: contexts, exports.

A secret is told by the text around it. Where replay writes a record as a line of JSON its line breaks are escaped, and
what stood at the end of a line (``password: ...``) cannot be told any more; so such records are redacted before
they are written out, all others after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from daemon import records
from daemon.model import Json, Message, OllamaMessage
from daemon.redact import redact_value
from daemon.transcript.replay import BOOKKEEPING, IMAGE, replay

_AS_THEY_ARE = frozenset({"role", "images"})
_RECORD = "[opencode_"
"""How a line of JSON begins that stands for what Ollama has no place for."""


def clean_replay(message: Message, entries: Sequence[OllamaMessage] | None = None) -> list[OllamaMessage]:
    """The replay of `message`, redacted; structure and images are kept. `entries`: the replay, where it is known."""
    entries = replay(message) if entries is None else entries
    if any(_RECORD in str(entry.get("content")) for entry in entries):
        entries = replay(_clean_records(message))
    return [
        {key: value if key in _AS_THEY_ARE else redact_value({key: value})[key] for key, value in entry.items()}
        for entry in entries
    ]


def _clean_records(message: Message) -> Message:
    parts = tuple(
        replace(part, data=_clean_record(part.data)) for part in message.parts if part.type not in BOOKKEEPING
    )
    return replace(message, parts=parts, data=message.data | {"error": redact_value(message.data.get("error"))})


def _clean_record(data: Json) -> Json:
    shown: Json = redact_value(data)
    url = data.get("url")
    if isinstance(url, str) and IMAGE.match(url):
        shown["url"] = url
    attachments = records.table(data.get("state")).get("attachments")
    if isinstance(attachments, list):
        shown["state"]["attachments"] = [_attachment(one) for one in attachments]
    return shown


def _attachment(value: Any) -> Any:
    return _clean_record(value) if isinstance(value, dict) else redact_value(value)
