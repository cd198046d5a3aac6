"""What a client may do, and which files it may name."""
