"""Searching and browsing what is archived.

`query` reads a request, `candidates` asks the indexes, `ranking` orders the results, and `answer` renders them for the
client. `search` is the one engine for clients and for callers in this process. `browse`, `timeline` and
`sessions_by_path` list records without ranking. An answer says what was unavailable or left out. Nothing here writes
or asks a chat model. This module imports nothing, so that `query` is light to load.
"""
