"""The Iceberg table format for PySpark in pure Python, no jar."""
