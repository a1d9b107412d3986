"""Whether memory is freed and goes back to the system, in a process of its own where a setting is for the whole process."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import weakref

from daemon.heap import collect

PROGRAM = """
    from pathlib import Path
    from daemon.heap import return_large_blocks

    def resident_kb():
        return next(int(line.split()[1]) for line in Path("/proc/self/status").open() if line.startswith("RssAnon"))

    return_large_blocks()
    bytearray(8_000_000)  # by default, what is smaller than a freed block is kept from then on
    before = resident_kb()
    blocks, kept = [], []
    for _ in range(50):
        blocks.append(bytearray(1_000_000))
        kept.append([bytes(1000) for _ in range(100)])  # lies behind the block, so the heap cannot shrink
    held = resident_kb() - before
    del blocks
    print(held, resident_kb() - before)
"""


def test_large_blocks_are_returned_when_they_are_freed() -> None:
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    held, left = map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert held > 50_000
    assert left < 10_000


class Cycle:
    """Refers to itself."""

    def __init__(self) -> None:
        self.own = self


def test_what_was_left_out_of_collections_is_freed_by_the_next_one() -> None:
    held = Cycle()
    gone = weakref.ref(held)
    try:
        collect()  # as another thread does meanwhile
        assert gc.get_freeze_count() > 0
        del held
        gc.collect()
        assert gone() is not None
        collect()
        assert gone() is None
    finally:
        gc.unfreeze()


TRIMMED = """
    import time
    from daemon.heap import Trimmer

    def resident_kb():
        return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))

    blocks = [bytearray(4000) for _ in range(10_000)]
    last = bytearray(4000)  # lies behind them, so the heap cannot shrink
    held, trimmer = resident_kb(), Trimmer()
    del blocks
    at_rest = trimmer.look()
    kept = resident_kb()
    while time.process_time() < 2:
        pass
    print(held, kept, resident_kb() if trimmer.look() and not at_rest else kept, int(trimmer.look()))
"""


def test_after_work_what_is_free_in_the_heaps_is_returned_once() -> None:
    command = [sys.executable, "-c", textwrap.dedent(TRIMMED)]
    held, kept, left, again = map(
        int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    )
    assert held - kept < 10_000
    assert kept - left > 25_000
    assert again == 0
