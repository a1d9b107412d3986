"""A running service forgets: it goes on with all else, and nothing comes back from OpenCode, live or after a kill."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.talk import PROJECT, Talk
from tests.support.processes.daemon_process import Daemon, until
from tests.support.stores.leveldb_files import texts
from tests.support.stores.make_opencode import JsonStore

GONE, STAYS, LATE = "quagga", "ibex", "tapir"


@pytest.fixture
def store(data_dir: Path) -> JsonStore:
    return JsonStore(data_dir)


def test_a_running_service_forgets(make_daemon: Callable[..., Daemon], store: JsonStore) -> None:
    gone = Talk(store, session_id="ses_gone")
    gone.ask(f"Feed the {GONE}.")
    gone.write(f"{PROJECT}/{GONE}.txt", f"{GONE}\n")
    stays = Talk(store, session_id="ses_stays")
    first = stays.ask(f"Feed the {STAYS}.")
    daemon = make_daemon(tables={"embedding": {"what": "none"}}, targets=[{"path": PROJECT, "refresh": "continuous"}])
    daemon.run()
    until(lambda: daemon.search(GONE) and daemon.search(STAYS))
    front = daemon.output_dir / PROJECT.strip("/") / "README.md"
    until(lambda: front.exists() and GONE in front.read_text())
    preview = json.loads(daemon.ask("forget", "ses_gone", "--dry-run", "--json").stdout)
    assert (preview["forgotten"], preview["messages"]) == (False, 2)
    assert preview["pages"]
    done = daemon.ask("forget", "ses_gone", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["forgotten"]
    assert not daemon.search(GONE)
    assert [result["messageID"] for result in daemon.search(STAYS)] == [first]
    until(lambda: GONE not in front.read_text())
    gone.ask(f"Feed the {GONE} again.")
    late = stays.ask(f"Feed the {LATE}.")
    until(lambda: [result["messageID"] for result in daemon.search(LATE)] == [late])
    daemon.kill()
    daemon.run()
    until(lambda: daemon.search(LATE))
    assert not daemon.search(GONE)
    assert daemon.status()["archive"]["messages"] == 2
    code, _ = daemon.terminate()
    assert code == 0
    assert GONE not in "".join(page.read_text() for page in daemon.output_dir.rglob("*.md"))
    assert not [where for where, raw in texts(daemon.archive_dir) if GONE.encode() in raw]
