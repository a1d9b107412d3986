"""What was recognised once in a session is hidden wherever the session has it, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from daemon import config
from daemon.app.engine import Engine
from daemon.control.calls import silent
from daemon.redact import detection, known, redact, redact_value
from tests.e2e.talk import PROJECT, Talk, words
from tests.support.secrets.outputs import WAYS, Framed, Planted
from tests.support.secrets.renderings import texts
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import JsonStore
from tests.unit.ingest.test_ingest_upkeep import Hashed

VALUE = "vq7Rm2xZ" + "k9Lp"
"""Nothing in it tells that it is a secret but the name it once had."""


def opened(root: Path, **tables: object) -> PlainService:
    made = {"opencode": {"data_dir": str(root / "oc")}, "archive": {"dir": str(root / "a")}, **tables}
    made |= {"output": {"dir": str(root / "pages")}, "chat": {"provider": "none"}}
    return PlainService(Engine(msgspec.convert(made, config.Config), embedder=lambda: (Hashed(), "a test")))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PlainService, Planted]]:
    """The value stands bare in all messages but the last, which alone gives it a name."""
    root = tmp_path_factory.mktemp("known")
    store = JsonStore(root / "oc")
    talk = Talk(store, "ses_0000", f"{PROJECT}/0", title=f"Try {VALUE} once")
    ids = [
        talk.ask(f"Look {words(0)}: type {VALUE} there"),
        talk.answer(f"I typed {VALUE}", {"type": "reasoning", "text": f"So {VALUE} it is"}),
        talk.call("bash", {"command": f"login {VALUE}", "description": "Try"}, f"no {VALUE}\n"),
        talk.call("form", {"fields": [VALUE]}, f'{{"echo": "{VALUE}"}}'),
        talk.write(f"{PROJECT}/0/settings.txt", f"# {words(0)}\nopen {VALUE}\n"),
        talk.ask(f"It is in the file:\nDB_PASSWORD={VALUE}\n"),
    ]
    other = Talk(store, "ses_0001", f"{PROJECT}/1", title="Another")
    other.ask(f"Look {words(1)}: {VALUE} is a name here")
    with opened(root) as engine:
        engine.index(silent)
        yield engine, Planted(0, "password", "known", Framed(None, (VALUE,)), tuple(ids))


@pytest.mark.parametrize("way", [way for way in WAYS if way not in {"names", "log"}])
def test_a_value_that_had_a_name_once_is_hidden_in_its_session(way: str, told: tuple[PlainService, Planted]) -> None:
    engine, planted = told
    assert [text for text in texts(WAYS[way](engine, planted)) if VALUE in text and "/1/" not in text] == []


def test_a_value_of_one_session_is_a_word_in_another(told: tuple[PlainService, Planted]) -> None:
    """Each search is a piece of work of its own, as in the service."""
    engine, _ = told
    with known.only({}):
        results = engine.recall("recall", {"query": VALUE, "match": "literal"})["results"]
    assert [result["sessionID"] for result in results] == ["ses_0001"]
    with known.only({}):
        results = engine.recall("recall", {"query": words(1), "match": "literal"})["results"]
    assert VALUE in results[0]["snippet"]


@pytest.mark.parametrize("value", ["hunter2", "password", "development", "a1b2c3", "correct horse battery", "12345678"])
def test_ordinary_and_short_words_are_not_known_by_value(value: str) -> None:
    assert not known.is_distinct(value)


def test_a_short_value_is_no_part_of_a_longer_word() -> None:
    with known.only({"abcd1234": "password"}):
        assert redact("xabcd1234 abcd12345 abcd-1234") == "xabcd1234 abcd12345 abcd-1234"
        assert redact("it was abcd1234.") == "it was [REDACTED:password:e9cee71a]."
        assert redact("a%20abcd1234%20b \\nabcd1234") == (
            "a%20[REDACTED:password:e9cee71a]%20b \\n[REDACTED:password:e9cee71a]"
        )


def test_the_rest_of_a_key_that_was_cut_off_is_not_known_by_value() -> None:
    whole, cut = "gh" + "p_" + "a8Kd0Zq3Lw7Rt5Yb2Nc" * 2, "gh" + "p_" + "a8Kd0Zq3Lw7Rt5Yb2Nc"
    with known.noting() as noted:
        assert cut not in redact(f"it began with {cut}…")
        assert noted == {}
        redact(f"it is {whole}")
    assert list(noted.values()) == ["github"]


def test_another_redaction_indexes_an_archive_again(tmp_path: Path) -> None:
    talk = Talk(JsonStore(tmp_path / "oc"))
    talk.ask(f"ticket ACME-4711 of {words(3)}")
    with opened(tmp_path) as engine:
        engine.index(silent)
        assert len(engine.recall("recall", {"query": "ACME-4711", "match": "literal"})["results"]) == 1
    with opened(tmp_path, redact={"extra": [r"ACME-\d+"]}) as engine:
        assert engine.archive.waiting("lexical") == 1
        assert engine.archive.waiting("semantic") == 1
        engine.index(silent)
        assert engine.recall("recall", {"query": "ACME-4711", "match": "literal"})["results"] == []
        assert (
            "[REDACTED:extra:"
            in engine.recall("recall", {"query": words(3), "match": "literal"})["results"][0]["snippet"]
        )
    with opened(tmp_path, redact={"allow": [r"[a-z0-9]+"]}) as engine:
        engine.index(silent)
        assert len(engine.recall("recall", {"query": "ACME-4711", "match": "literal"})["results"]) == 1
        assert redact("DB_PASSWORD=hunter2hunter") == "DB_PASSWORD=hunter2hunter"
    with opened(tmp_path):
        assert "hunter2hunter" not in redact("DB_PASSWORD=hunter2hunter")


def test_what_an_edit_puts_in_the_place_of_a_secret_is_one() -> None:
    new = "correct" + "horse99"
    with known.only({VALUE: "password"}), known.noting() as noted:
        made = redact_value({"filePath": "/p/.env", "oldString": f'"{VALUE}"', "newString": f'"{new}"'})
    assert new not in str(made)
    assert made["filePath"] == "/p/.env"
    assert noted[new] == "password"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (VALUE, "os.environ[NAME]"),
        (VALUE, ""),
        (VALUE, "short1"),
        (f"use {VALUE} here", "correcthorse99"),
        ("a", "b" * 20),
    ],
)
def test_what_replaces_no_secret_or_is_no_value_stays(old: str, new: str) -> None:
    with known.only({VALUE: "password"}):
        assert redact_value({"oldString": old, "newString": new})["newString"] == new


def test_a_change_of_the_patterns_while_a_text_is_searched_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reload configures them anew in the same process, to the same ones."""
    text, found = f"it is now {VALUE}", detection._found
    known.configure([VALUE], [])

    def reloaded(text: str, *, deep: bool) -> list[detection.Span]:
        known.configure([], [])
        spans = found(text, deep=deep)
        known.configure([VALUE], [])
        return spans

    try:
        with monkeypatch.context() as reloading:
            reloading.setattr(detection, "_found", reloaded)
            assert redact(text) == text
        assert VALUE not in redact(text)
    finally:
        known.configure([], [])


def test_what_is_remembered_of_a_text_holds_only_while_the_same_is_known() -> None:
    innocent, telling = f"it is {VALUE}", "password=" + "hunter2" + "hunter2x"
    try:
        for _ in range(2):
            known.configure([], [])
            assert redact(innocent) == innocent
            assert "hunter2" not in redact(telling)
            with known.only({VALUE: "password"}):
                assert VALUE not in redact(innocent)
            assert redact(innocent) == innocent
            known.configure([VALUE], ["hunter2.*"])
            assert VALUE not in redact(innocent)
            assert redact(telling) == telling
    finally:
        known.configure([], [])
