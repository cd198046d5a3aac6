"""Change data capture: tables of other databases are followed into Iceberg tables."""
