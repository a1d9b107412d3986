"""What a client asks for: the calls, their arguments, names and words of a query, and where to look."""
