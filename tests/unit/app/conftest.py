"""A service that is built and does not run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import config
from daemon.app.daemon import Daemon


def configuration(root: Path, **more: Any) -> config.Config:
    tables = {
        "opencode": {"data_dir": str(root / "opencode")},
        "archive": {"dir": str(root / "archive")},
        "output": {"dir": str(root / "out")},
        "embedding": {"provider": "builtin"},
    }
    return msgspec.convert(tables | more, config.Config)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(configuration(tmp_path))
    yield made
    made._requests.close()
    made._engine.close()
