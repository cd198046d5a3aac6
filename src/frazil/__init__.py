"""The Iceberg table format for PySpark in pure Python, no jar.

import frazil

spark = frazil.local_session()
lake = frazil.connect(spark, warehouse="/data/lake")
trips = lake.create_table("db.trips", "id bigint, ts timestamp", partition_by=["month(ts)"])
trips.append(df)
trips.scan(where="ts >= '2024-01-01'").to_df()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from frazil.later import import_now

if TYPE_CHECKING:
    __version__: str
    from frazil import changes, errors
    from frazil.errors import (
        AccessDeniedError,
        AlreadyExistsError,
        CommitError,
        CommitFailedError,
        CommitNotSentError,
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
        NoSuchColumnError,
        NoSuchNamespaceError,
        NoSuchRefError,
        NoSuchSnapshotError,
        NoSuchTableError,
        NoSuchViewError,
        NotFoundError,
        PredicateError,
        SchemaMismatchError,
        SqlSyntaxError,
        StorageError,
        TableAlreadyExistsError,
        UnsupportedError,
        UnsupportedVersionError,
        ValidationError,
        ViewAlreadyExistsError,
    )
    from frazil.format import types
    from frazil.format.partitions.partitioning import PartitionSpec
    from frazil.format.predicates import col
    from frazil.format.schema import Schema
    from frazil.format.snapshots import Snapshot
    from frazil.format.sorting import SortOrder
    from frazil.format.types import NestedField
    from frazil.planning.scan_plan import ScanPlan
    from frazil.spark.aggregates import Aggregation
    from frazil.spark.changes.incremental import IncrementalScan
    from frazil.spark.lake import Lake, connect, open_table
    from frazil.spark.lake.views import View
    from frazil.spark.lake_transaction.transaction import LakeTransaction
    from frazil.spark.local.session import local_session
    from frazil.spark.maintenance.compaction.results import (
        CompactionResult,
        ConversionResult,
        ManifestsResult,
        PositionDeletesResult,
    )
    from frazil.spark.maintenance.optimizing.results import OptimizeResult
    from frazil.spark.maintenance.stats_results import PartitionStatsResult, TableStatsResult
    from frazil.spark.migration.add_files import AddFilesResult
    from frazil.spark.row_level.figures import ChangeResult
    from frazil.spark.row_level.merging.builder import MergeBuilder
    from frazil.spark.scan import Scan
    from frazil.spark.table import Table
    from frazil.spark.transaction.table import TableTransaction, TransactionTable
    from frazil.spark.upserts.once import Batch
    from frazil.spark.upserts.result import ApplyChangesResult
    from frazil.storage.caches import CacheStatistics
    from frazil.table.maintenance.check import CheckResult
    from frazil.table.maintenance.expire import ExpireResult
    from frazil.table.maintenance.optimizing.choices import OptimizingPlan
    from frazil.table.maintenance.orphans import OrphanFilesResult
    from frazil.table.maintenance.repair import RepairResult
    from frazil.table.maintenance.table_path import RewriteTablePathResult
    from frazil.table.updates.references import Retention
    from frazil.table.updates.schema import UpdateSchema
    from frazil.table.updates.spec import UpdateSpec

__all__ = [
    "AccessDeniedError",
    "AddFilesResult",
    "Aggregation",
    "AlreadyExistsError",
    "ApplyChangesResult",
    "Batch",
    "CacheStatistics",
    "ChangeResult",
    "CheckResult",
    "CommitError",
    "CommitFailedError",
    "CommitNotSentError",
    "CommitStateUnknownError",
    "CompactionResult",
    "ConfigurationError",
    "ConflictError",
    "ConversionResult",
    "EvolutionError",
    "ExpireResult",
    "FrazilError",
    "IncrementalScan",
    "InvalidDataFileError",
    "InvalidFormatError",
    "InvalidManifestError",
    "InvalidMetadataError",
    "Lake",
    "LakeTransaction",
    "ManifestsResult",
    "MergeBuilder",
    "MissingFileError",
    "NamespaceAlreadyExistsError",
    "NamespaceNotEmptyError",
    "NestedField",
    "NoSuchColumnError",
    "NoSuchNamespaceError",
    "NoSuchRefError",
    "NoSuchSnapshotError",
    "NoSuchTableError",
    "NoSuchViewError",
    "NotFoundError",
    "OptimizeResult",
    "OptimizingPlan",
    "OrphanFilesResult",
    "PartitionSpec",
    "PartitionStatsResult",
    "PositionDeletesResult",
    "PredicateError",
    "RepairResult",
    "Retention",
    "RewriteTablePathResult",
    "Scan",
    "ScanPlan",
    "Schema",
    "SchemaMismatchError",
    "Snapshot",
    "SortOrder",
    "SqlSyntaxError",
    "StorageError",
    "Table",
    "TableAlreadyExistsError",
    "TableStatsResult",
    "TableTransaction",
    "TransactionTable",
    "UnsupportedError",
    "UnsupportedVersionError",
    "UpdateSchema",
    "UpdateSpec",
    "ValidationError",
    "View",
    "ViewAlreadyExistsError",
    "__version__",
    "changes",
    "col",
    "connect",
    "errors",
    "local_session",
    "open_table",
    "types",
]

_MODULES: Final = {
    "changes": "frazil.changes",
    "errors": "frazil.errors",
    "types": "frazil.format.types",
}
_HOMES: Final = {
    "AddFilesResult": "frazil.spark.migration.add_files",
    "Aggregation": "frazil.spark.aggregates",
    "ApplyChangesResult": "frazil.spark.upserts.result",
    "Batch": "frazil.spark.upserts.once",
    "CacheStatistics": "frazil.storage.caches",
    "ChangeResult": "frazil.spark.row_level.figures",
    "CheckResult": "frazil.table.maintenance.check",
    "CompactionResult": "frazil.spark.maintenance.compaction.results",
    "ConversionResult": "frazil.spark.maintenance.compaction.results",
    "ExpireResult": "frazil.table.maintenance.expire",
    "IncrementalScan": "frazil.spark.changes.incremental",
    "Lake": "frazil.spark.lake",
    "LakeTransaction": "frazil.spark.lake_transaction.transaction",
    "ManifestsResult": "frazil.spark.maintenance.compaction.results",
    "MergeBuilder": "frazil.spark.row_level.merging.builder",
    "NestedField": "frazil.format.types",
    "OptimizeResult": "frazil.spark.maintenance.optimizing.results",
    "OptimizingPlan": "frazil.table.maintenance.optimizing.choices",
    "OrphanFilesResult": "frazil.table.maintenance.orphans",
    "PartitionSpec": "frazil.format.partitions.partitioning",
    "PartitionStatsResult": "frazil.spark.maintenance.stats_results",
    "PositionDeletesResult": "frazil.spark.maintenance.compaction.results",
    "RepairResult": "frazil.table.maintenance.repair",
    "Retention": "frazil.table.updates.references",
    "RewriteTablePathResult": "frazil.table.maintenance.table_path",
    "Scan": "frazil.spark.scan",
    "ScanPlan": "frazil.planning.scan_plan",
    "Schema": "frazil.format.schema",
    "Snapshot": "frazil.format.snapshots",
    "SortOrder": "frazil.format.sorting",
    "Table": "frazil.spark.table",
    "TableStatsResult": "frazil.spark.maintenance.stats_results",
    "TableTransaction": "frazil.spark.transaction.table",
    "TransactionTable": "frazil.spark.transaction.table",
    "UpdateSchema": "frazil.table.updates.schema",
    "UpdateSpec": "frazil.table.updates.spec",
    "View": "frazil.spark.lake.views",
    "col": "frazil.format.predicates",
    "connect": "frazil.spark.lake",
    "load_ipython_extension": "frazil.spark.attached.notebook",
    "local_session": "frazil.spark.local.session",
    "open_table": "frazil.spark.lake",
}


def __getattr__(name: str) -> Any:
    # Spark's Python workers import this package for one function of it: all of it takes a second.
    if name in _MODULES:
        value = import_now(_MODULES[name])
    elif name in _HOMES:
        value = getattr(import_now(_HOMES[name]), name)
    elif name == "__version__":
        value = import_now("frazil.version").FRAZIL_VERSION
    elif name in __all__:
        value = getattr(import_now("frazil.errors"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
