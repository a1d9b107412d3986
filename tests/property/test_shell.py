"""The law of the shell: what is said to be certain is what a real bash does.

Random scripts of the supported commands run in a temporary folder with some files in it. The effects that the recorded
command, its exit status and its output yield are applied to a small model of that folder; every path that is not
UNCLEAR must then be as it really is.
"""

from __future__ import annotations

import os
import posixpath
import shutil
import subprocess
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon.model import FileEdit, Operation, Part
from daemon.transcript import shell
from daemon.transcript.tool_calls import Call
from tests.support.examples import examples

BEFORE = {
    "a": "old a\n",
    "b.txt": "old b",
    "d/x": "in d\n",
    "d/e/y": "deep\n",
    "it is": "spaced\n",
    "lib.d/z": "z\n",
    "run.sh": "echo ran > new; rm -f b.txt\n",
}
FOLDERS = ("empty",)


def recorded(command: str, folder: str, code: int, output: str) -> list[FileEdit]:
    state = {"output": output}
    part = Part("prt_1", "msg_1", "ses_1", "tool", {}, b"")
    call = Call(part, "bash", "completed", {"command": command}, state, {"output": output, "exit": code}, 1, 2, folder)
    return shell.edits(call, "1.18.33")


class Model:
    """A folder as far as certain effects tell: path -> content, None for a folder. `unclear`: paths that may be anything."""

    def __init__(self, tree: dict[str, str | None]) -> None:
        self.tree = dict(tree)
        self.unclear: set[str] = set()

    def apply(self, edit: FileEdit) -> None:
        touched = [path for path in (edit.path, edit.other) if path]
        if edit.operation in (Operation.UNCLEAR, Operation.RUN):
            self.unclear.add(edit.path)
        elif edit.operation is Operation.FOLDER:
            self.tree[edit.path] = None
            self.parents(edit.path)
        elif edit.operation is Operation.TOUCH:
            self.tree.setdefault(edit.path, "")
        elif edit.operation is Operation.WRITE:
            self.tree[edit.path] = edit.content or ""
        elif edit.operation is Operation.APPEND:
            self.tree[edit.path] = (self.tree.get(edit.path) or "") + (edit.content or "")
        elif edit.operation is Operation.DELETE:
            self.drop(edit.path)
        else:
            self.far(edit, touched)

    def far(self, edit: FileEdit, touched: list[str]) -> None:
        if any(self.is_unclear(path) for path in touched):  # what it brought along is not known either
            self.unclear.update([*touched, f"{edit.other}/{posixpath.basename(edit.path)}"])
            return
        other = edit.other or ""
        is_folder = other in self.tree and self.tree[other] is None
        into = is_folder if edit.into is None else edit.into
        target = f"{other}/{posixpath.basename(edit.path)}" if into else other
        if into:
            self.tree.setdefault(other, None)
        moved = {p: c for p, c in self.tree.items() if p == edit.path or p.startswith(edit.path + "/")}
        if edit.operation is Operation.MOVE:
            self.drop(edit.path)
            self.drop(target)
        for path, content in moved.items():
            self.tree[target + path[len(edit.path) :]] = content

    def drop(self, path: str) -> None:
        for one in [p for p in self.tree if p == path or p.startswith(path + "/")]:
            del self.tree[one]

    def parents(self, path: str) -> None:
        while (path := posixpath.dirname(path)) != "/":
            self.tree.setdefault(path, None)

    def is_unclear(self, path: str) -> bool:
        return any(path == one or path.startswith(one + "/") or one.startswith(path + "/") for one in self.unclear)


def tree(root: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for folder, _, names in os.walk(root):
        found[folder] = None
        for name in names:
            path = Path(folder, name)
            if not path.exists():
                continue  # a link to nowhere
            found[str(path)] = path.read_bytes().decode("utf-8", "surrogateescape")
    return found


def check(script: str) -> int:
    """Runs a script and compares; how many effects were certain."""
    outer = tempfile.mkdtemp(prefix="shell-law-")
    root = f"{outer}/w"  # no script climbs higher than the folder around it
    try:
        for name, content in BEFORE.items():
            Path(root, name).parent.mkdir(parents=True, exist_ok=True)
            Path(root, name).write_text(content)
        for name in FOLDERS:
            Path(root, name).mkdir(parents=True)
        model = Model(tree(outer))  # the folder around it too: `mv a ../x` changes that
        ran = subprocess.run(
            ["bash", "-c", script], check=False, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=90, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": f"{outer}/home"},
        )  # fmt: skip
        found = recorded(script, root, ran.returncode, ran.stdout.decode("utf-8", "replace"))
        for edit in found:
            model.apply(edit)
        real = tree(outer)
        for path in sorted({*model.tree, *real}):
            if not any(path == one or path.startswith(one + "/") for one in model.unclear) and not (
                model.tree.get(path, "") is None or real.get(path, "") is None
            ):
                assert model.tree.get(path) == real.get(path), f"{path} after {script!r}: {found}"
        return sum(edit.operation not in (Operation.UNCLEAR, Operation.RUN) for edit in found)
    finally:
        shutil.rmtree(outer)


NAMES = [
    "a",
    "b.txt",
    "d/x",
    "d/e/y",
    "new",
    "d/new",
    "n/m",
    "'it is'",
    "it\\ is",
    '"q r"',
    "./a",
    "d/../a",
    "lib.d/z",
    "é",
]
DIRS = ["d", "d/e", "empty", "n", "lib.d", "d/", "n/", ".", "empty/", "../" + "x"]
ODD = [
    "$F",
    '"$F"',
    "${G}",
    "$NONE",
    "*.txt",
    "d/*",
    "{a,new}",
    "{p,q}.txt",
    "$(echo a)",
    "`echo b.txt`",
    "~/h",
    "$'a'",
    "d/$F",
    "{b.txt,bak}",
]
name = st.sampled_from(NAMES) | st.sampled_from(ODD)
plain = st.sampled_from(NAMES)
target = st.sampled_from(NAMES + DIRS) | st.sampled_from(ODD)
texts = st.sampled_from(
    ["hi", "'two words'", '"a\\"b\\$c\\\\d\\n"', "a\\ b", "$'x\\ty\\n'", "'\\t\\x41'", '"$F"', "''", "x\\\\ny", "-n", "%s", "100%",
     "a'b'\"c\"", "'it''s'", "$", '"$ x"', "a\\\nb", "#x", "a#b", "~", "=~/x", "{x,y}", "{1..3}", "{}", "\\*", "\\1", '"\\t"', "é—ü", "!"]
)  # fmt: skip
bodies = st.lists(
    st.sampled_from(["line", "", "\tx\\ty", "$F", "\\$F", "a\\\\b", "`echo q`", "\\`", 'say "hi"', "it's", "\\", "end\\", " EOF", "\tEOF",
                     "EOFX", "$", "$1", "é", "\\n", "> a", "a $(echo b)", "cost $5", "\\\\\\", "#no"]), max_size=5
).map(lambda lines: "".join(line + "\n" for line in lines))  # fmt: skip


@st.composite
def here(draw: st.DrawFn) -> str:
    operator = draw(st.sampled_from(["<<", "<<-", "<< "]))
    mark = draw(st.sampled_from(["EOF", "'EOF'", '"EOF"', "\\EOF", "E'O'F"]))
    first = draw(st.sampled_from(["cat {h} > {n}", "cat > {n} {h}", "cat {h} >> {n}", "tee {n} {h}", "tee -a {n} {h} > /dev/null", "cat {h} | tee {n}",
                                  "cat > {n} {h} && echo ok", "cat {h} > {n}; rm -f a", "{{ cat; }} {h} > {n}"]))  # fmt: skip
    end = draw(st.sampled_from(["EOF", "EOF", "EOF", "\tEOF"])) if operator == "<<-" else "EOF"
    line = first.format(h=operator + mark, n=draw(name))
    return f"{line}\n{draw(bodies)}{end}\n"


@st.composite
def simple(draw: st.DrawFn) -> str:
    form = draw(
        st.sampled_from(
            [
                "echo {t} {t} > {n}",
                "echo {t} >> {n}",
                "echo -e {t} > {n}",
                "echo -n {t} >> {n}",
                "echo -ne {t} {t}>{n}",
                "echo -E {t} > {n}",
                "printf {t} > {n}",
                "printf '%s\\n' {t} {t} > {n}",
                "printf '%d-%s\\t' 1 {t} 2 >> {n}",
                "printf 'a\\n\\101b%%' > {n}",
                ": > {n}",
                "> {n}",
                ">> {n}",
                "cat <<< {t} > {n}",
                "tee {n} <<< {t}",
                "echo {t} | tee {n}",
                "echo {t} | tee -a {n} >/dev/null",
                "rm {n}",
                "rm -f {n}",
                "rm -rf {d}",
                "rm -r {d} {n}",
                "rmdir {d}",
                "unlink {n}",
                "mv {n} {d}",
                "mv {n} {n}",
                "mv {d} {d}",
                "mv -f {n} {n} {d}",
                "mv -t {d} {n}",
                "mv -T {d} {d}",
                "cp {n} {d}",
                "cp {n} {n}",
                "cp -r {d} {d}",
                "cp -a {n} {d} {d}",
                "cp -T {n} {n}",
                "cp -rT {d} {d}",
                "mkdir {d}",
                "mkdir -p {d} n/m/o",
                "touch {n} {n}",
                "touch -c {n}",
                "truncate -s 0 {n}",
                "ln -s {n} {n}",
                "ln {n} {n}",
                "cat {n} > {n}",
                "cat {n} >> {n}",
                "sort {n} > {n}",
                "sed -i s/o/0/ {n}",
                "F={n}",
                "G=b.txt",
                "F=",
                "cd {d}",
                "cd",
                "cd ../w",
                "cd -",
                "echo {t} > {n} 2>&1",
                "rm {n} 2>/dev/null",
                "echo {t} >{n} {t}",
                "echo hi2>{n}",
                "echo 2 >{n}",
                "echo 2>{n}",
                "> {n} echo {t}",
                "true",
                "false",
                "test -f {n}",
                "exit 0",
                "exit 1",
                "set -e",
                "set +e",
                "set -euo pipefail",
                "mv -n {n} {n}",
                "mv -b {n} {n}",
                "cp -u {n} {n}",
                "bash -c 'rm a; echo x > new'",
                "eval rm {n}",
                "sh run.sh",
                "bash ./run.sh {n}",
                ". ./run.sh",
                "cat run.sh | sh",
                "bash -ec 'rm a; . ./run.sh'",
                "timeout 9 sh < run.sh",
                'python3 -c \'open("new", "w")\'',
                "ls a | xargs sh run.sh",
                "find . -name x -delete",
                "echo {t} > {n} > {n}",
                "ls | rm {n}",
                "rm {n} | echo x > {n}",
                "\\rm {n}",
                "command rm {n}",
                "time rm {n}",
                "cd d; cd e",
                "export G={n}",
                "F=a rm {n}",
                "unset F",
                "cp {n}{{,.bak}}",
                "printf '%s' {t} >> {n}",
                "echo a{t}b # > {n}",
                "echo {t} &> {n}",
                "xargs rm <<< {n}",
            ]
        )
    )
    while "{t}" in form or "{n}" in form or "{d}" in form:
        for key, strategy in (("{t}", texts), ("{n}", name), ("{d}", target)):
            if key in form:
                form = form.replace(key, draw(strategy).replace("{", "\0"), 1)
    return form.replace("{{", "{").replace("}}", "}").replace("\0", "{")


@st.composite
def statements(draw: st.DrawFn, depth: int = 0) -> str:
    one = st.one_of(simple(), simple(), simple(), here())
    parts = [draw(one)]
    for _ in range(draw(st.integers(0, 4))):
        joined = draw(st.sampled_from([" && ", "; ", "\n", " || ", " && ", "\n", " & "]))
        if parts[-1].endswith("\n"):
            joined = ""
        item = draw(one)
        if depth < 2 and draw(st.integers(0, 5)) == 0:
            inner = draw(statements(depth + 1))
            inner = inner if inner.endswith("\n") else inner + "\n"
            item = draw(
                st.sampled_from(
                    [
                        "(\n{i})",
                        "{{ {i}}}",
                        "if true; then\n{i}fi",
                        "for x in 1 2; do\n{i}done",
                        "! {{ {i}}}",
                        "( {i}) 2>/dev/null",
                        "f() {{ {i}}}; f",
                        "{{ {i}}} > new",
                        "while false; do {i}done",
                        "{{ {i}}} || true",
                        "case a in a) {i};; esac",
                        "{{ {i}}} && rm -f a",
                        "[ -f a ] && {{ {i}}}",
                    ]
                )
            ).format(i=inner)
        parts.append(joined + item)
    return "".join(parts)


@settings(max_examples=examples(250), deadline=None, suppress_health_check=list(HealthCheck))
@given(statements())
def test_what_is_certain_is_what_bash_does(script: str) -> None:
    check(script)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.one_of(simple(), here()), min_size=1, max_size=3).map("\n".join))
def test_short_scripts_too(script: str) -> None:
    check(script)
