"""A service whose calls are methods that answer in plain JSON data, as a client of another language sees it."""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import Any, Self

from daemon.control.answers import to_json
from daemon.control.calls import BY_NAME, Call, silent


class PlainService:
    """``Plain(engine).files("/home/ada", lost=True)`` is the answer of calls.Files as JSON.

    A function among the values is the call's `progress`. Everything else is that of the service itself.
    """

    def __init__(self, service: Any) -> None:
        object.__setattr__(self, "_service", service)

    def __getattr__(self, name: str) -> Any:
        if name in BY_NAME:
            return partial(self._call, BY_NAME[name])
        return getattr(self._service, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._service, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._service, name)

    def _call(self, call: Call, *values: Any, progress: Any = silent, on_part: Any = silent, **named: Any) -> Any:
        progress = next(filter(callable, values), progress)
        request = call.request(*[value for value in values if not callable(value)], **named)
        return to_json(self._service.call(request, progress=progress, on_part=on_part))

    def __enter__(self) -> Self:
        self._service.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._service.__exit__(kind, error, where)
