"""Front pages say what a person wrote down of each sample project, and nothing that misleads.

The facts stand in tests/rubric; `make rubric` lists what is missing. The model is scripted: see tools/rubric.py for what
that measures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages.markup import words
from tools import rubric


@pytest.mark.parametrize("project", rubric.projects(), ids=lambda project: project["path"].rpartition("/")[2])
def test_front_page_holds_the_facts_of_the_project(project, tmp_path):
    made = rubric.count(project, rubric.front_page(project, tmp_path))
    assert made.misleading == ()
    assert made.share >= rubric.LEAST, made.missing


SCRIPTED = [(project, script) for project in rubric.projects() if (script := rubric.answers(project)) is not None]


def test_three_projects_have_a_scripted_model_one_of_them_not_english():
    assert {Path(project["path"]).name for project, _ in SCRIPTED} >= {"boutique", "gauge", "lager"}


@pytest.mark.parametrize(("project", "script"), SCRIPTED, ids=[Path(one["path"]).name for one, _ in SCRIPTED])
def test_front_page_with_a_model_holds_almost_all_and_all_that_it_said(project, script, tmp_path):
    page = rubric.front_page(project, tmp_path, script)
    made = rubric.count(project, page)
    assert made.misleading == ()
    assert made.share >= rubric.LEAST_WITH_MODEL, made.missing
    assert "did not hold" not in page
    read = words(page)
    for answer in script["answers"]:
        for one in answer["statements"]:
            assert words(one["text"]) in read
            assert one.get("reason", "") in read
