"""The tools of the small OpenCode: each is a plan whose `act` changes the real folder and answers what is recorded."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.property import model_rules as rules
from tests.property.model_books import QUIET, Books, Json
from tests.property.model_rules import OLD, ToolError


@dataclass(frozen=True)
class Plan:
    """One call: `act` does it and answers (output, metadata); `fate` is ok, rejected, aborted or killed."""

    tool: str
    given: Json
    act: Callable[[], tuple[str, Json]]
    fate: str = "ok"


class Tools(Books):
    """Plans of calls; nothing happens before a step plays them."""

    # -- the tools -----------------------------------------------------------------------------------------------

    def _raw(self, path: str) -> bytes | None:
        return Path(path).read_bytes() if Path(path).is_file() else None

    def _store(self, path: str, raw: bytes) -> None:
        if Path(path).is_dir():
            raise ToolError(f"EISDIR: illegal operation on a directory, open '{path}'")
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ToolError(str(error)) from None
        Path(path).write_bytes(raw)

    def write(self, path: str, content: str, fate: str = "ok") -> Plan:
        def act() -> tuple[str, Json]:
            raw = self._raw(path)
            after = rules.written(raw, content, self.version)
            self._store(path, after)
            mark = rules.BOM.encode()
            # 1.18 keeps a byte order mark that it finds, and whether it found one from outside is not recorded.
            found, known = ((side or b"").startswith(mark) for side in (raw, self._blind.get(path)))
            if self.version == OLD or found == known:
                self._unblind([path])
            return "Wrote file successfully.", {"filepath": path, "exists": raw is not None, "diagnostics": {}}

        return Plan("write", {"filePath": path, "content": content}, act, fate)

    def edit(self, path: str, old: str, new: str, *, everywhere: bool = False, fate: str = "ok") -> Plan:
        given = {"filePath": path, "oldString": old, "newString": new} | ({"replaceAll": True} if everywhere else {})

        def act() -> tuple[str, Json]:
            return "Edit applied successfully.", {"diagnostics": {}, "filediff": self._edit(path, old, new, everywhere)}

        return Plan("edit", given, act, fate)

    def multiedit(self, path: str, pairs: Sequence[tuple[str, str]], fate: str = "ok") -> Plan:
        """Not in the versions that were observed; its calls are those of edit, one after the other, all or an error."""
        edits = [{"filePath": path, "oldString": old, "newString": new} for old, new in pairs]

        def act() -> tuple[str, Json]:
            raw = self._raw(path)
            for old, new in pairs:  # as far as it comes, it would have written: try it on the side
                raw = rules.edited(raw, old, new, False, self.version)[2]
            results = [{"filediff": self._edit(path, old, new, False)} for old, new in pairs]
            return "Edit applied successfully.", {"results": results}

        return Plan("multiedit", {"filePath": path, "edits": edits}, act, fate)

    def _edit(self, path: str, old: str, new: str, everywhere: bool) -> Json:
        before, after, raw = rules.edited(self._raw(path), old, new, everywhere, self.version)
        self._store(path, raw)
        return {"file": path, "additions": 1, "deletions": 1} | self._beside(path, before, after)

    def _beside(self, path: str, before: str, after: str) -> Json:
        """What stands beside an edit: whole texts in 1.1.65, a patch with its indentation cut off in 1.18.33."""
        if self.version == OLD:
            self._unblind([path])
            return {"before": before, "after": after}
        return {"patch": rules.trimmed(rules.diff(path, before, after, 4))}

    def apply_patch(self, pieces: Sequence[tuple[Any, ...]], base: str, fate: str = "ok") -> Plan:
        """`pieces`: ("add", path, text) | ("delete", path) | ("update", path, line, new) | ("move", path, line, new, to).

        A patch that cannot be applied whole is an error and changes nothing.
        """
        lines = ["*** Begin Patch"]
        for kind, path, *rest in pieces:
            name = rules.relative(path, base)
            lines.append({"add": "*** Add", "delete": "*** Delete"}.get(kind, "*** Update") + f" File: {name}")
            lines += [f"*** Move to: {rules.relative(rest[2], base)}"] if kind == "move" else []
            lines += [f"+{line}" for line in rest[0].split("\n")[:-1]] if kind == "add" else []
            try:
                hunk = rules.patched(self._raw(path), rest[0], rest[1])[0] if kind in ("update", "move") else []
            except ToolError:
                hunk = ["@@", "-no such line", "+other"]
            lines += hunk
        text = "\n".join([*lines, "*** End Patch"])
        return Plan("apply_patch", {"patchText": text}, lambda: self._patch(pieces, base), fate)

    def _patch(self, pieces: Sequence[tuple[Any, ...]], base: str) -> tuple[str, Json]:
        work: list[tuple[str, str, str, bytes | None, bytes | None]] = []
        for kind, path, *rest in pieces:
            raw = self._raw(path)
            if kind != "add" and raw is None:
                raise ToolError(f"apply_patch verification failed: Failed to read file to update: {path}")
            target = rest[2] if kind == "move" else path
            if Path(target).is_dir() or any(Path(up).is_file() for up in Path(target).parents):
                raise ToolError("apply_patch verification failed: not a file")
            after = rest[0].encode() if kind == "add" else None
            after = rules.patched(raw, rest[0], rest[1])[1] if kind in ("update", "move") else after
            work.append((kind, path, target, raw, after))
        files = []
        for kind, path, target, raw, after in work:
            entry: Json = {"filePath": path, "relativePath": rules.relative(target, base), "type": kind}
            entry |= {"movePath": target} if kind == "move" else {}
            before = "" if raw is None or kind == "add" else rules.text_of(raw)
            entry |= self._beside(target, before, rules.text_of(after or b""))
            files.append(entry)
            if kind in ("delete", "move"):
                os.unlink(path)
            if after is not None:
                self._store(target, after)
            if kind in ("add", "delete"):
                self._unblind([path])
            elif kind == "move":
                self._follow([(path, target)], known=self.version == OLD)
        return "Success. Updated the following files:", {"files": files, "diagnostics": {}}

    def read(self, path: str, offset: int | None = None, limit: int = 2000, fate: str = "ok") -> Plan:
        given: Json = {"filePath": path} | ({"offset": offset, "limit": limit} if offset else {})

        def act() -> tuple[str, Json]:
            raw = self._raw(path)
            if raw is None:
                raise ToolError(f"File not found: {path}")
            found = rules.read(path, raw, self.version, offset, limit)
            known = self._blind.get(path)
            # What a read does not show (mark, line ends, final newline) may still be from outside.
            if not offset and path in self._blind and (known is None or self._shown(known) != self._shown(raw)):
                self._unblind([path])
            return found

        return Plan("read", given, act, fate)

    def _shown(self, raw: bytes) -> str:
        return rules.text_of(raw).removeprefix(rules.BOM).replace("\r\n", "\n").rstrip("\n")

    def bash(
        self,
        command: str,
        base: str,
        *,
        whole: Sequence[str] = (),
        moves: Sequence[tuple[str, str]] = (),
        unseen: bool = False,
        fate: str = "ok",
    ) -> Plan:
        """A command, really run in `base`. `whole`: paths whose state follows from its text when it exits with 0;
        `moves`: (from, to) likewise; `unseen`: its text does not tell which files it changes."""

        def act() -> tuple[str, Json]:
            before = self.files()
            done = subprocess.run(["bash", "-c", command], cwd=base, capture_output=True, env=QUIET, check=False)
            if unseen:
                self._lost_sight(before)
            if done.returncode == 0 and fate == "ok":
                self._unblind(whole)
                self._follow(moves, known=False)
            output = rules.text_of(done.stdout + done.stderr)
            return output, {"output": output, "exit": done.returncode, "truncated": False}

        return Plan("bash", {"command": command, "description": "Run it"}, act, fate)

    def _follow(self, moves: Iterable[tuple[str, str]], *, known: bool) -> None:
        for source, target in moves:
            if source in self._blind and not known:
                self._blind[target] = self._blind[source]
            else:
                self._blind.pop(target, None)
            if not Path(source).exists():
                self._blind.pop(source, None)
