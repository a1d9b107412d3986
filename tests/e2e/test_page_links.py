"""Every link of a whole tree, written from what real OpenCode versions recorded, leads to something."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from daemon.app import OneShot
from daemon.config import Chat, Config, Embedding, OpenCode, Output
from daemon.config.sections import ArchiveSection
from daemon.control import calls
from daemon.control.calls import silent
from daemon.model import Target
from tests.conftest import SAMPLES, unpack
from tests.support.pages.page_links import broken, slugs

LEAST_SESSIONS = 10


@pytest.fixture(scope="module", params=SAMPLES)
def written(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    quick_embedder: dict[str, dict[str, Any]],
) -> Path:
    """An output directory with the trees of every folder of a sample that sessions ran in, and of all above them."""
    work = tmp_path_factory.mktemp("links")
    sample = unpack(request.param, work)
    config = Config(
        opencode=OpenCode(data_dir=str(sample.data_dir)),
        archive=ArchiveSection(dir=str(work / "archive")),
        output=Output(dir=str(work / "out")),
        embedding=Embedding(**quick_embedder["embedding"]),
        chat=Chat(provider="none"),
    )
    with OneShot(config) as engine:
        engine.call(calls.Index(wait=True))
        assert engine.archive.waiting("semantic") == 0
        ran = {session.directory for session in engine.archive.sessions()}
        for folder in sorted(ran):
            engine.run_target(Target(path=folder), silent)
    return work / "out"


def texts(written: Path) -> dict[str, str]:
    return {path.relative_to(written).as_posix(): path.read_text("utf-8") for path in written.rglob("*.md")}


def test_every_link_and_footnote_resolves(written: Path) -> None:
    files = frozenset(path.relative_to(written).as_posix() for path in written.rglob("*") if path.is_file())
    pages = texts(written)
    assert len(pages) > LEAST_SESSIONS
    assert broken(pages, files) == []


def test_every_message_has_one_place_on_its_page(written: Path) -> None:
    sessions = {path: text for path, text in texts(written).items() if "/sessions/" in path}
    assert len(sessions) >= LEAST_SESSIONS
    for path, text in sessions.items():
        places = re.findall(r"^###### (\S+)$", text, re.MULTILINE)
        assert places, path
        assert len(set(places)) == len(places), path
        assert set(places) <= slugs(text), path


@pytest.mark.parametrize(
    "text",
    [
        "[x](nowhere.md)", "[x](b.md#nowhere)", "[x](#nowhere)", "[x](../a.md)", "[x](https://example.org/)",
        "so[^1]\n", "so\n\n[^1]: 21 Nov, that\n", "so[^1]\n\n[^1]: one thing\n[^1]: another\n", "## A\n\n## A\n\n[x](#a-2)",
    ],
)  # fmt: skip
def test_a_broken_link_or_footnote_is_noticed(text: str) -> None:
    assert broken({"a.md": text, "b.md": "# B\n"})


def test_a_sound_page_has_nothing_wrong() -> None:
    page = "# A\n\n[x](c/b.md#b) [y](#a-1) \\[^2]\n\n## A\n\nso[^1]\n\n[^1]: 21 Nov 03:41, [b](c/b.md): “so”\n"
    assert broken({"a.md": page, "c/b.md": "# B\n\n[up](../a.md)\n"}) == []
