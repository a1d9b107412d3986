"""An OpenCode folder with a file that has a mark in every kind of place that records files, beside others without."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

from tests.support.stores.git_trees import Repository
from tests.support.stores.make_opencode import T0, Database, JsonStore, assistant, session, text, tool, user
from tests.support.stores.marked_sessions import KEPT_WORD, MARK, done, mark

FILE_KINDS = (
    "name", "write", "edit", "read", "grep", "shell", "attached", "spill", "aside", "snapshot", "diff", "turn", "todo",
    "revert", "pattern",
)  # fmt: skip

ONLY_IN_SNAPSHOTS = "Qz4only"
"""Names a file that no call has named."""


class MarkedPath:
    """`path` is the file, `folder` the one that it is in. `data` is OpenCode's, `work` where its session ran."""

    def __init__(self, root: Path, name: str = f"a [b]+ {mark('name')}.txt") -> None:
        self.data, self.work = root / "oc", root / "work"
        self.folder = self.work / "vault"
        self.path, self.other = self.folder / name, self.folder / "other.txt"
        self.beside = self.work / "vaults" / "kept.txt"
        self.store = JsonStore(self.data)
        (self.data / "tool-output").mkdir()
        self.tree = Repository(self.data, "pid", self.work)
        self.before = self.tree.write({"vaults/kept.txt": b"kept\n", "vault/other.txt": b"other\n"})
        self.tree.write({f"snaps/{ONLY_IN_SNAPSHOTS}.txt": b"nobody wrote it\n"})
        self.with_file = self.tree.write({f"vault/{name}": f"{mark('snapshot')}\n".encode()})
        self._messages: list[tuple[dict[str, Any], ...]] = []
        self._session()
        self._kept()

    def _session(self) -> None:
        store, path = self.store, str(self.path)
        revert = {"messageID": "msg_f1", "snapshot": self.with_file, "diff": f"--- a/{path}\n+{mark('revert')}\n"}
        store.session(session("ses_f", str(self.work), "Files", revert=revert))
        ids = ("msg_f1", "ses_f")
        turn = {"file": path, "before": "", "after": mark("turn"), "additions": 1, "deletions": 0}
        other = {"file": str(self.other), "before": "", "after": "other\n", "additions": 1, "deletions": 0}
        url = "data:text/plain;base64," + base64.b64encode(mark("attached").encode()).decode()
        source = {"type": "file", "path": path, "text": {"value": f"@{path}", "start": 0, "end": 9}}
        file = {"id": "prt_f1c", "sessionID": ids[1], "messageID": ids[0], "type": "file", "mime": "text/plain"}
        announced = f"Called the Read tool with the following input: {json.dumps({'filePath': path})}"
        self._message(
            user(*ids, summary={"diffs": [turn, other]}),
            text("prt_f1a", *ids, f"the {KEPT_WORD} and the vault"),
            text("prt_f1b", *ids, announced, synthetic=True),
            text("prt_f1b2", *ids, f"<file>\n{mark('attached')}\n</file>", synthetic=True),
            file | {"filename": self.path.name, "url": url, "source": source},
        )
        ids, where = ("msg_f2", "ses_f"), {"path": {"cwd": str(self.work), "root": str(self.work)}}
        spill = self.data / "tool-output" / "tool_f"
        spill.write_text(f"{path}:1: {mark('spill')}\n" * 50)
        os.utime(spill, (0, T0 / 1000))

        def step(name: str, kind: str, tree: str) -> dict[str, Any]:
            return {"id": name, "sessionID": ids[1], "messageID": ids[0], "type": kind, "snapshot": tree}

        patch = {"id": "prt_f2z", "sessionID": ids[1], "messageID": ids[0], "type": "patch", "hash": self.before}
        self.aside = tool("prt_f2g", *ids, "bash", done({"command": f"cat '{path}'"}, f"first {mark('aside')}"))
        self._message(
            assistant(*ids, created=T0 + 10, parentID="msg_f1", **where),
            step("prt_f20", "step-start", self.before),
            text("prt_f2a", *ids, f"answer with a {KEPT_WORD}"),
            tool("prt_f2b", *ids, "write", done({"filePath": path, "content": f"{mark('write')}\n"}, "Wrote")),
            tool("prt_f2c", *ids, "edit", done({"filePath": path, "oldString": "x", "newString": mark("edit")}, "Ok")),
            tool("prt_f2d", *ids, "read", done({"filePath": path}, f"00001| {mark('read')}")),
            tool("prt_f2e", *ids, "grep", done({"pattern": "x"}, f"Found 1\n{path}:\n  Line 1: {mark('grep')}")),
            tool("prt_f2f", *ids, "grep", done({"pattern": "y"}, "much", outputPath=str(spill))),
            self.aside,
            tool(
                "prt_f2h", *ids, "bash", done({"command": "cat " + _quoted(f"vault/{self.path.name}")}, mark("shell"))
            ),
            tool("prt_f2h2", *ids, "bash", done({"command": "cat vault/a*.txt"}, mark("pattern"))),
            tool("prt_f2i", *ids, "write", done({"filePath": str(self.other), "content": "other\n"}, "Wrote")),
            patch | {"files": [path, str(self.other)], "note": ""},
            step("prt_f2zz", "step-finish", self.with_file),
        )
        todos = [f"put {mark('todo')} into {path}", f"feed the {KEPT_WORD}"]
        items = [{"content": each, "status": "pending", "id": str(number)} for number, each in enumerate(todos)]
        store.raw("todo/ses_f.json", json.dumps(items))
        of_session = {"file": f"vault/{self.path.name}", "before": "", "after": mark("diff")}
        store.raw("session_diff/ses_f.json", json.dumps([of_session | {"additions": 1, "deletions": 0}, other]))

    def change(self) -> None:
        """Replace an output whose first version has a mark, so that it is kept aside."""
        state = self.aside["state"] | {"output": "second version", "input": {"command": "true"}}
        self.store.part(self.aside | {"state": state})

    def new_store(self) -> None:
        """The messages in a database, as OpenCode migrates them, but with other ids of the parts."""
        database = Database(self.data / "opencode.db")
        database.session(session("ses_f", str(self.work), "Files"))
        for record, *parts in self._messages:
            renamed = [{**part, "id": f"prt_m{number:02}"} for number, part in enumerate(parts)]
            database.message(record, *renamed)
        database.close()

    def _message(self, record: dict[str, Any], *parts: dict[str, Any]) -> None:
        self._messages.append((record, *parts))
        self.store.message(record, *parts)

    def _kept(self) -> None:
        ids = ("msg_k1", "ses_k")
        self.store.session(session("ses_k", str(self.work)))
        where = {"path": {"cwd": str(self.work), "root": str(self.work)}}
        write = {"filePath": str(self.beside), "content": "kept\n"}
        upper = {"filePath": str(self.path).swapcase().replace(MARK.swapcase(), ""), "content": "case\n"}
        self.store.message(
            assistant(*ids, created=T0 + 1000, **where),
            {"id": "prt_k0", "sessionID": ids[1], "messageID": ids[0], "type": "step-start", "snapshot": self.before},
            text("prt_k1", *ids, f"the {KEPT_WORD} stays"),
            tool("prt_k2", *ids, "write", done(write, "Wrote")),
            tool("prt_k3", *ids, "write", done(upper, "Wrote")),
        )


def _quoted(name: str) -> str:
    return "'" + name + "'"
