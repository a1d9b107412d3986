"""A target is run: from sessions in an archive to pages on the disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from daemon.errors import BadRequest, IndexBroken, OutputRefused
from daemon.files import Files
from daemon.model import Json, Target
from daemon.moments import written
from daemon.opencode.discover import Sources
from daemon.reconstitute import Reconstitution
from daemon.reconstitute.output import tree_suffix
from tests.support.pages.markup import links, parse
from tests.support.pages.page_links import broken
from tests.support.stores.intake import intake_of
from tests.support.stores.recorded_sessions import MINUTE, START, FailingLexical, Recorded, call, recorded

SHOP = "/home/dev/shop"
QUESTIONS = ("Where does the colour live?",)


def write(path: str, content: str = "x = 1\n") -> Json:
    return call("write", output="Wrote file successfully.", filePath=path, content=content)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path / "state") as made:
        made.session("ses_a", SHOP, "Build the shop")
        made.say("ses_a", "user", "Please build a small shop service in Python.")
        made.say(
            "ses_a",
            "assistant",
            "We decided on SQLite instead of files because two processes write.",
            write(f"{SHOP}/src/app.py"),
        )
        made.say("ses_a", "assistant", call("bash", output="ok", metadata={"exit": 0}, command="python3 -m pytest -q"))
        made.say("ses_a", "assistant", "The refund route is not yet done. app.py holds the routes.")
        made.session("ses_b", "/home/dev", "Somewhere above")
        made.say("ses_b", "user", "Tell me about gardening in spring.")
        made.say("ses_b", "assistant", "Gardening is a fine tool for calm.")
        made.say("ses_b", "user", "Set the colour in the shop to green.")
        made.say("ses_b", "assistant", "The colour lives in theme.py.", write(f"{SHOP}/theme.py", "colour = 'green'\n"))
        made.index()
        yield made


@pytest.fixture
def run(house: Recorded, tmp_path: Path) -> Callable[..., Json]:
    def runs(path: str = SHOP, at: str = "", recall=None, **more) -> Json:
        made = Reconstitution(
            house.archive, recall or house.recall(), Files(house.archive), tmp_path / "out", pages=100
        )
        return made.run(Target(path, **more), at=at)

    return runs


def tree(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*.md"))}


def test_a_folder_becomes_a_tree_of_pages(run, tmp_path: Path):
    result = run()
    assert result["target"] == SHOP
    assert result["output"] == str(tmp_path / "out/home/dev/shop")
    assert result["files"] == {"proven": 2, "unproven": 0}
    assert (result["pages"], result["written"], result["kept"]) == (6, 6, 0)
    made = tree(Path(result["output"]))
    sessions = {path for path in made if path.startswith("sessions/")}
    assert set(made) - sessions == {"README.md", "src/README.md", "src/app.py.md", "theme.py.md"}
    assert len(sessions) == 2
    top = made["README.md"]
    for expected in ("Please build a small shop service", "not yet done", "python3 -m pytest -q"):
        assert expected in top.split("## What happened")[0]
    assert "colour lives in theme.py" in made["sessions/2026-11-18-somewhere-above.md"]
    assert "x = 1" in made["src/app.py.md"]


def test_of_a_session_elsewhere_only_the_turns_about_the_target_are_told(run):
    made = tree(Path(run()["output"]))
    assert not any("ardening" in page for page in made.values())
    assert "Somewhere above" in made["README.md"]


def test_footnotes_lead_to_messages_that_hold_their_quotes(run):
    made = tree(Path(run(questions=("What was decided on, SQLite or files?",))["output"]))
    notes = re.findall(r"^\[\^[\w-]+\]: .*\]\((\S+)#(msg-\d+)\)(?:: “(.*)”)?$", made["README.md"], re.MULTILINE)
    assert any("SQLite instead" in message_of(made, *note[:2]) for note in notes)
    assert all(note[2] in message_of(made, *note[:2]) for note in notes)
    assert broken(made) == []


def message_of(made: dict[str, str], page: str, anchor: str) -> str:
    """What a session's page shows of a message."""
    return made[page].partition(f"\n###### {anchor}\n")[2].partition("\n###### ")[0]


def test_a_second_run_writes_nothing(run):
    first = run()
    again = run()
    assert again["written"] == 0
    assert again["unchanged"] == first["pages"]


def test_a_model_that_went_away_rewrites_nothing(run, house: Recorded):
    run()
    again = run(recall=house.recall(semantic=None))
    assert again["written"] == 0


def test_answers_found_while_recall_was_not_whole_are_looked_for_again(run, house: Recorded):
    first = run(recall=house.recall(semantic=None), questions=QUESTIONS)
    assert any("meaning was not searched" in warning for warning in first["warnings"])
    assert run(questions=QUESTIONS)["warnings"] == []


def test_files_are_recovered_and_the_gap_said_when_no_index_answers(run, house: Recorded):
    result = run(recall=house.recall(semantic=None, lexical=FailingLexical(IndexBroken("torn"))), questions=QUESTIONS)
    assert result["files"]["proven"] == 2
    assert any("were not looked for" in warning for warning in result["warnings"])
    assert any("recall did not answer" in warning for warning in result["warnings"])


def test_new_evidence_changes_the_pages_it_concerns_and_no_others(run, house: Recorded):
    run()
    house.say("ses_a", "assistant", write(f"{SHOP}/src/app.py", "x = 2\n"))
    house.index()
    result = run()
    made = tree(Path(result["output"]))
    assert "x = 2" in made["src/app.py.md"]
    assert 0 < result["written"] < result["pages"]


def test_pages_do_not_depend_on_the_order_in_which_records_came_in(house: Recorded, run, tmp_path: Path):
    house.say("ses_a", "assistant", call("bash", command=f"mv {SHOP}/src/app.py {SHOP}/main.py", metadata={"exit": 0}))
    house.say(
        "ses_b", "assistant", call("edit", filePath=f"{SHOP}/main.py", oldString="x = 1", newString="x = 2\ny = 3")
    )
    house.say("ses_b", "assistant", call("bash", command=f"rm {SHOP}/theme.py", metadata={"exit": 0}))
    house.index()
    expected = tree(Path(run()["output"]))
    with recorded(tmp_path / "other") as other:
        house.copy_to(other, newest_first=True)
        other.index()
        made = Reconstitution(other.archive, other.recall(), Files(other.archive), tmp_path / "out2", pages=100)
        assert tree(Path(made.run(Target(SHOP))["output"])) == expected


def test_a_pages_lines_name_the_prompts_that_wrote_them(run, house: Recorded):
    house.say(
        "ses_b",
        "assistant",
        call("edit", filePath=f"{SHOP}/src/app.py", oldString="x = 1\n", newString="x = 1\ny = 2\n"),
    )
    house.index()
    page = tree(Path(run()["output"]))["src/app.py.md"]
    rows = page.split("## Which prompt wrote which lines")[1].split("## ")[0].strip().splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| 1", "| 2"]
    assert "Please build a small shop" in rows[0]
    assert "Set the colour in the shop" in rows[1]


def test_an_earlier_moment_grades_a_file_as_it_was_then(run, house: Recorded):
    before = house.clock
    house.say("ses_b", "assistant", call("bash", command=f"rm {SHOP}/theme.py", metadata={"exit": 0}))
    house.index()
    assert "It was deleted on" in tree(Path(run()["output"]))["theme.py.md"]
    then = tree(Path(run(at=str(before))["output"]))["theme.py.md"]
    assert "Known exactly" in then
    assert "Proven: every byte is known" in then
    assert f"--to DIR --at {written(before)}`" in then
    assert "deleted" not in then


def test_an_own_question_is_answered_on_the_page(run):
    top = (Path(run(questions=QUESTIONS)["output"]) / "README.md").read_text()
    section = top.split("### Where does the colour live?")[1].split("## ")[0]
    assert "theme.py" in section


def test_an_earlier_moment_knows_nothing_of_what_came_later(run):
    result = run(at=str(START + 5 * MINUTE + MINUTE // 2))
    made = tree(Path(result["output"]))
    assert "theme.py.md" not in made
    assert "Somewhere above" not in made["README.md"]
    assert "This is how it was at 2026-11-18 11:12." in made["README.md"]


def test_an_earlier_moment_has_a_tree_of_its_own_and_the_current_one_stays(run, house: Recorded):
    current = run()
    before, last = tree(Path(current["output"])), house.archive.target_get(SHOP, "last")
    moment = START + 5 * MINUTE + MINUTE // 2
    result = run(at=str(moment))
    assert result["output"] == current["output"] + tree_suffix(moment)
    assert result["pages"] < current["pages"]
    assert tree(Path(current["output"])) == before
    assert house.archive.target_get(SHOP, "last") == last
    assert run()["written"] == 0
    assert run(at=str(moment))["written"] == 0


def test_the_root_page_names_every_tree_that_is_there(run, tmp_path: Path):
    current = run()
    earlier = [run(at=str(START + minutes * MINUTE)) for minutes in (5, 6)]
    run(output=str(tmp_path / "elsewhere"))
    text = (tmp_path / "out/README.md").read_text()
    folders = [Path(one["output"]).relative_to(tmp_path / "out").as_posix() for one in (current, *earlier)]
    assert [folder for folder in folders if f"({quote(folder)}/README.md)" not in text] == []
    assert "Build the shop" in (tmp_path / "out/CHANGES.md").read_text()


def test_pages_never_go_where_records_are_not_even_through_a_link(house: Recorded, tmp_path: Path):
    records = tmp_path / "records"
    records.mkdir()
    (tmp_path / "link").symlink_to(records)
    made = Reconstitution(house.archive, house.recall(), Files(house.archive), tmp_path / "out", forbidden=[records])
    for output in (records, records / "new/deep", tmp_path / "link", tmp_path / "link/new", records / "../records/x"):
        with pytest.raises(OutputRefused, match="holds records"):
            made.run(Target(SHOP, output=str(output)))
    assert list(records.iterdir()) == []
    assert made.run(Target(SHOP, output=str(tmp_path / "records2")))["written"] == 6
    around = Reconstitution(
        house.archive,
        house.recall(),
        Files(house.archive),
        tmp_path / "top",
        forbidden=[tmp_path / "top/home/dev/shop/x"],
    )
    with pytest.raises(OutputRefused, match="holds records"):
        around.run(Target(SHOP))


def test_pages_left_to_another_tree_are_one_warning_that_says_how_many(run):
    run(f"{SHOP}/src")
    result = run()
    assert [w for w in result["warnings"] if "another target's tree" in w] == [
        "left to another target's tree in the same folder: 2 pages, such as src/README.md"
    ]
    assert result["pages"] == result["written"] + 2


def test_a_moment_before_everything_says_that_it_is_too_early(run):
    with pytest.raises(BadRequest, match="by that time"):
        run(at=str(START))


def test_a_single_file_is_a_target_too(run):
    result = run(f"{SHOP}/src/app.py")
    made = tree(Path(result["output"]))
    assert set(made) == {"README.md", "app.py.md", "sessions/2026-11-18-build-the-shop.md"}
    assert links(made["README.md"]).count("app.py.md") == 2


def test_a_path_nobody_recorded_is_refused_with_what_is_near(run):
    with pytest.raises(BadRequest, match="no session touched it or anything beneath it; near it: /home/dev/shop;"):
        run("/home/dev/shopp")


def test_a_moved_folder_is_named_first_among_what_is_near(run):
    with pytest.raises(BadRequest, match="near it: /home/dev/shop;"):
        run("/srv/elsewhere/shop")


def test_a_continuous_target_waits_for_its_first_session_with_a_page(run):
    result = run("/home/dev/new", refresh="continuous")
    assert result["pages"] == 1
    assert any("no session touched it" in warning for warning in result["warnings"])
    assert "no session touched it" in (Path(result["output"]) / "README.md").read_text()


@pytest.mark.parametrize("path", ["relative/path", "", "/", "//", "/a\0b"])
def test_a_path_that_is_no_target_is_refused(run, path: str):
    with pytest.raises(BadRequest):
        run(path)


def test_slashes_and_dots_in_a_target_do_not_make_another_one(run):
    assert run(f"{SHOP}/./src/..//")["target"] == SHOP


def test_another_output_directory_is_used_as_asked(run, tmp_path: Path):
    assert run(output=str(tmp_path / "else"))["output"] == str(tmp_path / "else/home/dev/shop")


def test_a_page_a_person_edited_is_kept_and_reported(run):
    result = run()
    page = Path(result["output"]) / "theme.py.md"
    page.write_text("mine")
    again = run()
    assert page.read_text() == "mine"
    assert again["kept"] == 1
    assert any("edited by hand" in warning for warning in again["warnings"])


def test_what_openCode_deleted_is_still_told_and_marked(run, house: Recorded):
    batch = house.archive.batch()
    batch.forget_session_source("ses_b", "test", house.clock)
    house.archive.commit(batch)
    top = (Path(run()["output"]) / "README.md").read_text()
    assert "deleted in OpenCode" in top


def test_the_run_is_remembered_with_its_evidence(run, house: Recorded):
    result = run()
    last = house.archive.target_get(SHOP, "last")
    assert last["result"] == result
    assert last["state"] == "done"
    assert len(last["evidence"]) == 64
    assert last["time"] > START


def test_a_mention_without_an_edit_brings_the_turn_in(run, house: Recorded):
    house.session("ses_c", "/somewhere/else", "Advice")
    house.say("ses_c", "user", f"We chose to keep {SHOP}/notes as it is rather than move it.")
    house.index()
    assert "rather than move it" in (Path(run()["output"]) / "README.md").read_text()


def test_a_hostile_file_name_gets_a_page_that_links_reach(run, house: Recorded):
    house.say(
        "ses_a", "assistant", write(f"{SHOP}/we ird]( name\n#1.md", "odd\n"), write(f"{SHOP}/.git/config", "odd\n")
    )
    house.index()
    root = Path(run()["output"])
    made = tree(root)
    assert broken(made) == []
    assert "we%20ird%5D%28%20name_%231.md.md" in links(made["README.md"])
    assert not (root / ".git").exists()


def test_progress_is_told_in_order(house: Recorded, tmp_path: Path):
    said: list[str] = []
    made = Reconstitution(house.archive, house.recall(), Files(house.archive), tmp_path / "out")
    made.run(Target(SHOP, questions=QUESTIONS), lambda step: said.append(step["phase"]))
    assert list(dict.fromkeys(said)) == ["collect", "recover", "quote", "facts", "write"]


def test_real_sessions_of_every_generation_become_trees_that_do_not_change(any_sample, tmp_path: Path):
    with recorded(tmp_path / "state") as made, closing(Sources(any_sample.data_dir, 64)) as sources:
        for source in sources.refresh():
            intake_of(made.archive, quiet_s=0, free_mb=0).scan(source, patient=False)
        made.index()
        truth = any_sample.truth
        target = f"{truth['work']}/todo-api"
        again = Reconstitution(made.archive, made.recall(), Files(made.archive), tmp_path / "out")
        result = again.run(Target(target))
        assert result["files"]["proven"] >= 5
        assert again.run(Target(target))["written"] == 0
        pages = tree(Path(result["output"]))
        app = any_sample.blob(truth["files"][f"{target}/app.py"]["sha256"]).decode()
        assert next(token.content for token in parse(pages["app.py.md"]) if token.type == "fence") == app
        assert "A tiny todo service." in pages["README.md"].split("## What happened")[0]


def test_files_only_in_snapshots_are_counted_and_touched_ones_come_first(run, house: Recorded):
    files = {f"pkg/m{number % 40}/f{number}.py": b"x\n" for number in range(2000)}
    house.snapshot("ses_a", SHOP, files | {"src/app.py": b"x = 1\n", "theme.py": b"colour = 'green'\n"})
    house.index()
    result = run()
    assert result["pages"] == 100
    assert result["files"] == {"proven": 2002, "unproven": 0}
    made = tree(Path(result["output"]))
    assert {"src/app.py.md", "theme.py.md"} <= set(made)
    table = made["README.md"].split("## Files")[1]
    rows = [line for line in table.splitlines() if line.startswith("| [")]
    assert [row.split("]")[0] for row in rows[:3]] == ["| [src/app.py", "| [theme.py", "| [pkg/m0/"]
    assert len(rows) == 42
    assert "Without a page of their own: 1947 files" in table
    assert "verified" in made["src/app.py.md"]
