"""The Iceberg table format for PySpark in pure Python, no jar.

import frazil

lake = frazil.connect(spark, warehouse="/data/lake")
trips = lake.create_table("db.trips", "id bigint, ts timestamp", partition_by=["month(ts)"])
trips.append(df)
trips.scan(where="ts >= '2024-01-01'").to_df()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    __version__: str
    from frazil import changes, errors
    from frazil.errors import (
        AlreadyExistsError,
        CommitError,
        CommitFailedError,
        CommitStateUnknownError,
        ConfigurationError,
        ConflictError,
        EvolutionError,
        FrazilError,
        InvalidDataFileError,
        InvalidFormatError,
        InvalidManifestError,
        InvalidMetadataError,
        MissingFileError,
        NamespaceAlreadyExistsError,
        NamespaceNotEmptyError,
        NoSuchNamespaceError,
        NoSuchRefError,
        NoSuchSnapshotError,
        NoSuchTableError,
        NotFoundError,
        PredicateError,
        SchemaMismatchError,
        StorageError,
        TableAlreadyExistsError,
        UnsupportedError,
        UnsupportedVersionError,
        ValidationError,
    )
    from frazil.format import types
    from frazil.format.predicates import col
    from frazil.format.schema import Schema
    from frazil.format.types import NestedField
    from frazil.spark.lake import Lake, connect, open_table
    from frazil.spark.scan import Scan
    from frazil.spark.table import Table
    from frazil.table.updates.references import Retention

__all__ = [
    "AlreadyExistsError",
    "CommitError",
    "CommitFailedError",
    "CommitStateUnknownError",
    "ConfigurationError",
    "ConflictError",
    "EvolutionError",
    "FrazilError",
    "InvalidDataFileError",
    "InvalidFormatError",
    "InvalidManifestError",
    "InvalidMetadataError",
    "Lake",
    "MissingFileError",
    "NamespaceAlreadyExistsError",
    "NamespaceNotEmptyError",
    "NestedField",
    "NoSuchNamespaceError",
    "NoSuchRefError",
    "NoSuchSnapshotError",
    "NoSuchTableError",
    "NotFoundError",
    "PredicateError",
    "Retention",
    "Scan",
    "Schema",
    "SchemaMismatchError",
    "StorageError",
    "Table",
    "TableAlreadyExistsError",
    "UnsupportedError",
    "UnsupportedVersionError",
    "ValidationError",
    "__version__",
    "changes",
    "col",
    "connect",
    "errors",
    "open_table",
    "types",
]

_MODULES: Final = {
    "changes": "frazil.changes",
    "errors": "frazil.errors",
    "types": "frazil.format.types",
}
_HOMES: Final = {
    "Lake": "frazil.spark.lake",
    "NestedField": "frazil.format.types",
    "Retention": "frazil.table.updates.references",
    "Scan": "frazil.spark.scan",
    "Schema": "frazil.format.schema",
    "Table": "frazil.spark.table",
    "col": "frazil.format.predicates",
    "connect": "frazil.spark.lake",
    "open_table": "frazil.spark.lake",
}


def __getattr__(name: str) -> Any:
    # Spark's Python workers import this package for one function of it: all of it takes a second.
    if name in _MODULES:
        value = import_module(_MODULES[name])
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name == "__version__":
        value = import_module("importlib.metadata").version("frazil")
    elif name in __all__:
        value = getattr(import_module("frazil.errors"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
