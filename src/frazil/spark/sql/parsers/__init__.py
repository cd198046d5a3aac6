"""Parsers that tell where the names of tables stand in a query."""
