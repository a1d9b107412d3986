"""What must hold of a service and of all its files, whatever was done to it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from daemon.archive import STAGES, Archive
from tests.e2e.talk import PROJECT, snapshot
from tests.live import recorded
from tests.support.processes.daemon_process import until
from tests.torture import indexes
from tests.torture.work import question

if TYPE_CHECKING:
    from tests.torture.world import World

FOUND_S = 400.0
"""A loop that failed several times waits for up to five minutes."""
_MOST_NAMED = 5
_GIVEN_UP = "was started 3 times and never ended"
"""A request under which the service was killed so often is given up."""
_SET_ASIDE = ("kept whole, not searched", "rubbish")
"""Records that may be set aside: large ones, and those that the trial spoiled."""


class Check:
    """One run of the service after the harm; it is started if it does not run, and ended in any case."""

    def __init__(self, made: World) -> None:
        self._world, self._daemon, self._work = made, made.daemon, made.work
        self._is_fresh = made.has_ended()
        """Whether the run began after the harm, so that it has nothing to report."""

    def all_problems(self) -> list[str]:
        """Everything that is not as it must be; also where the check itself cannot go on."""
        problems: list[str] = []
        try:
            problems.extend(self._problems())
        except Exception as error:
            problems.append(f"the check ended with {type(error).__name__}: {error}")
        return problems

    def _problems(self) -> Iterator[str]:
        before = snapshot(self._world.data_dir)
        try:
            if self._is_fresh:
                self._daemon.start()
            self._daemon.wait_until_ready()
            yield from self.search()
        except (AssertionError, httpx.HTTPError) as error:
            yield f"it does not run: {type(error).__name__}: {error}"
            return
        if self._world.has_ended():
            yield f"it has ended: {self._daemon.log_end()[-500:]}"
            return
        yield from self._pages()
        rescan = self._daemon.ask("index", "--wait")
        if rescan.returncode:
            yield f"a full scan ended with {rescan.returncode}: {rescan.stderr[-500:]}"
        status = self._daemon.wait_until_drained()
        code, _ = self._daemon.terminate()
        if code:
            yield f"a clean stop ended with {code}: {self._daemon.log_end()[-500:]}"
        if self._daemon.survivors():
            yield f"processes are left: {self._daemon.survivors()}"
        for trouble in status["errors"] if self._is_fresh else ():
            if _GIVEN_UP not in trouble["message"]:
                yield f"the last run reports: {trouble['where']}: {trouble['message']}"
        with Archive(self._daemon.archive_dir) as archive:
            yield from self.archive(archive)
            yield from indexes.differences(archive, self._daemon.archive_dir / "index", self._world.server.url)
        yield from self._elsewhere(before)

    def search(self, within_s: float = FOUND_S, *, by_meaning: bool = True) -> Iterator[str]:
        """Each word is found in its message and in no other by its letters, and in its message by its meaning."""
        end = time.monotonic() + within_s
        waiting = sorted(self._work.expected)
        wrong: dict[str, str] = {}
        while waiting and (time.monotonic() < end or not wrong):
            wrong = {}
            with self._daemon.client() as client:
                while waiting and len(wrong) < _MOST_NAMED:
                    word = waiting.pop()
                    if line := self._wrong(client, word, by_meaning=by_meaning):
                        wrong[word] = line
            waiting += wrong
            time.sleep(0.3 if wrong else 0)
        for word, line in wrong.items():
            yield f"{word} of {self._work.expected[word]} {line}; {len(waiting)} words are not as they must be"

    def _wrong(self, client: httpx.Client, word: str, *, by_meaning: bool) -> str:
        message_id = self._work.expected[word]
        hits = self._hits(client, word, "literal")
        if hits != [message_id]:
            return f"is found by its letters in {hits}"
        if not by_meaning:
            return ""
        hits = self._hits(client, question(word), "semantic")
        return "" if message_id in hits else f"is found by its meaning in {hits}"

    def _hits(self, client: httpx.Client, query: str, mode: str) -> list[str]:
        arguments = {"query": query, "match": mode, "results": 20}
        answer = client.post("/recall/recall", json={"arguments": arguments})
        leaks = [secret for secret in self._work.secrets if secret in answer.text]
        assert not leaks, f"a search answers with the secret {leaks[0]}"
        if answer.status_code != httpx.codes.OK:  # while an index is built or mended
            return [answer.text]
        return [result["messageID"] for result in answer.json()["results"]]

    def _pages(self) -> Iterator[str]:
        self._world.request(f"{PROJECT}\n")
        pattern, expected = "*/torture-*.txt.result.json", self._world.requests
        try:
            results = until(lambda: self._results(pattern, expected), FOUND_S, "each request")
        except AssertionError as error:
            yield f"{error}; {self._daemon.request_files()}"
            return
        for result in results:
            if result.parent.name != "done" and _GIVEN_UP not in result.read_text():
                yield f"the request for pages was not done: {result.read_text()[:300]}"

    def _results(self, pattern: str, least: int) -> list[Path]:
        results = sorted(self._daemon.requests_dir.glob(pattern))
        return results if len(results) >= least else []

    def archive(self, archive: Archive) -> Iterator[str]:
        """What is not as it is in the sources, is there twice, or waits."""
        storage = self._world.data_dir / "storage"
        source = recorded.from_files(storage) | recorded.from_database(self._world.data_dir / "opencode.db")
        yield from self._differences(source, archive)
        yield from self._newest(archive)
        expected = source.keys() | self._work.of_newest | self._world.others
        living = {name for name in archive.all_message_ids() if not archive.is_deleted(name)}
        if living != expected:
            yield f"messages that should not be there: {sorted(living - expected)[:_MOST_NAMED]}"
            yield f"messages that should be there: {sorted(expected - living)[:_MOST_NAMED]}"
        waiting = {stage: archive.waiting(stage) for stage in STAGES}
        if any(waiting.values()):
            yield f"the outbox is not empty: {waiting}"
        for source_name, items in archive.quarantined().items():
            if not any(known in str(items) for known in _SET_ASIDE):
                yield f"set aside of {source_name}: {str(items)[:300]}"
        yield from self._besides_messages(archive)

    def _differences(self, source: dict[str, recorded.Recorded], archive: Archive) -> Iterator[str]:
        """What is not as in the sources; a record that is too large to be read is a file."""
        files = {entry["part"]: Path(entry["file"]) for entry in archive.large()}
        for part_id, (message_id, content) in self._work.large.items():
            del source[message_id].parts[part_id]
            if part_id not in files:
                yield f"the large record {part_id} is not kept"
            elif json.loads(files.pop(part_id).read_bytes())["text"] != content:
                yield f"the large record {part_id} is another one"
        if files:
            yield f"large records that should not be there: {files}"
        others = self._work.of_newest | self._world.others
        expected = {f"{message_id} is not in the source" for message_id in others}
        yield from (line for line in recorded.differences(source, archive) if line not in expected)

    def _newest(self, archive: Archive) -> Iterator[str]:
        """Messages of OpenCode 2 are kept in another form: their words are compared."""
        words = {message_id: word for word, message_id in self._work.expected.items()}
        for message_id in self._work.of_newest:
            message = archive.message(message_id)
            if message is None or not any(words[message_id] in str(part.data.get("text")) for part in message.parts):
                yield f"{message_id} has not its own words: {message}"

    def _besides_messages(self, archive: Archive) -> Iterator[str]:
        """Todo lists and snapshots."""
        for session_id, items in self._work.todos.items():
            kept = [item["content"] for item in archive.beside.todos(session_id)]
            if kept != items:
                yield f"the list of {session_id} is {kept}, not {items}"
        for message_id, (tree, files) in self._work.trees.items():
            kept_files = {path: archive.objects.blob(id_) for path, _, id_ in archive.objects.walk(tree)}
            if kept_files != files:
                names = sorted(name for name in files.keys() | kept_files if files.get(name) != kept_files.get(name))
                yield f"the snapshot of {message_id} differs in {names[:_MOST_NAMED]}"

    def _elsewhere(self, before: dict[str, str]) -> Iterator[str]:
        """Nothing outside the service's own folders was written, and no secret is on a way out."""
        for name in {name for name, _ in before.items() ^ snapshot(self._world.data_dir).items()}:
            file = self._world.data_dir / name
            # SQLite makes an empty log when a database is opened whose writer has closed it.
            if not (name.endswith("-wal") and name not in before and not file.stat().st_size):
                yield f"OpenCode's own {name} was changed"
        ours = self._daemon.archive_dir.parent
        known = {"archive", "output", "daemon.log", "reconstitute.toml", "home", ".filler", "lost+found"}
        known |= {path.name for path in ours.iterdir() if path.name.startswith("kept-")}
        for path in [*ours.iterdir(), *(ours / "home").rglob("*")]:
            if path.name not in known:
                yield f"something was written to {path}"
        for place, content in self._ways_out():
            for value in self._work.secrets:
                if value in content:
                    yield f"the secret {value} is in {place}"

    def _ways_out(self) -> Iterator[tuple[str, str]]:
        archive = self._daemon.archive_dir
        places = [archive / "index", archive / "requests", self._daemon.output_dir]
        files = [file for place in places for file in place.rglob("*") if file.is_file()]
        for file in [*files, self._daemon.log_path]:
            yield str(file), file.read_bytes().decode("utf-8", "replace")
        yield from indexes.texts(archive / "index")
