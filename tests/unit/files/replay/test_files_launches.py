"""Whether a program that ran may have written files: rather yes than wrongly no."""

from __future__ import annotations

import pytest

from daemon.files.replay.launches import may_write
from daemon.files.replay.tracks import stem

_NOTHING: dict[str, list[str | None]] = {}


def _may(text: str | None, beside: dict[str, list[str | None]] = _NOTHING) -> bool:
    return may_write(text, lambda name: beside.get(name, []))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "print('hello')\n",
        "import sys\nfor line in open('a.txt'):\n    sys.stdout.flush()\nprint(1 >= 0)\n",
        "with open('data.json') as file:\n    print(len(file.read()))\n",
        "with open('data.json', 'r') as file:\n    print(1)\n",
        "console.log([1, 2].map(x => x + 1))\n",
        "#!/bin/sh\necho hello\nls -la\n",
        "def f(x) -> int:\n    return x\n",
        "if a >= b:\n    pass\n",
    ],
)
def test_a_text_that_writes_nothing_casts_no_doubt(text: str) -> None:
    assert not _may(text)


@pytest.mark.parametrize(
    "text",
    [
        "open('a', 'w')",
        'open("a", "ab")',
        "open(name, mode='w')",
        "open('a', 'r+')",
        "Path('a').open('x')",
        "Path('a').write_text('x')",
        "json.dump(x, f)",
        "np.save('a', x)",
        "os.remove('a')",
        "os.rename('a', 'b')",
        "Path('a').unlink()",
        "shutil.rmtree('a')",
        "import shutil as s",
        "os.system('x')",
        "subprocess.run(x)",
        "exec(x)",
        "eval(x)",
        "df.to_csv('a')",
        "import sqlite3",
        "require('fs').appendFileSync('a', x)",
        "const { promises } = require('node:fs')",
        "fs.createWriteStream('a')",
        "File.open('a')",
        "file_put_contents('a', 'x')",
        "echo x > a",
        "echo x >> a",
        "echo x >a",
        "echo x > $OUT",
        "cat x | tee a",
        "sed -i s/a/b/ a",
        "rm -rf a",
        "git checkout a",
        "make",
        "curl -o a url",
        "w = open\nw('a', 'w')",
    ],
)
def test_a_text_that_may_write_casts_doubt(text: str) -> None:
    assert _may(text)


def test_an_unknown_text_may_write_anything() -> None:
    assert _may(None)


def test_what_a_harmless_text_draws_in_counts_at_any_depth() -> None:
    chain: dict[str, list[str | None]] = {"one": ["import two"], "two": ["import three"], "three": ["os.remove(x)"]}
    assert _may("import one", chain)
    chain["three"] = ["print(1)"]
    assert not _may("import one", chain)
    chain["three"] = [None]  # known by name, not by content
    assert _may("import one", chain)
    assert not _may("print(1)", {"other": ["os.remove(x)"]})


def test_modules_that_draw_in_one_another_end() -> None:
    assert not _may("import one", {"one": ["import two"], "two": ["import one"]})


def test_a_text_too_long_to_look_at_may_write() -> None:
    assert _may("x = 1\n" * 200_000)


@pytest.mark.parametrize(
    ("path", "name"), [("/w/a.py", "a"), ("/w/a", "a"), ("/w/a.test.js", "a.test"), ("/w/.env", ".env")]
)
def test_a_files_stem_is_what_it_is_drawn_in_by(path: str, name: str) -> None:
    assert stem(path) == name
