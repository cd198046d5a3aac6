"""A Hive metastore as a catalog, shared with Java's HiveCatalog, PyIceberg and Hive itself."""

from frazil.catalog.pointer.hive.catalog import HiveCatalog as HiveCatalog

__all__ = ["HiveCatalog"]
