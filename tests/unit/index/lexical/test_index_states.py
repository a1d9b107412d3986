"""Which state of the lexical index a question sees: the newest that was committed, always, and merges soon after."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from daemon.index import Entry, Filters
from daemon.index.lexical import Lexical, files
from daemon.model import Document, Kind, Section
from tests.support.processes.daemon_process import until

ANY = Filters()


def entry(number: int) -> Entry:
    document = Document(
        f"m{number}", "ses_1", (Section(f"prt_{number}", Kind.PROMPT, f"the crane of number{number}x"),)
    )
    return Entry(document, "user", number, number, "a title", "prj", "/home/ann/shop")


@pytest.mark.parametrize("place", ["in a directory", "in memory"])
def test_what_was_committed_stays_found_while_more_is_committed(tmp_path: Path, place: str) -> None:
    index = Lexical(tmp_path / "lexical" if place == "in a directory" else None)
    lost: list[str] = []
    done = threading.Event()

    def ask() -> None:
        least = 0
        while not done.is_set():
            count = index.count()
            if count < least:
                lost.append(f"{count} after {least}")
            least = count

    asking = [threading.Thread(target=ask) for _ in range(2)]
    for thread in asking:
        thread.start()
    for number in range(40):
        index.replace([entry(number)])
        assert index.count() == number + 1
        assert [match.message_id for match in index.literal(f"number{number}x", ANY, 5)] == [f"m{number}"]
    done.set()
    for thread in asking:
        thread.join()
    assert lost == []
    index.close()


def test_a_merge_in_the_background_is_seen_without_another_commit(tmp_path: Path) -> None:
    index = Lexical(tmp_path / "lexical")
    for number in range(12):
        index.replace([entry(number)])
    # Merges may go on meanwhile.
    until(lambda: index._searcher().num_segments == len(files.meta(tmp_path / "lexical")["segments"]) < 12)
    assert index.count() == 12
    index.close()
