"""An archive in which every place that a transcript can hold text in has every payload, or, in its
clean twin, as many harmless texts: the same sessions, messages and ids otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.hostile.payloads import Payload
from tests.support.stores.recorded_sessions import Recorded, call

FOLDERS = {
    "said": ("prompt", "answer", "reasoning", "task"),
    "called": ("tool-input", "tool-output"),
    "content": ("content",),
    "path": ("path",),
    "title": ("title",),
}
"""The places by the folder whose sessions hold them."""
PLACES = tuple(place for places in FOLDERS.values() for place in places)
_FOLDER_OF = {place: folder for folder, places in FOLDERS.items() for place in places}
_LONGEST_NAME = 150
_PER_TITLE_TARGET = 24
"""Sessions of one target of titles: the timeline is only drawn of a few."""

STORY = (
    ("user", "Please build a small shop service in Python."),
    ("assistant", "We decided on SQLite instead of files because two processes write."),
    ("assistant", "I tried Redis first and gave up because it was too slow for the tests."),
    ("assistant", "The refund route is not yet done. app.py holds the routes, db.py the tables."),
    ("assistant", "Start it with python3 src/app.py. PORT is 8080 by default."),
)


def write(path: str, content: str = "x = 1\n") -> dict[str, Any]:
    return call("write", output="Wrote file successfully.", filePath=path, content=content)


def harmless(number: int) -> str:
    return f"Entry {number} of the log: nothing of note was written here."


class Planting:
    """Tells an archive what happened in every target. `asks` maps (place, number) to the call that shows a text."""

    def __init__(self, made: Recorded, outside: Path, payloads: Sequence[Payload], *, clean: bool) -> None:
        self._made, self._outside = made, outside
        self._texts = [harmless(p.number) if clean else p.text for p in payloads]
        self._clean = clean
        self.asks: dict[tuple[str, int], tuple[str, dict[str, Any]]] = {}
        for folder in FOLDERS:
            self._story(folder)
        for place in PLACES:
            for number, text in enumerate(self._texts):
                self._plant(place, number, text)
        made.index()

    def targets(self, folder: str) -> list[str]:
        """The targets that a folder is: one, but several for titles."""
        if folder != "title":
            return [f"{self._outside}/{folder}"]
        return [f"{self._outside}/title/{number}" for number in range(-(-len(self._texts) // _PER_TITLE_TARGET))]

    def numbers(self, folder: str, target: str) -> list[int]:
        """Which texts were planted in a target."""
        every = range(len(self._texts))
        return [n for n in every if folder != "title" or self.targets(folder)[n // _PER_TITLE_TARGET] == target]

    def _story(self, folder: str) -> None:
        for number, target in enumerate(self.targets(folder)):
            session = self._made.session(f"ses_{folder}{number}", target, "Build the shop")
            for role, text in STORY:
                files = [write(f"{target}/src/app.py"), write(f"{target}/src/db.py")] if "SQLite" in text else []
                self._made.say(session, role, text, *files)

    def _plant(self, place: str, number: int, text: str) -> None:
        target = f"{self._outside}/{_FOLDER_OF[place]}"
        session = f"ses_{_FOLDER_OF[place]}0"
        if place == "title":
            target = self.targets(place)[number // _PER_TITLE_TARGET]
            session = self._made.session(f"ses_title_{number:02d}", target, text)
            said = self._made.say(session, "user", "Please look after the shop for a while.")
        elif place == "content":
            path = f"{target}/entries/entry-{number:02d}.py"
            self._made.say(session, "assistant", write(path, text))
            self.asks[place, number] = ("read_file", {"path": path})
            return
        elif place == "path":
            path = self._path(number, text)
            self._made.say(session, "assistant", write(f"{path}.py" if number % 8 else f"{path}/a.py"))
            if number % 8 == 0:
                self._made.say(session, "assistant", write(f"{path}/b.py"))
            self.asks[place, number] = ("file_history", {"path": f"{path}.py" if number % 8 else f"{path}/a.py"})
            return
        else:
            said = self._say(place, session, text)
        self.asks[place, number] = ("read_message", {"message_id": said})

    def _say(self, place: str, session: str, text: str) -> str:
        parts: dict[str, tuple[str, Any]] = {
            "prompt": ("user", text),
            "answer": ("assistant", text),
            "reasoning": ("assistant", {"type": "reasoning", "text": text}),
            "tool-input": ("assistant", call("grep", output="No files found", pattern=text)),
            "tool-output": ("assistant", call("webfetch", output=text, url="https://example.org/")),
            "task": (
                "assistant",
                {"type": "subtask", "prompt": text, "description": text, "agent": "general", "command": text},
            ),
        }
        role, part = parts[place]
        return self._made.say(session, role, part)

    def _path(self, number: int, text: str) -> str:
        """A path that is the text as far as a path can be, beneath the target."""
        if self._clean:
            return f"{self._outside}/path/entry-{number:02d}"
        name = text.replace("/", "\u2215").replace("\0", "")[:_LONGEST_NAME].strip(" .\n")
        while len(name.encode()) > _LONGEST_NAME:
            name = name[:-1]
        return f"{self._outside}/path/{number:02d} {name}"
