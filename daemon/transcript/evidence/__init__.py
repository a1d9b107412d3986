"""Reads a message's records as evidence for files, as FileEdits; a new kind of evidence goes here.

`edits` calls the reader of each record: `attachments` and the shell for tool calls, `steps` for snapshot
trees, `recorded_diffs` for the diffs of turns and sessions. Readers of tool calls share `call_results`; `unified_diffs`
reads diffs.
"""
