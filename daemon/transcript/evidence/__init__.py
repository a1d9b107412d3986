"""What the records of a message tell of files, as FileEdits: a new kind of evidence for a file goes here.

`edits` calls the reader of each record: `attachments` and the shell for tool calls, `steps` for snapshot
trees, `recorded_diffs` for the diffs of turns and sessions. `call_results` is what readers of tool calls share;
`unified_diffs` reads diffs.
"""
