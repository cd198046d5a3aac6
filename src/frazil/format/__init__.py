"""The specification as values and rules: no I/O, no Spark."""
