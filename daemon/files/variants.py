"""Texts as they may have stood on the disk, where a record shows them without byte order mark, CRs or final newline.

A snapshot tree names the hash of every file, also of those whose content is not to be had. The variant that has this
hash is the content: nothing else has.
"""

from __future__ import annotations

from collections.abc import Iterator

from daemon.files.content import Content
from daemon.records import blob_id

_MARK = b"\xef\xbb\xbf"


def with_id(text: str, id_: str) -> Content | None:
    """The variant of `text` whose git blob id is `id_`; None where none is."""
    for data in _variants(text):
        if blob_id(data) == id_:
            return Content(data, id_=id_)
    return None


def _variants(text: str) -> Iterator[bytes]:
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n")
    for lines in dict.fromkeys((text.removeprefix("\ufeff"), plain, plain + "\n")):
        for ended in dict.fromkeys((lines, lines.replace("\r\n", "\n").replace("\n", "\r\n"))):
            data = ended.encode("utf-8", "replace")
            yield data
            yield _MARK + data
