"""A replay is handed out without its secrets, also where a record stands in it as a line of JSON."""

from __future__ import annotations

import json

import pytest

from daemon.model import Json, Message, Part
from daemon.transcript.replay import clean_replay, replay
from tests.support.chat_messages import ollama_problems

PIXEL = "iVBORw0KGgo="


def _message(*datas: Json, **rest: object) -> Message:
    parts = tuple(
        Part(f"prt_{number}", "msg_1", "ses_1", str(data["type"]), data, b"{}") for number, data in enumerate(datas)
    )
    return Message("msg_1", "ses_1", "assistant", 1, dict(rest), b"{}", parts)


@pytest.mark.parametrize(
    "message",
    [
        _message({"type": "new-kind", "note": "first line\npassword: Tr0ub4dor-and-3\nlast"}),
        _message({"type": "text", "text": "hi"}, error={"name": "X", "data": {"message": "a\npassword: Tr0ub4dor-and-3\n"}}),
        _message({"type": "text", "text": "password: Tr0ub4dor-and-3"}),
        _message(
            {
                "type": "tool",
                "tool": "bash",
                "state": {"status": "completed", "input": {"password": "Tr0ub4dor-and-3"}, "output": "ok"},
            }
        ),
    ],
)  # fmt: skip
def test_no_secret_is_left_wherever_it_stands(message: Message) -> None:
    assert "Tr0ub4dor" in json.dumps(replay(message))
    shown = clean_replay(message)
    assert "Tr0ub4dor" not in json.dumps(shown)
    assert "REDACTED" in json.dumps(shown)
    assert ollama_problems(shown) == []


def test_an_image_beside_a_record_stays_whole() -> None:
    message = _message(
        {"type": "new-kind", "note": "x"},
        {"type": "file", "mime": "image/png", "url": f"data:image/png;base64,{PIXEL}"},
    )
    assert any(entry.get("images") == [PIXEL] for entry in clean_replay(message))


def test_a_record_without_secrets_is_what_replay_makes_of_it() -> None:
    message = _message({"type": "new-kind", "note": "x"}, {"type": "text", "text": "hello"})
    assert clean_replay(message) == replay(message)
