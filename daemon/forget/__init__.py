"""Forgetting: what a user chooses is removed from the archive, the indexes and everything made of it, and stays away.

`selection` resolves what was named, `preview` says what would go and what stays, `removal` takes it out in one synced
batch, `erasure` then writes the files anew in stages, each of which the next start can finish. OpenCode's own records
and the published pages are not touched: the first are read-only to us, the second are the user's.
"""
