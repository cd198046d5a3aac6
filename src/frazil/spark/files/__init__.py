"""Data files as readers and writers see them: layouts, projections, the file log, staged writes."""
