"""A tree's pages go to disk: staged, then renamed into place, so that after a crash it is the old tree or the new one.

Changed pages are first written beside the trees, in ``.reconstitute.next/``, and then an intent (the list of renames
and hashes) with them: that is the commit point. Before it, nothing of the published tree has changed; after it,
`recover` (and every `publish`) completes what is left. Only pages that our manifest lists and that still are as we
wrote them are replaced or removed. What a person writes in the Notes place of a page is kept with it (publish.edits); a
page that they edited elsewhere stays as it is, with the current one beside it; a file we did not write and a nested
tree are left and reported (docs/reliability.md, P3). Readers may see a mixture for the moment the renames take.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator, Sequence
from pathlib import Path

from daemon.errors import OutputRefused
from daemon.filesystem.durable import Root, Step, no_step
from daemon.model import Page
from daemon.publish import journal
from daemon.publish.edits import MANIFEST
from daemon.publish.naming import names, safe_path
from daemon.publish.plan import Plan, Published

__all__ = ["MANIFEST", "Published", "names", "publish", "recover"]

SPARE_BYTES = 200_000_000


def publish(
    output_root: Path, tree: str, pages: Sequence[Page], *, spare_bytes: int = SPARE_BYTES, step: Step = no_step
) -> Published:
    """Make ``<output_root>/<tree>/`` hold exactly `pages` (and what is not ours); `tree` has no leading slash.

    Nothing is written when nothing changed, and the content of a page is not made where its basis and file are as
    before; else it is made one page at a time, and staged. One publisher at a time for each output directory: others
    wait.

    Raises:
        OutputRefused: the folder holds files but no manifest of ours, the manifest is damaged, the disk has less than
            twice the plan and `spare_bytes` left, or a write failed (then the old tree stands, or the next run or
            `recover` completes the new one).
    """
    with Root(output_root, step=step) as root, root.locked(), _reported(output_root):
        journal.recover(root)
        name = tree.strip("/")
        folder = safe_path(name) if name else ""
        with journal.staged(root, folder, spare_bytes) as staging:
            result = Plan(root, name, folder, pages, staging).result
        if staging.operations:
            step("publish.committed")
            journal.roll_forward(root, staging.path)
        return result


def recover(output_root: Path, *, step: Step = no_step) -> int:
    """Complete or discard what a crash left of earlier publishing; how many trees were completed.

    Raises:
        OutputRefused: the disk fails again, or an intent is damaged.
    """
    if not output_root.is_dir():
        return 0
    with Root(output_root, step=step) as root, root.locked(), _reported(output_root):
        return journal.recover(root)


@contextlib.contextmanager
def _reported(output_root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        fix = "free some space" if error.errno in {errno.ENOSPC, errno.EDQUOT} else "check the disk and the permissions"
        text = f"{output_root}: cannot be written: {error.strerror}; {fix}, the next run completes the tree"
        raise OutputRefused(text) from error
