"""What a table of PostgreSQL is now, what it was, and how one became the other."""
