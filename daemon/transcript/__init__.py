"""A Message becomes what we keep of it: pure functions, one module each.

`replay` makes Ollama messages, `document` and `chunks` searchable text, `paths` the paths that a message is about, and
`evidence` what its records tell of files. `tool_calls` takes a tool call apart, `own_calls` recognises our own, and
`shell` reads the commands of shell calls. Nothing here touches a disk, a clock or the network, and nothing raises on
what a record may hold.
"""
