"""Reconstitute: OpenCode's sessions as a lasting archive, and folders rebuilt from it."""

__version__ = "0.1.0"
"""Also of the package: the build reads it from here, so that no command has to look up its own metadata."""
