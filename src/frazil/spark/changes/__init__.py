"""Incremental reads and changelogs as DataFrames."""
