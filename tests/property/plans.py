"""What may happen in a random history, and how it is played on the model.

Actions are plain tuples of names and small numbers, so that a counterexample shrinks and reads well; the numbers pick
files, texts and lines from what there is when the action is played. Every action can be played at any moment.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.property.model_rules import BOM
from tests.property.model_sessions import Model
from tests.property.model_tools import Plan

FILES = ("a.txt", "b.py", "docs/d.md", "docs/sp ace.txt", "lib/ü.txt", "ignored.log", "../elsewhere/out.txt")
TRACKED = FILES[:5]
CONTENTS = (
    "one\ntwo\nthree\n",
    "one\none\ntwo\n",
    "alpha\n  beta\n    gamma\ndelta",
    "",
    "one\r\ntwo\r\nthree\r\n",
    BOM + "one\ntwo\n",
    "grüße 日本\none\n",
    "x = 1\n\ny = 2\n\n",
    "one\ntwo\r\nthree",
    "\n".join(f"line {number}" for number in range(30)) + "\n",
)
NEWS = ("ONE", "two\nand more", "$& and $$", "", "one\r\nmore", "beta", "ünï")
FOREIGN = (
    b"\xff\xfelatin \xe9\n",
    b"\0\1\2binary",
    b"from outside\n",
    b"one\ntwo\nTHREE\n",
    b"one\r\ntwo\r\nthree\r\n",
)
_NUMBER = st.integers(0, 9)
_FILE = st.integers(0, len(FILES) - 1)
_FATE = st.sampled_from(["ok"] * 8 + ["rejected", "aborted", "killed"])
_TOOLS = (
    "write", "write", "edit", "edit", "edit_all", "edit_loose", "edit_missing", "edit_empty", "multiedit", "update",
    "add", "delete", "move", "two", "read", "read", "range",
)  # fmt: skip
_SHELL = (
    "heredoc", "echo", "append", "printf", "tee", "rm", "rm_r", "mv", "mv_into", "cp", "touch", "empty", "sed", "failing",
    "chained", "cd", "or_true", "unquoted", "glob_loop", "script", "mv_folder", "if",
)  # fmt: skip
CALLS = st.tuples(st.sampled_from(_TOOLS * 2 + _SHELL), _FILE, _NUMBER, _NUMBER, _FATE)
STEPS = st.tuples(st.just("step"), st.integers(0, 2), st.lists(CALLS, min_size=1, max_size=3), st.booleans())
ACTIONS = st.one_of(
    STEPS,
    STEPS,
    STEPS,
    st.tuples(st.just("beside"), st.integers(0, 2), st.lists(CALLS, min_size=2, max_size=3), st.integers(0, 999)),
    st.tuples(st.just("outside"), _FILE, _NUMBER),
    st.tuples(st.just("prompt"), st.integers(0, 2)),
    st.tuples(st.just("revert"), st.integers(0, 2), _NUMBER),
    st.tuples(st.just("unrevert"), st.integers(0, 2)),
    st.tuples(st.just("fork"), st.integers(0, 2)),
    st.tuples(st.just("child"), st.lists(CALLS, min_size=1, max_size=2)),
)
_CERTAIN = ("heredoc", "echo", "append", "printf", "tee", "rm", "mv", "cp", "touch", "empty")
TOOL_CALLS = st.tuples(
    st.sampled_from(_TOOLS * 2 + _CERTAIN), st.integers(0, len(TRACKED) - 1), _NUMBER, _NUMBER,
    st.sampled_from(["ok"] * 4 + ["rejected"]),
)  # fmt: skip
TOOL_ACTIONS = st.one_of(
    st.tuples(st.just("step"), st.integers(0, 0), st.lists(TOOL_CALLS, min_size=1, max_size=3), st.booleans()),
    st.tuples(st.just("prompt"), st.integers(0, 0)),
)


class Player:
    """Plays actions on a model. `start` picks what stands in the folder before OpenCode is there."""

    def __init__(self, model: Model, start: int) -> None:
        self.model = model
        (model.project / ".gitignore").write_bytes(b"*.log\n")
        for number, _name in enumerate(FILES[:start]):
            path = Path(self.path(number))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(CONTENTS[(number * 4 + start) % len(CONTENTS)].encode())
        model.look()
        self.sessions = [model.session()]

    def path(self, number: int) -> str:
        name = FILES[number % len(FILES)]
        return str(self.model.root / name[3:]) if name.startswith("../") else str(self.model.project / name)

    def play(self, action: tuple[Any, ...]) -> None:
        kind, *rest = action
        getattr(self, f"_{kind}")(*rest)

    def _session(self, number: int) -> str:
        """0 is the first session, 1 another one beside it, 2 one in ``docs``; made when they are first spoken of."""
        while len(self.sessions) <= number:
            self.sessions.append(self.model.session("docs" if len(self.sessions) == 2 else ""))
        return self.sessions[number]

    def _step(self, number: int, calls: list[tuple[Any, ...]], instant: bool) -> None:
        session_id = self._session(number)
        self._ready(session_id)
        self.model.begin_step(session_id)
        for call in calls:
            plan = self._plan(session_id, call)
            self.model.call(session_id, plan, instant=instant)
        self.model.end_step(session_id)

    def _ready(self, session_id: str) -> None:
        talk = self.model.talks[session_id]
        if not talk.user or "revert" in talk.data or talk.user not in talk.messages:
            self.model.prompt(session_id)

    def _beside(self, number: int, calls: list[tuple[Any, ...]], seed: int) -> None:
        """Calls of one step, or of two sessions, that overlap; the edit tool's lock keeps a step's edits in order."""
        random = Random(seed)
        first, second = self._session(number), self._session((number + 1) % 2)
        for session_id in dict.fromkeys((first, second)):
            self._ready(session_id)
            self.model.begin_step(session_id)
        owners = [random.choice((first, second)) for _ in calls]
        plans = [(owner, self._plan(owner, call)) for owner, call in zip(owners, calls, strict=True)]
        effects, ends = list(range(len(plans))), list(range(len(plans)))
        random.shuffle(effects)
        random.shuffle(ends)
        places = [at for at, plan in enumerate(effects) if plans[plan][1].tool in ("edit", "multiedit")]
        for at, plan in zip(places, sorted(effects[at] for at in places), strict=True):
            effects[at] = plan
        self.model.calls(plans, effects, ends)
        for session_id in dict.fromkeys((first, second)):
            self.model.end_step(session_id)

    def _outside(self, number: int, what: int) -> None:
        path = Path(self.path(number))

        def change() -> None:
            if what == 9:
                path.unlink(missing_ok=True)
            elif path.parent.is_dir() and not path.is_dir():
                path.write_bytes(FOREIGN[what] if what < len(FOREIGN) else CONTENTS[what].encode())

        self.model.outside(change)

    def _prompt(self, number: int) -> None:
        self.model.prompt(self._session(number))

    def _revert(self, number: int, which: int) -> None:
        session_id = self._session(number)
        talk = self.model.talks[session_id]
        users = [name for name in talk.messages if self.model.records[name]["role"] == "user"]
        if users:
            self._since = len(self.model.truth)
            self.model.revert(session_id, users[which % len(users)])

    def _unrevert(self, number: int) -> None:
        session_id = self._session(number)
        if "revert" in self.model.talks[session_id].data:
            since = self._since
            self.model.unrevert(session_id)
            self.model.forget(since)

    def _fork(self, number: int) -> None:
        self._session(number)
        self.model.fork(self.sessions[number])

    def _child(self, calls: list[tuple[Any, ...]]) -> None:
        """A task: a session of its own works while the parent's call runs."""
        parent = self._session(0)
        self._ready(parent)
        self.model.begin_step(parent)
        child = self.model.session(parent=parent, title="Do it (@general subagent)")

        def act() -> tuple[str, dict[str, Any]]:
            self.model.prompt(child)
            self.model.begin_step(child)
            for call in calls:
                self.model.call(child, self._plan(child, call))
            self.model.end_step(child)
            return f"task_id: {child}", {"sessionId": child}

        self.model.call(parent, Plan("task", {"description": "Do it", "prompt": "Do it"}, act))
        self.model.end_step(parent)

    # -- calls ---------------------------------------------------------------------------------------------------

    def _plan(self, session_id: str, call: tuple[Any, ...]) -> Plan:
        kind, number, n, m, fate = call
        base = self.model.talks[session_id].directory
        path = self.path(number)
        if kind in _SHELL:
            return self._bash(kind, path, self.path(n), CONTENTS[m % len(CONTENTS)], base, fate)
        found = Path(path).read_bytes().decode("utf-8", "replace") if Path(path).is_file() else ""
        lines = [line for line in found.removeprefix(BOM).split("\n") if line] or ["one"]
        line, new = lines[n % len(lines)], NEWS[m % len(NEWS)]
        model = self.model
        other = self.path(n)
        makers = {
            "write": lambda: model.write(path, CONTENTS[n], fate),
            "edit": lambda: model.edit(path, line, new, fate=fate),
            "edit_all": lambda: model.edit(path, line[:3], new, everywhere=True, fate=fate),
            "edit_loose": lambda: model.edit(path, f"  {line.strip()} ", new, fate=fate),
            "edit_missing": lambda: model.edit(path, "not there", new, fate=fate),
            "edit_empty": lambda: model.edit(path, "", CONTENTS[n], fate=fate),
            "multiedit": lambda: model.multiedit(path, [(line, new), (lines[0], "first")], fate),
            "read": lambda: model.read(path, fate=fate),
            "range": lambda: model.read(path, n + 1, m + 1, fate),
        }
        pieces: dict[str, list[tuple[Any, ...]]] = {
            "update": [("update", path, n, new)],
            "add": [("add", path, CONTENTS[n % 2])],
            "delete": [("delete", path)],
            "move": [("move", path, n, new, other)],
            "two": [("update", path, n, new), ("add", other, CONTENTS[m % 2])],
        }
        if kind in pieces:
            same = kind in ("move", "two") and other == path
            plan = pieces[kind][:1] if not same else [("update", path, n, new)]
            return model.apply_patch(pieces[kind] if not same else plan, base, fate)
        return makers[kind]()

    def _bash(self, kind: str, path: str, other: str, content: str, base: str, fate: str) -> Plan:
        f, g = f"'{path}'", f"'{other}'"
        plain = content.replace("\r", "").removeprefix(BOM)
        if plain and not plain.endswith("\n"):
            plain += "\n"
        folder = str(Path(path).parent)
        into = str(Path(other).parent / Path(path).name)
        moved = [(path, other)] if path != other else []
        forms: dict[str, dict[str, Any]] = {
            "heredoc": {"command": f"cat > {f} <<'EOF'\n{plain}EOF", "whole": [path]},
            "unquoted": {"command": f"cat > {f} <<EOF\n{plain}home $HOME\nEOF"},
            "echo": {"command": f"echo 'hello there' > {f}", "whole": [path]},
            "append": {"command": f"echo 'more' >> {f}"},
            "printf": {"command": f"printf 'x\\ny\\n' > {f}", "whole": [path]},
            "tee": {"command": f"echo tee | tee {f}", "whole": [path]},
            "rm": {"command": f"rm {f}", "whole": [path]},
            "rm_r": {"command": f"rm -rf '{self.model.project}/lib'", "whole": [self.path(4)]},
            "mv": {"command": f"mv {f} {g}", "moves": moved},
            "mv_into": {"command": f"mv {f} '{Path(other).parent}/'", "moves": [(path, into)] if into != path else []},
            "cp": {"command": f"cp {f} {g}", "moves": moved},
            "touch": {"command": f"touch {f}"},
            "empty": {"command": f"> {f}", "whole": [path]},
            "sed": {"command": f"sed -i s/one/uno/ {f}"},
            "failing": {"command": f"echo gone wrong > {f}; false"},
            "chained": {"command": f"mkdir -p '{folder}' && echo made > {f} && rm -f {g}", "whole": [path, other]},
            "cd": {"command": f"cd '{folder}' && echo inside > '{Path(path).name}'", "whole": [path]},
            "or_true": {"command": f"rm {f} || echo kept > {g}"},
            "glob_loop": {"command": "for f in *.txt; do echo looped >> $f; done"},
            "script": {"command": f"sh '{self.model.root}/fix.sh'", "unseen": True},
            "mv_folder": {"command": f"mv '{self.model.project}/lib' '{self.model.project}/src'"},
            "if": {"command": f"if [ -f {f} ]; then rm {f}; fi"},
        }  # fmt: skip
        if kind == "script":
            (self.model.root / "fix.sh").write_text(f"echo fixed > {f}\n")
        if kind == "mv_folder":
            shutil.rmtree(self.model.project / "src", ignore_errors=True)
        return self.model.bash(base=base, fate=fate, **forms[kind])
