"""Deleted rows become delete files and vectors."""
