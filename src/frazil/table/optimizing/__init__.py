"""What upkeep a table needs, told from its metadata."""
