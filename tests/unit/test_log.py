"""What the log holds and what it never holds: each case in a process of its own, read from its real stderr (X5)."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from typing import Any

import pytest

SECRET = "sk-ant-api03-" + "Zx9Kq2LmN4Pv7Rt1" * 4
START = """
import logging, os, sys, threading, warnings
from daemon import config, log
from daemon.redact import redact_value
secret = sys.argv[1]
def setup(level="info", format="auto"):
    log.setup(config.Log(level=level, format=format), redact_value)
"""


def run(code: str, **environment: str) -> tuple[str, str]:
    """stdout and stderr of a process that runs `code`."""
    done = subprocess.run(
        [sys.executable, "-c", START + code, SECRET],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def lines(code: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(code)[1].splitlines()]


def test_people_read_one_plain_line_on_stderr() -> None:
    out, err = run("setup(); log.get('ingest').info('pass finished', changed=3)")
    assert out == ""
    assert re.fullmatch(r"\S+Z \[info +\] pass finished +\[daemon\.ingest\] changed=3\n", err), err


def test_json_lines_hold_time_level_logger_event_and_the_rest() -> None:
    [line] = lines(
        "setup(format='json'); log.get('ingest').warning('kept aside', records=2, path=__import__('pathlib').Path('/x'))"
    )
    assert list(line)[:4] == ["time", "level", "logger", "event"]
    assert line["level"] == "warning"
    assert (line["records"], line["path"]) == (2, "/x")


def test_under_the_journal_it_is_json_with_a_priority() -> None:
    code = "s = os.fstat(2); os.environ['JOURNAL_STREAM'] = f'{s.st_dev}:{s.st_ino}'; setup(); log.get('x').error('broken')"
    _, err = run(code)
    assert err.startswith("<3>{")
    assert json.loads(err[3:])["event"] == "broken"


def test_an_inherited_journal_variable_alone_is_not_the_journal() -> None:
    _, err = run("setup(); log.get('x').error('broken')", JOURNAL_STREAM="8:12345")
    assert "[error" in err
    assert not err.startswith("<")


@pytest.mark.parametrize("style", ["json", "console"])
@pytest.mark.parametrize(
    "code",
    [
        "log.get('x').error('failed', reason=f'key {secret} refused')",
        "log.get('x').error(f'failed with {secret}')",
        "log.get('x').error('failed', where={'deep': [f'api_key={secret}']})",
        "log.get('x').error('failed', error=ValueError(secret))",
        "logging.getLogger('uvicorn.error').error('refused %s', secret)",
        "logging.getLogger('chromadb').warning(secret)",
        "warnings.warn(f'odd: {secret}')",
        "try:\n    raise ValueError(secret)\nexcept ValueError:\n    log.get('x').exception('failed')",
        "try:\n    raise ValueError(secret)\nexcept ValueError:\n    logging.getLogger('apscheduler').exception('failed')",
        "def die():\n    raise ValueError(secret)\nt = threading.Thread(target=die); t.start(); t.join()",
    ],
)
def test_no_secret_reaches_the_log_by_any_way(code: str, style: str) -> None:
    _, err = run(f"setup(format='{style}')\n{code}")
    assert err.strip()
    assert SECRET not in err
    assert "[REDACTED:" in err


def test_no_control_sequence_reaches_the_terminal() -> None:
    _, err = run(r"setup(format='console'); log.get('x').error('a\x1b]0;title\x07b', path='/tmp/\x1b[31m\x9b1m')")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", err)


@pytest.mark.parametrize(
    ("level", "shown"),
    [("debug", "diwe"), ("info", "iwe"), ("warning", "we"), ("error", "e")],
)
def test_the_level_is_ours_and_other_libraries_speak_from_warning_on(level: str, shown: str) -> None:
    code = f"""
setup(level='{level}', format='json')
ours, theirs = log.get('x'), logging.getLogger('watchdog.observers')
ours.debug('d'); ours.info('i'); ours.warning('w'); ours.error('e')
theirs.debug('theirs'); theirs.info('theirs'); theirs.warning('theirs heard')
"""
    events = [line["event"] for line in lines(code)]
    assert "".join(events[:-1]) == shown
    assert events[-1] == "theirs heard"


def test_watchdogs_chatty_warning_is_dropped() -> None:
    _, err = run("setup(); warnings.warn('Callback with id 3 already exists: ' + 'x' * 9999, RuntimeWarning)")
    assert err == ""


def test_setting_up_twice_says_everything_once() -> None:
    assert len(lines("setup(); setup(format='json'); log.get('x').error('once')")) == 1


def test_a_logger_made_before_the_set_up_obeys_it_and_avoids_stdout() -> None:
    out, err = run("early = log.get('x'); early.warning('before'); setup(format='json'); early.info('after')")
    assert out == ""
    assert json.loads(err.splitlines()[-1])["event"] == "after"


def test_colours_only_on_a_terminal_and_never_against_no_color() -> None:
    def on_terminal(**environment: str) -> str:
        mine, theirs = pty.openpty()
        code = START + "setup(format='console'); log.get('x').error('broken')"
        env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"} | environment
        subprocess.run([sys.executable, "-c", code, ""], stderr=theirs, env=env, check=True, timeout=60)
        os.close(theirs)
        text = os.read(mine, 65536).decode()
        os.close(mine)
        return text

    assert "\x1b[" in on_terminal()
    assert "\x1b[" not in on_terminal(NO_COLOR="1")
    assert "\x1b[" not in on_terminal(TERM="dumb")
