"""Statements of SQL on a lake, in Spark's and Iceberg's syntax."""
