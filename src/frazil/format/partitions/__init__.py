"""Partition specs and transforms."""
