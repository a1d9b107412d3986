"""A shell's pattern in a command counts as the excluded paths that it may stand for."""

from __future__ import annotations

import fnmatch
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.exclude.globs import may_reach, patterns

EXCLUDED = patterns(["*.pem", "/vault/keys.txt", ".env", "secrets/", "**/deep/x?.md", "!/vault/public.pem"])


def reaches(command: str) -> bool:
    return may_reach(command, EXCLUDED, ["/home/dev/shop"])


@pytest.mark.parametrize(
    "command",
    [
        "cat /vault/*", "cat /va*/k*", "cat ../../../vault/key[rs].txt", "cat /vault/{keys,notes}.txt", "cat .e*", "cat .?nv",
        "grep -h x *.p*", "cat *", "head sec*/*", "cat **/x1.*", 'cat "/vault"/k*', "cd /tmp; cat /vault/?eys.txt|sort",
        "x --file=/vault/k*", "cat /home/*/shop/a.pem", "cat $(ls /vault/k*)", "sudo bash -lc 'cat /vault/*'",
        'sh -c "cat /vault/k*"', "ls " + "a*b" * 4000,
    ],
)  # fmt: skip
def test_a_pattern_that_may_stand_for_an_excluded_path_counts(command: str) -> None:
    assert reaches(command)


@pytest.mark.parametrize(
    "command",
    [
        "cat /vault/b*.txt", "ls src/*.ts", "cat '/vault/*'", 'echo "*"', "cat /vault/\\*.pdf", "cat /other/keys.t?t",
        "cat > a.md <<'E'\n* one\n* two\nE", "if [ -f a ]; then { make; }; fi", "echo ${HOME}", "python -c 'a * b'",
    ],
)  # fmt: skip
def test_any_other_pattern_does_not_count(command: str) -> None:
    assert not reaches(command)


@given(st.text("ab*?", min_size=1, max_size=5), st.text("ab*?", min_size=1, max_size=5))
def test_two_patterns_meet_where_some_name_matches_both(excluded: str, written: str) -> None:
    names = ("".join(name) for size in range(1, 9) for name in product("ab", repeat=size))
    expected = any(fnmatch.fnmatchcase(name, excluded) and fnmatch.fnmatchcase(name, written) for name in names)
    if "**" in (excluded, written):
        return
    is_pattern = set(written) & {"*", "?"}
    assert may_reach(f"cat /{written}", patterns([f"/{excluded}"]), []) == bool(expected and is_pattern)
