"""Whole files that a record carries as data are taken where it says which file, and only then."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.model import FileEdit, Message, Operation
from daemon.records import blob_id
from daemon.transcript.evidence.attachments import attached_blobs, data_url
from daemon.transcript.evidence.edits import edits
from tests.support.stores.records import BASE, START, message, session, text, tool

PNG = b"\x89PNG\r\n\x1a\n\0\xff"
PDF = b"%PDF-1.7\n\xff\xfe"


def _url(content: bytes, mime: str = "text/plain") -> str:
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"


def _file(content: bytes, mime: str = "text/plain", **fields: Any) -> dict[str, Any]:
    return {"type": "file", "mime": mime, "filename": "a.bin", "url": _url(content, mime), **fields}


def _announced(path: str = f"{BASE}/a.bin") -> dict[str, Any]:
    return text(f'Called the Read tool with the following input: {{"filePath":"{path}"}}', synthetic=True)


def _read(path: str = f"{BASE}/a.bin", *files: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return tool("read", {"filePath": path}, "PDF read successfully", attachments=list(files), **fields)


def _states(made: Message, version: str = "1.1.65") -> list[FileEdit]:
    return [edit for edit in edits(made, session(version=version)) if edit.operation is Operation.STATE]


def test_a_text_with_its_path_is_the_whole_file() -> None:
    made = message(_file("é\r\nx".encode(), source={"type": "file", "path": f"{BASE}/a.txt"}), created=START + 3)
    (one,) = _states(made)
    assert (one.path, one.content, one.blob, one.time, one.tool) == (
        f"{BASE}/a.txt",
        "é\r\nx",
        "",
        START + 3,
        "attachment",
    )
    assert attached_blobs(made, session()) == []


def test_other_bytes_are_named_and_handed_over() -> None:
    made = message(_announced(), _file(PNG, "image/png"))
    (one,) = _states(made)
    assert (one.path, one.content, one.blob) == (f"{BASE}/a.bin", None, blob_id(PNG))
    assert attached_blobs(made, session(version="1.1.65")) == [PNG]


def test_a_read_answers_a_document_whole() -> None:
    made = message(_read(f"{BASE}/a.bin", _file(PDF, "application/pdf"), end=START + 9), role="assistant")
    for version in ("1.1.65", "1.18.33"):
        (one,) = _states(made, version)
        assert (one.path, one.blob, one.time, one.tool) == (f"{BASE}/a.bin", blob_id(PDF), START + 9, "attachment")
        assert attached_blobs(made, session(version=version)) == [PDF]


NOT_EVIDENCE = {
    "only a name": [_file(b"x")],
    "a name as source": [_file(b"x", source={"type": "file", "path": "a.bin"})],
    "announced by a name": [_announced("a.bin"), _file(b"x")],
    "announced for another file": [_announced(f"{BASE}/b.bin"), _file(b"x")],
    "announced by a person": [text(f'Called the Read tool with the following input: {{"filePath":"{BASE}/a.bin"}}'), _file(b"x")],
    "announced earlier": [_announced(), text("look"), _file(b"x")],
    "no data": [_file(b"x", url="file:///a.bin", source={"path": f"{BASE}/a.bin"})],
    "of another kind than it says": [_file(b"x", mime="text/html", url=_url(b"x"), source={"path": f"{BASE}/a.bin"})],
    "torn": [_file(b"x", url="data:text/plain;base64,eA", source={"path": f"{BASE}/a.bin"})],
    "two answers to one read": [_read(f"{BASE}/a.bin", _file(PDF, "application/pdf"), _file(PDF, "application/pdf"))],
    "a failed read": [_read(f"{BASE}/a.bin", _file(PDF, "application/pdf"), status="error")],
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_EVIDENCE)
def test_what_may_be_another_file_is_no_evidence(name: str) -> None:
    made = message(*NOT_EVIDENCE[name])
    assert _states(made) == []
    assert attached_blobs(made, session(version="1.1.65")) == []


@pytest.mark.parametrize("version", ["1.2.1", "1.15.13", "1.18.33", "", "local"])
def test_an_image_that_may_have_been_made_smaller_is_no_evidence(version: str) -> None:
    for part in (
        _read(f"{BASE}/a.bin", _file(PNG, "image/png")),
        _file(PNG, "image/png", source={"path": f"{BASE}/a"}),
    ):
        assert _states(message(part), version) == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("data:,a%20b%FF", ("", b"a b\xff")),
        ("data:text/plain;charset=utf-8,%C3%A9", ("text/plain", b"\xc3\xa9")),
        ("data:IMAGE/PNG;base64,eA%3D%3D", ("image/png", b"x")),
        ("data:text/plain;base64,", ("text/plain", b"")),
        ("data:text/plain;base64,e A=", None),
        ("data:text/plain", None),
        ("https://example.org/,x", None),
    ],
)
def test_data_urls_are_read_strictly(url: str, expected: tuple[str, bytes] | None) -> None:
    assert data_url(url) == expected


@given(st.binary(max_size=64))
def test_any_bytes_come_back_by_content_or_by_blob(content: bytes) -> None:
    made = message(_file(content, "application/x", source={"path": f"{BASE}/a"}))
    (one,) = _states(made)
    if one.content is None:
        assert attached_blobs(made) == [content]
        assert one.blob == blob_id(content)
    else:
        assert one.content.encode() == content


@given(st.text(), st.text(max_size=8))
def test_any_url_is_taken_without_an_error(url: str, mime: str) -> None:
    for made in ("data:" + url, "data:;base64," + url):
        states = _states(message(_file(b"", mime, url=made, source={"path": f"{BASE}/a"})))
        assert {state.path for state in states} <= {f"{BASE}/a"}
