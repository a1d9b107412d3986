"""A small OpenCode: sessions whose tool calls really change a temporary folder, the records it would write, the truth.

`Model` keeps two books. The journal is every record as it was written, in order (opencode-formats.md, Records), so that
any moment of OpenCode's store can be read back. The truth is the bytes of every file after each event, on a clock that
never goes back. `blind` are paths whose content nobody could tell from the records at that moment: changed from
outside, and no complete evidence of them since.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.property import model_rules as rules
from tests.property.model_books import Json, Talk
from tests.property.model_rules import OLD, ToolError
from tests.property.model_tools import Plan, Tools


class Model(Tools):
    """Sessions of one project: prompts, steps, calls, reverts and forks."""

    # -- sessions ------------------------------------------------------------------------------------------------

    def session(self, directory: str = "", parent: str = "", title: str = "A session") -> str:
        """A new session in a folder of the project; answers its id."""
        self.tick()
        where = str(self.project / directory) if directory else str(self.project)
        data: Json = {"id": self._id("ses"), "version": self.version, "projectID": "p" * 40 if self.git else "global"}
        data |= {"directory": where, "title": title, "time": {"created": self.clock, "updated": self.clock}}
        data |= {"parentID": parent} if parent else {}
        self.talks[data["id"]] = Talk(data, where)
        self._write("session", data)
        return str(data["id"])

    def prompt(self, session_id: str, words: str = "Go on.") -> None:
        """A user's message; a pending revert becomes final with it."""
        talk = self.talks[session_id]
        self._drop_reverted(talk)
        self.tick()
        data: dict[str, Any] = {
            "id": self._id("msg"),
            "sessionID": session_id,
            "role": "user",
            "time": {"created": self.clock},
        }
        talk.user, talk.first_tree = data["id"], ""
        talk.messages.append(data["id"])
        self._message(data | {"agent": "build", "summary": {"diffs": []}})
        self._part(data["id"], session_id, {"type": "text", "text": words})

    def begin_step(self, session_id: str) -> str:
        """An assistant message and its step-start, with the tree of before; answers the message's id."""
        talk = self.talks[session_id]
        if not talk.user:
            self.prompt(session_id)
        self.tick()
        root = str(self.project) if self.git else "/"
        data: dict[str, Any] = {
            "id": self._id("msg"),
            "sessionID": session_id,
            "role": "assistant",
            "time": {"created": self.clock},
        }
        data |= {"parentID": talk.user, "path": {"cwd": talk.directory, "root": root}}
        talk.messages.append(data["id"])
        talk.step = data["id"]
        self._message(data)
        self.tick()
        talk.tree = self._snapshot(talk)
        talk.first_tree = talk.first_tree or talk.tree
        self._part(data["id"], session_id, {"type": "step-start"} | ({"snapshot": talk.tree} if talk.tree else {}))
        return str(data["id"])

    def end_step(self, session_id: str) -> None:
        """The step-finish, the patch part, and the diffs of the user's message."""
        talk = self.talks[session_id]
        self.tick()
        tree = self._snapshot(talk)
        part = {"type": "step-finish", "reason": "tool-calls"} | ({"snapshot": tree} if tree else {})
        self._part(talk.step, session_id, part)
        changed = self._changed(talk.tree, tree, talk) if tree else []
        if changed:
            talk.patches[talk.step] = talk.tree, changed
            self._part(talk.step, session_id, {"type": "patch", "hash": talk.tree, "files": changed})
        record = self.records[talk.step]
        self._message(record | {"time": record["time"] | {"completed": self.tick()}})
        if tree:
            diffs = self._diffs(talk.first_tree, tree, talk)
            self._message(self.records[talk.user] | {"summary": {"diffs": diffs}})
        self.look()

    # -- calls ---------------------------------------------------------------------------------------------------

    def call(self, session_id: str, plan: Plan, *, instant: bool = False) -> None:
        """One call of the open step; an instant one takes no time, and shares its millisecond with the one before."""
        self.calls([(session_id, plan)], instant=instant)

    def calls(
        self,
        plans: Sequence[tuple[str, Plan]],
        effects: Sequence[int] = (),
        ends: Sequence[int] = (),
        *,
        instant: bool = False,
    ) -> None:
        """Calls that run beside one another: begun in order, taking effect and ending in the orders given."""
        self._frozen = instant
        begun = [self._begin(session_id, plan) for session_id, plan in plans]
        if len(plans) > 1 or instant:
            self.look(settled=False)
        results: dict[int, Json] = {}
        for number in effects or range(len(plans)):
            self.tick()
            results[number] = self._effect(*plans[number])
            self.look(settled=False)
        for number in ends or range(len(plans)):
            self._end(plans[number][0], begun[number], plans[number][1], results[number])
            self.look(settled=False)
        self._frozen = False
        self.truth[-1].settled = True

    def _begin(self, session_id: str, plan: Plan) -> Json:
        self.tick()
        state = {"status": "pending", "input": {}, "raw": ""}
        part = {"type": "tool", "callID": f"call_{next(self._counter)}", "tool": plan.tool, "state": state}
        part = self._part(self.talks[session_id].step, session_id, part)
        part |= {"state": {"status": "running", "input": plan.given, "time": {"start": self.tick()}}}
        self._part(part["messageID"], session_id, part)
        return part

    def _effect(self, session_id: str, plan: Plan) -> Json:
        """The new state without its times; the files change here."""
        if plan.fate == "rejected":
            return {"status": "error", "error": "The user rejected permission to use this specific tool call."}
        if plan.fate == "aborted" and plan.tool != "bash":
            return {"status": "error", "error": "Tool execution aborted", "input": {}}
        try:
            output, metadata = plan.act()
        except ToolError as error:
            return {"status": "error", "error": f"Error: {error}"}
        if plan.fate == "killed":
            return {}
        if plan.fate == "aborted" and self.version == OLD:
            return {"status": "error", "error": "Tool execution aborted", "metadata": {"output": output}}
        if plan.fate == "aborted":
            output, metadata = f"{output}\n\nUser aborted the command", metadata | {"exit": None}
        return {"status": "completed", "output": output, "metadata": metadata, "title": ""}

    def _end(self, session_id: str, part: Json, plan: Plan, result: Json) -> None:
        self.tick()
        if result:
            time = {"start": part["state"]["time"]["start"], "end": self.clock}
            state = {"input": plan.given} | result | {"time": time}
            self._part(part["messageID"], session_id, part | {"state": state})

    # -- reverts and forks ---------------------------------------------------------------------------------------

    def revert(self, session_id: str, message_id: str) -> None:
        """Set the files back to before a user's message; its messages stay until the next prompt."""
        talk = self.talks[session_id]
        self.tick()
        talk.blind_before.update(self._blind if "revert" not in talk.data else {})
        revert: Json = {"messageID": message_id}
        if self.git:
            revert["snapshot"] = talk.data.get("revert", {}).get("snapshot") or self._snapshot(talk, told=False)
            done: set[str] = set()
            for later in talk.messages[talk.messages.index(message_id) :]:
                tree, files = talk.patches.get(later, ("", []))
                for path in files:
                    if path not in done:
                        self._restore(tree, path)
                        done.add(path)
            self._snapshot(talk, told=False)
            revert["diff"] = self._git("diff", "--no-ext-diff", revert["snapshot"], self._git("write-tree").strip())
        self._session(talk, {"revert": revert})
        self.look()

    def _restore(self, tree: str, path: str) -> None:
        try:
            self._git("checkout", tree, "--", path)
        except ToolError:
            Path(path).unlink(missing_ok=True)
        self._unblind([path])

    def unrevert(self, session_id: str) -> None:
        """Take a pending revert back: the files of before it, nothing recorded."""
        talk = self.talks[session_id]
        revert = talk.data.get("revert")
        if revert is None:
            return
        self.tick()
        if self.git:
            self._git("read-tree", revert["snapshot"])
            self._git("checkout-index", "-a", "-f")
            self._blind = talk.blind_before | self._blind  # what nobody was told of before is there again
        talk.blind_before = {}
        self._session(talk, {"revert": None})
        self.look()

    def _session(self, talk: Talk, fields: Json) -> None:
        data = talk.data | fields | {"time": talk.data["time"] | {"updated": self.clock}}
        talk.data = {name: value for name, value in data.items() if value is not None}
        self._write("session", talk.data)

    def _drop_reverted(self, talk: Talk) -> None:
        revert = talk.data.get("revert")
        if revert is None:
            return
        at = talk.messages.index(revert["messageID"])
        for message_id in talk.messages[at:]:
            self._write("removed", {"id": message_id})
        del talk.messages[at:]
        talk.blind_before = {}
        self._session(talk, {"revert": None})

    def fork(self, session_id: str) -> str:
        """A new session with copies of all messages: new ids of now, times of then."""
        talk = self.talks[session_id]
        name = rules.relative(talk.directory, str(self.project))
        new = self.session("" if name == "." else name, title="A session (fork #1)")
        names: dict[str, str] = {}
        for message_id in talk.messages:
            names[message_id] = self._id("msg")
            old = self.records[message_id]
            fields = {"parentID": names.get(old["parentID"], "")} if "parentID" in old else {}
            self._message(old | fields | {"id": names[message_id], "sessionID": new})
            for part in list(self.parts[message_id].values()):
                rest = {key: value for key, value in part.items() if key not in ("id", "messageID", "sessionID")}
                self._part(names[message_id], new, rest)
            self.talks[new].messages.append(names[message_id])
            if message_id in talk.patches:
                self.talks[new].patches[names[message_id]] = talk.patches[message_id]
        return new
