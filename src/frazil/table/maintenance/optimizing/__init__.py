"""What maintenance a table needs, told from its metadata."""
