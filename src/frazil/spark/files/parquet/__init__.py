"""Files that Spark's own reader reads, through its file log."""
