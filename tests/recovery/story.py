"""A case told as what happened: a small disk, and what OpenCode writes down while it changes.

The case says what each call was given and, where that is not plain, what it really left on the disk. From this come
both the records (in the form of 1.1.65 or of 1.18.33) and the truth that every answer is held against.
"""

from __future__ import annotations

import base64
import itertools
import json
import posixpath
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from tests.recovery import store
from tests.recovery.calls import APP, Calls
from tests.recovery.case import Case
from tests.recovery.forms import VERSIONS, content_of, counted, full_context, quoted, shown, state
from tests.recovery.store import Content, Json, Link, Recorded
from tests.support.stores.records import read_output

START = 1_795_230_000_000
_PROJECT = "232d60e97da921ac78f1cfc102854bc7b5bf6212"
_LARGE = 2 << 20
_VERBS = ("write", "edit", "patch", "bash", "read", "tool", "user", "outside", "note")


@dataclass
class Moment:
    """The disk right after an event: `time` is when all of it was recorded."""

    label: str
    time: int
    disk: dict[str, Content]
    blind: frozenset[str]
    """Paths that have changed unseen since their last recorded event."""


@dataclass
class _Step:
    """A message being written: its record, and the trees around it."""

    recorded: Recorded
    clock: int
    session: str
    before: dict[str, Content] = field(default_factory=dict)
    tree: str | None = None


class Story(Calls):
    """Plays a case into a data directory; afterwards `moments` hold the truth."""

    def __init__(self, case: Case, data_dir: Path, scratch: Path) -> None:
        self.case, self.name, self.data, self.data_dir = case, case.name, case.data, data_dir
        self.version = VERSIONS[case.kind]
        self.is_new = case.kind in store.DATABASES
        self.has_git = bool(self.data.get("git", False))
        self.disk: dict[str, Content] = {
            self.absolute(path): content_of(value) for path, value in self.data.get("disk", {}).items()
        }
        self.moments: list[Moment] = []
        self.labels: dict[str, Recorded] = {}
        self._sessions: dict[str, Json] = {}
        self._messages: list[Recorded] = []
        self._asked: dict[str, str] = {}  # session id -> its latest prompt
        self._prompts: list[tuple[Recorded, dict[str, Content], str]] = []
        self._marks: list[store.Mark] = []
        self._trees: dict[str, dict[str, Content]] = {}
        self._session_diffs: dict[str, list[Json]] = {}  # session id -> its session_diff file
        self._blind: set[str] = set()
        self._clock = self._latest = START
        self._count = 0
        folder = store.git_dir(data_dir, _PROJECT, APP, case.kind)
        self._snapshots = store.Snapshots(folder, scratch)

    # -- names -----------------------------------------------------------------------------------------------------

    def absolute(self, path: str, session: str = "main") -> str:
        base = self.data.get("sessions", {}).get(session, {}).get("directory", APP)
        return posixpath.normpath(posixpath.join(base, path))

    def new_id(self, prefix: str, ms: int) -> str:
        self._count += 1
        bits = (ms * 4096 + self._count % 4096) & ((1 << 48) - 1)
        bits = bits ^ ((1 << 48) - 1) if prefix == "ses" else bits
        return f"{prefix}_{bits:012x}{self._count:014d}"

    @staticmethod
    def truth(disk: Mapping[str, Content], path: str) -> Content | None:
        """What a reader of `path` gets, by way of links."""
        for place in [*(str(parent) for parent in reversed(PurePosixPath(path).parents)), path]:
            found = disk.get(place)
            if isinstance(found, Link):
                target = posixpath.normpath(posixpath.join(posixpath.dirname(place), found.target))
                return Story.truth(disk, target + path[len(place) :])
        return disk.get(path)

    # -- playing ---------------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Everything that happened, in order; then it is written down."""
        self._begin_sessions()
        step: _Step | None = None
        told = [
            event | ({"also": True} if number % event.get("per_message", 1) else {})
            for event in self.data["events"]
            for number in range(event.get("times", 1))
        ]
        for event, following in itertools.zip_longest(told, told[1:], fillvalue=dict[str, Any]()):
            step = self._event(event, step)
            if not following.get("also", False):
                self._finish(step, event)
                step = None
                self._remember(event)
        self._summarise()
        if self.data.get("pruned", False):
            shutil.rmtree(self.data_dir / "snapshot", ignore_errors=True)
        self._save()

    def _begin_sessions(self) -> None:
        for name, fields in {"main": {}, **self.data.get("sessions", {})}.items():
            created = START + fields.get("created", 0)
            git = fields.get("git", self.has_git)
            record: Json = {
                "id": self.new_id("ses", created),
                "slug": "quiet-nebula",
                "version": fields.get("version", self.version),
                "projectID": _PROJECT if git else "global",
                "directory": fields.get("directory", APP),
                "title": f"Session {name}",
                "time": {"created": created, "updated": created},
            }
            if "parent" in fields:
                record["parentID"] = self._sessions[fields["parent"]]["id"]
            self._sessions[name] = record

    def _remember(self, event: Json) -> None:
        label = event.get("label", "")
        self._sessions[event.get("session", "main")]["time"]["updated"] = self._clock
        self.moments.append(Moment(label, self._clock, dict(self.disk), frozenset(self._blind)))

    def _event(self, event: Json, step: _Step | None) -> _Step | None:
        verb = next(name for name in _VERBS if name in event)
        session = event.get("session", "main")
        if verb in ("outside", "note", "user"):
            self._clock = max(self._clock, self._latest)
            self._clock = max(self._clock + 1000, START + event.get("at", 0))
            if verb == "outside":
                self._leave(event["outside"], session)
                self._blind |= {self.absolute(path, session) for path in event["outside"]}
            elif verb == "user":
                self._prompt(event, session)
            else:
                self._note(event, session)
            return None
        if step is None:
            step = self._begin(event, session)
        self._call(verb, event, step)
        if "label" in event:
            self.labels[event["label"]] = step.recorded
        return step

    def _leave(self, left: Mapping[str, Any], session: str) -> None:
        for name, value in left.items():
            path = self.absolute(name, session)
            if value is False:
                for known in [known for known in self.disk if known == path or known.startswith(path + "/")]:
                    del self.disk[known]
            else:
                self.disk[path] = content_of(value)

    # -- messages --------------------------------------------------------------------------------------------------

    def _prompt(self, event: Json, session: str) -> Recorded:
        record = self._sessions[session]
        message_id = self.new_id("msg", self._clock)
        info: Json = {
            "id": message_id,
            "sessionID": record["id"],
            "role": "user",
            "time": {"created": self._clock},
            "agent": "build",
            "model": {"providerID": "lab", "modelID": "scripted-1"},
        }
        recorded = Recorded(info)
        self._asked[record["id"]] = message_id
        self._part(recorded, self._clock, {"type": "text", "text": event.get("user", "Please go on")})
        for part in self._attached(event, session):
            self._part(recorded, self._clock, part)
        self._messages.append(recorded)
        if "diffs" in event:
            info["summary"] = {"diffs": event["diffs"]}
        elif self.data.get("summary", False):
            self._prompts.append((recorded, dict(self.disk), session))
        if "label" in event:
            self.labels[event["label"]] = recorded
        return recorded

    def _attached(self, event: Json, session: str) -> Iterator[Json]:
        if "attach" in event:
            path = self.absolute(event["attach"], session)
            said = f'Called the Read tool with the following input: {{"filePath":"{path}"}}'
            yield {"type": "text", "synthetic": True, "text": said}
            text = shown(self.disk[path])
            yield {"type": "text", "synthetic": True, "text": read_output(path, text, self.version)}
            name = posixpath.basename(path)
            yield {"type": "file", "mime": "text/plain", "filename": name, "url": f"file://{path}"}
        if "data_url" in event:
            path = self.absolute(event["data_url"], session)
            content = self.disk[path]
            assert isinstance(content, bytes)
            url = f"data:image/png;base64,{base64.b64encode(content).decode()}"
            source = {"type": "file", "path": path, "text": {"value": "", "start": 0, "end": 0}}
            part = {"type": "file", "mime": "image/png", "filename": posixpath.basename(path), "url": url}
            yield part | ({"source": source} if event.get("named", True) else {})

    def _begin(self, event: Json, session: str) -> _Step:
        if not any(recorded.info["sessionID"] == self._sessions[session]["id"] for recorded in self._messages):
            self._clock += 1000
            self._prompt({}, session)
        self._clock = START + event["at"] - 100 if "at" in event else self._clock + 1000
        record = self._sessions[session]
        cwd = event.get("cwd", record["directory"])
        root = APP if record["projectID"] != "global" else "/"
        info: Json = {
            "id": self.new_id("msg", self._clock),
            "sessionID": record["id"],
            "parentID": self._asked[record["id"]],
            "role": "assistant",
            "time": {"created": self._clock},
            "mode": "build",
            "agent": "build",
            "modelID": "scripted-1",
            "providerID": "lab",
            "path": {"cwd": cwd, "root": root},
            "cost": 0,
            "tokens": {"input": 1, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        }
        recorded = Recorded(info)
        self._messages.append(recorded)
        step = _Step(recorded, self._clock, session, dict(self.disk))
        step.tree = self._tree(event.get("start"), session) if self._takes(session) else None
        given = {"snapshot": step.tree} if step.tree else {}
        self._part(recorded, self._clock + 20, {"type": "step-start", **given})
        self._clock += 100
        return step

    def _takes(self, session: str) -> bool:
        return self._sessions[session]["projectID"] != "global" and self.data.get("snapshots", True)

    def _tree(self, told: Any, session: str) -> str | None:
        """The tree now, or the one that the case tells of: a stale one, one that is gone, none."""
        if told == "missing":
            return store.MISSING_TREE
        if told == "none":
            return None
        files = self.disk if told is None else {self.absolute(p): content_of(v) for p, v in told.items()}
        ignored = {self.absolute(path) for path in self.data.get("ignored", ())}
        seen = {}
        for path, content in files.items():
            too_large = self.is_new and isinstance(content, bytes) and len(content) > _LARGE
            if path.startswith(APP + "/") and path not in ignored and not too_large:
                seen[path[len(APP) + 1 :]] = content
        tree = self._snapshots.take(seen)
        self._trees[tree] = {f"{APP}/{name}": content for name, content in seen.items()}
        return tree

    def _finish(self, step: _Step | None, event: Json) -> None:
        if step is None or "completed" in step.recorded.info["time"] or step.recorded.info.get("dead"):
            return
        self._clock += 100
        if event.get("killed", False):
            return
        tree = self._tree(event.get("finish"), step.session) if self._takes(step.session) else None
        given = {"snapshot": tree} if tree else {}
        self._part(step.recorded, self._clock, {"type": "step-finish", "reason": "tool-calls", **given, "cost": 0})
        changed = event["changed"] if "changed" in event else self._changed(step)
        if tree is not None and tree != step.tree and changed:
            names = [quoted(self.absolute(name)[len(APP) + 1 :], APP, is_new=self.is_new) for name in changed]
            self._clock += 5
            self._part(step.recorded, self._clock, {"type": "patch", "hash": step.tree, "files": names})
        self._clock += 20
        step.recorded.info["time"]["completed"] = self._clock
        step.recorded.info["finish"] = "tool-calls"
        if tree is not None and self.case.kind != "sqlite":  # since 1.17 only a revert writes it
            self._write_session_diff(step.session)

    def _changed(self, step: _Step) -> list[str]:
        names = sorted({*step.before, *self.disk})
        ignored = {self.absolute(path) for path in self.data.get("ignored", ())}
        return [
            n for n in names if step.before.get(n) != self.disk.get(n) and n.startswith(APP + "/") and n not in ignored
        ]

    def _part(self, recorded: Recorded, time: int, fields: Json) -> Json:
        ids = {
            "id": self.new_id("prt", time),
            "sessionID": recorded.info["sessionID"],
            "messageID": recorded.info["id"],
        }
        recorded.parts.append({**ids, **fields})
        recorded.clocks.append(time)
        return recorded.parts[-1]

    # -- tool calls -------------------------------------------------------------------------------------------------

    def _call(self, verb: str, event: Json, step: _Step) -> None:
        before = dict(self.disk)
        begun = START + event["at"] if "at" in event else self._clock + 50
        ended = begun + event.get("took", 50)
        self._clock = max(self._clock, ended)
        self._latest = max(self._latest, self._clock)
        made = getattr(self, f"_{verb}")(event, step.session)
        name, given, output, metadata = made
        if "leaves" in event:
            self._leave(event["leaves"], step.session)
        self._blind -= {path for path in {*before, *self.disk} if before.get(path) != self.disk.get(path)}
        self._blind |= {self.absolute(path, step.session) for path in event.get("unseen", ())}
        if verb == "edit" and event.get("status", "completed") == "completed":
            metadata |= self._edited(event, before, step.session)
        self._leave(event.get("formatted", {}), step.session)
        made_state = state(event, given | event.get("input", {}), output, metadata, begun, ended)
        call = {"callID": f"call_{self._count}", "tool": event.get("as", name), "state": made_state}
        self._part(step.recorded, begun, {"type": "tool", **call})

    # -- what else is recorded -------------------------------------------------------------------------------------

    def _note(self, event: Json, session: str) -> None:
        """What happens to a session: a revert, its end or undoing, a fork; `leaves` is what it did to the disk."""
        what, record = event["note"], self._sessions[session]
        tree = self._tree(None, session) if self._takes(session) else None
        self._leave(event.get("leaves", {}), session)
        if what == "revert":
            record["revert"] = self._reverted(event, session, tree)
        elif what == "cleanup":
            self._remove(record["id"], record.pop("revert"))
        elif what == "unrevert":
            record.pop("revert")
        elif what == "fork":
            self._fork(record, self._sessions[event["from"]])
        info = json.loads(json.dumps(record))
        self._marks.append(store.Mark(self._clock, record["id"], "session.updated.1", {"info": info}))
        self._blind |= {self.absolute(path, session) for path in event.get("leaves", {})}

    def _reverted(self, event: Json, session: str, tree: str | None) -> Json:
        """What OpenCode notes of a revert to a message or a part, with the files as that has left them.

        Where no text or call stands before the part, it takes the turn's prompt in place of both.
        """
        message = self.labels[event["to"]]
        record = self._sessions[session]
        part = message.parts[event["part"]] if "part" in event else None
        before = message.parts[: event.get("part", 0)]
        revert: Json = {"messageID": message.info["id"]}
        if part is not None and any(one["type"] in ("text", "tool") for one in before):
            revert["partID"] = part["id"]
        elif part is not None:
            revert["messageID"] = message.info.get("parentID", message.info["id"])
        tree = record.get("revert", {}).get("snapshot", tree)
        if tree is not None:
            now = self._tree(None, session)
            assert now is not None
            revert |= {"snapshot": tree, "diff": event.get("diff", self._snapshots.diff(tree, now))}
            self._write_session_diff(session, revert["messageID"])
        return revert

    def _write_session_diff(self, session: str, first: str = "") -> None:
        """From the first to the last tree of the messages that are left, or of those that are reverted.

        Up to 1.15 the file is written when a step or its turn ends, and in every version by a revert.
        """
        if "session_diff" in self.data:
            return
        session_id = self._sessions[session]["id"]
        left = [r for r in self._messages if r.info["sessionID"] == session_id and not r.removed]
        parts = [p for r in left if r.info["id"] >= first for p in r.parts if not r.cut or p["id"] < r.cut]
        trees = [(p["type"], self._trees.get(p["snapshot"], {})) for p in parts if "snapshot" in p]
        before = next((tree for kind, tree in trees if kind == "step-start"), None)
        after = next((tree for kind, tree in reversed(trees) if kind == "step-finish"), None)
        found = [] if before is None or after is None else self._diffs(before, after, session)
        self._session_diffs[session_id] = found

    def _remove(self, session_id: str, revert: Json) -> None:
        """The clean-up after a revert: since 1.15 a message that was reverted in part keeps the parts before."""
        for recorded in self._messages:
            message_id, part_id = recorded.info["id"], revert.get("partID", "")
            if recorded.info["sessionID"] != session_id or message_id < revert["messageID"]:
                continue
            if self.is_new and part_id and message_id == revert["messageID"]:
                recorded.cut = part_id
                gone = [{"messageID": message_id, "partID": p["id"]} for p in recorded.parts if p["id"] >= part_id]
                self._marks += [store.Mark(self._clock, session_id, "message.part.removed.1", one) for one in gone]
                continue
            recorded.removed = True
            self._marks.append(store.Mark(self._clock, session_id, "message.removed.1", {"messageID": message_id}))

    def _fork(self, into: Json, source: Json) -> None:
        copies: dict[str, str] = {}
        for recorded in [r for r in self._messages if r.info["sessionID"] == source["id"]]:
            copies[recorded.info["id"]] = self.new_id("msg", self._clock)
            info = recorded.info | {"id": copies[recorded.info["id"]], "sessionID": into["id"]}
            if "parentID" in info:
                info["parentID"] = copies[info["parentID"]]
            elif info["role"] == "user":
                self._asked[into["id"]] = info["id"]
            copy = Recorded(json.loads(json.dumps(info)))
            for part in recorded.parts:
                fields = {name: value for name, value in part.items() if name not in ("id", "sessionID", "messageID")}
                self._part(copy, self._clock, json.loads(json.dumps(fields)))
            self._messages.append(copy)

    def _summarise(self) -> None:
        """`summary.diffs`: what the work tree was at the prompt, and what it was before the next one."""
        for number, (recorded, before, session) in enumerate(self._prompts):
            after = self._prompts[number + 1][1] if number + 1 < len(self._prompts) else self.disk
            recorded.info["summary"] = {"title": "Work", "diffs": self._diffs(before, after, session)}

    def _diffs(self, before: dict[str, Content], after: dict[str, Content], session: str) -> list[Json]:
        base = self._sessions[session]["directory"]
        found = []
        for path in sorted({*before, *after}):
            was, now = before.get(path), after.get(path)
            if was == now or not path.startswith(base + "/"):
                continue
            status = "added" if was is None else "deleted" if now is None else "modified"
            name = path[len(APP) + 1 :]
            # Since 1.15 the texts are decoded, which drops a byte order mark.
            old, new = (shown(side or b"", bom=not self.is_new) for side in (was, now))
            diff: Json = {"file": name, **counted(old, new), "status": status}
            found.append(
                diff | {"patch": full_context(name, old, new)} if self.is_new else diff | {"before": old, "after": new}
            )
        return found

    def _save(self) -> None:
        used = {recorded.info["sessionID"] for recorded in self._messages}
        sessions = [s for s in self._sessions.values() if s["id"] in used]
        times = {"created": START, "updated": START}
        projects = [{"id": "global", "worktree": "/", "sandboxes": [], "time": times}]
        if self.has_git:
            projects.append({"id": _PROJECT, "worktree": APP, "vcs": "git", "sandboxes": [], "time": times})
        diffs = self._session_diffs | {
            self._sessions[name]["id"]: [counted(entry["before"], entry["after"]) | entry for entry in entries]
            for name, entries in self.data.get("session_diff", {}).items()
        }
        store.write(self.data_dir, self.case.kind, projects, sessions, self._messages, self._marks, diffs)
