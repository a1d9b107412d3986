"""Laws: random tool calls run on real files by a small model of OpenCode's tools; what is called proven was there."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.files.history import FileHistory, Revision
from daemon.model import FileEdit
from daemon.transcript.evidence.edits import edits, from_json, to_json
from tests.support.examples import examples
from tests.support.stores.records import START, apply_patch, bash, edit, message, read, session, write
from tests.support.stores.replaying import history

NAMES = ("a.lua", "b.lua")
BOM = "\ufeff"
_LINES = st.lists(st.sampled_from(["", "x", "y", "x y", "z$&", "é"]), max_size=5)
_TEXTS = st.builds(
    lambda lines, end, last, bom: bom + end.join(lines) + (end if last else ""),
    _LINES, st.sampled_from(["\n", "\n", "\r\n"]), st.booleans(), st.sampled_from(["", "", "", BOM]),
)  # fmt: skip
_SNIPPETS = st.sampled_from(["x", "y", "x y", "x\n", "y\nx", "\r\n", "$", "$&-$$", "", "q", "x\r\ny"])
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(NAMES), _TEXTS),
        st.tuples(st.just("edit"), st.sampled_from(NAMES), _SNIPPETS, _SNIPPETS, st.booleans()),
        st.tuples(
            st.just("update"), st.sampled_from(NAMES), st.integers(0, 6), st.sampled_from(["x", "new"]), st.booleans()
        ),
        st.tuples(st.just("add"), st.sampled_from(NAMES), _LINES),
        st.tuples(st.just("delete"), st.sampled_from(NAMES)),
        st.tuples(st.just("append"), st.sampled_from(NAMES)),
        st.tuples(st.just("outside"), st.sampled_from(NAMES), _TEXTS),
        st.tuples(st.just("read"), st.sampled_from(NAMES)),
    ),
    max_size=12,
)


class World:
    """A folder, OpenCode's tools of one version working in it, and the records they leave."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder, self.version = folder, version
        self.is_old = version == "1.1.65"
        self.edits: list[FileEdit] = []
        self.truth: dict[int, dict[str, bytes | None]] = {}
        self.outside: dict[str, int] = {}
        self._time = START

    def run(self, step: tuple[Any, ...]) -> None:
        self._time += 1000
        kind, name, *rest = step
        path = self.folder / name
        record = getattr(self, f"_{kind}")(path, *rest)
        if record is not None:
            record["state"]["time"] = {"start": self._time, "end": self._time + 5}
            self.edits += edits(message(record, role="assistant", cwd=str(self.folder)), session(version=self.version))
        self.truth[self._time + 5] = {
            n: (self.folder / n).read_bytes() if (self.folder / n).exists() else None for n in NAMES
        }
        if kind == "outside":
            self.outside.setdefault(str(path), self._time)

    def _text(self, path: Path) -> str:
        return path.read_bytes().decode()

    def _write(self, path: Path, content: str) -> dict[str, Any]:
        existed = path.exists()
        kept = (
            BOM
            if existed and not self.is_old and self._text(path).startswith(BOM) and not content.startswith(BOM)
            else ""
        )
        path.write_bytes((kept + content).encode())
        return write(str(path), content, metadata={"filepath": str(path), "exists": existed})

    def _edit(self, path: Path, old: str, new: str, everywhere: bool) -> dict[str, Any]:
        failed = edit(str(path), old, new, replace_all=everywhere, status="error")
        if old == new or not path.exists() or old == "":
            return failed
        whole = self._text(path)
        text = whole.removeprefix(BOM)
        find, put = old, new
        if not self.is_old:
            end = "\r\n" if "\r\n" in text else "\n"
            find, put = (s.replace("\r\n", "\n").replace("\n", end) for s in (old, new))
        count = text.count(find)
        if not count or (not everywhere and text.find(find) != text.rfind(find)):
            return failed
        after = _javascript_replace_all(text, find, put) if everywhere else text.replace(find, put, 1)
        kept = BOM if whole.startswith(BOM) and not self.is_old else ""
        path.write_bytes((kept + after).encode())
        recorded = {"before": text, "after": after} if self.is_old else {"patch": "…"}
        return edit(str(path), old, new, replace_all=everywhere, metadata={"filediff": {"file": str(path), **recorded}})

    def _update(self, path: Path, at: int, new: str, moves: bool) -> dict[str, Any] | None:
        if not path.exists():
            return None
        whole = self._text(path)
        text = whole.removeprefix(BOM)
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        if at >= len(lines) or lines.index(lines[at]) != at or (lines and lines[-1] == "") or new == "":
            return None
        after = "\n".join([*lines[:at], new, *lines[at + 1 :], ""])
        kept = BOM if whole.startswith(BOM) and not self.is_old else ""
        other = path.with_name(NAMES[1 - NAMES.index(path.name)])
        target = other if moves else path
        path.unlink()
        target.write_bytes((kept + after).encode())
        header = f"*** Update File: {path.name}\n" + (f"*** Move to: {other.name}\n" if moves else "")
        patch = f"*** Begin Patch\n{header}@@\n-{lines[at]}\n+{new}\n*** End Patch"
        recorded = {"before": text, "after": after} if self.is_old else {"patch": "…"}
        entry = {"filePath": str(path), "type": "move" if moves else "update", **recorded}
        return apply_patch(patch, metadata={"files": [entry | ({"movePath": str(other)} if moves else {})]})

    def _add(self, path: Path, lines: list[str]) -> dict[str, Any]:
        content = "\n".join(lines)
        content = content if not content or content.endswith("\n") else content + "\n"
        path.write_bytes(content.encode())
        body = "".join(f"+{line}\n" for line in lines)
        return apply_patch(f"*** Begin Patch\n*** Add File: {path.name}\n{body}*** End Patch")

    def _delete(self, path: Path) -> dict[str, Any]:
        patch = f"*** Begin Patch\n*** Delete File: {path.name}\n*** End Patch"
        if not path.exists():
            return apply_patch(patch, status="error")
        path.unlink()
        return apply_patch(patch)

    def _append(self, path: Path) -> dict[str, Any]:
        with path.open("ab") as file:
            file.write(b"more\n")
        return bash(f"echo more >> {path.name}")

    def _outside(self, path: Path, content: str) -> None:
        path.write_bytes(content.encode())

    def _read(self, path: Path) -> dict[str, Any] | None:
        return read(str(path), self._text(path), self.version) if path.exists() else None

    # -- what we make of it --------------------------------------------------------------------------------------

    def of(self, path: str, among: list[FileEdit] | None = None) -> FileHistory:
        return history(path, among or self.edits)


def _javascript_replace_all(text: str, old: str, new: str) -> str:
    """Character by character, as the language's specification words it."""
    out, at = "", 0
    while True:
        hit = text.find(old, at)
        if hit < 0:
            return out + text[at:]
        put, i = "", 0
        while i < len(new):
            pair = new[i : i + 2]
            if pair == "$$":
                put += "$"
            elif pair == "$&":
                put += old
            elif pair == "$`":
                put += text[:hit]
            elif pair == "$'":
                put += text[hit + len(old) :]
            else:
                put, i = put + new[i], i - 1
            i += 2
        out, at = out + text[at:hit] + put, hit + len(old)


def _play(version: str, steps: list[tuple[Any, ...]], folder: str) -> World:
    world = World(Path(folder), version)
    for step in steps:
        world.run(step)
    return world


_VERSIONS = st.sampled_from(["1.1.65", "1.18.33"])


@settings(max_examples=examples(300), deadline=None)
@given(_VERSIONS, _STEPS)
def test_every_proven_revision_is_what_the_file_held_then(version: str, steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = _play(version, steps, folder)
        for name in NAMES:
            path = f"{folder}/{name}"
            for revision in world.of(path).revisions:
                truth = world.truth[revision.time][name]
                if not revision.proven or (
                    (truth or b"").startswith(BOM.encode()) and any("byte order mark" in e for e in revision.evidence)
                ):
                    continue  # the one thing that no record shows, which the evidence says
                if any(time < revision.time for time in world.outside.values()) and not _stands_alone(revision):
                    continue  # somebody else wrote in between and left no record: nothing could tell
                assert revision.deleted == (truth is None)
                assert revision.content == truth, revision


def _stands_alone(revision: Revision) -> bool:
    """Whether it was proven by its own call, whatever the file held before."""
    return revision.evidence[0] in ("recorded text after the edit", "deletion") or (
        revision.tool == "apply_patch" and revision.evidence == ("write",)
    )


@settings(max_examples=examples(100), deadline=None)
@given(_VERSIONS, _STEPS)
def test_without_outside_changes_only_commands_or_rules_leave_doubt(version: str, steps: list[tuple[Any, ...]]) -> None:
    steps = [step for step in steps if step[0] in ("write", "edit", "add", "delete")]
    with tempfile.TemporaryDirectory() as folder:
        world = _play(version, [("write", name, "") for name in NAMES] + steps, folder)
        for name in NAMES:
            assert not world.of(f"{folder}/{name}").stale


@settings(max_examples=examples(100), deadline=None)
@given(_VERSIONS, _STEPS, st.randoms(use_true_random=False))
def test_replaying_twice_in_any_order_and_through_the_archive_is_the_same(
    version: str, steps: list[tuple[Any, ...]], random: Any
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = _play(version, steps, folder)
        mixed = [from_json(to_json(one)) for one in world.edits]
        random.shuffle(mixed)
        for name in NAMES:
            path = f"{folder}/{name}"
            assert world.of(path) == world.of(path) == world.of(path, mixed or None)


@settings(max_examples=examples(100), deadline=None)
@given(_VERSIONS, _STEPS)
def test_splitting_the_history_at_a_write_changes_nothing_after_it(version: str, steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = _play(version, [s for s in steps if s[0] != "update" or not s[4]], folder)
        for name in NAMES:
            own = [one for one in world.edits if one.path == f"{folder}/{name}"]
            whole = history(f"{folder}/{name}", own).revisions
            for at, one in enumerate(own):
                if one.operation == "write" and not any(BOM in (e.content or "") for e in own):
                    tail = history(f"{folder}/{name}", own[at:]).revisions
                    assert [(r.time, r.content, r.proven, r.deleted) for r in whole if r.time >= one.time] == [
                        (r.time, r.content, r.proven, r.deleted) for r in tail
                    ]
