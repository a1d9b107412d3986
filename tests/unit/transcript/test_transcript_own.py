"""Shell calls that ran one of our reading commands: what they printed is not indexed, what they were asked is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.cli.commands import COMMANDS
from daemon.model import Kind
from daemon.transcript.document import document
from daemon.transcript.own_calls import DOING, READING, is_own_tool, runs_us
from tests.support.stores.records import BASE, bash, message, session, tool


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("recall", True),
        ("mcp__x__recall_messages", True),
        ("reconstitute", True),
        ("product_recall_lookup", False),
        ("read", False),
    ],
)
def test_our_own_tools_are_known_under_any_prefix(name: str, own: bool) -> None:
    assert is_own_tool(name) is own


def test_of_each_of_our_commands_it_is_decided_whether_it_quotes_sessions() -> None:
    assert not READING & DOING
    assert set(COMMANDS) == READING | DOING


@pytest.mark.parametrize("name", sorted(READING))
def test_every_reading_command_is_known(name: str) -> None:
    assert runs_us(f"reconstitute {name} words")
    assert runs_us(f"cd /srv && reconstitute --config c.toml -v {name.replace('-', '_')} words | head -5")


@pytest.mark.parametrize("name", sorted(DOING))
def test_what_only_tells_what_it_did_is_indexed(name: str) -> None:
    assert not runs_us(f"reconstitute {name} words")


@pytest.mark.parametrize(
    "command",
    [
        "/opt/tools/bin/reconstitute recall axolotl",
        "~/.local/bin/reconstitute recall axolotl",
        "$VENV/bin/reconstitute recall axolotl",
        '"${VENV}/bin/reconstitute" recall axolotl',
        ".venv/bin/reconstitute recall axolotl",
        "PAGER=cat LANG=C reconstitute recall axolotl",
        "env A=1 reconstitute recall axolotl",
        "timeout 10 reconstitute recall axolotl 2>&1",
        "uv run reconstitute recall axolotl",
        "uvx --from reconstitute reconstitute recall axolotl",
        "python3 -m daemon.cli recall axolotl",
        "uv run python -m daemon.cli recall axolotl",
        "cd sub; ls; reconstitute recall axolotl --json | jq -r '.results[].snippet'",
        "grep -c x a.py || reconstitute recall axolotl",
        "(cd /x && reconstitute recall axolotl) > /dev/stderr",
        "for word in a b; do reconstitute recall $word; done",
        'if true; then reconstitute recall "a b"; fi',
        'echo "found: $(reconstitute recall axolotl)"',
        "diff <(reconstitute show a.py) a.py",
        "bash -c 'cd /x && reconstitute recall axolotl'",
        'sh -lc "reconstitute recall axolotl"',
        "bash <<'EOF'\nreconstitute recall axolotl\nEOF",
        "ssh host 'reconstitute recall axolotl'",
        "ssh host reconstitute recall axolotl",
        "echo msg_1 | xargs -n1 reconstitute recall-get",
        "docker exec box reconstitute recall axolotl",
        "R=/opt/bin/reconstitute\n$R recall axolotl",
        "export R=reconstitute; $R recall axolotl",
        "$(which reconstitute) recall axolotl",
        'ask() { reconstitute "$@"; }; ask recall axolotl',
        "reconstitute $WHAT axolotl",
        "reconstitute recall axolotl &",
        "reconstitute \\\n  recall axolotl",
        'reconstitute /home/dev/shop --question "why?"',
        'reconstitute --question "why?" ./shop',
        "reconstitute --config=/x/c.toml recall axolotl",
        "reconstitute recall 'it is not closed",
        "curl --unix-socket /run/user/1/reconstitute/control.sock http://x/recall -d '{}'",
    ],
)
def test_output_of_our_own_calls_is_not_indexed_but_the_command_is(command: str) -> None:
    made = message(bash(command, f"{BASE}/old/words.py: the axolotl of last year"), role="assistant")
    [section] = document(made, session(), 64).sections
    assert (section.kind, section.tool) == (Kind.TOOL_INPUT, "bash")
    assert section.text.startswith(command)
    assert f"{BASE}/old/words.py" not in document(made, session(), 64).paths


@pytest.mark.parametrize(
    "command",
    [
        "echo reconstitute recall axolotl",
        'git grep "reconstitute recall"',
        "cd reconstitute && ls",
        "cat docs/reconstitute.md",
        "pip install reconstitute",
        "which reconstitute",
        "reconstitute --version",
        "reconstitute --help",
        "reconstitute",
        "find . -name reconstitute -type d",
        "cat <<'EOF' > README.md\nreconstitute recall axolotl\nEOF",
        "python -m pytest tests/daemon.cli recall",
        "# reconstitute recall axolotl\nls",
        "git commit -m 'Let reconstitute recall more'",
        "R=reconstitute; echo $R recall",
        "systemctl --user status reconstitute",
        "",
    ],
)
def test_what_only_names_us_is_indexed_whole(command: str) -> None:
    made = message(bash(command, f"{BASE}/old/words.py: the axolotl"), role="assistant")
    assert document(made, session(), 64).sections[-1].text == f"{BASE}/old/words.py: the axolotl"
    assert f"{BASE}/old/words.py" in document(made, session(), 64).paths


def test_what_our_tools_were_asked_and_answered_names_no_path_either() -> None:
    made = message(
        tool("reconstitute_read_file", {"path": f"{BASE}/asked.py"}, f"{BASE}/told.py"),
        tool("recall", {"query": f"{BASE}/asked.py"}, f"{BASE}/told.py"),
        role="assistant",
    )
    assert document(made, session(), 64).paths == ()


def test_a_call_that_failed_shows_no_answer_of_ours_either() -> None:
    made = message(tool("bash", {"command": "reconstitute recall x"}, "axolotl", status="error"), role="assistant")
    assert [section.kind for section in document(made, session(), 64).sections] == [Kind.TOOL_INPUT]


@given(st.text(alphabet="reconstitute daemon.cli recall-get$'\"`(){}<>|&;\n\\=/", max_size=40))
def test_a_command_of_any_form_is_judged(text: str) -> None:
    assert isinstance(runs_us(f"reconstitute {text}"), bool)
