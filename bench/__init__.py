"""Figures beside plain Parquet, PyIceberg and the Java runtime, each pair measured in one run."""
