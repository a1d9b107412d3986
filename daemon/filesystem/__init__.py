"""Everything that touches files: what we write lasts, what others own is opened with care, and how much room is left."""
