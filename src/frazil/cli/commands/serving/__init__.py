"""Commands that serve Spark to others."""
