"""How fast the page in the browser is with a large archive, and what it takes of the service's memory.

    python bench/views.py FOLDER [--messages N] [--long N] [--rounds N]

A real service over invented messages (scale_data; one session gets `--long` further ones) and a real Chromium. Each
view is opened `rounds` times: ms until the browser has painted first, and until it has loaded it; the first time stands
before the others. Then words are typed into the search, letter by letter: ms from a request for results to its end, for
each that was not given up for the next one. Then the long session is scrolled to one place after another: ms until
messages can be seen there. Memory is what the service has of its own, without mapped files and its worker, before the
page is asked for and after each view. No vectors are made (scale_fill); questions are embedded by the real model, which
`results` loads. FOLDER is kept, so that a second run measures at once.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench import scale_figures, scale_latency
from bench.ingest import add_answer
from bench.scale_daemon import Daemon, Place, end_cleanly
from tests.web.browser import Browser, chromium, missing

_BETWEEN_KEYS_S = 0.15
_PLACES = (0.5, 0.1, 0.9, 0.3, 0.7, 1.0, 0.0, 0.6, 0.2, 0.8, 0.4)
_TIMES = """
    const [page] = performance.getEntriesByType('navigation');
    const [paint] = performance.getEntriesByName('first-contentful-paint');
    return page.loadEventEnd ? [paint?.startTime ?? page.loadEventEnd, page.loadEventEnd] : null
"""
_REQUESTS = """
    return performance.getEntriesByType('resource').filter((each) => each.initiatorType === 'xmlhttprequest')
        .filter((each) => each.responseStatus === 200).map((each) => [each.name.includes('whole='), each.duration])
"""
_SCROLLED = """
    const [part, done] = arguments, began = performance.now();
    const isInSight = (each) => {
        const box = each.getBoundingClientRect();
        return box.bottom > 0 && box.top < innerHeight;
    };
    const look = () => {
        const isThere = [...document.querySelectorAll('[data-number]')].some(isInSight);
        if (isThere) done(performance.now() - began); else requestAnimationFrame(look);
    };
    scrollTo({top: document.documentElement.scrollHeight * part, behavior: 'instant'});
    requestAnimationFrame(look);
"""


def long_session(place: Place, count: int) -> tuple[tuple[str, int], str]:
    """The id, length and folder of the session with the most messages, which gets so many further ones, once."""
    database = sqlite3.connect(place.opencode / "opencode.db", isolation_level=None)
    ((session, folder, has),) = database.execute(
        "SELECT s.id, s.directory, count(*) FROM session s JOIN message m ON m.session_id = s.id "
        "GROUP BY s.id ORDER BY count(*) DESC LIMIT 1"
    )
    if has < count:
        for number in range(count):
            add_answer(database, session, number)
    ((messages,),) = database.execute("SELECT count(*) FROM message WHERE session_id = ?", (session,))
    database.close()
    return (str(session), int(messages)), str(folder)


class Views:
    """One browser over one service; each figure is a list of ms."""

    def __init__(self, browser: Browser, rounds: int) -> None:
        self._browser, self._rounds = browser, rounds

    def opened(self, path: str) -> dict[str, list[float]]:
        """Times until the first paint and until all is loaded."""
        painted, loaded = [], []
        for _ in range(self._rounds):
            self._browser.open(path)
            paint, load = self._browser.until(lambda: self._browser.run(_TIMES), f"{path} is loaded")
            painted.append(paint)
            loaded.append(load)
        return {"painted": painted, "loaded": loaded}

    def typed(self, words: Sequence[str]) -> list[tuple[bool, float]]:
        """Times of the requests for results while these are typed, one after the other, and whether for the whole."""
        times: list[tuple[bool, float]] = []
        for query in words:
            self._browser.open("/")
            field = self._browser.find("input[name=q]")
            for letter in query:
                field.send_keys(letter)
                time.sleep(_BETWEEN_KEYS_S)
            self._browser.until(lambda: self._browser.run(_REQUESTS), "results")
            time.sleep(1)
            times += map(tuple, self._browser.run(_REQUESTS))
        return times

    def scrolled(self, path: str) -> list[float]:
        """Times until messages stand in sight after a jump."""
        self._browser.open(path)
        self._browser.find("[data-number]")
        return [float(self._browser.driver.execute_async_script(_SCROLLED, part)) for part in _PLACES]


def measure(place: Place, words: Sequence[str], session: tuple[str, int], folder: str, rounds: int) -> None:
    """Print every figure as it comes."""
    memory: dict[str, float] = {}
    with Daemon(place, embedding="paused") as daemon, _browsing() as driver:
        daemon.wait(lambda status: not status["outbox"]["lexical"], 7200)
        daemon.settle()
        assert daemon.process is not None
        pid = daemon.process.pid
        memory["before"] = _own_mb(pid)
        asked = subprocess.run(
            daemon.command("web", "--print"), env=daemon.environment, capture_output=True, text=True, check=True
        )
        driver.get(asked.stdout.strip())
        browser = Browser(driver, asked.stdout.partition("/enter")[0])
        views = Views(browser, rounds)
        for name, path in (
            ("first view", "/"),
            ("results by words", f"/?mode=smart&q={quote(words[0])}"),
            ("results", f"/?q={quote(words[0])}"),
            (f"session of {session[1]:,} messages", f"/session/{session[0]}"),
            ("status", "/status"),
            ("today", "/today"),
            ("folder", f"/folder?path={quote(folder)}"),
        ):
            for what, times in views.opened(path).items():
                _say(f"{name}: {what}", times)
            memory[name] = _own_mb(pid)
        typed = views.typed(words[:10])
        for what, is_whole in (("by words, while one types", False), ("the whole answer, after a pause", True)):
            _say(what, [time for whole, time in typed if whole is is_whole])
        memory["typing"] = _own_mb(pid)
        _say("scrolling", views.scrolled(f"/session/{session[0]}"))
        memory["scrolling"] = _own_mb(pid)
    print("memory of the service, MB:", ", ".join(f"{name} {mb:.0f}" for name, mb in memory.items()))


@contextmanager
def _browsing() -> Iterator[Any]:
    profile = Path(tempfile.mkdtemp(prefix="rc-views-"))
    try:
        with chromium(profile) as driver:
            yield driver
    finally:
        shutil.rmtree(profile, ignore_errors=True)


def _own_mb(pid: int) -> float:
    """MB of memory that are the process's own, so without the pages of files that it has mapped."""
    fields = dict(line.split(":") for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    return int(fields["Pss_Anon"].split()[0]) / 1024


def _say(name: str, times: Sequence[float]) -> None:
    spread = scale_figures.spread(times)
    first = f"{times[0]:.0f}, then " if times else ""
    print(f"{name:45} {first}{spread}", flush=True)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--messages", type=int, default=144_000)
    parser.add_argument("--long", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    end_cleanly()
    if reason := missing():
        sys.exit(reason)
    place = Place(args.folder)
    plan = scale_latency.prepare(place, args.messages, "skewed", meaning=False)["plan"]
    session, folder = long_session(place, args.long)
    measure(place, [item["query"] for item in plan["known"]], session, folder, args.rounds)


if __name__ == "__main__":
    main()
