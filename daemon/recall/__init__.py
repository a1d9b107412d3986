"""Searching and browsing what is archived.

A request is read by `query` (what is wanted, and where), its candidates are gathered and put in order by `ranking`, and
`answer` makes what the client gets. `search` is the one engine for clients and for callers in this process; `browse`,
`timeline` and `touched` walk through the records without ranking. An answer says what was unavailable or left out.
Nothing here writes or asks a chat model. Nothing is imported here, so that `query` is light to load.
"""
