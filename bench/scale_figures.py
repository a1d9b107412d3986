"""Figures as people read them: percentiles, tables, the machine they were taken on."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("reconstitute", "tantivy", "chromadb", "plyvel", "onnxruntime", "numpy")


def spread(times: list[float]) -> dict[str, Any]:
    """p50, p95 and worst of some milliseconds, by the nearest rank."""
    ordered = sorted(times)
    if not ordered:
        return {"n": 0}
    at = {"p50": 0.5, "p95": 0.95, "worst": 1.0}
    figures = {
        name: round(ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)], 1) for name, share in at.items()
    }
    return {"n": len(ordered), **figures}


def is_ready(status: dict[str, Any]) -> bool:
    """Whether everything can be asked by meaning; the index may be closed until somebody does."""
    return status["index"]["semantic"]["state"] in {"ready", "built; opened when it is needed"}


def short(kinds: dict[str, Any]) -> str:
    return "; ".join(f"{kind} {f['p50']:.0f}/{f['p95']:.0f}/{f['worst']:.0f}" for kind, f in kinds.items() if f["n"])


def table(figures: dict[str, Any]) -> str:
    """Modes and kinds of query, milliseconds."""
    lines = [f"  {'mode':9} {'kind of query':15} {'n':>4} {'p50':>8} {'p95':>8} {'worst':>8} {'processor':>10}  found"]
    for mode, kinds in figures["modes"].items():
        lines += [_row(mode, kind, f) for kind, f in kinds.items()]
    for kind, f in figures["commands"].items():
        lines.append(_row("command", kind, f))
    for kind, f in figures.get("embedding_ms", {}).items():
        lines.append(_row("embedding", kind, f))
    return "\n".join([*lines, f"  memory {figures['memory']} MB; load {figures['load']:.1f}"])


def _row(mode: str, kind: str, f: dict[str, Any]) -> str:
    hits = f"{f['found']}/{f['of']}" if "of" in f else ""
    hits += f" {f['errors']} errors" if "errors" in f else ""
    times = " ".join(f"{f[name]:8.1f}" for name in ("p50", "p95", "worst"))
    return f"  {mode:9} {kind:15} {f['n']:4} {times} {f.get('processor', 0):10.1f}  {hits}"


def facts(prepared: dict[str, Any]) -> str:
    totals = prepared["made"]
    text = f"{totals['messages']} messages, {totals['parts']} parts, {totals['sessions']} sessions, "
    text += f"{totals['record_bytes'] / 1e6:.0f} MB of records in {totals['database_bytes'] / 1e6:.0f} MB of database; "
    times = {"read": "read_s", "words": "words_s", "meaning": "meaning_s"}
    text += ", ".join(f"{name} {prepared[key]:.0f} s" for name, key in times.items() if key in prepared)
    text += " (archive was there)" if prepared["known_archive"] else ""
    return f"{text}; memory at most {prepared['memory_filling'].get('most')} MB; sizes {prepared['sizes']} MB"


def machine() -> dict[str, Any]:
    """Processor, memory, versions, date, and how busy it is."""
    cpu = "unknown"
    info = Path("/proc/cpuinfo")
    if info.exists():
        cpu = next(
            (line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line), cpu
        )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "processor": cpu,
        "cores": os.cpu_count(),
        "memory_gb": round(memory, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: installed for name in _PACKAGES if (installed := _version(name))},
        "date": time.strftime("%Y-%m-%d"),
        "load": round(os.getloadavg()[0], 1),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
