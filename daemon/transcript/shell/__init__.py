"""What a shell command did to files, as far as its text, its exit status and its output prove it.

heredocs (bodies taken out) · parse (the tree; the only import of tree-sitter) · words (what bash makes of a word) ·
text (echo, printf) · places (where words point) · simple (one command) · commands (rm, mv, cp ...) · environment (cd,
set, variables) · doubts (what others may change) · effects (lists, pipelines, conditions: what is certain) · names (the
fallback for commands that cannot be parsed). Nothing is run and nothing raises.
"""
