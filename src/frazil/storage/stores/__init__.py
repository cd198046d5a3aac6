"""The stores that files lie in."""

from frazil.storage.stores import fsspec_import as fsspec_import
