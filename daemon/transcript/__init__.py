"""A Message becomes what we keep of it: pure functions, one module each.

replay (Ollama messages) · document and chunks (searchable text) · paths · edits (what is told of files). What edits
draws from: calls and shapes take a tool call apart; patch_calls, patch_text, reads, shown_diffs, refusals, bash with
shell/, foreign read one kind of call each; steps, diffs with full_diff and roots, attachments what stands beside them.
Nothing here touches a disk, a clock or the network, and nothing raises on what a record may hold.
"""
