"""The same steps through the core API of the Java runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.context import CATALOG, Context


def java_table(context: Context, name: str) -> Any:
    """A table of the lake, as the Java runtime loads it."""
    jvm: Any = context.spark.sparkContext._jvm
    load = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
    return load(context.spark._jsparkSession, f"{CATALOG}.{name}")


def java_plan(
    context: Context, name: str, *, between: tuple[str, int, int] | None = None
) -> Callable[[], object]:
    """Plan a scan of all files, or of those that may have values of a column from one to another.

    The driver does all of it, on threads, and holds no file that was counted.
    """
    table = java_table(context, name)
    jvm: Any = context.spark.sparkContext._jvm
    count = jvm.org.apache.iceberg.relocated.com.google.common.collect.Iterables.size
    scan = table.newScan()
    if between is not None:
        (column, low, high), of = between, jvm.org.apache.iceberg.expressions.Expressions
        ends = of.greaterThanOrEqual(column, low), of.lessThanOrEqual(column, high)
        scan = scan.filter(getattr(of, "and")(*ends))
    return lambda: count(scan.planFiles())


def is_out_of_memory(error: Exception) -> bool:
    """Whether a step of the Java runtime's ended because its heap was not enough."""
    return "memory" in str(error).lower()


def java_file(context: Context, table: Any, name: str, *, partition: str = "") -> Any:
    """A data file of the table that nobody opens."""
    jvm: Any = context.spark.sparkContext._jvm
    file = (
        jvm.org.apache.iceberg.DataFiles.builder(table.spec())
        .withPath(f"{table.location()}/data/java-{name}.parquet")
        .withFileSizeInBytes(1000)
        .withRecordCount(1)
    )
    return (file.withPartitionPath(partition) if partition else file).build()


def java_append(context: Context, name: str, *, partition: str = "") -> Callable[[], object]:
    """Fast appends of one file each, through one handle."""
    table = java_table(context, name)
    numbers = iter(range(1 << 30))

    def append() -> None:
        file = java_file(context, table, f"f{next(numbers)}", partition=partition)
        table.newFastAppend().appendFile(file).commit()

    return append


def java_merging_append(context: Context, name: str, *, partition: str) -> Callable[[], object]:
    """An append that merges manifests."""
    table = java_table(context, name)
    file = java_file(context, table, "merging", partition=partition)
    return lambda: table.newAppend().appendFile(file).commit()


def java_replace(context: Context, name: str, *, partition: str) -> Callable[[], object]:
    """Remove files of a plan, one each time, and add another."""
    table = java_table(context, name)
    planned = table.newScan().planFiles().iterator()
    numbers = iter(range(1 << 30))

    def replace() -> None:
        new = java_file(context, table, f"r{next(numbers)}", partition=partition)
        table.newOverwrite().deleteFile(planned.next().file()).addFile(new).commit()

    return replace


def java_expiry(context: Context, name: str, count: int) -> Callable[[], object]:
    """Expire the oldest snapshots, so many each time."""
    table = java_table(context, name)
    oldest = table.snapshots().iterator()

    def expire() -> None:
        expiry = table.expireSnapshots()
        for _ in range(count):
            expiry = expiry.expireSnapshotId(oldest.next().snapshotId())
        expiry.commit()

    return expire
