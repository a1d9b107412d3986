"""Characters of answers over MCP: the full form, with and without its second copy as data, and the compact form.

`python -m bench.mcp_answers` asks the sample archives of the tests; no service, no model server.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from daemon import config
from daemon.app import OneShot
from daemon.control import calls
from daemon.hints import for_tools, rendered
from daemon.mcp.compact import compact
from tests.conftest import unpack

QUESTIONS = ("how is the cart tested", "error", "edit", "why was it changed", "npm test")


def size(answer: dict[str, Any]) -> int:
    """Characters as an agent gets them, without the marks."""
    return len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


def main() -> None:
    """Print a line for each question, and the means of those with ten results."""
    full, short = [], []
    with tempfile.TemporaryDirectory() as root:
        sample = unpack("sqlite", Path(root) / "sample")
        tables = {
            "opencode": {"data_dir": str(sample.data_dir)},
            "archive": {"dir": f"{root}/archive"},
            "output": {"dir": f"{root}/pages"},
            "chat": {"provider": "none"},
        }
        with OneShot(msgspec.convert(tables, config.Config)) as engine:
            for question in QUESTIONS:
                answer = rendered(engine.recall(calls.Recall("recall", {"query": question}, root)), for_tools)
                sizes = size(answer), size(compact("recall", answer))
                print(f"{question!r}: {len(answer['results'])} results, full {sizes[0]}, compact {sizes[1]}")
                if len(answer["results"]) == 10:
                    full.append(sizes[0])
                    short.append(sizes[1])
    mean_full, mean_short = (round(sum(each) / max(1, len(each))) for each in (full, short))
    print(f"ten results, mean: full {mean_full}, with its copy as data {2 * mean_full}, compact {mean_short}")


if __name__ == "__main__":
    main()
