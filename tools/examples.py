"""``make examples``: what the sample looks like when a model answers, written to examples/pages.

The sample's records are read, indexed and reconstituted by the real thing; only the model is scripted
(examples/answers.toml): it cites what it was shown, and searches for what it was not. A second run must ask it nothing
and change no file, or this fails.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))

from daemon.app import OneShot  # noqa: E402
from daemon.config import Chat, Config, Embedding, OpenCode, Output  # noqa: E402
from daemon.config.sections import ArchiveSection  # noqa: E402
from daemon.control import calls  # noqa: E402
from daemon.control.calls import silent  # noqa: E402
from daemon.model import Json, Target  # noqa: E402
from daemon.publish import MANIFEST  # noqa: E402
from tests.support.servers.evident_model import EvidentModel, scripted  # noqa: E402 - found by the line above
from tests.support.servers.fake_ollama import FakeOllama  # noqa: E402

EXAMPLES = CHECKOUT / "examples"
MODEL = "scripted-example"


def scripts() -> dict[str, EvidentModel]:
    """The model's script for each target, by its path."""
    targets = tomllib.loads((EXAMPLES / "answers.toml").read_text())["targets"]
    return {target["path"]: scripted(target) for target in targets}


def write(output: Path, work: Path) -> list[Json]:
    """Write the pages beneath `output`, using `work` for everything else; the results of all runs, twice each."""
    data = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(EXAMPLES / "opencode-sample.tar.gz") as tar:
        tar.extractall(work, **data)
    # Embeddings are the server's too, so that the same pages come out on every processor.
    with FakeOllama({f"{MODEL}:latest": "cd" * 32, "embedder:latest": "ef" * 32}) as server:
        server.capabilities[f"{MODEL}:latest"] = ["completion", "tools"]
        config = Config(
            opencode=OpenCode(data_dir=str(work / "opencode")),
            archive=ArchiveSection(dir=str(work / "archive")),
            output=Output(dir=str(output)),
            embedding=Embedding(provider="ollama", model="embedder", url=server.url),
            chat=Chat(provider="ollama", model=MODEL, url=server.url),
        )
        results = []
        with OneShot(config) as engine:
            engine.call(calls.Index(wait=True))
            for _ in range(2):
                for path, script in scripts().items():
                    server.chat_script = script
                    results.append(engine.run_target(Target(path=path), silent))
    return results


def main() -> int:
    """Regenerate examples/pages."""
    pages = EXAMPLES / "pages"
    with tempfile.TemporaryDirectory() as work:
        new_pages = Path(work) / "pages"
        results = write(new_pages, Path(work))
        again = results[len(results) // 2 :]
        if any(result["model_calls"] or result["written"] for result in again):
            print("a second run asked the model or wrote pages:", again, file=sys.stderr)
            return 1
        shutil.rmtree(pages, ignore_errors=True)
        # The manifests hold digests of all our code: they would change with every line of it.
        shutil.copytree(new_pages, pages, ignore=shutil.ignore_patterns(MANIFEST))
    for result in results[: len(results) // 2]:
        print(f"{result['target']}: {result['pages']} pages, {result['model_calls']} model calls")
    print(f"Read {pages / 'README.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
