"""Deleted rows as delete files and deletion vectors."""
