"""Which commands are one, however they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.reconstitute.facts.shell import spellings

SAME = [
    ("npm test", "npm run test", "npm t", "yarn test", "npm run-script test", "pnpm --silent test"),
    ("npm start", "npm run start", "yarn start", "PORT=80 npm start"),
    ("npm --prefix web run dev", "cd web && npm run dev", "yarn --cwd web dev"),
    ("bin/x", "./bin/x", "sh bin/x", "bash ./bin/x"),
    ("python a.py", "python3 a.py", "python3.12 ./a.py", "./a.py"),
    ("python -m a", "python3 -m a"),
    ("make -C web run", "cd web && make run", "gmake --directory web -s run", "cd ./web && make run"),
    ("docker compose up", "docker-compose up -d", "docker compose up --build"),
]
OTHER = [
    ("npm test", "npm run tests"), ("npm test", "cd web && npm test"), ("npm install", "npm run install-all"),
    ("make run", "make -f other.mk run"), ("make run", "make"), ("bin/x", "x"), ("sh -c bin/x", "bin/x"),
    ("python -m a", "python -m b"), ("npm start", "npm start -- --watch"), ("a && b", "a"), ("", ""),
]  # fmt: skip


@pytest.mark.parametrize("spelled", SAME)
def test_the_ways_to_write_a_command_are_one(spelled):
    assert len({spellings.of(one) for one in spelled}) == 1
    assert spellings.of(spelled[0])


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_other_commands_are_not(one, other):
    assert spellings.of(one) != spellings.of(other) or not spellings.of(one)


@pytest.mark.parametrize(
    ("named", "ran", "is_default", "expected"),
    [
        ("make run", "make run V=1", False, True),
        ("make run", "make", False, False),
        ("make run", "make", True, True),
        ("make run", "make clean run", False, False),
        ("docker compose up web", "docker compose up -d", False, True),
        ("docker compose up web", "docker compose up db", False, False),
        ("shop", "shop sell 3", False, True),
        ("shop", "shopping", False, False),
        ("", "make", True, False),
    ],
)
def test_whoever_gives_more_words_runs_it_too(named, ran, is_default, expected):
    assert spellings.is_run_by(spellings.of(named), spellings.of(ran), is_default=is_default) is expected


def test_a_text_names_code_and_lines_of_several_words():
    told = spellings.in_text("Then `./start`, or\n\n    $ npm test\n\nmake\n")
    assert {spellings.of("./start"), spellings.of("npm run test")} <= told
    assert spellings.of("make") not in told


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(["npm", "run", "make", "-C", "cd", "&&", "sh", "bin/x", "'", "$", "(", "./"])).map(
        " ".join
    )
)
def test_any_text_is_a_spelling_or_none(text):
    assert spellings.is_run_by(spellings.of(text), spellings.of(text)) is bool(spellings.of(text))
    spellings.mentions(spellings.of(text), [text])
