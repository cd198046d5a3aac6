"""Deleted rows: position deletes, vectors and equality deletes as bitmaps and joins."""
