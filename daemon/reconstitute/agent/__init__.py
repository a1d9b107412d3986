"""A model answers a question about a target from the records, a step at a time.

`tools` is all that it can do, `quoted` how recalled text reaches it (as data), `shown` the ledger of what did, and
`citations` what its statements are held against; the loop, its limits and its trajectory stand beside them. Nothing
here reads outside the archive or writes outside the target's own record.
"""
