"""What clients may ask of Reconstitute: HTTP over a Unix socket, or the same calls in this process."""
