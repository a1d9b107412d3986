"""Whether a program that ran may have written files: as far as its own text, and what it draws in, tells.

A script whose text is known and that nowhere does what writes a file leaves everything as it was; any other may have
changed every file in the folder it ran in. The words are those of the usual languages, and rather too many.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable

_WRITES = re.compile(
    r"""
    open\s*\([^)\n]*,\s*(?:mode\s*=\s*)?[brut]*['"][^'"\n]*[wax+] | ['"][rbt]*[wax]\+?[bt]*['"]\s*\)
    | write | Write | dump | save | append(?:_?[Ff]ile)? | truncate | unlink | remove | rename | replace\s*\(
    | rmtree | rmdir | mkdir | makedirs | move\s*\( | copy | touch | symlink | shutil | to_csv | to_json
    | subprocess | child_process | os\.system | popen | Popen | spawn | exec | eval | sqlite
    | \.open\s*\( | open\s*\(\s*(?:my|local|\$|[A-Z]) | file\s*= | ['"]\s*[+]?>>?\s*['"] | >\s*["']
    | File\.open | FileUtils | createWriteStream | \bfs\b | put_contents | fopen
    | ^[ \t]*(?!(?:if|elif|while|return|assert|and|or|not|yield|case)\b)
      [\w./-]+(?:[ \t][^()=<>\n]*)?[ \t]*\d?>{1,2}[ \t]*\S
    | \b(?:tee|sed|rm|mv|cp|dd|git|make|npm|curl|wget|tar|unzip)\b
    """,
    re.VERBOSE | re.MULTILINE,
)
_DRAWS_IN = re.compile(r"[A-Za-z_][\w-]*")
_MOST_TEXT = 1 << 20
_MOST_FILES = 500


def may_write(text: str | None, beside: Callable[[str], Iterable[str | None]]) -> bool:
    """Whether a program of this text may have written files; an unknown one (None) may.

    `beside`: the texts of the known files that a name may mean, with the same stem, in the folder it ran in.
    """
    waiting: list[str | None] = [text]
    seen: set[str] = set()
    looked = 0
    while waiting:
        now = waiting.pop()
        looked += 1
        if now is None or len(now) > _MOST_TEXT or looked > _MOST_FILES or _WRITES.search(now):
            return True
        names = set(_DRAWS_IN.findall(now)) - seen
        seen |= names
        for name in sorted(names):
            waiting += beside(name)
    return False


def stem(path: str) -> str:
    """What a program calls a file by when it draws it in."""
    return posixpath.splitext(posixpath.basename(path))[0]
