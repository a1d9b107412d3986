"""Commands without a service end with their own exit code, whatever native code is still at work, and on a busy machine.

Faults are put in by a sitecustomize.py of the command's process: the libraries and their threads are real.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.stores.make_opencode import one_written_file

CHECKOUT = Path(__file__).resolve().parents[2]

BUSY = """
    # The model's and the index's own native code, again and again, in a thread that nobody waits for: as a question
    # whose time is over while the machine is busy.
    import contextlib, threading, time
    from daemon.app import engine
    from daemon.embed.builtin import WorkerEmbedder
    from daemon.errors import ModelUnavailable

    def work(model, texts):
        with contextlib.suppress(ModelUnavailable):  # its process was ended
            while True:
                model.embed([f"{texts} {time.monotonic()}"])

    def close(self, closed=engine.Engine.close):
        model = WorkerEmbedder(self.upkeep.worker)
        model.embed(["."])
        for number in range(4):
            threading.Thread(target=work, args=(model, number), daemon=True).start()
        time.sleep(0.05)
        closed(self)

    engine.Engine.close = close
"""

SLOW_LOAD = """
    # Loading the model takes longer than a question may.
    import time
    from daemon.embed.builtin import Builtin
    from daemon.recall import search
    search.RecallEngine.__init__.__kwdefaults__["budget_s"] = 4.0

    def load(self, loaded=Builtin._load):
        time.sleep(5.0)
        loaded(self)

    Builtin._load = load
"""

SLOW_MODEL = """
    # The model is there, and slow to embed the question.
    import time
    from daemon.embed.builtin import Builtin
    from daemon.recall import search
    search.RecallEngine.__init__.__kwdefaults__["budget_s"] = 3.0

    def embed_query(self, text, embedded=Builtin.embed_query):
        until = time.monotonic() + 5.0
        found = embedded(self, text)
        while time.monotonic() < until:
            time.sleep(0.1)  # leaves the processor to others
            embedded(self, text)
        return found

    Builtin.embed_query = embed_query
"""

COMMANDS = {
    "recall": (["recall", "kingfisher"], 0),
    "recall --match semantic": (["recall", "kingfisher", "--match", "semantic"], 0),
    "recall --match smart": (["recall", "absent", "--match", "smart"], 4),
    "search": (["search", "kingfisher"], 0),
    "recall-sessions": (["recall-sessions"], 0),
    "files": (["files", "/work/shop"], 0),
    "history": (["history", "/work/unknown"], 4),
    "show": (["show", "/work/shop/a.txt"], 0),
    "export": (["export", "--format", "jsonl"], 0),
    "status": (["status"], 0),
    "index": (["index"], 0),
    "run --once": (["run", "--once"], 0),
    ":path": (["/work/shop"], 0),
    "an error": (["files", "/work/shop", "--at", "never"], 64),
}


class Place:
    """An archive, and commands over it in processes of their own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        one_written_file(root / "opencode", "shop", "kingfisher")

    def run(self, fault: str, *words: str, closed: str = "") -> subprocess.CompletedProcess[str]:
        """`closed`: what a shell closes before the command, such as `2>&-`."""
        injected = self.root / f"fault-{abs(hash((fault, words)))}"
        injected.mkdir(exist_ok=True)
        (injected / "sitecustomize.py").write_text(textwrap.dedent(fault))
        environment = {
            **os.environ, "PYTHONPATH": f"{injected}:{CHECKOUT}", "PYTHONFAULTHANDLER": "",
            "RECONSTITUTE_OPENCODE_DIR": str(self.root / "opencode"),
            "RECONSTITUTE_ARCHIVE_DIR": str(self.root / "archive"),
            "RECONSTITUTE_OUTPUT_DIR": str(self.root / "output"),
            "RECONSTITUTE_EMBEDDING_URL": "http://127.0.0.1:9", "RECONSTITUTE_CHAT_URL": "http://127.0.0.1:9",
        }  # fmt: skip
        command = ["bash", "-c", f'exec "$@" {closed}', "bash", sys.executable, "-m", "daemon.cli", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=240)
        assert "Error in sitecustomize" not in done.stderr, done.stderr
        return done


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    made = Place(tmp_path_factory.mktemp("exit"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(made.root))
        assert made.run("", "index", "--wait").returncode == 0
    return made


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_ends_with_its_code_while_native_threads_are_at_work(place: Place, name: str) -> None:
    words, code = COMMANDS[name]
    done = place.run(BUSY, *words)
    assert (done.returncode, "terminate called" in done.stderr) == (code, False), done.stderr


@pytest.mark.parametrize("closed", ["<&- >&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_needs_no_open_standard_streams(place: Place, closed: str) -> None:
    done = place.run("", "recall", "kingfisher", "--match", "semantic", closed=closed)
    assert done.returncode == 0, done.stderr
    assert ("kingfisher" in done.stdout) == (">&-" not in closed.split()), done.stderr


def test_a_model_that_loads_slowly_takes_none_of_the_questions_time(place: Place) -> None:
    done = place.run(SLOW_LOAD, "recall", "kingfisher", "--json")
    assert done.returncode == 0
    assert '"semantic": "used"' in done.stdout
    assert "answer was ended" not in done.stdout + done.stderr


def test_a_model_that_is_late_is_said_to_be_late(place: Place) -> None:
    done = place.run(SLOW_MODEL, "recall", "kingfisher")
    assert done.returncode == 0
    assert "has not embedded the question yet; ask again in a moment" in done.stderr
    assert "narrower filters" not in done.stderr


def test_many_commands_at_once_on_a_busy_machine_all_end_well(place: Place, tmp_path: Path) -> None:
    """Each with an archive of its own, as it is first made; more of them than a small machine has processors."""
    places = [Place(tmp_path / str(number)) for number in range(4)]
    with ThreadPoolExecutor(len(places)) as crowd:
        done = list(crowd.map(lambda one: one.run(SLOW_MODEL, "recall", "kingfisher"), places))
    assert [(one.returncode, one.stderr) for one in done if one.returncode] == []
