"""What programs other than the shell's own run and may write, by their words or by their text."""
