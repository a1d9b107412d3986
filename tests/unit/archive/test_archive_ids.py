"""Ids in short: what they stand for, and what is ambiguous."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from daemon import records
from daemon.archive import Archive
from daemon.archive.ids import whole_id, with_whole_ids
from daemon.display import short_id
from daemon.errors import BadRequest
from daemon.exports import Export
from daemon.model import Session
from daemon.recall.query import Recall, RecallContext, RecallTimeline
from tests.support.stores.make_opencode import user

SESSIONS = ("ses_01d5506278c9rkfm3FEPRZW2i0", "ses_01d5506278caTkfm3FEPRZW9k1", "ses_a")
MESSAGES = (
    "msg_005713c111a8vJd5tp2C3Qpu80",
    "msg_005714f7b1aaFlqGv3foIa4v80",
    "msg_005714f7b1abXlqGv3foIa4v80",
    "msg_a00001",
    "msg_a000010",
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    with Archive(tmp_path_factory.mktemp("archive")) as made:
        batch = made.batch()
        for name in SESSIONS:
            times = {"created": 1, "updated": 1}
            batch.session(
                Session(id=name, project_id="p", directory="/w", title="T", raw=b"{}", version="1", **times), "test", 2
            )
        for name in MESSAGES:
            record = records.dumps(user(name, SESSIONS[0]))
            digest = records.digest(record)
            batch.message(records.message(record, ()), source="test", generation=2, hash_=digest, edits=())
        made.commit(batch)
        yield made


@pytest.mark.parametrize("whole", [*SESSIONS, *(name for name in MESSAGES if not name.endswith("a4v80"))])
def test_an_id_in_short_stands_for_it(archive: Archive, whole: str) -> None:
    assert whole_id(archive, whole) == whole_id(archive, short_id(whole)) == whole


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("msg_005713", MESSAGES[0]),
        (" msg_005713 ", MESSAGES[0]),
        ("msg_..Qpu80", MESSAGES[0]),
        ("msg_005714f7b1aa", MESSAGES[1]),
        ("msg_005714f7b1ab..80", MESSAGES[2]),
        ("ses_01d5..9k1", SESSIONS[1]),
    ],
)
def test_any_short_form_that_is_unambiguous_will_do(archive: Archive, text: str, whole: str) -> None:
    assert whole_id(archive, text) == whole


def test_an_ambiguous_one_is_refused_with_the_candidates(archive: Archive) -> None:
    with pytest.raises(BadRequest) as error:
        whole_id(archive, "msg_0057..a4v80")
    assert str(error.value) == (
        "message 'msg_0057..a4v80' is ambiguous; give more of the id; these begin and end so: "
        f"{MESSAGES[1]}, {MESSAGES[2]}"
    )
    with pytest.raises(BadRequest, match=r"session 'ses_' is ambiguous; .* these begin so: ses_01d5506278c9"):
        whole_id(archive, "ses_")


@pytest.mark.parametrize(
    "text", ["", "now", "2026-05-31", "msg_9", "msg_a00001..0001", "ses_01d5506278c9..9rkfm3FEPRZW2i0", "msg_\udcff"]
)
def test_what_is_like_no_id_stays_as_it_is(archive: Archive, text: str) -> None:
    assert whole_id(archive, text) == text


def test_every_argument_that_is_an_id_may_be_short(archive: Archive) -> None:
    message, session = "msg_005713", "ses_01d5..9k1"
    where = {"$or": [{"session": session}, {"sessionID": {"$in": [session]}, "tool": session}]}
    assert with_whole_ids(archive, RecallContext(messageID=message, sessionID=session)) == RecallContext(
        messageID=MESSAGES[0], sessionID=SESSIONS[1]
    )
    assert with_whole_ids(archive, RecallTimeline(anchor=message)).anchor == MESSAGES[0]
    assert with_whole_ids(archive, Export(session=session)).session == SESSIONS[1]
    assert with_whole_ids(archive, Recall(query=message, where=where)) == Recall(
        query=message, where={"$or": [{"session": SESSIONS[1]}, {"sessionID": {"$in": [SESSIONS[1]]}, "tool": session}]}
    )
