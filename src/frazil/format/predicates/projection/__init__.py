"""Predicates on columns as predicates on partition values."""
