"""The page of an engine in this process, for archives that a test has written itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from daemon.control.calls import Service
from daemon.web import WebPage


@contextmanager
def serving(service: Service) -> Iterator[WebPage]:
    """A page on a free port, on a loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    page = WebPage(service, 0)
    try:
        asyncio.run_coroutine_threadsafe(page.start(), loop).result(60)
        yield page
        asyncio.run_coroutine_threadsafe(page.stop(), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
