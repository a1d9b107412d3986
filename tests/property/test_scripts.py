"""The law of scripts: what a program's text is said to have done is what it did, and all else stayed as it was.

Programs are written into a folder and really run by bash, sh, Python and make. The recorded command, its exit status and
its output are replayed over the files that were there. What is called proven must then be what the file holds, and
no file that is not in doubt may have changed or come about.
"""

from __future__ import annotations

import os
import posixpath
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon.files.events import ordered
from daemon.files.replay import World
from daemon.model import FileEdit, Operation
from tests.property.test_shell import BEFORE, FOLDERS, recorded, statements, tree
from tests.support.examples import examples
from tests.support.stores.replaying import START, Objects, event, write

_QUIET = {"suppress_health_check": list(HealthCheck), "deadline": None}


class Doubting(World):
    """A world that notes which folders it takes to have been changed in any way."""

    def __init__(self) -> None:
        super().__init__(Objects())
        self.doubted: set[str] = set()

    def _doubt_folder(self, folder: str, edit: FileEdit) -> None:
        self.doubted.add(folder)
        super()._doubt_folder(folder, edit)

    def _unclear(self, edit: FileEdit) -> None:
        self.doubted.add(edit.path)
        super()._unclear(edit)


def replayed(root: str, files: dict[str, str], edits: Iterable[FileEdit]) -> Doubting:
    told = Doubting()
    events = [event(1, Operation.FOLDER, f"{root}/{name}") for name in FOLDERS]
    events += [write(1, f"{root}/{name}", content) for name, content in files.items()]
    events += [replace(edit, time=START + 5000, started=START + 4000, number=at) for at, edit in enumerate(edits)]
    told.replay(ordered(events))
    return told


def compare(told: Doubting, real: dict[str, str | None], root: str, said: str) -> None:
    for path in sorted(path for path in {*told.paths(), *real} if f"{path}/".startswith(f"{root}/")):
        revision = told.history(path).latest
        if path in real and real[path] is None:
            continue  # a folder
        if revision is None or not revision.proven:
            covered = revision is not None or any(f"{path}/".startswith(f"{one}/") for one in told.doubted)
            assert covered, f"{path} is there and nothing says so: {said}"
        elif revision.deleted:
            assert path not in real, f"{path} is said to be gone: {said}"
        else:
            text = None if revision.content is None else revision.content.decode("utf-8", "surrogateescape")
            assert real.get(path) == text, f"{path}: {said}"


def check(program: dict[str, str], command: str, *, stops_after: int | None = None) -> dict[str, str]:
    """Runs a command beside these files, compares, and answers the grades by path.

    `stops_after`: the program was killed behind so many lines.
    """
    outer = os.path.realpath(tempfile.mkdtemp(prefix="script-law-"))
    root = f"{outer}/w"
    try:
        files = BEFORE | program
        for name, content in files.items():
            Path(root, name).parent.mkdir(parents=True, exist_ok=True)
            Path(root, name).write_text(content)
            Path(root, name).chmod(0o755)
        for name in FOLDERS:
            Path(root, name).mkdir(parents=True)
        first = next(iter(program), "")
        if stops_after is not None:
            Path(root, first).write_text("".join(program[first].splitlines(keepends=True)[:stops_after]))
        ran = subprocess.run(
            ["bash", "-c", command], check=False, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=90,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": f"{outer}/home", "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        killed = stops_after is not None
        if killed and Path(root, first).is_file() and Path(root, first).read_text() in program[first]:
            Path(root, first).write_text(program[first])
        code = -9 if killed else ran.returncode
        edits = recorded(command, root, code, ran.stdout.decode("utf-8", "replace"))
        told = replayed(root, files, edits)
        compare(told, tree(root), root, f"{command!r} of {program!r} (exit {code}): {edits}")
        return {
            posixpath.relpath(path, root): "gone" if last.deleted and last.proven else last.grade.value
            for path in told.paths() if (last := told.history(path).latest) is not None
        }  # fmt: skip
    finally:
        shutil.rmtree(outer)


CALLS = [
    "sh gen.sh", "bash gen.sh", "./gen.sh", "bash gen.sh b.txt d/x", "cd d && bash ../gen.sh ../b.txt x/y.z", "./gen.sh d/x a.b", "bash -e gen.sh a new", "bash -eu ./gen.sh b.txt d", ". ./gen.sh", "source gen.sh a",
    "cd d && bash ../gen.sh", "bash gen.sh | cat", "bash gen.sh 2>/dev/null", "bash gen.sh; true", "bash gen.sh || true",
    "bash < gen.sh", "timeout 9 bash gen.sh x", "bash d/../gen.sh && rm -f a", "F=new bash gen.sh", "bash gen.sh > log",
    "sh gen.sh\necho x > new", "(cd d; sh ../gen.sh)", "bash gen.sh & wait", "cp gen.sh d/e && cd d/e && sh gen.sh",
]  # fmt: skip
FIRST = ["", "#!/bin/sh\n", "#!/bin/bash\n", "#!/usr/bin/env bash\nset -e\n", "#!/bin/bash -e\n", "set -euo pipefail\n"]
OWN = [
    'cd "$(dirname "$0")"\n', 'cd "$(dirname "${BASH_SOURCE[0]}")"\n', 'D="$(cd "$(dirname "$0")" && pwd)"\necho x > "$D/q"\n',
    'echo $1 > "$2"\n', "touch d/$1\n", "rm -f $1\n", "shift\nrm -f $1\n", "set -- a\nrm -f $1\n", "for f in a new; do echo y > $f; done\n",
    "for x in 1 2; do echo x > new; cd d 2>/dev/null; done\n", "echo more >> gen.sh\n", "rm gen.sh\n", 'rm -- "$0"\n', "exit 0\n",
    "[ -f a ] || exit 0\n", "nosuchprogram a\n", "sort a > d/sorted\n", "mkdir -p out && sort a > out/a.txt\n",
    '[ -n "$DEEP" ] || DEEP=1 sh gen.sh\n', "trap 'rm -f a' EXIT\n", "uniq a new\n", "x=a; while read y; do rm -f $x; x=b.txt; done < a\n",
    "printf '%s\\n' one > new; cat new >> a\n", "python3 - <<'E'\nopen('new', 'w').write('x')\nE\n", "make -s -f /dev/null || true\n",
]  # fmt: skip


@st.composite
def scripts(draw: st.DrawFn) -> str:
    pieces = [draw(st.sampled_from(FIRST))]
    for _ in range(draw(st.integers(1, 3))):
        piece = draw(st.sampled_from(OWN) | statements())
        pieces.append(piece if piece.endswith("\n") else piece + "\n")
    return "".join(pieces)


@settings(max_examples=examples(40), **_QUIET)
@given(scripts(), st.sampled_from(CALLS))
def test_what_a_shell_script_is_said_to_have_done_it_did(script: str, command: str) -> None:
    check({"gen.sh": script}, command)


@settings(max_examples=examples(40), **_QUIET)
@given(scripts(), st.sampled_from(["bash gen.sh", "sh gen.sh", "cd d && bash ../gen.sh"]), st.integers(0, 4))
def test_a_script_that_was_killed_changed_nothing_else(script: str, command: str, lines: int) -> None:
    check({"gen.sh": script}, command, stops_after=lines)


PYTHON_LINES = [
    "open({n}, 'w').write('x')", "with open({n}, mode='a') as f:\n    f.write('y')", "Path({n}).write_text('z')",
    "p = Path({n})\np.write_text(p.read_text() + 'q') if p.exists() else None", "os.remove({n})", "os.rename({n}, {m})",
    "shutil.copy({n}, {m})", "shutil.move({n}, {m})", "shutil.rmtree('d', ignore_errors=True)", "os.makedirs('n/m', exist_ok=True)",
    "for name in [{n}, {m}]:\n    open(name, 'w').close()", "names = [{n}]\nnames.append({m})\nfor name in names:\n    open(name, 'w')",
    "names = ({n}, {m})\nfor name in names:\n    Path(name).touch()", "[Path(x).unlink() for x in ({n},)]", "print(Path({n}).exists())",
    "list(map(os.remove, [{n}]))", "f = open\nf({n}, 'w')", "def g(p):\n    Path(p).write_text('g')\ng({n})",
    "def g(p={n}):\n    open(p, 'w')\ng()", "os.chdir('d')", "p = Path('d') / {n}\np.write_text('d')", "q = 'd'\nq += '/x'\nopen(q, 'w')",
    "open(f\"d/{{{n}}}\", 'w')", "open('d/' + {n}, 'w')", "Path.write_text(Path({n}), 'u')", "print('x', file=open({n}, 'w'))",
    "getattr(os, 'remove')({n})", "json.dump({{}}, open({n}, 'w'))", "open({n}).read()", "shutil.os.remove({n})", "import glob\nglob.os.remove({n})",
    "from os import remove as r\nr({n})", "from os import *\nremove({n})", "exec('open({n}, \"w\")')", "for p in Path('d').glob('*'):\n    p.unlink()",
    "x = Path({n})\ny = x.parent / 'side'\ny.write_text('1')", "class Path2(Path):\n    pass\nPath2({n}).write_text('x')", "import subprocess\nsubprocess.run(['rm', '-f', {n}])",
    "open({n}, **dict(mode='w'))", "open(*[{n}, 'w'])", "(lambda o: o({n}, 'w'))(open)", "Path({n}).replace({m})", "s = 'a'.replace('a', 'b')\nopen(s, 'w')",
    "if len(sys.argv) > 1:\n    open(sys.argv[1], 'w')", "try:\n    os.unlink({n})\nexcept OSError:\n    Path({m}).touch()",
    "Path({n}).symlink_to('a')\nPath({n}).write_text('through')", "t = str(Path('d/')) + 'x'\nopen(t, 'w')", "Path(__file__).with_name('s').touch()",
    "(Path(__file__).parent / {n}).write_text('here')", "with Path({n}).open('w') as o:\n    o.write('1')", "sys.modules['os'].remove({n})",
    "globals()['p'] = 1", "open({n}, 'r+').truncate(0)", "os.path.os.unlink({n})", "p = {n} if len('x') else {m}\nopen(p, 'x')", "random._os.remove({n})",
]  # fmt: skip
PYTHON_NAMES = ["'a'", "'b.txt'", "'d/x'", "'new'", "'d/new'", "'./a'", "'d/../a'", "'../out'", "'d'"]
PYTHON_CALLS = [
    "cd d && python3 ../gen.py ../b.txt",
    "python3 gen.py b.txt d/x",
    "python3 gen.py",
    "./gen.py new",
    "python3 -u gen.py a",
    "cd d && python3 ../gen.py",
    "python3 < gen.py",
    "python3 gen.py || true",
]
_IMPORTS = "#!/usr/bin/env python3\nimport json, os, random, shutil, sys\nfrom pathlib import Path\n"


@st.composite
def python_programs(draw: st.DrawFn) -> str:
    forms = draw(st.lists(st.sampled_from(PYTHON_LINES), min_size=1, max_size=3))
    name = st.sampled_from(PYTHON_NAMES)
    lines = [form.format(n=draw(name), m=draw(name)) for form in forms]
    return _IMPORTS + "\n".join(lines) + "\n"


@settings(max_examples=examples(40), **_QUIET)
@given(python_programs(), st.sampled_from(PYTHON_CALLS))
def test_what_a_python_program_is_not_said_to_have_written_it_did_not(program: str, command: str) -> None:
    check({"gen.py": program}, command)


RECIPES = [
    "sort a > $@", "@echo hi > $@", "-rm b.txt", "cp $< $@", "echo $(NAME) > d/$(NAME)", "mkdir -p d/o && touch d/o/$@", "cd d && rm -f x",
    "$(MAKE) -s last", "sh run.sh", "printf '%s' $$HOME > $@", "rm -f $(OTHER)", "for f in a new; do echo x > $$f; done", "# nothing",
    "echo a \\\n  b > $@", "true", "nosuchprogram $@",
]  # fmt: skip


@st.composite
def makefiles(draw: st.DrawFn) -> str:
    lines = [
        draw(
            st.sampled_from(
                ["", "NAME = x\n", "NAME := new\nOTHER = $(NAME) a\n", "NAME ?= q\nOTHER=b.txt\n", ".PHONY: all last\n"]
            )
        )
    ]
    lines.append(
        "all: {}\n".format(
            " ".join(
                draw(st.lists(st.sampled_from(["out.txt", "a", "last", "d/made", "prog"]), max_size=3, unique=True))
            )
        )
    )
    for target in draw(
        st.lists(
            st.sampled_from(["out.txt", "d/made", "last", "prog", "a", "x.o"]), min_size=1, max_size=4, unique=True
        )
    ):
        needs = draw(st.sampled_from(["", "a", "b.txt", "last", "out.txt a"]))
        recipe = "".join(f"\t{line}\n" for line in draw(st.lists(st.sampled_from(RECIPES), max_size=3)))
        lines.append(f"{target}: {'' if target in needs.split() else needs}\n{recipe}")
    return "\n".join(lines)


@settings(max_examples=examples(40), **_QUIET)
@given(
    makefiles(),
    st.sampled_from(
        [
            "make",
            "make -s all",
            "make out.txt last",
            "make -k -B",
            "make NAME=new",
            "cd d && make -C .. last",
            "make -j2 all",
        ]
    ),
)
def test_what_a_makefile_is_not_said_to_have_written_it_did_not(text: str, command: str) -> None:
    check({"Makefile": text}, command)


KEPT = {"a": "proven", "b.txt": "proven", "d/x": "proven"}
TRUTHS = [
    ({"gen.sh": "mkdir -p out && sort a > out/a.txt\n"}, "sh gen.sh", KEPT | {"out/a.txt": "lost"}),
    ({"gen.sh": "set -e\necho 1 > n1\nrm a\nmv b.txt c.txt\n"}, "bash gen.sh", {"n1": "proven", "a": "gone", "c.txt": "proven", "d/x": "proven"}),
    ({"gen.sh": "#!/bin/bash\necho $2 > $1\n"}, "./gen.sh new one", {"new": "proven", "a": "proven"}),
    ({"gen.sh": "#!/bin/bash\nset -- b.txt\nrm -f $1\n"}, "./gen.sh a", {"a": "stale", "b.txt": "stale"}),
    ({"gen.sh": "echo '\\t' > new\n"}, "sh gen.sh", KEPT | {"new": "lost"}),
    ({"gen.sh": "echo x > {a,b.txt}\n"}, "sh gen.sh", {"a": "stale", "d/x": "stale"}),
    ({"gen.sh": "nosuchprogram > log\necho x > a\n"}, "bash gen.sh", {"a": "stale", "b.txt": "stale", "log": "lost"}),
    ({"gen.sh": "f() { rm -f a; }\nf\n"}, "bash gen.sh", {"a": "stale", "b.txt": "stale"}),
    ({"gen.sh": "for x in 1 2; do rm -f x y; cd d; done\n"}, "bash gen.sh", {"a": "proven", "d/x": "stale"}),
    # Killed, as a shell that blocks signals while it forks can leave a child behind that goes on for ever.
    ({"gen.sh": "sh gen.sh >> log\n"}, "timeout -s KILL 0.3 sh gen.sh", {"a": "stale"}),
    ({"gen.sh": "echo hi\n"}, "sh gen.sh", KEPT),
    ({"gen.sh": "set -e\ncat b.txt\necho x > $1\n"}, "sh gen.sh d/x", {"a": "proven", "b.txt": "proven", "d/x": "proven"}),
    ({"gen.sh": "cat $1 > out.txt\n"}, "sh gen.sh b.txt", KEPT | {"out.txt": "proven"}),
    ({"gen.sh": 'for f in "$@"; do echo x > "$f"; done\n'}, "cd d && sh ../gen.sh ../b.txt", {"a": "stale", "b.txt": "stale"}),
    ({"gen.py": "import sys\nprint(open(sys.argv[1]).read())\n"}, "python3 gen.py b.txt", KEPT),
    ({"gen.py": "import sys\nopen(sys.argv[1], 'w')\n"}, "cd d && python3 ../gen.py ../b.txt", {"a": "proven", "b.txt": "stale"}),
    ({"gen": "#!/bin/sh\necho x > nodir/y\ntrue\n"}, "./gen; true", KEPT | {"nodir/y": "lost"}),
    ({"gen.sh": "echo x > new\nsleep 9\nrm -f a\n"}, "timeout 0.5 sh gen.sh; true", {"a": "stale", "b.txt": "proven", "new": "lost"}),
    ({"gen.sh": "grep -q nothing a\nrm -f a\n"}, "(set -e; . ./gen.sh); true", {"a": "stale", "b.txt": "proven"}),
    ({"gen.sh": "((rm -f a))\n[[ a > b.txt ]]\n"}, "sh gen.sh; true", {"a": "stale", "b.txt": "stale"}),
    ({"gen.sh": "echo rm -f a\n"}, "sh gen.sh | tee gen.sh", {"a": "stale"}),
    ({"gen.sh": "sleep 0\n"}, "sh gen.sh & echo rm -f a > gen.sh; wait", {"a": "stale"}),
    ({"d/gen.sh": 'cd "$(dirname "$0")" && rm -f x\n'}, "bash d/gen.sh && true", {"d/x": "gone", "a": "proven"}),
    ({"gen.py": "open('a', 'w').write('x')\n"}, "python3 gen.py", KEPT | {"a": "stale"}),
    ({"gen.py": "import sys\nopen(sys.argv[1], 'w').write('x')\n"}, "python3 gen.py a", {"a": "stale", "b.txt": "stale"}),
    ({"gen.py": "import shutil\nshutil.rmtree('d')\n", "shutil.py": "open('a', 'w')\nrmtree = print\n"}, "python3 gen.py", {"a": "stale"}),
    ({"Makefile": "t: a\n\tsort a > $@.txt\n"}, "make t", KEPT | {"t.txt": "lost"}),
    ({"Makefile": "include more\nt:\n\trm -f a\n", "more": ""}, "make t", {"a": "stale", "b.txt": "stale"}),
    ({"package.json": '{"scripts": {"x": "sort a > new", "prex": "rm -f b.txt"}}'}, "npm run x", {"a": "proven", "b.txt": "stale", "new": "lost"}),
]  # fmt: skip


@pytest.mark.parametrize(("program", "command", "expected"), TRUTHS)
def test_what_a_program_that_really_ran_is_said_to_have_done(
    program: dict[str, str], command: str, expected: dict[str, str]
) -> None:
    grades = check(program, command)
    assert {path: grades.get(path) for path in expected} == expected


HOSTILE = [
    "(" * 5000, "{ " * 3000, "a=$(" * 2000, "for x in " + "1 " * 30_000 + "; do rm -f $x; done\n", "sh gen.sh & " * 500, "echo {1..500}{1..500} > a\n",
    "if true; then " * 2000, "`" * 4000, "\0", "\ufeffrm a", "while :; do " * 60 + "cd d; " + "done; " * 60, "cat <<E\n" * 3000, "sh gen.sh; " * 2000,
]  # fmt: skip
HOSTILE_PYTHON = [
    "(" * 50_000, "-" * 50_000 + "1", "a=" * 5000 + "1", "s0 = 'a' * 9\n" + "".join(f"s{n + 1} = s{n} + s{n}\n" for n in range(60)) + "open(s60, 'w')",
    "x = x\nopen(x, 'w')", "\0", "open(" * 90 + ")" * 90, "'\\d'\nopen('a', 'w')", "a.b" * 30_000, "lambda: " * 5000 + "1", "f'{" * 100, "if 1:\n" * 3000,
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [("gen.sh", text, "bash gen.sh") for text in HOSTILE]
    + [("gen.py", text, "python3 gen.py") for text in HOSTILE_PYTHON]
    + [("Makefile", text, "make") for text in ["\t\n", "a: a\n\t$(B)\nB = $(C)\nC = $(B)\n", "A=" + "$(A)" * 5000 + "\nx:\n\t$(A)", "::\n", "x:" + " y" * 90_000]]
    + [("package.json", text, "npm run x") for text in ["[" * 90_000, '{"scripts": 1}', '{"scripts": {"x": 1}}', "{}", '{"scripts": {"x": "npm run x"}}']],
)  # fmt: skip
def test_hostile_programs_are_read_fast_and_never_raise(name: str, text: str, command: str) -> None:
    begun = time.monotonic()
    edits = recorded(command, "/w", 0, "")
    told = replayed("/w", {"a": "x", name: text}, edits)
    assert told.history("/w/a").latest is not None
    assert time.monotonic() - begun < 30
