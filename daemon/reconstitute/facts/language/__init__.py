"""What sentences say, in the languages of `cues.toml`: their cue words, their ends, their subjects."""
