"""A Spark session as Frazil uses it: its settings, its executors, a scratch folder, free names."""
