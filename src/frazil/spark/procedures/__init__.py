"""Maintenance as SQL: ``CALL system.…`` with the names of Java's procedures."""
