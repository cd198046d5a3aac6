"""Streams and batches of changes: upserts and deletes by key, each batch applied once."""
