"""Predicates on values: a row, a partition, a file's metrics, a manifest's summaries."""
