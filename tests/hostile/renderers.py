"""Four renderers that people read pages with, each with GitHub's extensions, raw HTML and literal links switched on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import cmarkgfm
from cmarkgfm.cmark import Options
from markdown_it import MarkdownIt

PACKAGES = (
    "marked@18.2.1", "remark-gfm@4.0.1", "remark-parse@11.0.0", "remark-rehype@11.1.2", "rehype-stringify@10.0.1",
    "unified@11.0.5",
)  # fmt: skip
RENDERERS = ("markdown-it", "cmark-gfm", "marked", "remark")
SCRIPT = Path(__file__).with_name("render.mjs")
_AS_GITHUB = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES
WITH_FOOTNOTES = frozenset({"cmark-gfm", "remark"})
"""The renderers that know footnotes; the others show their marks and definitions as text."""
_CACHE = os.environ.get("RECONSTITUTE_TEST_CACHE") or Path(__file__).resolve().parents[2] / ".cache"


def rendered(texts: Sequence[str]) -> dict[str, list[str]]:
    """The HTML of each text, by the renderer's name.

    Raises:
        RuntimeError: npm is missing, or could not install the packages.
    """
    plain = MarkdownIt("gfm-like", {"html": True})
    # As in VS Code: otherwise every name of a file, such as README.md, is taken for a domain.
    plain.linkify.set({"fuzzy_link": False})
    made = {
        "markdown-it": [str(plain.render(text)) for text in texts],
        "cmark-gfm": [cmarkgfm.github_flavored_markdown_to_html(text, _AS_GITHUB) for text in texts],
    }
    place = _installed()
    # Node resolves packages from where the script lies, so the script goes to the packages.
    script = shutil.copy(SCRIPT, place / SCRIPT.name)
    done = subprocess.run(
        ["node", script],
        input=json.dumps({"texts": list(texts)}),
        cwd=place,
        capture_output=True,
        text=True,
        check=True,
    )
    return made | json.loads(done.stdout)


def _installed() -> Path:
    """The folder that has the packages, installed on first use."""
    home = Path(_CACHE) / "renderers" / "_".join(PACKAGES).replace("@", "-")
    if not home.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError("npm is not installed, and two of the renderers come from its registry; install Node.js")
        home.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".", dir=home.parent))
        command = [npm, "install", "--prefix", str(staging), "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES]
        done = subprocess.run(command, cwd=staging, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            shutil.rmtree(staging)
            raise RuntimeError(f"npm could not install the renderers: {done.stderr[-1000:]}")
        if home.exists():
            shutil.rmtree(staging)
        else:
            staging.rename(home)
    return home
