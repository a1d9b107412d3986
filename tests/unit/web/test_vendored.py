"""What others have written is what its README says, and nothing is fetched at run time."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ADDRESS = re.compile(r"(?:https?:)?//[\w.-]+\.\w+")


@pytest.mark.parametrize("folder", ["daemon/web/static", "tests/web/vendor"])
def test_each_file_has_the_hash_that_is_named(folder: str) -> None:
    named = dict(
        re.findall(r"^\| `([\w.-]+)` .*`([0-9a-f]{64})` \|$", (ROOT / folder / "README.md").read_text(), re.MULTILINE)
    )
    assert {"htmx.min.js", "axe.min.js"} & named.keys()
    for name, digest in named.items():
        assert hashlib.sha256((ROOT / folder / name).read_bytes()).hexdigest() == digest


def test_our_files_name_no_other_address() -> None:
    own = [*(ROOT / "daemon/web").rglob("*.html"), *(ROOT / "daemon/web/static").glob("page.*")]
    assert len(own) > 5
    for file in own:
        assert ADDRESS.search(file.read_text()) is None, file


def test_no_template_has_a_script_a_style_or_an_exception_from_escaping() -> None:
    """The policy would block the first two; the third would let records be markup."""
    forbidden = re.compile(
        r"<script(?! src=)|<style|\sstyle=|\son\w+=|hx-on|\|\s*safe|autoescape|javascript:", re.IGNORECASE
    )
    for file in (ROOT / "daemon/web/templates").rglob("*.html"):
        assert forbidden.search(file.read_text()) is None, file
