"""Front pages without a model say what a person wrote down of each sample project, and nothing that misleads.

The facts stand in tests/rubric; `make rubric` lists what is missing.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tools")]

import rubric  # noqa: E402 - tools/rubric.py, found by the line above

LEAST = 0.8


@pytest.mark.parametrize("project", rubric.projects(), ids=lambda project: project["path"].rpartition("/")[2])
def test_front_page_holds_the_facts_of_the_project(project, tmp_path):
    made = rubric.count(project, rubric.front_page(project, tmp_path))
    assert made.misleading == ()
    assert made.share >= LEAST, made.missing
