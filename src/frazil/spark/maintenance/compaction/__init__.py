"""Compaction: the same rows in better files, and deletes in the form that reads fastest."""
