"""An OpenCode folder with a session that has a mark in every kind of place, and others that have none."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

from tests.support.stores.git_trees import Repository
from tests.support.stores.make_opencode import T0, JsonStore, assistant, session, text, tool, user

MARK = "Xqjvkz7"
"""Begins every mark, and nothing else: long enough not to stand in compressed bytes by chance."""
KINDS = (
    "title", "prompt", "answer", "output", "write", "path", "edit", "spill", "attachment", "large", "todo", "before",
    "snapshot", "diff", "agent", "shell", "secretword",
)  # fmt: skip
KEPT_WORD = "pelican"


def mark(kind: str) -> str:
    """The mark of a kind of place."""
    return f"{MARK}{kind}Zw"


def done(inputs: dict[str, Any], output: str, **metadata: Any) -> dict[str, Any]:
    return {
        "status": "completed",
        "input": inputs,
        "output": output,
        "title": "",
        "metadata": metadata,
        "time": {"start": T0 + 100, "end": T0 + 200},
    }


class Marked:
    """`data` is OpenCode's folder. `ses_gone` has the marks, `ses_agent` is its sub-agent's, `ses_kept` stays."""

    def __init__(self, root: Path) -> None:
        self.data, self.work = root / "oc", root / "work"
        self.store = JsonStore(self.data)
        (self.data / "tool-output").mkdir()
        self.tree = Repository(self.data, "pid", self.work)
        self.shared = self.tree.write({"kept.txt": b"kept\n"})
        self.marked = self.tree.write({"marked.txt": mark("snapshot").encode() + b"\n"})
        self._gone()
        self._agent()
        for number in range(6):
            self._kept(f"ses_kept{number}", number)

    def _gone(self) -> None:
        ids, store = ("msg_gone1", "ses_gone"), self.store
        store.session(session("ses_gone", str(self.work), mark("title")))
        spill = self.data / "tool-output" / "tool_gone"
        spill.write_text(mark("spill") * 50)
        os.utime(spill, (0, T0 / 1000))  # one that changed just now is left for later
        image = {"type": "file", "mime": "application/pdf", "filename": "a.pdf"}
        content = b"%PDF\xff " + mark("attachment").encode()
        url = "data:application/pdf;base64," + base64.b64encode(content).decode()
        source = {"type": "file", "path": f"{self.work}/a.pdf", "text": {"value": "", "start": 0, "end": 0}}
        file = {"id": "prt_g2", "sessionID": ids[1], "messageID": ids[0], **image, "url": url, "source": source}
        store.message(user(*ids), text("prt_g1", *ids, f"please {mark('prompt')} the {KEPT_WORD}"), file)
        ids = ("msg_gone2", "ses_gone")
        path = f"{self.work}/{mark('path')}.txt"
        edit = {"filePath": path, "oldString": "one", "newString": mark("edit")}
        step = {"id": "prt_h0", "sessionID": ids[1], "messageID": ids[0], "type": "step-start", "snapshot": self.marked}
        where = {"path": {"cwd": str(self.work), "root": str(self.work)}}
        store.message(
            assistant(*ids, created=T0 + 10, **where),
            step,
            text("prt_h1", *ids, f"answer {mark('answer')}; password is {mark('secretword')}8Kk!"),
            tool("prt_h2", *ids, "write", done({"filePath": path, "content": f"one {mark('write')}\n"}, "Wrote")),
            tool("prt_h3", *ids, "edit", done(edit, "Edited")),
            tool("prt_h4", *ids, "bash", done({"command": f"echo {mark('shell')}"}, mark("output"))),
            tool("prt_h5", *ids, "grep", done({"pattern": "x"}, "long", outputPath=str(spill))),
            text("prt_h6", *ids, mark("large") + "l" * (1100 << 10)),
        )
        store.raw("todo/ses_gone.json", f'[{{"content": "{mark("todo")}", "status": "pending", "id": "1"}}]')
        diff = f'[{{"file": "x.txt", "before": "{mark("diff")}", "after": "b", "additions": 1, "deletions": 1}}]'
        store.raw("session_diff/ses_gone.json", diff)
        ids = ("msg_gone3", "ses_gone")
        self.changing = text("prt_i1", *ids, f"first {mark('before')}")
        store.message(assistant(*ids, created=T0 + 20), self.changing)

    def change(self) -> None:
        """Replace a text whose first version has a mark, so that it is kept aside."""
        self.store.part(self.changing | {"text": "second version"})

    def _agent(self) -> None:
        ids = ("msg_agent", "ses_agent")
        self.store.session(session("ses_agent", str(self.work), "Agent", parentID="ses_gone"))
        self.store.message(assistant(*ids, created=T0 + 15), text("prt_agent", *ids, mark("agent")))

    def _kept(self, session_id: str, number: int) -> None:
        ids = (f"msg_k{number}", session_id)
        self.store.session(session(session_id, str(self.work)))
        step = {"id": f"prt_k{number}a", "sessionID": session_id, "messageID": ids[0], "type": "step-start"}
        write = {"filePath": f"{self.work}/kept.txt", "content": "kept\n"}
        where = {"path": {"cwd": str(self.work), "root": str(self.work)}}
        self.store.message(
            assistant(*ids, created=T0 + 1000 + number, **where),
            step | {"snapshot": self.shared},
            text(f"prt_k{number}b", *ids, f"the {KEPT_WORD} of session {number} stays"),
            tool(f"prt_k{number}c", *ids, "write", done(write, "Wrote")),
        )
