"""Writes a tree's pages to disk: staged, then renamed into place, so that a crash leaves the old tree or the new one.

Changed pages are first written beside the trees, in ``.reconstitute.next/``, followed by an intent (the list of renames
and hashes), which is the commit point. Before it, the published tree is unchanged; after it, `recover` and every
`publish` complete the renames. Only pages that our manifest lists and that are still as we wrote them are replaced or
removed. What a person wrote in the Notes section of a page is kept (publish.edits). A page that they edited elsewhere
stays as it is, with the current one beside it. Files of others and nested trees are left and reported
(docs/reliability.md, P3). During the renames, readers may see a mixture of both trees.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator, Sequence
from pathlib import Path

from daemon.filesystem import refusal
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
    """Make ``<output_root>/<tree>/`` hold exactly `pages`, and files that are not ours; `tree` has no leading slash.

    If nothing changed, nothing is written. A page whose basis and file are unchanged is not rendered; the others are
    rendered and staged one by one. One publisher at a time may use an output directory; others wait.

    Raises:
        OutputRefused: the folder holds files but no manifest of ours, the manifest is damaged, the disk has less free
            space than twice the plan plus `spare_bytes`, or a write failed. Then the old tree is unchanged, or the next
            run or `recover` completes the new one.
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
    """Complete or discard publishing that a crash interrupted; returns how many trees were completed.

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
        raise refusal(error, text) from error
