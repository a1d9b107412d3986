"""Reconstitute: OpenCode's sessions as a lasting archive, and folders rebuilt from it."""
