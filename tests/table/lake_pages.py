"""Tables for pages: made by the catalog alone, with entries of files that nobody reads."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.catalog.protocol import Catalog
from frazil.format.manifests import Content, DataFile
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import UNPARTITIONED, PartitionSpec
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField
from frazil.table.handle import TableHandle
from frazil.table.snapshots.append import FastAppend
from frazil.table.snapshots.producer import SnapshotOptions

SCHEMA = Schema((NestedField(1, "id", LongType()),))


def made(
    catalog: Catalog,
    name: tuple[str, ...],
    *,
    sizes: Sequence[int] = (),
    location: str | None = None,
    spec: PartitionSpec = UNPARTITIONED,
    properties: dict[str, str] | None = None,
    summary: dict[str, str] | None = None,
    schema: Schema = SCHEMA,
) -> TableHandle:
    """A table with files of these sizes and ten rows each, a partition each where it has them."""
    place = location if location is not None else catalog.default_table_location(name)
    metadata = new_table_metadata(schema, spec, location=place, properties=properties or {})
    table = TableHandle(catalog, catalog.create_table(name, metadata))
    files = [
        DataFile(
            content=Content.DATA, file_path=f"{place}/data/{number}.parquet", record_count=10,
            file_size_in_bytes=size, partition=(number,) if spec.fields else (),
        )
        for number, size in enumerate(sizes)
    ]  # fmt: skip
    if files:
        options = SnapshotOptions(snapshot_properties=summary or {})
        table.port.run(FastAppend(table.io, files, options))
    return table
