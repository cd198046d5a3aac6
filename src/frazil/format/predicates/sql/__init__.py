"""Predicates and SQL: text read, text written, what Spark's SQL means."""
