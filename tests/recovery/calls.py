"""Tool calls: what each was given, what it says it did, and what it left on the case's disk."""

from __future__ import annotations

import posixpath
from pathlib import Path

from tests.recovery.forms import BOM, content_of, counted, reading, shown, text_of, trimmed
from tests.recovery.store import Content, Json

APP = "/home/dev/app"


class Calls:
    """One method a tool: (tool, input, output, metadata) of the call that an event tells; the disk changes with it."""

    name: str
    version: str
    is_new: bool
    data_dir: Path
    disk: dict[str, Content]

    def absolute(self, path: str, session: str = "main") -> str:
        raise NotImplementedError

    def new_id(self, prefix: str, ms: int) -> str:
        raise NotImplementedError

    def _given_path(self, event: Json, verb: str, session: str) -> str:
        path: str = event[verb]
        return path if event.get("raw", False) else self.absolute(path, session)

    def _happens(self, event: Json) -> bool:
        return event.get("status", "completed") == "completed"

    def _write(self, event: Json, session: str) -> tuple[str, Json, str, Json]:
        path = self.absolute(event["write"], session)
        text = text_of(event["content"])
        existed = path in self.disk
        if self._happens(event) and "leaves" not in event:
            old = self.disk.get(path, b"")
            keeps = self.is_new and isinstance(old, bytes) and old.startswith(BOM.encode())
            kept = BOM if keeps and not text.startswith(BOM) else ""
            self.disk[path] = content_of(kept + text)
        given = {"filePath": self._given_path(event, "write", session), "content": text}
        metadata = {"diagnostics": {}, "filepath": path, "exists": existed, "truncated": False}
        return "write", given, "Wrote file successfully.", metadata

    def _edit(self, event: Json, session: str) -> tuple[str, Json, str, Json]:
        path = self.absolute(event["edit"], session)
        old, new = text_of(event["old"]), text_of(event["new"])
        given: Json = {"filePath": self._given_path(event, "edit", session), "oldString": old, "newString": new}
        if event.get("all", False):
            given["replaceAll"] = True
        if self._happens(event):
            self.disk[path] = self._after_edit(event, path, old, new)
        return "edit", given, "Edit applied successfully.", {"diagnostics": {}, "truncated": False}

    def _after_edit(self, event: Json, path: str, old: str, new: str) -> Content:
        """What the edit left: told by the case wherever it takes more than finding the text once."""
        if "after" in event:
            return content_of(event["after"])
        content = self.disk.get(path, b"")
        assert isinstance(content, bytes)
        if not old and not content:
            return content_of(new)
        text = content.decode()
        everywhere = event.get("all", False) and "$" not in new
        plain = "\r" not in text + old + new and not text.startswith(BOM)
        if not old or not plain or not (everywhere or text.count(old) == 1) or old not in text:
            raise ValueError(f"{self.name}: tell what the edit of {path} left (after)")
        return content_of(text.replace(old, new))

    def _edited(self, event: Json, before: dict[str, Content], session: str) -> Json:
        path = self.absolute(event["edit"], session)
        was, now = shown(before.get(path, b"")), shown(self.disk[path])
        patch = trimmed(path, was, now)
        diff: Json = {"file": path, "additions": 1, "deletions": 1}
        if self.is_new:
            return {"diff": patch, "filediff": diff | {"patch": patch}}
        if event.get("bare", False):
            return {"diff": patch}
        return {"diff": patch, "filediff": diff | {"before": event.get("shown_before", was), "after": now}}

    def _patch(self, event: Json, session: str) -> tuple[str, Json, str, Json]:
        moves = {self.absolute(a, session): self.absolute(b, session) for a, b in event.get("moves", {}).items()}
        files = []
        for name, value in event.get("leaves", {}).items():
            path = self.absolute(name, session)
            if path in moves.values():
                continue
            was, target = self.disk.get(path), moves.get(path)
            after = event["leaves"].get(event.get("moves", {}).get(name, name), value)
            kind = "move" if target else "delete" if value is False else "update" if was is not None else "add"
            files.append(self._patched(path, kind, was or b"", b"" if after is False else content_of(after), target))
        metadata: Json = {"diff": "", "diagnostics": {}, "truncated": False}
        if not event.get("bare", False):
            metadata["files"] = files
        return "apply_patch", {"patchText": event["patch"]}, "Success. Updated the following files:", metadata

    def _patched(self, path: str, kind: str, was: Content, now: Content, target: str | None) -> Json:
        made: Json = {"filePath": path, "relativePath": posixpath.relpath(path, APP), "type": kind}
        before, after = shown(was), shown(now)
        diff = trimmed(path, before, after)
        made |= {"patch": diff} if self.is_new else {"diff": diff, "before": before, "after": after}
        made |= counted(before, after)
        return made | ({"movePath": target} if target else {})

    def _bash(self, event: Json, _session: str) -> tuple[str, Json, str, Json]:
        output = text_of(event.get("output", ""))
        given: Json = {"command": event["bash"], "description": "Run it"}
        if "workdir" in event:
            given["workdir"] = event["workdir"]
        exit_ = event.get("exit", 0)
        metadata: Json = {"output": output, "exit": None if exit_ == "null" else exit_, "truncated": False}
        if not self.is_new:
            metadata["description"] = "Run it"
        if event.get("spill", False):
            name = self.new_id("tool", 0)
            (self.data_dir / "tool-output").mkdir(parents=True, exist_ok=True)
            (self.data_dir / "tool-output" / name).write_text(output)
            note = f"The tool call succeeded but the output was truncated. Full output saved to: {self.data_dir}/tool-output/{name}"
            output = (
                f"...output truncated...\n\n{note}\n\n{output[-2000:]}"
                if self.is_new
                else f"{output[:2000]}\n\n...\n\n{note}"
            )
            metadata |= {"truncated": True, "outputPath": str(self.data_dir / "tool-output" / name), "output": output}
        return "bash", given, output, metadata

    def _read(self, event: Json, session: str) -> tuple[str, Json, str, Json]:
        path = self.absolute(event["read"], session)
        given: Json = {"filePath": self._given_path(event, "read", session)}
        given |= {name: event[name] for name in ("offset", "limit") if name in event}
        text = event["sees"] if "sees" in event else shown(self.disk.get(path, b""))
        output, display = reading(path, text, self.version, event.get("offset", 1), event.get("limit", 2000))
        metadata: Json = {"preview": text[:200], "truncated": display["truncated"], "loaded": []}
        if self.is_new:
            metadata["display"] = display
        return "read", given, output + event.get("tail", ""), metadata

    def _tool(self, event: Json, _session: str) -> tuple[str, Json, str, Json]:
        return event["tool"], {}, event.get("output", ""), {}
