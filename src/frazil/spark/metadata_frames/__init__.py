"""The metadata tables as Spark DataFrames, with the Java runtime's names, columns and types."""
