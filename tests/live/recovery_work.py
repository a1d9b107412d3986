"""The file work that the real OpenCode is given: every way in which its tools, a shell and other people change files.

`Bench.turn` lets one session do some steps and notes the disk afterwards. The work of a folder is the same with and
without git, so that what only snapshots tell shows as what is refused without them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.live.recovery_opencode import PATCHING_MODEL, Workshop
from tests.live.recovery_truth import Notes
from tests.live.scripted_model import MODEL, Call, ScriptedModel, Step

UNICODE_NAME = "größe und länge.md"
PYTHON = "import pathlib\np = pathlib.Path('scripted.txt')\np.write_text(p.read_text().upper())\n"

SCRIPT = 'set -e\ncd "$(dirname "$0")/.."\nmkdir -p made\nsort moved.txt > made/sorted.txt\necho "by $1" > made/by-script.txt\n'
"""What it writes as a text is proven by its own text, and nothing that it does not name is in doubt."""

PREPARED: dict[str, bytes] = {
    "README.md": b"# Shop\n\nA place to buy things.\n",
    "app.py": b"def price(n):\n    if n > 3:\n        return n * 2\n    return n\n\n\ndef total(ns):\n    return sum(ns)\n",
    "crlf.txt": b"one\r\ntwo\r\nthree\r\nfour\r\n",
    "bom.txt": b"\xef\xbb\xbffirst\nsecond\nthird\n",
    "bom-over.txt": b"\xef\xbb\xbfold\n",
    "latin.txt": b"caf\xe9\nth\xe9\n",
    "no-end.txt": b"alpha\nbeta\ngamma",
    "money.txt": b"cost: x\nfee: x\nx and x\n",
    "long.txt": b"".join(b"line %d\n" % n for n in range(1, 41)),
    "scripted.txt": b"lower case\n",
    "stream.txt": b"red\ngreen\nblue\n",
    "rewrite.py": PYTHON.encode(),
    "data.bin": bytes(range(256)) * 4,
    UNICODE_NAME: "Maß: ü\nzweite Zeile\n".encode(),
    "old/a.txt": b"a\n",
    "old/deep/b.txt": b"b\n",
    "gone/c.txt": b"c\n",
    "gone/deep/d.txt": b"d\n",
    "parent.txt": b"parent\n",
    "docs/guide.md": b"# Guide\n\nstep one\nstep two\n",
    "seen.txt": b"seen one\nseen two\n",
    "attached.txt": b"attached one\nattached two\n",
    ".gitignore": b"ignored/\n*.tmp\n",
}
"""What stands in each folder before OpenCode comes."""

LITERAL = (
    "new.txt",
    "sub dir/ein neues Blatt.note",
    "empty.txt",
    "windows.txt",
    "quoted.sh",
    "echoed.txt",
    "copied.txt",
    "moved.txt",
    "made/by-script.txt",
    "renamed/a.txt",
    "renamed/deep/b.txt",
    "patched.txt",
    "patch-moved.txt",
    "shared.txt",
)
"""Files that only tools and commands of literal text make: of these every byte follows from the records."""


FROM_NOTHING = (
    "new.txt",
    "sub dir/ein neues Blatt.note",
    "empty.txt",
    "windows.txt",
    "quoted.sh",
    "echoed.txt",
    "moved.txt",
    "made/by-script.txt",
)
"""Of these no record has to tell what stood there before."""


def prepare(folder: Path) -> Path:
    for name, content in PREPARED.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@dataclass
class Bench:
    """One OpenCode, its model and the notes of the disk. `unexpected`: turns whose calls did not go as they were meant."""

    opencode: Workshop
    model: ScriptedModel
    notes: Notes
    unexpected: list[str] = field(default_factory=list)

    def turn(
        self,
        session: str,
        name: str,
        steps: Sequence[Sequence[Call]],
        *folders: Path,
        model: str = MODEL,
        files: Sequence[Path] = (),
        failing: int = 0,
        said: str = "Next.",
    ) -> None:
        """Let the session do `steps`, then note `folders`; `failing` calls are meant to fail (-1: any number).

        `said` is the text before the calls of each step.
        """
        prompt = f"Do the work called {name}."
        self.model.add(prompt, [*(Step(text=said, calls=tuple(calls)) for calls in steps), Step(text="Done.")])
        before = {call["id"] for call in self.opencode.calls(session)}
        self.opencode.say(session, prompt, model=model, files=files)
        self.notes.take(name, *folders)
        made = [call for call in self.opencode.calls(session) if call["id"] not in before]
        states = [(call["tool"], call["state"]["status"]) for call in made]
        errors = [f"{c['tool']}: {c['state'].get('error')}" for c in made if c["state"]["status"] != "completed"]
        if len(states) != sum(map(len, steps)) or failing not in (-1, len(errors)):
            self.unexpected.append(f"{name}: {states} {errors}")


def write(path: Path, content: str) -> Call:
    return Call("write", {"filePath": str(path), "content": content})


def edit(path: Path, old: str, new: str, **more: Any) -> Call:
    return Call("edit", {"filePath": str(path), "oldString": old, "newString": new, **more})


def read(path: Path, **more: Any) -> Call:
    return Call("read", {"filePath": str(path), **more})


def bash(command: str, **more: Any) -> Call:
    return Call("bash", {"command": command, "description": "Work", **more})


def patch(text: str) -> Call:
    return Call("apply_patch", {"patchText": f"*** Begin Patch\n{text}*** End Patch"})


def work(bench: Bench, folder: Path, outside: Path) -> None:
    """All the work of one folder; `outside` is a folder beside it that belongs to no project."""
    name = folder.name
    one = bench.opencode.create_session(folder, f"{name} one")
    _tools(bench, one, folder)
    _literal_shell(bench, one, folder)
    _other_shell(bench, one, folder)
    _encodings(bench, one, folder)
    _patches(bench, one, folder)
    _failures(bench, one, folder, outside)
    _several_sessions(bench, one, folder)
    _other_people(bench, one, folder)
    _undo(bench, folder)
    _broken_off(bench, one, folder)
    bench.turn(one, f"{name} the end", [[read(folder / "README.md")]], folder, outside)


def _tools(bench: Bench, session: str, folder: Path) -> None:
    name = folder.name
    made = [
        write(folder / "new.txt", "line one\nline two\n"),
        write(folder / "sub dir" / "ein neues Blatt.note", "# Blatt\n\nkein Ende"),
        write(folder / "empty.txt", ""),
        write(folder / "target.txt", "of a link\n"),
        write(folder / "windows.txt", "w1\r\nw2\r\n"),
        write(folder / "ignored" / "x.txt", "ignored\n"),
    ]
    bench.turn(session, f"{name} writes", [made, [edit(folder / "new.txt", "line two", "line 2")]], folder)
    app, money, unicode = folder / "app.py", folder / "money.txt", folder / UNICODE_NAME
    bench.turn(
        session,
        f"{name} edits",
        [
            [read(app), read(money), read(unicode), read(folder / "no-end.txt")],
            [
                # The old text has other indentation than the file: OpenCode's tolerant matchers find it.
                edit(app, "if n > 3:\n    return n * 2", "    if n > 4:\n        return n * 5"),
                edit(money, "x", "[$&] $$5", replaceAll=True),
                edit(unicode, "Maß: ü", "Maß: über $&"),
                edit(folder / "no-end.txt", "gamma", "delta"),
            ],
            # Two calls for one file at once, and a write beside an edit of another.
            [edit(app, "sum(ns)", "sum(ns, 0)"), edit(app, "def total(ns)", "def total(ns=())")],
        ],
        folder,
    )
    long = folder / "long.txt"
    bench.turn(
        session,
        f"{name} reads a range",
        [[read(long, offset=10, limit=5)], [edit(long, "line 12\n", "line twelve\n")], [read(folder / "data.bin")]],
        folder,
        failing=-1,
    )


def _literal_shell(bench: Bench, session: str, folder: Path) -> None:
    name = folder.name
    heredoc = "cat > quoted.sh <<'EOF'\n#!/bin/sh\necho \"$HOME\" `date` \\\n  'x'\nEOF\n"
    bench.turn(
        session,
        f"{name} literal shell",
        [
            [bash(heredoc)],
            [bash("echo 'first line' > echoed.txt && echo second >> echoed.txt; printf 'a\\tb\\n' >> echoed.txt")],
            [bash("cp quoted.sh copied.txt && mkdir -p renamed && rmdir renamed && mv old renamed")],
            [bash(f"touch moved.from && echo moving > moved.from\nmv moved.from {folder!s}/moved.txt")],
            [bash("rm gone/c.txt && rm -rf gone")],
            [write(folder / "tools" / "gen", SCRIPT)],
            [bash("sh tools/gen live")],
        ],
        folder,
    )


def _other_shell(bench: Bench, session: str, folder: Path) -> None:
    name = folder.name
    bench.turn(
        session,
        f"{name} unclear shell",
        [
            [bash("sed -i 's/green/GREEN/' stream.txt"), bash("python3 rewrite.py")],
            [bash('cat > stamped.txt <<EOF\nuser $((1 + 2)) $(echo "sub")\nplain\nEOF')],
            [bash("echo half > half.txt; cat > seven.txt <<'X'\nseven\nX\nexit 3")],
            [bash("false && echo never > never.txt; test -f nothing || echo fell > fell.txt")],
            [bash("for n in 1 2 3; do echo $n > loop-$n.txt; done; ls | wc -l | tee counted.txt")],
            [bash("cd 'sub dir' && echo inner > inner.txt && cd .. && echo outer > outer.txt")],
            [bash("python3 - <<'PY'\nopen('by-python.txt', 'w').write('py')\nPY")],
            [bash("ln -s target.txt link.txt; echo through >> link.txt")],
        ],
        folder,
    )
    bench.turn(
        session,
        f"{name} edit after shell",
        [
            [read(folder / "stream.txt"), read(folder / "scripted.txt"), read(folder / "new.txt")],
            [edit(folder / "stream.txt", "GREEN", "Green"), edit(folder / "scripted.txt", "LOWER", "Lower")],
        ],
        folder,
    )


def _encodings(bench: Bench, session: str, folder: Path) -> None:
    crlf, bom, over, latin = (folder / n for n in ("crlf.txt", "bom.txt", "bom-over.txt", "latin.txt"))
    bench.turn(
        session,
        f"{folder.name} encodings",
        [
            [read(path) for path in (crlf, bom, over, latin, folder / "windows.txt")],
            [edit(crlf, "two", "zwei"), edit(bom, "second", "zweite"), edit(latin, "th", "TH")],
            [edit(crlf, "three\nfour", "drei\nvier"), write(over, "new without a mark\n")],
            [edit(bom, "first", "erste"), edit(folder / "windows.txt", "w1\nw2", "W1\nW2")],
        ],
        folder,
        failing=-1,
    )


def _patches(bench: Bench, session: str, folder: Path) -> None:
    name = folder.name
    add = "*** Add File: patched.txt\n+one\n+two\n+three\n*** Add File: to-move.txt\n+m one\n+m two\n"
    add += "*** Add File: to-delete.txt\n+d\n"
    update = "*** Update File: patched.txt\n@@\n one\n-two\n+TWO\n three\n"
    move = "*** Update File: to-move.txt\n*** Move to: patch-moved.txt\n@@\n-m one\n+M one\n m two\n"
    windows = "*** Update File: crlf.txt\n@@\n-one\n+ONE\n"
    steps = [[patch(add)], [patch(update + move + "*** Delete File: to-delete.txt\n")], [patch(windows)]]
    wrong = "*** Update File: patched.txt\n@@\n-not there\n+x\n"
    bench.turn(session, f"{name} patches", [*steps, [patch(wrong)]], folder, model=PATCHING_MODEL, failing=-1)


def _failures(bench: Bench, session: str, folder: Path, outside: Path) -> None:
    name = folder.name
    money, far = folder / "money.txt", outside / f"of {name}.txt"
    bench.turn(
        session,
        f"{name} failing and far",
        [
            [edit(folder / "new.txt", "text that is nowhere", "x"), edit(money, "and", "")],
            [edit(money, "$5", "ambiguous"), edit(folder / "missing.txt", "a", "b")],
            [write(far, "far away\n"), bash(f"echo near > '{outside}/shell of {name}.txt'")],
            [edit(far, "far", "further")],
        ],
        folder,
        outside,
        failing=-1,
    )


def _several_sessions(bench: Bench, one: str, folder: Path) -> None:
    name, opencode, shared = folder.name, bench.opencode, folder / "shared.txt"
    two = opencode.create_session(folder, f"{name} two")
    bench.turn(one, f"{name} shared 1", [[write(shared, "a\nb\nc\n")]], folder)
    bench.turn(two, f"{name} shared 2", [[read(shared)], [edit(shared, "b", "B")]], folder)
    # 1.1 refuses this one: its session has not read the other's change.
    bench.turn(one, f"{name} shared 3", [[edit(shared, "c", "C")]], folder, failing=-1)
    bench.turn(two, f"{name} shared 4", [[bash("echo d >> shared.txt")]], folder)
    bench.turn(one, f"{name} shared 5", [[read(shared)], [edit(shared, "a", "A")]], folder)
    docs = opencode.create_session(folder / "docs", f"{name} in a subdirectory")
    steps = [
        [read(folder / "docs" / "guide.md"), read(folder / "parent.txt")],
        [edit(folder / "docs" / "guide.md", "step two", "step 2"), edit(folder / "parent.txt", "parent", "PARENT")],
        [bash("echo note > note.txt && echo up > ../up.txt")],
    ]
    bench.turn(docs, f"{name} subdirectory", steps, folder)
    _at_once(bench, (one, two), folder)


def _at_once(bench: Bench, sessions: Sequence[str], folder: Path) -> None:
    """Two sessions at the same time, each with files of its own and one that both append to; noted when both are done."""
    both, name = folder / "both.txt", folder.name
    with ThreadPoolExecutor(2) as workers:
        done = []
        for number, session in enumerate(sessions):
            own = folder / f"own-{number}.txt"
            steps = [
                [write(own, f"own {number}\n")],
                [bash(f"echo from {number} >> {both.name}")],
                [edit(own, "own", "my")],
                [bash(f"cp {own.name} copy-{number}.txt; echo {number} > last.txt")],
            ]
            done.append(workers.submit(bench.turn, session, f"{name} at once {number}", steps))
        for each in done:
            each.result()
    bench.notes.take(f"{name} at once", folder)


def _other_people(bench: Bench, session: str, folder: Path) -> None:
    """Changes by somebody else between turns, each followed by a call that sees them."""
    name, seen, attached = folder.name, folder / "seen.txt", folder / "attached.txt"
    bench.turn(session, f"{name} sees", [[read(seen)]], folder, files=[attached])
    seen.write_bytes(b"seen one\nchanged by hand\nthree\n")
    attached.write_bytes(b"attached one\nchanged by hand\n")
    bench.notes.take(f"{name} by hand", folder)
    bench.turn(session, f"{name} sees again", [[read(seen)], [edit(seen, "three", "3")]], folder, files=[attached])
    seen.write_bytes(b"written\nby hand\n3 again\n")
    bench.notes.take(f"{name} by hand again", folder)
    bench.turn(session, f"{name} edits unseen", [[edit(seen, "again", "once more")]], folder, failing=-1)
    bench.turn(session, f"{name} edits seen", [[read(seen)], [edit(seen, "written", "typed")]], folder)


def _undo(bench: Bench, folder: Path) -> None:
    name, opencode, file = folder.name, bench.opencode, folder / "undone.txt"
    session = opencode.create_session(folder, f"{name} undone")
    bench.turn(session, f"{name} kept", [[write(file, "kept\nline\n")], [write(folder / "b-kept.txt", "b\n")]], folder)
    steps = [
        [edit(file, "line", "undone line"), write(folder / "undone-new.txt", "n\n")],
        [bash("echo shell > undone-shell.txt; rm b-kept.txt")],
    ]
    bench.turn(session, f"{name} to undo", steps, folder)
    last = opencode.prompts(session)[-1]
    opencode.revert(session, last)
    bench.notes.take(f"{name} reverted", folder)
    opencode.unrevert(session)
    bench.notes.take(f"{name} unreverted", folder)
    opencode.revert(session, last)
    bench.notes.take(f"{name} reverted again", folder)
    # The next prompt makes it final.
    steps = [[bash("ls")], [read(file)], [edit(file, "kept", "KEPT")]]
    bench.turn(session, f"{name} after the undo", steps, folder, failing=-1)
    steps = [[write(folder / "p1.txt", "p1\n")], [write(folder / "p2.txt", "p2\n")], [write(folder / "p3.txt", "p3\n")]]
    bench.turn(session, f"{name} to undo in part", steps, folder)
    second = opencode.calls(session)[-2]
    opencode.revert_part(session, second["messageID"], second["id"])
    bench.notes.take(f"{name} reverted in part", folder)
    bench.turn(session, f"{name} after the part", [[bash("echo on > went-on.txt")]], folder)


def _broken_off(bench: Bench, session: str, folder: Path) -> None:
    """A command that is aborted when it has done half of its work."""
    name, half = folder.name, folder / "first-half.txt"
    prompt = f"Do the work called {name} broken off."
    command = "echo one > first-half.txt; sleep 300; echo two >> first-half.txt; echo x > second-half.txt"
    bench.model.add(prompt, [Step(text="I wait.", calls=(bash(command),))])
    bench.opencode.prompt_async(session, prompt)
    deadline = time.monotonic() + 90
    while not half.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    bench.opencode.abort(session)
    while time.monotonic() < deadline and bench.opencode.calls(session)[-1]["state"]["status"] == "running":
        time.sleep(0.05)
    time.sleep(0.3)
    bench.notes.take(f"{name} broken off", folder)


def work_renamed(bench: Bench, old: Path, new: Path) -> None:
    """A project whose folder is renamed between two sessions."""
    first = bench.opencode.create_session(old, "before the rename")
    steps = [[write(old / "plan.md", "# Plan\n\none\n")], [write(old / "list.txt", "a\nb\n"), bash("echo s > s.txt")]]
    bench.turn(first, "before the rename", steps, old)
    shutil.move(old, new)
    second = bench.opencode.create_session(new, "after the rename")
    steps = [[read(new / "plan.md")], [edit(new / "plan.md", "one", "two")]]
    bench.turn(second, "after the rename", steps, new)
