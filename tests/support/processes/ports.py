"""Ports for servers that must be told theirs before they start."""

from __future__ import annotations

import itertools
import os
import socket

_FIRST, _NUMBER = 20_000, 12_000
"""Beneath those that Linux gives to whoever asks for any: one of these is not taken before its server is up."""
_candidates = (_FIRST + (os.getpid() * 100 + number) % _NUMBER for number in itertools.count())


def free_port() -> int:
    """A port of this machine that nobody listens at; each is given once, and other workers begin elsewhere."""
    for port in itertools.islice(_candidates, _NUMBER):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"no port from {_FIRST} to {_FIRST + _NUMBER - 1} is free")
