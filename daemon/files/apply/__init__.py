"""What OpenCode's edit and patch tools make of a text, by the rules of each of its versions."""
