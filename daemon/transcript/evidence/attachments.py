"""Whole files that a record contains as data: a user's attachments, and images and documents in a read's answer.

The bytes of a data URL belong to a file only if the record also has its absolute path; a pasted image has only a name.
Images are evidence up to 1.1.65 only, because the bundles of 1.15.13 and 1.18.33 shrink large ones without recording
it. Texts that the read tool printed of an attached file are ranges or whole reads like any other.
"""

from __future__ import annotations

import binascii
import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote_to_bytes

from daemon import records
from daemon.model import FileEdit, Message, Operation, Part, Session
from daemon.transcript.evidence import call_results
from daemon.transcript.evidence.call_results import observation
from daemon.transcript.tool_calls import (
    PATH_KEYS,
    Call,
    absolute,
    call,
    file_edit,
    first_text,
    release,
    working_directory,
)

TOOL = "attachment"
_READ_CALL = "Called the Read tool with the following input: "
_DATA = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.ASCII)
_LAST_UNCHANGED = (1, 1, 65)
"""Up to here no image is made smaller."""


def announced_path(text: str) -> str:
    """The file in the text that announces an attachment's read, as named there; empty for any other text."""
    if not text.startswith(_READ_CALL):
        return ""
    try:
        return first_text(records.table(json.loads(text[len(_READ_CALL) :])), PATH_KEYS)
    except (ValueError, RecursionError):
        return ""


def announced_read(part: Part, message: Message, session: Session | None, text: str, attached: str) -> list[FileEdit]:
    """The READ in a synthetic text. 1.0 does not repeat the path, so `attached` is the last announced path."""
    version = session.version if session else ""
    lines = call_results.read_lines(text, {}, version)
    base = working_directory(message, session)
    path = absolute(lines.path or attached, base) if lines else None
    if lines is None or path is None:
        return []
    tool_call = Call(part, "read", "completed", {}, {}, {}, message.created, message.created, base)
    return [observation(tool_call, version, path, lines)]


def attached_state(message: Message, session: Session | None, number: int) -> list[FileEdit]:
    """The STATE from the `file` part with this number."""
    return [edit for edit, _ in _of_part(message, session, number)]


def state_by_read(tool_call: Call, version: str) -> list[FileEdit]:
    """The STATE from a read of an image or a document."""
    return [edit for edit, _ in _of_read(tool_call, version)]


def attached_blobs(message: Message, session: Session | None = None) -> list[bytes]:
    """The bytes of every attachment whose STATE has only their `blob` id, so that they can be archived."""
    blobs: list[bytes] = []
    version = session.version if session else ""
    for number, part in enumerate(message.parts):
        if part.type == "file":
            states = _of_part(message, session, number)
        elif part.type == "tool" and records.text(part.data.get("tool")).lower() == "read":
            states = _of_read(call(part, message, session), version)
        else:
            continue
        blobs += [content for edit, content in states if edit.blob]
    return blobs


def data_url(url: str) -> tuple[str, bytes] | None:
    """The media type and the bytes of a data URL, base64 or percent-encoded; None if it is malformed."""
    head = _DATA.match(url)
    if head is None:
        return None
    body = url[head.end() :]
    if "base64" not in head[2].lower().split(";"):
        return head[1].lower(), unquote_to_bytes(body)
    try:
        return head[1].lower(), binascii.a2b_base64(unquote_to_bytes(body), strict_mode=True)
    except binascii.Error:
        return None


def _of_part(message: Message, session: Session | None, number: int) -> Iterator[tuple[FileEdit, bytes]]:
    part = message.parts[number]
    url = records.text(part.data.get("url"))
    if not url.startswith("data:"):
        return
    path = _named(message, number)
    if path is None:
        return
    version = session.version if session else ""
    tool_call = Call(part, TOOL, "completed", {}, {}, {}, message.created, message.created, "")
    yield from _state(tool_call, version, path, url, records.text(part.data.get("mime")))


def _named(message: Message, number: int) -> str | None:
    """The absolute path in the record of an attachment: its source's, or that of the read just announced.

    Only OpenCode itself announces an absolute path before the bytes; the name must agree.
    """
    data = message.parts[number].data
    source = records.table(data.get("source"))
    path = absolute(records.text(source.get("path")), "")
    if path is not None:
        return path
    before = message.parts[number - 1].data if number else {}
    if before.get("synthetic") is not True:
        return None
    path = absolute(announced_path(records.text(before.get("text"))), "")
    name = posixpath.basename(records.text(data.get("filename")))
    return path if path is not None and posixpath.basename(path) == name else None


def _of_read(tool_call: Call, version: str) -> Iterator[tuple[FileEdit, bytes]]:
    files = tool_call.state.get("attachments")
    path = tool_call.path()
    if tool_call.status != "completed" or path is None or not isinstance(files, list) or len(files) != 1:
        return
    file = records.table(files[0])
    yield from _state(tool_call, version, path, records.text(file.get("url")), records.text(file.get("mime")))


def _state(tool_call: Call, version: str, path: str, url: str, mime: str) -> Iterator[tuple[FileEdit, bytes]]:
    read = data_url(url)
    if read is None or (mime and read[0] and mime.partition(";")[0].strip().lower() != read[0]):
        return
    kind, content = mime.lower() or read[0], read[1]
    number = release(version)
    if kind.startswith("image/") and (number is None or number > _LAST_UNCHANGED):
        return
    text, blob = None, ""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        blob = records.blob_id(content)
    edit = file_edit(tool_call, version, path, Operation.STATE, content=text, blob=blob, note="attached whole")
    yield replace(edit, tool=TOOL), content
