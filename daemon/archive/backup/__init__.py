"""Backups of the archive in a folder that any file backup can carry on: written, checked, restored.

A folder of backups has `segments/` with the rows of LevelDB (archive.store.segments) and `large/` with the records that
are files, each file named by the SHA-256 of its content. A manifest names what one backup consists of. It is written
last, so an interrupted backup leaves the earlier ones as they were, and backups share what did not change.
"""
