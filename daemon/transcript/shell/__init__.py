"""What a shell command did to files, as far as its text, its exit status and its output prove it.

A command passes `heredocs` (bodies taken out), `parse` (the tree; the only import of tree-sitter), `words` (what bash
makes of a word), `simple` (one command: `streams`, `builtins`, `file_commands`) and `effects` (lists, pipelines,
conditions: what is certain). `calls` reads a recorded call and `scripts` a program whose text is known. `names` is the
fallback for commands that cannot be parsed, and `known_programs` knows what other programs run and write. Nothing is
run and nothing raises.
"""
