"""What a model says is taken only as far as it stands on what the model was shown."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from daemon.archive import Archive
from daemon.errors import BadRequest
from daemon.reconstitute.agent.context.ledger import Ledger, find_quote
from daemon.reconstitute.agent.context.messages import message_block
from daemon.reconstitute.agent.tools.call import Paths, names
from daemon.reconstitute.agent.tools.citations import LONGEST, MOST_STATEMENTS, CheckedDraft, Checker, check
from tests.support.stores.records import message, session, text

SHOP = "/home/dev/shop"
FILES = (f"{SHOP}/src/cart.py", f"{SHOP}/src/shop/cart.py", f"{SHOP}/README.md", "/home/dev/other/cart.py")
SAID = {
    "msg_cart": "We keep the cart in Redis,\n    because “the database” was too slow… for the till.",
    "msg_till": "The till prints the receipt. It’s the old printer.\nnpm start\nDone.",
    "msg_hidden": "The secret recipe is kept in the cellar.",
    "msg_cjk": "购物车保存在缓存里，因为数据库太慢。",
}
SECRET = "ghp_" + "a1B2" * 9


@dataclass
class Run:
    archive: Archive
    shown: Ledger
    paths: Paths

    def check(self, draft: Any) -> CheckedDraft:
        return check(draft, self.shown, self.paths, self.archive)

    def one(self, **entry: Any) -> CheckedDraft:
        return self.check({"statements": [entry]})


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    with Archive(tmp_path_factory.mktemp("h") / "archive") as made:
        batch = made.batch()
        batch.session(session(id="ses_1", title="The shop"), "test", 2)
        for number, (mid, said) in enumerate(SAID.items()):
            one = message(text(said), id=mid, session_id="ses_1", created=1000 + number)
            batch.message(one, source="test", generation=2, hash_="", edits=())
        made.commit(batch)
        yield made


@pytest.fixture
def run(archive: Archive) -> Run:
    shown = Ledger()
    for mid in SAID:
        if mid != "msg_hidden":
            block = message_block(archive, mid, 4000)
            assert block is not None
            shown.add(block)
    return Run(archive, shown, Paths(SHOP, FILES))


def _ids(checked: CheckedDraft) -> list[list[str]]:
    return [[source.message_id for source in statement.sources] for statement in checked.statements]


# -- shapes ------------------------------------------------------------------------------------------------------------

IT = "Redis keeps the cart."
QUOTE = "We keep the cart in Redis"
SHAPES: dict[str, Any] = {
    "as asked": {"statements": [{"text": IT, "message_ids": ["msg_cart"], "quote": QUOTE}]},
    "one id": {"statements": [{"text": IT, "message_ids": "msg_cart", "quote": [QUOTE]}]},
    "ids in brackets": {"statements": [{"text": IT, "message_ids": "[msg_cart]", "quote": QUOTE}]},
    "an id in backticks": {"statements": [{"text": IT, "message_ids": ["`msg_cart`."], "quote": QUOTE}]},
    "the word before it": {"statements": [{"text": IT, "message_ids": ["message msg_cart"], "quote": QUOTE}]},
    "another name": {"statements": [{"statement": IT, "sources": ["msg_cart"], "quotes": [QUOTE]}]},
    "citations": {"statements": [{"text": IT, "citations": [{"message_id": "msg_cart", "quote": QUOTE}]}]},
    "one citation": {"statements": [{"text": IT, "citations": {"id": "msg_cart", "text": QUOTE}}]},
    "quotes that name": {"statements": [{"text": IT, "quotes": [{"message_id": "msg_cart", "quote": QUOTE}]}]},
    "no list": {"statements": {"text": IT, "message_ids": ["msg_cart"], "quote": QUOTE}},
    "json in a text": {"statements": f'[{{"text": "{IT}", "message_ids": ["msg_cart"], "quote": "{QUOTE}"}}]'},
    "flat": {"text": IT, "message_ids": ["msg_cart"], "quote": QUOTE},
    "a text": {"statements": IT, "message_ids": ["msg_cart"], "quote": QUOTE},
    "a list of texts": {"statements": [IT], "message_ids": ["msg_cart"], "quote": QUOTE},
    "an answer": {"answer": IT, "citations": ["msg_cart"], "quote": QUOTE},
    "ids in the text": {"statements": [{"text": "Redis keeps the cart [msg_cart].", "quote": QUOTE}]},
    "ids in the text too": {
        "statements": [{"text": "Redis keeps the cart (msg_cart).", "message_ids": ["msg_cart"], "quote": QUOTE}]
    },
    "twice": {"statements": [{"text": IT, "message_ids": "msg_cart, msg_cart", "quote": QUOTE}] * 2},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_is_understood_in_many_shapes(run: Run, shape: str):
    checked = run.check(SHAPES[shape])
    assert checked.problems == ()
    assert [statement.text for statement in checked.statements] == [IT]
    assert _ids(checked) == [["msg_cart"]]
    source = checked.statements[0].sources[0]
    assert (source.quote, source.session_id, source.title, source.created) == (QUOTE, "ses_1", "The shop", 1000)
    assert checked.dropped == 0


def test_no_statement_needs_a_note(run: Run):
    checked = run.check({"statements": [], "note": "Nothing was recorded about it."})
    assert (checked.statements, checked.problems) == ((), ())
    assert checked.note == "Nothing was recorded about it."
    assert "there is no statement" in run.check({"statements": []}).problems[0]
    assert "there is no statement" in run.check({}).problems[0]


def test_an_answer_is_made_of_what_passed(run: Run):
    checked = run.check({"statements": [GOOD, {"text": "No."}]})
    answer = checked.answer("purpose", "a model")
    assert (answer.question_id, answer.model, answer.dropped) == ("purpose", "a model", 1)
    assert answer.statements == checked.statements
    assert (answer.quotes, answer.sessions) == (1, 1)


# -- truth -------------------------------------------------------------------------------------------------------------

GOOD = {"text": IT, "message_ids": ["msg_cart"], "quote": QUOTE}
FINE = {"text": "Fine.", "message_ids": ["msg_till"], "quote": "The till prints the receipt"}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no text": ({"message_ids": ["msg_cart"]}, "it has no text"),
    "no id": ({"text": IT}, "it cites no message"),
    "no quote": ({"text": IT, "message_ids": ["msg_cart"]}, "it has no quote; add a few words copied exactly"),
    "an empty quote": (GOOD | {"quote": ""}, "it has no quote"),
    "a quote of blanks": (GOOD | {"quote": [" ", "\n"]}, "it has no quote"),
    "no quote in its citations": ({"text": IT, "citations": [{"id": "msg_cart"}]}, "it has no quote"),
    "no id, though the text has brackets": ({"text": "It is [not] an id."}, "it cites no message"),
    "an invented id": ({"text": IT, "message_ids": ["msg_crat"]}, "there is no message 'msg_crat'; ids that were shown: msg_cart"),
    "one of two is invented": ({"text": IT, "message_ids": ["msg_cart", "msg_no"]}, "there is no message 'msg_no'"),
    "a message that was not shown": ({"text": IT, "message_ids": ["msg_hidden"]}, "msg_hidden was not shown to you; call read_message"),
    "a session's id": ({"text": IT, "message_ids": ["ses_1"]}, "there is no message 'ses_1'"),
    "a number": ({"text": IT, "message_ids": [1]}, "there is no message '1'"),
    "too many": ({"text": IT, "message_ids": [f"msg_{n}" for n in range(50)]}, "at most 20"),
    "a quote of its own making": (GOOD | {"quote": "We keep the cart in Memcached"}, "does not stand in what you were shown of msg_cart"),
    "a quote from another message": (GOOD | {"quote": "The till prints the receipt"}, "stands in message msg_till; cite that one"),
    "a quote from a message not shown": (GOOD | {"quote": "The secret recipe is kept"}, "does not stand"),
    "a quote of one word": (GOOD | {"quote": "Redis"}, "too short"),
    "a quote in other case": (GOOD | {"quote": "we keep the Cart in redis"}, "does not stand"),
    "a quote under the wrong citation": (
        {"text": IT, "citations": [{"id": "msg_cart", "quote": "The till prints the receipt"}, {"id": "msg_till"}]},
        "stands in message msg_till",
    ),
    "a quote of our own label": (GOOD | {"quote": "[prompt] We keep the cart in Redis"}, "does not stand"),
    "a quote that is too long": (GOOD | {"quote": "cart " * 300}, "or less"),
    "one of two quotes": (GOOD | {"quote": [QUOTE, "and in Memcached too"]}, "does not stand"),
    "an unknown path": (GOOD | {"paths": ["src/crat.py"]}, "nothing is recorded of a file 'src/crat.py'; did you mean"),
    "a path outside": (GOOD | {"paths": ["/home/dev/other/cart.py"]}, f"is not beneath {SHOP}"),
    "a path that climbs": (GOOD | {"paths": ["../other/cart.py"]}, "is not beneath"),
    "no path at all": (GOOD | {"paths": ["~/.ssh/id_rsa"]}, "is no path"),
    "a path with a NUL": (GOOD | {"paths": ["src/cart.py\0"]}, "is no path"),
    "a long text": (GOOD | {"text": "x" * (LONGEST + 1)}, f"its text has {LONGEST + 1} characters"),
    "a long reason": (GOOD | {"reason": "x" * (LONGEST + 1)}, "its reason has"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_is_not_borne_out_fails_and_says_why(run: Run, case: str):
    entry, expected = BAD[case]
    checked = run.check({"statements": [FINE, entry]})
    assert [statement.text for statement in checked.statements] == ["Fine."]
    assert checked.dropped == 1
    assert any(expected in problem for problem in checked.problems), checked.problems
    assert all(problem.startswith("statement 2") for problem in checked.problems)
    assert all("\n" not in problem and len(problem) < 600 for problem in checked.problems)


def test_all_that_is_wrong_with_a_statement_is_said_at_once(run: Run):
    checked = run.one(text=IT, message_ids=["msg_no"], quote="We keep no cart", paths=["nope.py"])
    assert len(checked.problems) == 3
    assert checked.dropped == 1


def test_more_statements_than_anybody_reads_are_left_out_and_counted(run: Run):
    entries = [GOOD | {"text": f"Statement {n}."} for n in range(MOST_STATEMENTS + 5)]
    checked = run.check({"statements": entries})
    assert len(checked.statements) == MOST_STATEMENTS
    assert checked.dropped == 5
    assert "35 statements" in checked.problems[0]


def test_secrets_and_controls_of_a_model_are_not_kept(run: Run):
    checked = run.check(
        {"statements": [GOOD | {"text": f"The key is {SECRET}.\x1b[2J", "reason": SECRET}], "note": f"\u202e{SECRET}"}
    )
    kept = repr(checked.answer("q"))
    assert checked.statements
    assert SECRET not in kept
    assert "\\x1b" not in kept
    assert "\\u202e" not in kept


def test_a_quote_belongs_to_the_message_that_has_it(run: Run):
    checked = run.one(
        text=IT, message_ids=["msg_till", "msg_cart"], quote=[QUOTE, "The till prints the receipt", "the old printer"]
    )
    assert [(s.message_id, s.quote) for s in checked.statements[0].sources] == [
        ("msg_till", "The till prints the receipt"),
        ("msg_till", "the old printer"),
        ("msg_cart", QUOTE),
    ]
    assert checked.statements[0].when == 1001


def test_a_cited_message_without_a_quote_of_its_own_is_no_source(run: Run):
    assert _ids(run.one(text=IT, message_ids=["msg_till", "msg_cart"], quote=QUOTE)) == [["msg_cart"]]


def test_a_quote_may_stand_in_a_file_as_a_cited_message_left_it(run: Run):
    run.shown.note_file("msg_cart", f"{SHOP}/README.md", "# Shop\n\nIt sells mugs to passers-by.\n")
    checked = run.one(text="It sells mugs.", message_ids=["msg_cart"], quote="It sells mugs to passers-by.")
    (source,) = checked.statements[0].sources
    assert (source.message_id, source.path) == ("msg_cart", f"{SHOP}/README.md")
    assert source.quote == "It sells mugs to passers-by."
    elsewhere = run.one(text="It sells mugs.", message_ids=["msg_till"], quote="It sells mugs to passers-by.")
    assert "stands in message msg_cart; cite that one" in elsewhere.problems[0]


def test_what_the_message_itself_says_is_not_attributed_to_a_file(run: Run):
    run.shown.note_file("msg_cart", f"{SHOP}/README.md", QUOTE)
    assert run.one(**GOOD).statements[0].sources[0].path == ""


def test_paths_become_absolute_and_folders_count(run: Run):
    checked = run.one(**GOOD, paths=["src/cart.py", f"{SHOP}/README.md", "src/", "shop/src/cart.py:12", "."])
    assert checked.problems == ()
    assert checked.statements[0].paths == (f"{SHOP}/src/cart.py", f"{SHOP}/README.md", f"{SHOP}/src", SHOP)


def test_a_draft_of_anything_else_is_a_problem_and_no_error(run: Run):
    statements: Any
    for statements in (
        None,
        3,
        True,
        [None, 3, [[]], {"text": {"a": 1}}],
        "x",
        "[broken",
        {"a": {}},
        [{"message_ids": {"a": []}}],
    ):
        checked = run.check({"statements": statements, "note": "", "message_ids": [[["msg_cart"]]]})
        assert checked.problems
        assert not checked.statements


def test_statements_are_checked_against_one_ledger_only(run: Run, archive: Archive):
    made, problems = Checker(archive, Ledger(), run.paths).statement(GOOD)
    assert made is None
    assert "was not shown to you" in problems[0]


# -- quotes ------------------------------------------------------------------------------------------------------------

CART, TILL, CJK = SAID["msg_cart"], SAID["msg_till"], SAID["msg_cjk"]
QUOTES: list[tuple[str, str, str]] = [
    (QUOTE, CART, QUOTE),
    ("in Redis, because", CART, "in Redis, because"),
    ("  in\tRedis,\nbecause ", CART, "in Redis, because"),
    ('because "the database" was', CART, 'because "the database" was'),
    ("too slow... for the till", CART, "too slow... for the till"),
    ("too slow… for the till", CART, "too slow... for the till"),
    ("“We keep the cart”", CART, "We keep the cart"),
    ('"We keep the cart in Redis..."', CART, QUOTE),
    ("...the cart in Redis...", CART, "the cart in Redis"),
    ("We keep the cart ... was too slow", CART, "We keep the cart … was too slow"),
    ("We keep the cart [...] was too slow", CART, "We keep the cart … was too slow"),
    ("It's the old printer", TILL, "It's the old printer"),
    ("npm start", TILL, "npm start"),
    ("Done.", TILL, "Done."),
    ("购物车保存", CJK, "购物车保存"),
    ("因为数据库太慢", CJK, "因为数据库太慢"),
    # and what does not stand there
    ("", CART, ""),
    ("...", CART, ""),
    ('""', CART, ""),
    ("Redis", CART, ""),
    ("npm", TILL, ""),
    ("购物", CJK, ""),
    ("was too slow ... We keep the cart", CART, ""),
    ("We ... the ... slow", CART, ""),
    ("We keep the cart in Red", CART, ""),
    ("e keep the cart in Redis", CART, ""),
    ("We keep the cart in redis", CART, ""),
    ("We keep the carts in Redis", CART, ""),
    ("We keep the cart, in Redis", CART, ""),
    ("the receipt. npm start", TILL, ""),
]


@pytest.mark.parametrize(("quote", "said", "expected"), QUOTES)
def test_a_quote_stands_in_a_text_but_for_space_quotation_marks_and_gaps(quote: str, said: str, expected: str):
    assert find_quote(quote, [said]) == expected


def test_a_quote_stands_in_one_piece_and_not_across_two():
    assert find_quote("one two three four", ["one two", "three four"]) == ""
    assert find_quote("one two three four", ["three four", "one two three four five"]) == "one two three four"


# -- paths -------------------------------------------------------------------------------------------------------------

MEANT = {
    "src/cart.py": "/src/cart.py",
    "./src/cart.py": "/src/cart.py",
    f"{SHOP}/src/cart.py": "/src/cart.py",
    f"`{SHOP}//src/./cart.py`": "/src/cart.py",
    "shop/src/cart.py": "/src/cart.py",
    "src/cart.py:10-20": "/src/cart.py",
    "src/../README.md": "/README.md",
    "new/thing.py": "/new/thing.py",
    "": None,
    "/etc/passwd": None,
    "/home/dev/shopping/x": None,
    f"{SHOP}/../other/cart.py": None,
    "../../..": None,
    "~/shop": None,
    "a\0b": None,
    "x" * 5000: None,
}


@pytest.mark.parametrize(("written", "expected"), MEANT.items())
def test_a_path_is_one_beneath_the_target_or_refused(written: str, expected: str | None):
    paths = Paths(SHOP, FILES)
    if expected is None:
        with pytest.raises(BadRequest):
            paths.find(written)
    else:
        assert paths.find(written) == SHOP + expected


def test_a_target_that_is_a_file_is_found_by_its_name():
    paths = Paths(f"{SHOP}/src/cart.py", FILES)
    assert paths.known("cart.py") == f"{SHOP}/src/cart.py"
    with pytest.raises(BadRequest):
        paths.known("README.md")


def test_files_of_the_same_name_are_offered(run: Run):
    assert run.paths.similar(f"{SHOP}/cart.py") == ["src/cart.py", "src/shop/cart.py"]


def test_unknown_paths_of_a_draft_are_named_each_and_the_first_with_a_hint(run: Run):
    checked = run.one(**GOOD | {"paths": [f"src/crat{number}.py" for number in range(20)]})
    told = [problem for problem in checked.problems if "nothing is recorded" in problem]
    assert len(told) == 20
    assert ["did you mean" in problem for problem in told] == [True] * 3 + [False] * 17
    again = run.one(**GOOD | {"paths": ["src/crat.py"]})
    assert "did you mean" in again.problems[0]


def test_a_mistyped_path_is_corrected_quickly_among_ten_thousand_files():
    files = [f"{SHOP}/part{number % 97}/module_{number:05}.py" for number in range(10_000)]
    paths = Paths(SHOP, [*files, f"{SHOP}/src/checkout.py"])
    with pytest.raises(BadRequest, match=r"did you mean 'src/checkout\.py'"):
        paths.known("src/chekcout.py")
    assert paths.similar(f"{SHOP}/module_04242.py") == ["part71/module_04242.py"]
    begun = time.process_time()
    for number in range(40):
        paths.similar(f"{SHOP}/part{number}/modul_{number:05}.py")
    assert time.process_time() - begun < 10, "against all of them it takes over half a minute"


NAMED = [
    ("see /home/dev/shop/docs/plan.md.", "docs/plan.md", True),
    ("see docs/plan.md, please", "docs/plan.md", True),
    ("see ./docs/plan.md", "docs/plan.md", True),
    ("see other/docs/plan.md", "docs/plan.md", False),
    ("see docs/plan.md.bak", "docs/plan.md", False),
    ("see docs/plan.mdx", "docs/plan.md", False),
    ("we plan a lot", "plan", False),
    ("in `plan` there is", "plan", True),
    ("in plan/ there is", "plan", True),
    ("in my-plan/ there is", "plan", False),
    ("the Makefile.am", "Makefile", False),
    ("see shop/docs/plan.md", "docs/plan.md", True),
    ("nothing", "docs/plan.md", False),
]


@pytest.mark.parametrize(("said", "relative", "expected"), NAMED)
def test_a_path_is_named_as_a_whole(said: str, relative: str, expected: bool):
    assert names(said, f"{SHOP}/{relative}", (SHOP, "/home/dev")) is expected
