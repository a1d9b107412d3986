"""A run that would only repeat the last one is not made; whatever a page depends on makes it again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon.files import Files
from daemon.model import Target
from daemon.reconstitute import Answerer, Reconstitution
from daemon.reconstitute.repeat import ShownPages
from tests.support.stores.recorded_sessions import Recorded, call, recorded

GROUND = {"pending": {}, "aliases": "", "settings": "s"}


class Shop:
    """A folder with two recorded files, its archive, and the directory that its pages go to."""

    def __init__(self, made: Recorded, tmp_path: Path) -> None:
        self.made, self.out = made, tmp_path / "out"
        self.folder = tmp_path / "home" / "shop"
        self.ground, self.who, self.pages, self.shown = GROUND, Answerer(), 100, ShownPages()
        made.session("ses_a", str(self.folder), "Build the shop")
        made.say("ses_a", "user", "Please build a small shop.")
        for name in ("app.py", "theme.py"):
            made.say("ses_a", "assistant", self.write(name, f"# {name}\n"))
        made.index()

    def write(self, name: str, content: str) -> dict[str, object]:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        state: dict[str, object] = call("write", output="Wrote file.", filePath=str(path), content=content)
        return state

    @property
    def target(self) -> Target:
        return Target(str(self.folder))

    def reconstitution(self) -> Reconstitution:
        recall, files = self.made.recall(), Files(self.made.archive)
        return Reconstitution(
            self.made.archive, recall, files, self.out, answerer=self.who, pages=self.pages, ground=self.ground,
            shown=self.shown,
        )  # fmt: skip

    def page(self, name: str) -> Path:
        return self.out / str(self.folder).strip("/") / name


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with recorded(tmp_path / "state") as made:
        shop = Shop(made, tmp_path)
        time.sleep(0.06)  # the files are older than the run, by more than a time stamp is wrong
        yield shop


def test_an_unchanged_run_is_answered_as_a_second_run_would(shop: Shop):
    shop.reconstitution().run(shop.target)
    second = shop.reconstitution().run(shop.target)
    assert shop.reconstitution().repeated(shop.target) == second
    assert second["written"] == 0


def test_the_last_runs_time_is_that_of_the_repetition(shop: Shop):
    shop.reconstitution().run(shop.target)
    first = shop.made.archive.target_get(str(shop.folder), "last")
    shop.reconstitution().repeated(shop.target)
    assert shop.made.archive.target_get(str(shop.folder), "last")["time"] > first["time"]


def test_an_earlier_moment_is_repeated_apart_from_the_current_state(shop: Shop):
    shop.reconstitution().run(shop.target)
    assert shop.reconstitution().repeated(shop.target, "2030-01-01") is None
    shop.reconstitution().run(shop.target, at="2030-01-01")
    assert shop.reconstitution().repeated(shop.target, "2030-01-01")["output"].endswith("Z")
    assert not shop.reconstitution().repeated(shop.target)["output"].endswith("Z")


def _say_elsewhere(shop: Shop) -> None:
    shop.made.session("ses_b", "/elsewhere", "Another")
    shop.made.say("ses_b", "user", "Something else.")
    shop.made.index()


def _rename(shop: Shop) -> None:
    shop.made.session("ses_a", str(shop.folder), "Build the better shop")


def _same_size(path: Path) -> None:
    path.write_text(path.read_text().upper())


def _same_size_and_time(path: Path) -> None:
    was = path.stat()
    other = path.with_suffix(".other")
    other.write_bytes(path.read_bytes()[::-1])
    os.utime(other, ns=(was.st_atime_ns, was.st_mtime_ns))
    other.rename(path)


def _all_but_the_change_time(path: Path) -> None:
    was = path.stat()
    _same_size(path)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


CHANGES: dict[str, Callable[[Shop], object]] = {
    "a message of another folder": _say_elsewhere,
    "a title": _rename,
    "a recorded file is other": lambda shop: _same_size(shop.folder / "app.py"),
    "a recorded file is replaced": lambda shop: _same_size_and_time(shop.folder / "app.py"),
    "a recorded file is written and its time set back": lambda shop: _all_but_the_change_time(shop.folder / "app.py"),
    "a recorded file is gone": lambda shop: (shop.folder / "app.py").unlink(),
    "a page is edited": lambda shop: _same_size(shop.page("app.py.md")),
    "a page is replaced": lambda shop: _same_size_and_time(shop.page("app.py.md")),
    "a page is gone": lambda shop: shop.page("README.md").unlink(),
    "the manifest is gone": lambda shop: shop.page(".reconstitute.json").unlink(),
    "settings": lambda shop: setattr(shop, "ground", GROUND | {"settings": "t"}),
    "the limit of pages": lambda shop: setattr(shop, "pages", 99),
    "who answers": lambda shop: setattr(shop, "who", Answerer(why="no model")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_pages_depend_on_makes_a_run(shop: Shop, change: Callable[[Shop], object]):
    shop.reconstitution().run(shop.target)
    change(shop)
    assert shop.reconstitution().repeated(shop.target) is None


def test_a_page_is_shown_again_as_it_was_if_nothing_has_changed(shop: Shop):
    first = shop.reconstitution().page(shop.target)
    assert "app.py" in first.text
    assert shop.reconstitution().page(shop.target) is first
    assert shop.reconstitution().page(shop.target, at="2030-01-01") is not first
    shop.shown.clear()
    assert shop.reconstitution().page(shop.target) is not first


@pytest.mark.parametrize("name", [name for name in CHANGES if " page " not in name and "manifest" not in name])
def test_what_a_shown_page_depends_on_makes_it_anew(shop: Shop, name: str):
    first = shop.reconstitution().page(shop.target)
    CHANGES[name](shop)
    assert shop.reconstitution().page(shop.target) is not first


def test_a_file_that_a_command_may_have_made_changes_the_page_when_it_appears(shop: Shop):
    made = shop.folder / "out.txt"
    shop.made.say("ses_a", "assistant", call("bash", output="", command=f"touch {made}"))
    shop.made.index()
    first = shop.reconstitution().page(shop.target)
    assert shop.reconstitution().page(shop.target) is first
    made.touch()
    assert shop.reconstitution().page(shop.target) is not first


def test_a_change_that_was_seen_once_stays_seen(shop: Shop):
    """As when the page could not be made anew."""
    first = shop.reconstitution().page(shop.target)
    _same_size(shop.folder / "app.py")
    reconstitution = shop.reconstitution()
    reconstitution._material = None  # type: ignore[assignment,method-assign]
    with pytest.raises(TypeError):
        reconstitution.page(shop.target)
    assert shop.reconstitution().page(shop.target) is not first


def test_a_page_that_was_being_made_while_all_were_forgotten_is_not_kept(shop: Shop):
    first = shop.reconstitution().page(shop.target, lambda _event: shop.shown.clear())
    assert shop.reconstitution().page(shop.target) is not first


def test_a_page_with_something_pending_is_not_kept(shop: Shop):
    shop.ground = GROUND | {"pending": {"words": 0}}
    first = shop.reconstitution().page(shop.target)
    shop.ground = GROUND
    assert shop.reconstitution().page(shop.target) is not first


@pytest.mark.parametrize("name", ["code_version", "fingerprint", "zone"])
def test_other_code_patterns_and_zones_make_a_run(shop: Shop, name: str, monkeypatch: pytest.MonkeyPatch):
    shop.reconstitution().run(shop.target)
    monkeypatch.setattr(f"daemon.reconstitute.repeat.{name}", lambda: "other")
    assert shop.reconstitution().repeated(shop.target) is None


def test_a_page_edited_while_the_run_ends_is_seen(shop: Shop, monkeypatch: pytest.MonkeyPatch):
    def edit(_seconds: float) -> None:
        _same_size(shop.page("app.py.md"))

    monkeypatch.setattr("daemon.reconstitute.repeat.time.sleep", edit)
    shop.reconstitution().run(shop.target)
    assert shop.reconstitution().repeated(shop.target) is None


def test_a_run_with_something_to_do_better_is_made_again(shop: Shop):
    shop.reconstitution().run(shop.target)
    _same_size(shop.page("app.py.md"))
    assert shop.reconstitution().run(shop.target)["edited"]
    assert shop.reconstitution().repeated(shop.target) is None


def test_a_run_on_a_ground_with_something_pending_is_made_again(shop: Shop):
    shop.ground = GROUND | {"pending": {"words": 0}}
    shop.reconstitution().run(shop.target)
    shop.ground = GROUND
    assert shop.reconstitution().repeated(shop.target) is None


def test_meaning_that_is_pending_matters_only_to_questions(shop: Shop):
    shop.ground = GROUND | {"pending": {"meaning": 0}}
    asking = Target(str(shop.folder), questions=("Why a shop?",))
    shop.reconstitution().run(asking)
    assert shop.reconstitution().repeated(asking) is None
    shop.reconstitution().run(shop.target)
    assert shop.reconstitution().repeated(shop.target) is not None


def test_a_missing_root_page_is_written_by_a_repetition(shop: Shop):
    shop.reconstitution().run(shop.target)
    (shop.out / "README.md").unlink()
    assert shop.reconstitution().repeated(shop.target) is not None
    assert (shop.out / "README.md").is_file()
