"""What a question is limited to, before anything is searched."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.errors import BadRequest
from daemon.recall.catalog import Row
from daemon.recall.query import Recall
from daemon.recall.query.directories import Place, absolute, is_within, latest_at
from daemon.recall.query.scope import Scope, resolve

NOW = 1_795_262_400_000  # 2026-11-21T12:00:00Z
DAY = 86_400_000
MIDNIGHT = NOW - DAY // 2


@pytest.fixture(autouse=True)
def _utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def _row(id_: str, directory: str, *, project: str = "prj", title: str = "", updated: int = 1, **more) -> Row:
    fields = {"parent_id": "", "created": 0, "archived": None, "deleted": None} | more
    return Row(id=id_, title=title or id_, directory=directory, project_id=project, updated=updated, **fields)


ROWS = {
    row.id: row
    for row in (
        _row("shop", "/work/shop", project="shop", title="Rate  limits of the Checkout", updated=5),
        _row("shop-old", "/work/shop", project="shop", updated=1, archived=7),
        _row("shop-web", "/work/shop/web", project="shop", updated=3),
        _row("shop-tree", "/trees/shop", project="shop", updated=2),
        _row("shopping", "/work/shopping", project="other", updated=9),
        _row("loose", "/tmp/a", project="global", updated=4),
        _row("loose-too", "/tmp/b", project="global", updated=4),
        _row("sub", "/work/shop/api", project="shop", updated=8, parent_id="shop"),
    )
}


def _scope(here: str = "", rows: Mapping[str, Row] = ROWS, **asked) -> Scope:
    return resolve(Recall(query="x", **asked), rows, here, NOW)


def _sessions(scope: Scope) -> set[str]:
    found: set[str] = set()
    for _, filters in scope.rounds:
        found |= (
            {filters.session_id} if filters.session_id else set(ROWS if filters.sessions is None else filters.sessions)
        )
    return found


SESSIONS = {
    "nothing asked": ({}, set(ROWS)),
    "one session": ({"sessionID": "loose"}, {"loose"}),
    "a session goes before the scope": ({"sessionID": "loose", "scope": "project"}, {"loose"}),
    "a project": ({"projectID": "other"}, {"shopping"}),
    "a directory and below": ({"directory": "/work/shop"}, {"shop", "shop-old", "shop-web", "sub"}),
    "a directory written loosely": ({"directory": " /work/./shop/web/.. "}, {"shop", "shop-old", "shop-web", "sub"}),
    "exactly a directory": ({"directory": "/work/shop/", "within": "exact"}, {"shop", "shop-old"}),
    "the project of a directory": (
        {"directory": "/work/shop/web", "within": "project"},
        {"shop", "shop-old", "shop-web", "shop-tree", "sub"},
    ),
    "no project: the directory": ({"directory": "/tmp/a", "within": "project"}, {"loose"}),
    "a title, whatever its case and spaces": ({"title": "limits OF the checkout"}, {"shop"}),
    "archived only": ({"archived": "only"}, {"shop-old"}),
    "not archived": ({"archived": "exclude", "projectID": "shop"}, {"shop", "shop-web", "shop-tree", "sub"}),
    "the newest two that fit": ({"sessions": 2, "projectID": "shop"}, {"sub", "shop"}),
    "a blank is nothing": ({"sessionID": " ", "title": "  ", "directory": " ", "projectID": ""}, set(ROWS)),
}


@pytest.mark.parametrize(("asked", "expected"), SESSIONS.values(), ids=SESSIONS)
def test_filters_on_sessions_become_a_set_of_sessions(asked, expected):
    scope = _scope(**asked)
    assert _sessions(scope) == expected
    assert scope.eligible == len(expected)
    assert scope.emptied_by == ""


EMPTY = {
    "directory": {"directory": "/work/none"},
    "title": {"directory": "/work/shop", "title": "no such"},
    "projectID": {"projectID": "none"},
    "archived": {"archived": "only", "sessionID": "loose"},
}


@pytest.mark.parametrize(("name", "asked"), EMPTY.items(), ids=EMPTY)
def test_the_filter_that_no_session_passes_is_named(name, asked):
    scope = _scope(**asked)
    assert scope.emptied_by == name
    assert name in scope.limited_by
    assert all(filters.sessions == frozenset() for _, filters in scope.rounds)


def test_a_directory_without_sessions_is_not_taken_for_its_parent():
    assert _scope(directory="/work/shop/none").emptied_by == "directory"


def test_the_scope_is_taken_from_where_the_caller_stands_and_said():
    for here in ("/work/shop", "/work/shop/web/deep/er", "/work/shop/"):
        scope = _scope(here, scope="project")
        assert _sessions(scope) == {"shop", "shop-old", "shop-web", "shop-tree", "sub"}, here
        assert "taken to be project shop" in scope.warnings[0]
    session = _scope("/work/shop/none", scope="session")
    assert _sessions(session) == {"shop"}
    assert "shop" in session.warnings[0]


def test_sessions_without_a_project_share_only_their_directory():
    assert _sessions(_scope("/tmp/a", scope="project")) == {"loose"}


def test_where_nobody_worked_a_scope_is_empty_and_said_to_be():
    scope = _scope("/elsewhere", scope="project")
    assert scope.emptied_by == "scope"
    assert "/elsewhere" in scope.warnings[0]


BAD = {
    "a scope from nowhere": ({"scope": "project"}, "`sessionID` instead"),
    "an unknown session": ({"sessionID": "ses_none"}, "ses_none"),
    "tools have no text": ({"toolName": "bash", "type": "text"}, "`toolName` 'bash'"),
    "tools do not reason": ({"toolName": "bash", "type": "reasoning"}, "`toolName` 'bash'"),
    "kinds that no tool has": ({"toolName": "bash", "kinds": ["answer", "title"]}, "`toolName` 'bash'"),
    "an unknown kind": ({"kinds": ["promt"]}, "'promt' is unknown"),
    "kinds outside the type": ({"kinds": ["prompt"], "type": "tool"}, "nothing in common"),
    "a relative path": ({"path": "src/app.py"}, "absolute"),
    "a home path": ({"directory": "~/shop"}, "absolute"),
    "bounds that contradict": ({"from_": "7d ago", "to": "30d ago"}, "for example"),
    "a while that begins too late": ({"last": "1d", "before": "2026-11-01"}, "no moment is between"),
    "the same moment": ({"after": NOW, "before": NOW}, "no moment is between"),
}


@pytest.mark.parametrize(("asked", "says"), BAD.values(), ids=BAD)
def test_what_makes_no_sense_is_refused_with_the_reason(asked, says):
    with pytest.raises(BadRequest, match=says):
        _scope(**asked)


TIMES = {
    "last": ({"last": "7d"}, NOW - 7 * DAY, None),
    "from and to": ({"from_": "30d ago", "to": "now"}, NOW - 30 * DAY, NOW + 1),
    "since and until": ({"since": "2d", "until": "1d"}, NOW - 2 * DAY, NOW - DAY + 1),
    "a date is its beginning": ({"after": "2026-11-20", "before": "2026-11-21"}, MIDNIGHT - DAY, MIDNIGHT),
    "to a date is to its end": ({"to": "2026-11-20"}, None, MIDNIGHT),
    "epoch milliseconds, as text too": ({"after": NOW - 5, "before": str(NOW)}, NOW - 5, NOW),
    "the narrowest of several": ({"last": "7d", "after": "2026-11-20", "since": "30d"}, MIDNIGHT - DAY, None),
    "blanks are nothing": ({"last": " ", "from_": "", "after": "", "before": None}, None, None),
}


@pytest.mark.parametrize(("asked", "after", "before"), TIMES.values(), ids=TIMES)
def test_times_become_bounds(asked, after, before):
    filters = _scope(**asked).rounds[0][1]
    assert (filters.after, filters.before) == (after, before)


@pytest.mark.parametrize("value", [0, -1, "0", "-5", -2.5])
def test_a_number_that_is_no_time_is_ignored_and_said(value):
    scope = _scope(after=value, before=value)
    assert (scope.rounds[0][1].after, scope.rounds[0][1].before) == (None, None)
    assert ["after" in scope.warnings[0], "before" in scope.warnings[1]] == [True, True]
    assert "time" not in scope.limited_by


KINDS = {
    "all": ({}, ()),
    "text": ({"type": "text"}, ("prompt", "answer", "title")),
    "narrower than a type": ({"type": "tool", "kinds": ["tool_input", "prompt"]}, ("tool_input",)),
    "kinds alone": ({"kinds": ["task", "title"]}, ("task", "title")),
}


@pytest.mark.parametrize(("asked", "kinds"), KINDS.values(), ids=KINDS)
def test_types_and_kinds_become_kinds(asked, kinds):
    assert _scope(**asked).rounds[0][1].kinds == kinds


def test_what_an_index_filters_by_is_handed_on():
    filters = _scope("/work/shop", role="user", toolName=" bash ", path="web/app.ts", deleted="only").rounds[0][1]
    assert (filters.role, filters.tools, filters.path, filters.deleted) == (
        "user",
        ("bash",),
        "/work/shop/web/app.ts",
        True,
    )
    assert _scope(deleted="exclude").rounds[0][1].deleted is False
    assert _scope().rounds[0][1].deleted is None


def test_a_fallback_widens_from_directory_to_project_to_everywhere():
    scope = _scope(directory="/work/shop/web", fallback=True)
    asked = [(name, filters.session_id or filters.sessions) for name, filters in scope.rounds]
    assert [name for name, _ in asked] == ["exact", "project", "global"]
    assert asked[0][1] == "shop-web"
    assert asked[1][1] == frozenset({"shop", "shop-old", "shop-tree", "sub"})
    assert asked[2][1] == frozenset({"shopping", "loose", "loose-too"})


def test_relevance_says_how_far_a_session_is():
    place = Place("/work/shop", ("shop",))
    said = {id_: place.relevance(ROWS[id_]) for id_ in ("shop", "shop-web", "shop-tree", "shopping")}
    assert said == {"shop": "exact", "shop-web": "exact", "shop-tree": "project", "shopping": "global"}
    assert place.relevance(None) == "unknown"


def test_a_sub_agents_session_is_at_hand_only_where_there_is_no_other():
    rows = {"main": _row("main", "/w", updated=1), "sub": _row("sub", "/w", updated=9, parent_id="main")}
    assert latest_at(rows, "/w").id == "main"
    assert latest_at({"sub": rows["sub"]}, "/w").id == "sub"


SEVERAL = {
    "a folder above several projects": ("/work", {"shop", "shop-old", "shop-web", "shop-tree", "shopping", "sub"}, 2),
    "a folder of one project": ("/work/shop", {"shop", "shop-old", "shop-web", "shop-tree", "sub"}, 0),
    "a folder beneath it": ("/work/shop/web/src", {"shop", "shop-old", "shop-web", "shop-tree", "sub"}, 0),
    "a folder above those outside projects": ("/tmp", {"loose", "loose-too"}, 0),
}


@pytest.mark.parametrize(("directory", "expected", "told"), SEVERAL.values(), ids=SEVERAL)
def test_within_project_takes_every_project_of_the_folder_and_says_so(directory, expected, told):
    scope = _scope(directory=directory, within="project")
    assert _sessions(scope) == expected
    assert [f"{told} projects" in warning for warning in scope.warnings] == [True] * bool(told)
    assert _scope(directory=directory).warnings == ()


def test_beside_projects_those_outside_any_count_by_their_folder():
    rows = {"a": _row("a", "/w/a", project="a"), "b": _row("b", "/w/b", project="global")}
    rows |= {"c": _row("c", "/w/c", project="c"), "far": _row("far", "/far", project="global")}
    rows["far-a"] = _row("far-a", "/far/a", project="a")
    assert _scope("", rows, directory="/w", within="project").rounds[0][1].sessions == frozenset(
        {"a", "b", "c", "far-a"}
    )


@given(st.lists(st.sampled_from(["a", "b", "..", ".", "", "a b"]), max_size=6))
def test_an_absolute_path_is_within_itself_and_the_root(names):
    path = absolute("/" + "/".join(names), "", "path")
    assert is_within(path, path)
    assert is_within(path, "/")
    assert "//" not in path
    assert ".." not in path.split("/")


def test_the_root_is_nobodys_project_but_its_own():
    rows = {"root": _row("root", "/", project="global"), "deep": _row("deep", "/srv/x", project="global")}
    assert _scope("/elsewhere", rows, scope="project").emptied_by == "scope"
    assert _scope("/", rows, scope="project").rounds[0][1].session_id == "root"
    assert _scope("/srv/x/y", rows, scope="project").rounds[0][1].session_id == "deep"
    assert _scope("", rows, directory="/").eligible == 2
