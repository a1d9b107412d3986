"""Pure functions over one message, one module each.

`replay` makes Ollama messages, `document` and `chunks` searchable text, `paths` the paths that a message is about, and
`evidence` the edits of files that it records. `tool_calls` reads the fields of a tool call, `own_calls` recognises our
own calls, and `shell` reads the commands of shell calls. Nothing here touches a disk, a clock or the network, and no
record makes it raise.
"""
