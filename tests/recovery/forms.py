"""The forms in which OpenCode writes contents down: what a read shows, diffs, the state of a call."""

from __future__ import annotations

import base64
import difflib
import json
import re
from typing import Any

from tests.recovery.store import Content, Json, Link

VERSIONS = {"json": "1.1.65", "sqlite15": "1.15.13", "sqlite": "1.18.33", "both": "1.1.65"}
BOM = "\ufeff"


def text_of(value: Any) -> str:
    """Content as a tool is given it."""
    if isinstance(value, str):
        return value
    if "surrogate" in value:
        return json.loads(f'"{value["surrogate"]}"')
    return str(value["repeat"]) * int(value["times"])


def content_of(value: Any) -> Content:
    """Content as it stands on the disk; half a surrogate pair becomes U+FFFD there."""
    if isinstance(value, dict) and "base64" in value:
        return base64.b64decode(value["base64"])
    if isinstance(value, dict) and "link" in value:
        return Link(value["link"])
    return re.sub("[\ud800-\udfff]", "\ufffd", _joined(text_of(value))).encode()


def _joined(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def counted(before: str, after: str) -> Json:
    """How many lines a diff adds and removes."""
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    same = sum(m.size for m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())
    return {"additions": len(new) - same, "deletions": len(old) - same}


def state(event: Json, given: Json, output: str, metadata: Json, begun: int, ended: int) -> Json:
    status = event.get("status", "completed")
    metadata = {**metadata, **event.get("metadata", {})}
    given = {} if event.get("no_input", False) else given
    if status == "pending":
        return {"status": status, "input": {}, "raw": ""}
    if status == "running":
        return {"status": status, "input": given, "time": {"start": begun}}
    if status == "error":
        time = {"start": begun, "end": ended}
        return {"status": status, "input": given, "error": event.get("error", "Error: failed"), "time": time}
    time = {"start": begun, "end": ended}
    if "compacted" in event:
        time["compacted"] = ended + 1000
        output = output if event["compacted"] == "kept" else "[Old tool result content cleared]"
    return {"status": status, "input": given, "output": output, "title": "It", "metadata": metadata, "time": time}


def shown(content: Content, *, bom: bool = False) -> str:
    if isinstance(content, Link):
        return content.target
    text = content.decode("utf-8", "replace")
    return text if bom else text.removeprefix(BOM)


def reading(path: str, text: str, version: str, offset: int, limit: int) -> tuple[str, Json]:
    """The read tool's output and 1.18.33's `display`."""
    is_new = version in (VERSIONS["sqlite15"], VERSIONS["sqlite"])
    lines = text.replace("\r\n", "\n").split("\n") if is_new else text.split("\n")
    lines = lines[:-1] if is_new and lines[-1] == "" else lines
    cut = "... (line truncated to 2000 chars)" if is_new else "..."
    seen = [ln if len(ln) <= 2000 else ln[:2000] + cut for ln in lines[offset - 1 : offset - 1 + limit]]
    last = offset - 1 + len(seen)
    is_end = last >= len(lines)
    if is_end:
        end = f"(End of file - total {len(lines)} lines)"
    elif is_new:
        end = f"(Showing lines {offset}-{last} of {len(lines)}. Use offset={last + 1} to continue.)"
    else:
        end = f"(File has more lines. Use 'offset' parameter to read beyond line {last})"
    body = "\n".join(f"{number}: {line}" for number, line in enumerate(seen, offset))
    head = f"<path>{path}</path>\n<type>file</type>\n<content>" + ("\n" if is_new else "")
    display: Json = {"type": "file", "path": path, "text": "\n".join(seen), "lineStart": offset, "lineEnd": last}
    display |= {"totalLines": len(lines), "truncated": not is_end}
    return f"{head}{body}\n\n{end}\n</content>", display


def trimmed(path: str, before: str, after: str) -> str:
    """A unified diff with four lines of context, without their common indentation and without CR: the edit tool's."""
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text.replace("\r\n", "\n")) for text in (before, after))
    if len(old) + len(new) > 4000:
        return ""
    lines = list(difflib.unified_diff(old, new, path, path, n=4))
    body = [line for line in lines[2:] if not line.startswith("@@") and line[1:].strip()]
    common = min((len(line[1:]) - len(line[1:].lstrip()) for line in body), default=0)
    kept = [
        line if line.startswith("@@") else line[:1] + line[1:].removesuffix("\n")[common:] + "\n" * line.endswith("\n")
        for line in lines[2:]
    ]
    ended = [line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in kept]
    return "".join([f"Index: {path}\n{'=' * 67}\n--- {path}\n+++ {path}\n", *ended])


def full_context(name: str, before: str, after: str) -> str:
    """A patch from which both sides can be rebuilt whole, as 1.18.33 writes it into summaries."""
    head = f"Index: {name}\n{'=' * 67}\n--- {name}\t\n+++ {name}\t\n"
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    body: list[str] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        signs = [(" ", old[a:b])] if tag == "equal" else [("-", old[a:b]), ("+", new[c:d])]
        for sign, lines in signs:
            body += [
                f"{sign}{ln}" if ln.endswith("\n") else f"{sign}{ln}\n\\ No newline at end of file\n" for ln in lines
            ]
    first = (f"{min(1, len(old))},{len(old)}", f"{min(1, len(new))},{len(new)}")
    return f"{head}@@ -{first[0]} +{first[1]} @@\n{''.join(body)}" if body else head


def quoted(name: str, folder: str, *, is_new: bool) -> str:
    """The path in a `patch` part: a name with a tab or a quote is git-quoted; 1.18.33 makes its backslashes slashes."""
    if not re.search(r'[\t"]', name):
        return f"{folder}/{name}"
    escaped = name.replace('"', '\\"').replace("\t", "\\t")
    return f'{folder}/"{escaped}"'.replace("\\", "/" if is_new else "\\")
