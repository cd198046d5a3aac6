"""The SQL catalog: tables of SQLite and PostgreSQL that say where metadata is."""

from frazil.catalog.pointer.sql.catalog import SqlCatalog

__all__ = ["SqlCatalog"]
