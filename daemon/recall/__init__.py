"""The act of searching: a question in, what exists in the archive out.

`asked` says what may be asked, `search` and `ask` put it to the indexes, `rank` and `fuse` decide the order, `snippet`
cuts the shown text, `browse`, `timeline` and `touched` walk through the records, `context` makes a `messages[]` array
for a model. An answer never hides that something was unavailable or left out: it says so in its warnings. Nothing here
writes, and nothing here asks a chat model. Nothing is imported here either, so that `asked` is light to load.
"""
