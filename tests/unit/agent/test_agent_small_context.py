"""A model with a small context is asked too: what a question begins with is cut to what fits."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from daemon.chat.ollama import OllamaChat
from daemon.config import Agent
from daemon.files import Files
from daemon.model import Target
from daemon.reconstitute import Answerer, Reconstitution
from daemon.reconstitute.agent.limits import Ended, sendable_tokens
from daemon.reconstitute.agent.outcomes import OutcomeStore
from daemon.reconstitute.agent.single_question import evidence_budget
from daemon.reconstitute.questions import CODE
from tests.support.servers.evident_model import EvidentModel
from tests.support.servers.fake_ollama import FakeOllama
from tests.support.stores.recorded_sessions import MINUTE, call, recorded

SHOP = "/home/dev/shop"
LONG = "We decided on SQLite instead of files, because two processes write; how it is installed and run is in app.py. "


@pytest.mark.parametrize("tokens", [6144, 8192, 16384])
def test_a_model_with_a_small_context_is_asked_every_question(tokens: int, tmp_path: Path) -> None:
    with recorded(tmp_path / "state") as made, FakeOllama({"small:1b": "cd" * 32}) as server:
        server.capabilities["small:1b"] = ["completion", "tools"]
        server.context_lengths["small:1b"] = tokens
        server.chat_script = EvidentModel()
        made.session("ses_a", SHOP, "Build the shop")
        for _ in range(12):
            made.say("ses_a", "user", f"What was tried and failed, and what is open? {LONG * 10}")
            written = call("write", output="Wrote file successfully.", filePath=f"{SHOP}/app.py", content=LONG)
            made.say("ses_a", "assistant", LONG * 20, written)
        made.index()
        with closing(OllamaChat(server.url, "small:1b")) as chat:
            run = Reconstitution(
                made.archive, made.recall(), Files(made.archive), tmp_path / "out",
                answerer=Answerer(chat, "", Agent(folders=0)), clock=lambda: made.clock + 60 * MINUTE,
            )  # fmt: skip
            assert run.run(Target(SHOP))["model_calls"] >= len(CODE)
        kept = OutcomeStore(made.archive, SHOP, "")
        outcomes = [kept.get(question.id) for question in CODE]
    assert [outcome.ended for outcome in outcomes if outcome is not None] == [Ended.ANSWERED] * len(CODE)


def test_a_larger_context_gives_more_evidence_and_a_tiny_one_none() -> None:
    sizes = [evidence_budget(sendable_tokens(tokens)) for tokens in (2048, 4096, 8192, 16384, 65_536, 1_048_576)]
    assert sizes[0] == 0
    assert sizes == sorted(sizes)
    assert sizes[-1] == 20_000
