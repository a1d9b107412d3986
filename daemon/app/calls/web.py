"""The call `web`, which only a running service answers: a command has nothing that would go on serving a page."""

from __future__ import annotations

from collections.abc import Callable

from daemon.control import calls, web_answers
from daemon.errors import DaemonUnreachable


class WebCalls:
    """A part of the engine."""

    open_page: Callable[[], web_answers.Web] | None = None
    """Serves the page and makes a link; set by the service."""

    def web(self, _request: calls.Web) -> web_answers.Web:
        """See calls.Web.

        Raises:
            DaemonUnreachable: this is no service.
            Retry: the page's port cannot be had.
        """
        if self.open_page is None:
            raise DaemonUnreachable(
                "the page: no service runs that could show it; start one with: reconstitute service install"
            )
        return self.open_page()
