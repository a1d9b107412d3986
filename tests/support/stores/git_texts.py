"""What git prints, made without git."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from daemon.records import blob_id


def git_diff(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    """`git diff` from one state of a work tree to another, without blank space at the end."""
    return "".join(
        _section(name, before.get(name), after.get(name))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ).rstrip()


def _section(name: str, old: bytes | None, new: bytes | None) -> str:
    ids = [("0" * 40 if content is None else blob_id(content))[:7] for content in (old, new)]
    mode = "new file mode 100644\n" if old is None else "deleted file mode 100644\n" if new is None else ""
    head = f"diff --git a/{name} b/{name}\n{mode}index {ids[0]}..{ids[1]}{'' if mode else ' 100644'}\n"
    sides = [re.findall(r"[^\n]*\n|[^\n]+", (content or b"").decode()) for content in (old, new)]
    names = ["/dev/null" if old is None else f"a/{name}", "/dev/null" if new is None else f"b/{name}"]
    lines = list(difflib.unified_diff(sides[0], sides[1], names[0], names[1], n=3))
    return head + "".join(x if x.endswith("\n") else x + "\n\\ No newline at end of file\n" for x in lines)
