"""A Message becomes what we keep of it: pure functions, one module each.

replay (Ollama messages) · document and chunks (searchable text) · paths · edits (file operations), with reads, shell
and patch_text as the readers of three kinds of text that edits needs, and shapes for how a record is taken apart.
Nothing here touches a disk, a clock or the network, and nothing raises on what a record may hold.
"""
