"""Rows in the shape of a table: its columns, types and partition values."""
