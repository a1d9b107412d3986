"""The MCP server: recall, and the files it proves, for agents, over stdin and stdout.

`tools` says what an agent may call and with which JSON schema. `server` speaks the protocol with the official SDK, the
only import of `mcp`, and gets each answer from the running daemon, or from an engine opened for that one call.
"""
