"""The Glue catalog: tables of AWS Glue's Data Catalog that say where metadata is."""

from frazil.catalog.pointer.glue.catalog import GlueCatalog

__all__ = ["GlueCatalog"]
