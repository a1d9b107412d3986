"""The rules in files that people write for agents and contributors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.files import Grade
from daemon.reconstitute.facts import decisions
from daemon.reconstitute.facts.decisions import rule_files
from daemon.reconstitute.recover import State
from tests.support.stores.constructed_sessions import edited, session, user_turn
from tests.unit.facts.folder_facts import file, revision


def found(name: str, text: str) -> list[str]:
    return [rule.text for rule in rule_files.find([file(name, text)])]


@pytest.mark.parametrize(
    "name",
    [
        "AGENTS.md",
        "CLAUDE.md",
        "web/AGENTS.md",
        ".cursorrules",
        ".github/copilot-instructions.md",
        ".cursor/rules/style.mdc",
        ".windsurfrules",
        "GEMINI.md",
    ],
)
def test_a_bullet_of_a_file_for_agents_is_a_rule(name: str) -> None:
    (rule,) = rule_files.find([file(name, "# Rules\n\n- Money is counted in cents.\n")])
    assert (rule.text, rule.who, rule.kind, rule.origin) == ("Money is counted in cents.", "file", "rule", name)
    assert rule.citation.path.endswith(name)


@pytest.mark.parametrize("name", ["README.md", "docs/notes.md", "node_modules/x/AGENTS.md", "AGENTS.txt.bak"])
def test_other_files_hold_no_rules(name: str) -> None:
    assert not found(name, "- Money is counted in cents.\n- Never push to main.\n")


@pytest.mark.parametrize(
    "text",
    [
        "Prefer named exports",
        "**Naming**: functions are written in camelCase",
        "Beträge sind ganze Cent",
        "金額は必ず整数にする",
        "不要使用浮点数",
        "Never floats",
        "`any` must not be used",
        "Keep functions short; no side\n  effects in render.",
    ],
)
def test_what_gives_an_order_or_says_something_in_words_is_a_rule(text: str) -> None:
    assert len(found("AGENTS.md", f"- {text}\n")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "- `src/`: the sources\n- `tests/` holds the tests\n",
        "- Build: `npm run build`\n- Test: `npm test`\n",
        "- [ ] write down how to deploy\n",
        "- Framework: Next.js\n",
        "- [The manual](https://example.org)\n",
        "## Don't\n\n- Edit generated files\n",
        "Never do this:\n\n- Edit generated files\n",
        "- ❌ Edit generated files\n",
        "- Avoid:\n  - global state everywhere\n",
        "## Things to avoid\n\n- Global state everywhere\n",
        "## Verboten\n\n- Globale Variablen benutzen\n",
        "When you deploy:\n\n- tag the commit first\n",
        "- If a test fails\n  - mark it as flaky\n",
        "```\n- Money is counted in cents.\n```\n",
        "<!-- - Money is counted in cents. -->\n",
        "---\ndescription: - Money is counted\n---\n",
        "This file provides guidance to agents.\n",
        "1. Clone the repository\n2. Install everything\n",
        "| - | Money is counted in cents |\n",
        "> - Money is counted in cents.\n",
        "- Where is the money counted?\n",
    ],
)
def test_what_names_a_part_or_says_the_contrary_is_none(text: str) -> None:
    assert not found("AGENTS.md", text)


def test_a_paragraph_gives_a_rule_where_it_says_one() -> None:
    text = "You are an expert in Vue.\nUse the composition API.\n\nNever use mixins. It began in 2019.\n"
    assert found(".cursorrules", text) == ["Use the composition API.", "Never use mixins."]


def test_what_everybody_reads_holds_rules_where_it_says_so_itself() -> None:
    text = "- Fork the repository\n- No `unwrap` outside of tests: it panics.\n- Every change must have a test.\n"
    assert found("CONTRIBUTING.md", text) == [
        "No `unwrap` outside of tests: it panics.",
        "Every change must have a test.",
    ]


def test_the_heading_is_told_and_the_last_state_counts() -> None:
    made = (revision("- Use tabs everywhere.\n"), revision("# All\n\n## Style\n\n- Use blanks everywhere.\n"))
    (rule,) = rule_files.find([file("AGENTS.md", None, *made)])
    assert (rule.text, rule.note) == ("Use blanks everywhere.", "under “Style”")
    gone = file("AGENTS.md", None, made[0], state=State.DELETED)
    unknown = file("AGENTS.md", None, revision(None, grade=Grade.STALE), state=State.LOST)
    assert list(rule_files.find([gone, unknown])) == []


def test_equal_words_in_two_files_are_one_rule_and_rules_are_limited() -> None:
    assert (
        len(list(rule_files.find([file(name, "- Use tabs everywhere.\n") for name in ("AGENTS.md", "CLAUDE.md")]))) == 1
    )
    many = "".join(f"- Rule number {number} holds.\n" for number in range(rule_files.MOST + 5))
    assert len(found("AGENTS.md", many)) == rule_files.MOST


@pytest.mark.parametrize(
    ("said", "written", "told"),
    [
        ("never use floats for money", "Money is integer cents. Never floats.", 1),
        ("Never log customer names.", "Customer names never go into the log.", 1),
        ("Never use tabs in Python.", "Use tabs in Python.", 2),
        ("Never touch generated/.", "Never push to main.", 2),
    ],
)
def test_a_rule_of_a_prompt_that_a_file_repeats_is_told_once(said: str, written: str, told: int) -> None:
    made = decisions.find([session(user_turn(said, edited("AGENTS.md")))], [file("AGENTS.md", f"- {written}\n")])
    assert [rule.note for rule in made] == (["also in AGENTS.md"] if told == 1 else ["", ""])


@given(st.lists(st.sampled_from(["- a b c", "  - d e f", "# H", "## Don't", "x y z:", "```", "", "1. n m", "> q r"])))
def test_whatever_the_file_holds_a_rule_is_words_of_it(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert all(said in text for said in found("AGENTS.md", text))
