"""Errors of statements: where in a text they are, and Spark's own where the mistake is Spark's."""
