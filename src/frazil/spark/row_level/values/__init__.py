"""Values and names in commands: what becomes of each column, by Spark's own analysis."""
