"""What must stand first: eight cases of a small history, in the mode each was made for and in the default one.

The history has what makes ranking hard: rare words among boilerplate, long printed texts that merely mention the words,
strong old messages and weak new ones, two projects.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from daemon.archive import Archive
from daemon.embed.builtin import Builtin
from daemon.index.lexical import Lexical
from daemon.index.semantic import Semantic
from daemon.model import Json
from daemon.recall.query import Recall
from tests.support.stores.recorded_sessions import Recorded, call

NOISE = (
    "warning failed config session build result src typescript import export const return function test log data "
    "check run update tool output value message error type"
)


def _printed(before: int, words: str, after: int) -> str:
    return " ".join([*[NOISE] * before, words, *[NOISE] * after])


def _tell(house: Recorded) -> None:
    house.session("pipeline", "/work/deploy", "Cluster rollout")
    house.say(
        "pipeline",
        "assistant",
        call(
            "bash",
            status="error",
            error="forbidden: permission denied, cannot create configmaps in the namespace production",
            command="kubectl apply -f rollout.yaml",
        ),
    )
    house.session("ledger", "/work/shop", "Which database for the ledger: migration to Postgres")
    house.say("ledger", "user", "Is DynamoDB or Postgres the better store for our ledger?")
    house.say(
        "ledger",
        "assistant",
        {"type": "reasoning", "text": "I chose Postgres over DynamoDB: a booking must change several rows at once."},
    )
    house.session("limits", "/work/shop", "Throttling the checkout")
    house.say("limits", "user", "Please write rate limit middleware with a token bucket for the checkout endpoint.")
    house.say(
        "limits",
        "assistant",
        call("bash", output=_printed(30, "rate limit middleware token", 60), command="npm test"),
    )
    house.say(
        "limits",
        "assistant",
        {"type": "reasoning", "text": "A token bucket is a better rate limiter for checkout than a sliding window."},
    )
    house.session("signin", "/work/shop", "Login never ends")
    house.say(
        "signin",
        "user",
        "After the redirect of the OAuth provider the login callback starts over and over. The token endpoint answers "
        "ECONNREFUSED, and we retry.",
    )
    house.say(
        "signin",
        "assistant",
        {"type": "reasoning", "text": "The state cookie gets lost, hence the OAuth redirect loop in the callback."},
    )
    house.say(
        "signin",
        "assistant",
        call("bash", output=_printed(40, "redirect", 40), command="npm run build"),
    )
    house.session("chores", "/work/shop", "Tidying up")
    house.say("chores", "assistant", call("bash", output=_printed(80, "", 0), command="npm run lint"))
    house.say("chores", "assistant", "A small cleanup: the variable rate has another name now.")
    house.index()


CASES: dict[str, tuple[str, str, str]] = {
    "a rare word against boilerplate": ("ECONNREFUSED", "smart", "signin"),
    "a decision": ("chose postgres over dynamodb", "smart", "ledger"),
    "a tight message against a long dump": ("rate limit middleware token bucket", "smart", "limits"),
    "a phrase": ('"token bucket" checkout', "smart", "limits"),
    "a typing error": ("postgers migration", "fuzzy", "ledger"),
    "another project": ("permission denied configmaps namespace", "smart", "pipeline"),
    "old but strong against new but weak": ("rate limiter checkout", "smart", "limits"),
    "all of several words": ("oauth redirect loop login callback", "smart", "signin"),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    directory: Path = tmp_path_factory.mktemp("history")
    model = Builtin()
    with (
        Archive(directory / "archive") as archive,
        closing(Lexical(directory / "lexical")) as lexical,
        closing(Semantic(directory / "semantic", model.fingerprint, model.dims)) as vectors,
    ):
        made = Recorded(archive, lexical, model, vectors)
        _tell(made)
        yield made


def _ask(house: Recorded, query: str, match: str, group: str) -> list[Json]:
    # The budget is not what is tested, and a busy machine may need longer for its first embedding.
    return house.recall(budget_s=60).answer(Recall(query=query, match=match, group=group, explain=True))["results"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("match", ["as it is made for", "hybrid"])
def test_the_session_that_is_meant_comes_first(house: Recorded, case: str, match: str):
    query, own, session = CASES[case]
    found = _ask(house, query, own if match == "as it is made for" else match, "session")
    assert found[0]["sessionID"] == session, [(one["sessionID"], one["score"], one["matchReasons"]) for one in found]


@pytest.mark.parametrize("match", ["smart", "hybrid"])
def test_the_message_that_says_it_comes_before_the_dump_that_mentions_it(house: Recorded, match: str):
    found = _ask(house, "rate limit middleware token bucket", match, "message")
    assert [one["source"] for one in found[:2]] == ["message", "reasoning"]
