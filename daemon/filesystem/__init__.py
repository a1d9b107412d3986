"""What touches the disk: our own files, written to last; those of others, opened with care; the room that is left."""
