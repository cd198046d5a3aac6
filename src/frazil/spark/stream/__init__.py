"""Streaming reads of a table through Spark's own file source."""
