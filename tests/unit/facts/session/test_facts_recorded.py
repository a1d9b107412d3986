"""Facts of a folder out of a real archive: recorded calls, replayed files, the facts that come of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.files import Files
from daemon.reconstitute.facts import Facts, gather
from daemon.reconstitute.recover import recover
from daemon.reconstitute.scope import collect
from tests.support.stores.recorded_sessions import Recorded, call, recorded


@pytest.fixture
def house(tmp_path: Path):
    root = str(tmp_path / "kasse")
    with recorded(tmp_path / "state") as made:
        made.session("ses_1", root)
        made.say("ses_1", "user", "Baue eine kleine Kasse für den Flohmarkt in Python")
        yield made, root


def _write(path: str, content: str) -> dict:
    return call("write", output="Wrote file successfully.", filePath=path, content=content)


def _shell(command: str, exit_: int | None, output: str = "") -> dict:
    part = call("bash", output=output, command=command)
    part["state"]["metadata"] = {"exit": exit_, "output": output}
    return part


def _facts(made: Recorded, root: str) -> Facts:
    made.index()
    folder = Files(made.archive).folder(root)
    scope = collect(made.archive, made.recall(), root, folder.histories, None)
    return gather(root, scope.sessions, list(recover(folder.histories, root)), folder.programs, None)


def test_a_folder_says_what_it_is_where_it_stands_and_how_to_run_it(house):
    made, root = house
    files = {
        "README.md": "# Kasse\n\nRechnet Verkäufe ab.\n",
        "kasse.py": '"""Rechnet die Summe aus."""\n',
        "requirements.txt": "rich==13.7\n",
    }
    made.say("ses_1", "assistant", *(_write(f"{root}/{name}", content) for name, content in files.items()))
    made.say("ses_1", "assistant", _shell("pytest -q", 1, "1 failed"))
    made.say("ses_1", "assistant", _shell("pytest -q", 0, "1 passed"))
    found = _facts(made, root)
    assert [one.text for one in found.purpose] == [
        "Rechnet Verkäufe ab.",
        "Baue eine kleine Kasse für den Flohmarkt in Python",
    ]
    assert found.standing.restore == f"reconstitute restore {root} --to DIR"
    assert set(found.standing.missing) >= {f"{root}/README.md", f"{root}/kasse.py"}
    (test,) = found.commands
    assert (test.command, test.last, test.times, test.error) == ("pytest -q", "ok", 2, "1 failed")
    assert test.failed.time < test.succeeded.time
    assert [one.text for one in found.needs] == ["rich==13.7"]
    assert found.file_purposes[f"{root}/kasse.py"].text == "Rechnet die Summe aus."


def test_what_an_unknown_command_may_have_changed_is_one_line(house):
    made, root = house
    made.say("ses_1", "assistant", *(_write(f"{root}/{n}.py", f"{n}\n") for n in range(11)))
    made.say("ses_1", "assistant", _shell("make dist", 2))
    found = _facts(made, root).standing
    assert found.counts == {"stale": 11}
    assert [(one.text, one.command) for one in found.aftermath][:1] == [
        ("a command of unknown effect, failed with exit status 2", "make dist")
    ]
    assert len({one.citation.message_id for one in found.aftermath}) == len(found.aftermath) == 1


def test_a_readme_whose_message_was_taken_back_says_nothing(house):
    made, root = house
    code = {"kasse.py": b"x = 1\n", "wagen.py": b"y = 1\n"}
    made.snapshot("ses_1", root, {})
    made.snapshot("ses_1", root, code, *(_write(f"{root}/{name}", text.decode()) for name, text in code.items()))
    made.say("ses_1", "user", "Schreib eine Anleitung dazu bitte")
    readme = "# Kasse\n\nRechnet Verkäufe ab.\n"
    gone = made.snapshot("ses_1", root, code | {"README.md": readme.encode()}, _write(f"{root}/README.md", readme))
    assert _facts(made, root).purpose[0].origin == "README.md"
    made.delete(gone)
    assert [one.origin for one in _facts(made, root).purpose] == ["first prompt"]
