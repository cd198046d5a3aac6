"""The rows of a command beside what other commits did since it read the table."""
