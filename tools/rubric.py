"""``make rubric``: how many of the facts that a person wrote down of each sample project stand on its front page.

The facts are in tests/rubric, written from the scenarios that the records were made with. A fact is present when one
block of the page (a paragraph, a list item with all beneath it, a row of a table) matches every one of its patterns;
the same goes for what would be misleading.

No model is asked. With ``--model`` a scripted one is, for the projects that have statements beside their facts
(``<project>.answers.toml``). A person wrote these, knowing the facts, so this does not measure how well a model reads:
it measures that what a model says reaches the page, and that its quotes pass the product's own check.
"""

from __future__ import annotations

import argparse
import re
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

CHECKOUT = Path(__file__).resolve().parent.parent
TESTS = CHECKOUT / "tests"
sys.path.insert(0, str(CHECKOUT))

from daemon.app import OneShot  # noqa: E402
from daemon.config import Chat, Config, Embedding, OpenCode, Output  # noqa: E402
from daemon.config.sections import ArchiveSection  # noqa: E402
from daemon.control import calls  # noqa: E402
from daemon.control.calls import silent  # noqa: E402
from daemon.model import Json, Target  # noqa: E402
from tests.support.servers.evident_model import scripted  # noqa: E402 - found by the line above
from tests.support.servers.fake_ollama import FakeOllama  # noqa: E402

SAMPLES = TESTS / "fixtures"
LEAST, LEAST_WITH_MODEL = 0.8, 0.95
MODEL = "scripted"
_ANSWERS = ".answers.toml"
_DEFINITION = ": "  # what is left of a footnote's label
_REFERENCE = re.compile(r"\[\^[^\]]+\]")
_BLOCKS = frozenset({"heading_open", "paragraph_open", "list_item_open", "tr_open"})


@dataclass(frozen=True, slots=True)
class Count:
    """The result for one project's front page: which facts are present, and which misleading statements."""

    path: str
    about: str
    present: tuple[str, ...]
    missing: tuple[str, ...]
    misleading: tuple[str, ...]

    @property
    def share(self) -> float:
        """Of the facts, those that are present; 0 to 1."""
        return len(self.present) / (len(self.present) + len(self.missing))


def projects() -> list[Json]:
    """What was written down of each project, by file name."""
    files = sorted((TESTS / "rubric").glob("*.toml"))
    return [tomllib.loads(file.read_text()) for file in files if not file.name.endswith(_ANSWERS)]


def answers(project: Json) -> Json | None:
    """What the scripted model says of a project; None where it has no script."""
    file = TESTS / "rubric" / f"{Path(project['path']).name}{_ANSWERS}"
    return tomllib.loads(file.read_text()) if file.exists() else None


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """(heading, text as it is read) of each block, without footnotes and HTML."""
    heading, pieces, outermost = "", list[str](), ""
    for token in MarkdownIt("commonmark").enable("table").parse(page):
        if not outermost and token.type in _BLOCKS:
            outermost, pieces = token.type.replace("_open", "_close"), []
            level = token.level
        if token.type == "inline":
            pieces.append("".join(child.content or " " for child in token.children or ()))
        if token.type == outermost and token.level == level:
            text = _REFERENCE.sub("", " ".join(pieces))
            if outermost == "heading_close":
                heading = text
            elif not text.startswith(_DEFINITION):
                yield heading, text
            outermost = ""


def count(project: Json, page: str) -> Count:
    """Which of a project's facts stand on its front page."""
    page_blocks = list(blocks(page))
    facts = [(fact["text"], _stands(fact, page_blocks)) for fact in project["facts"]]
    wrong = tuple(statement["text"] for statement in project.get("misleading", ()) if _stands(statement, page_blocks))
    present = tuple(text for text, is_there in facts if is_there)
    return Count(project["path"], project["about"], present, tuple(t for t, is_there in facts if not is_there), wrong)


def _stands(fact: Json, page_blocks: list[tuple[str, str]]) -> bool:
    inside = [text for heading, text in page_blocks if _has(fact.get("section", ""), heading)]
    if "absent" in fact:
        return not any(_has(pattern, text) for pattern in fact["absent"] for text in inside)
    matching = [text for text in inside if all(_has(pattern, text) for pattern in fact["blocks"])]
    return any("unless" not in fact or not _has(fact["unless"], text) for text in matching)


def _has(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE | re.MULTILINE) is not None


def front_page(project: Json, work: Path, script: Json | None = None) -> str:
    """The front page that is made of the project's records; `work` is an empty directory.

    The model is scripted by `script` (as in ``<project>.answers.toml``); without one none is asked.
    """
    data = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(SAMPLES / project["sample"]) as tar:
        tar.extractall(work, **data)
    [records] = [folder for folder in work.rglob("opencode") if (folder / "snapshot").is_dir()]
    # These pages need no embeddings: any will do.
    with FakeOllama({"embedder:latest": "ef" * 32, f"{MODEL}:latest": "cd" * 32}) as server:
        server.capabilities[f"{MODEL}:latest"] = ["completion", "tools"]
        server.chat_script = scripted(script) if script is not None else None
        config = Config(
            opencode=OpenCode(data_dir=str(records)),
            archive=ArchiveSection(dir=str(work / "archive")),
            output=Output(dir=str(work / "pages")),
            embedding=Embedding(provider="ollama", model="embedder", url=server.url),
            chat=Chat(provider="ollama" if script is not None else "none", model=MODEL, url=server.url),
        )
        with OneShot(config) as engine:
            engine.call(calls.Index())
            result = engine.run_target(Target(path=project["path"]), silent)
    return (Path(result["output"]) / "README.md").read_text()


def main() -> int:
    """Count all projects, or with ``--model`` those that have a script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=Path, help="keep the front pages in this directory")
    parser.add_argument("--model", action="store_true", help="let the scripted model answer")
    arguments = parser.parse_args()
    pages_dir, least = arguments.pages, LEAST_WITH_MODEL if arguments.model else LEAST
    print("| project | facts | present | misleading |\n|---|---|---|---|")
    is_good = True
    for project in projects():
        script = answers(project) if arguments.model else None
        if arguments.model and script is None:
            continue
        with tempfile.TemporaryDirectory() as work:
            page = front_page(project, Path(work), script)
        if pages_dir is not None:
            pages_dir.mkdir(parents=True, exist_ok=True)
            (pages_dir / f"{Path(project['path']).name}.md").write_text(page)
        result = count(project, page)
        total = len(result.present) + len(result.missing)
        print(
            f"| {project['path']} | {total} | {len(result.present)} ({result.share:.0%}) | {len(result.misleading)} |"
        )
        for kind, texts in (("missing", result.missing), ("misleading", result.misleading)):
            for text in texts:
                print(f"  {kind}: {text}", file=sys.stderr)
        is_good &= result.share >= least and not result.misleading
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
