"""Tables and files made up for the tests of the table plane."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from pyiceberg.table import StaticTable

from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.catalog.pointer.sql import SqlCatalog
from frazil.catalog.protocol import Catalog
from frazil.format.manifests import Content, DataFile
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import spec_for
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField, StringType
from frazil.storage.files import FileIO
from frazil.table.commit.turns import turn_of
from frazil.table.handle import TableHandle
from frazil.table.operations import TableOperations
from requirements_catalog import RequirementsCatalog

SCHEMA = Schema(
    (
        NestedField(1, "id", LongType(), False),
        NestedField(2, "day", StringType(), False),
        NestedField(3, "note", StringType(), False),
    )
)
FAST_RETRIES = {
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "20",
    "commit.status-check.min-wait-ms": "1",
    "commit.status-check.max-wait-ms": "2",
}
CATALOGS = ("filesystem", "sql")


def open_catalog(kind: str, folder: Path | str, *, io: FileIO | None = None) -> Catalog:
    """A catalog of that kind over a folder; the kind may be the URL of a database."""
    warehouse = f"{folder}/warehouse"
    if kind == "filesystem":
        return FilesystemCatalog("test", {"warehouse": warehouse}, io=io)
    if kind == "requirements":
        uri = f"sqlite:///{folder}/catalog.db"
        return RequirementsCatalog("test", {"uri": uri, "warehouse": warehouse}, io=io)
    uri = kind if "://" in kind else f"sqlite:///{folder}/catalog.db"
    return SqlCatalog("test", {"uri": uri, "warehouse": warehouse}, io=io)


def make_table(
    catalog: Catalog,
    *,
    name: str = "db.t",
    version: int = 2,
    partition_by: Iterable[str] = ("day",),
    properties: Mapping[str, str] | None = None,
    schema: Schema = SCHEMA,
    files: Sequence[DataFile] = (),
) -> TableHandle:
    """A table, by default partitioned by `day`, that holds `files` if there are any."""
    if not catalog.namespace_exists("db"):
        catalog.create_namespace("db")
    metadata = new_table_metadata(
        schema,
        spec_for(schema, list(partition_by)),
        location=catalog.default_table_location(name),
        properties={**FAST_RETRIES, **(properties or {})},
        format_version=version,
    )
    table = TableHandle(catalog, catalog.create_table(name, metadata))
    if files:
        table.files.append(files)
    return table


def as_if_by_others(table: TableHandle) -> None:
    """Forget that this process committed: what came last is another process's doing."""
    turn_of(table.metadata.table_uuid)._replaced.clear()


def data_file(
    name: str,
    day: str | None = "mon",
    *,
    rows: int = 10,
    ids: tuple[int, int] | None = None,
    spec_id: int = 0,
    partition: tuple[Any, ...] | None = None,
    path: str | None = None,
) -> DataFile:
    """A data file by name; `ids` are the smallest and largest value of column `id`."""
    return DataFile(
        file_path=path or f"file:///data/{name}.parquet",
        record_count=rows,
        file_size_in_bytes=100 * rows,
        spec_id=spec_id,
        partition=(day,) if partition is None else partition,
        value_counts=None if ids is None else {1: rows},
        null_value_counts=None if ids is None else {1: 0},
        lower_bounds=None if ids is None else {1: struct.pack("<q", ids[0])},
        upper_bounds=None if ids is None else {1: struct.pack("<q", ids[1])},
    )


def position_deletes(name: str, day: str = "mon", *, about: str | None = None) -> DataFile:
    """A position delete file, of one data file or of the partition."""
    return DataFile(
        content=Content.POSITION_DELETES,
        file_path=f"file:///data/{name}.parquet",
        record_count=1,
        file_size_in_bytes=10,
        partition=(day,),
        referenced_data_file=None if about is None else f"file:///data/{about}.parquet",
    )


def equality_deletes(name: str, day: str = "mon") -> DataFile:
    """An equality delete file on column `id`."""
    return DataFile(
        content=Content.EQUALITY_DELETES,
        file_path=f"file:///data/{name}.parquet",
        record_count=1,
        file_size_in_bytes=10,
        partition=(day,),
        equality_ids=(1,),
    )


def vector(name: str, about: str, day: str = "mon", *, offset: int = 4) -> DataFile:
    """A deletion vector in a Puffin file."""
    return DataFile(
        content=Content.POSITION_DELETES,
        file_path=f"file:///data/{name}.puffin",
        file_format="puffin",
        record_count=2,
        file_size_in_bytes=400,
        partition=(day,),
        referenced_data_file=f"file:///data/{about}.parquet",
        content_offset=offset,
        content_size_in_bytes=40,
    )


def short(path: str) -> str:
    """`a` of `file:///data/a.parquet`."""
    return path.rsplit("/", 1)[-1].split(".", 1)[0]


def names(table: TableHandle, *, ref: str | None = None) -> list[str]:
    """The live files of the table, as PyIceberg's manifest reader finds them."""
    return sorted(short(entry.data_file.file_path) for entry in live_entries(table, ref=ref))


def row_ids(table: TableHandle) -> dict[str, int]:
    """The first row id of each file."""
    files = table.inspect.files()
    return dict(zip(map(short, files["file_path"]), files["first_row_id"], strict=True))


def live_entries(table: TableHandle, *, ref: str | None = None) -> list[Any]:
    """Live manifest entries as PyIceberg reads them, with everything that they inherit."""
    static = StaticTable.from_metadata(table.metadata_location)
    snapshot = static.current_snapshot() if ref is None else static.snapshot_by_name(ref)
    if snapshot is None:
        return []
    return [
        entry
        for manifest in snapshot.manifests(static.io)
        for entry in manifest.fetch_manifest_entry(static.io, discard_deleted=True)
    ]


def head(table: TableOperations) -> int:
    """The id of the current snapshot."""
    assert table.metadata.current_snapshot_id is not None
    return table.metadata.current_snapshot_id


def summary(table: TableHandle) -> dict[str, str]:
    """The current snapshot's summary."""
    assert table.current_snapshot is not None
    return dict(table.current_snapshot.summary or {})


class CountingIO(FileIO):
    """A FileIO that counts what it creates, and what it reads, by kind of file."""

    def __init__(self) -> None:
        super().__init__()
        self.created: Counter[str] = Counter()
        self._counting = Lock()
        self.opened: Counter[str] = Counter()

    def read(self, path: str) -> bytes:
        """Count and read."""
        self.opened[kind_of(path)] += 1
        return super().read(path)

    def _run(self, verb: str, path: str, on_disk: Any, on_store: Any) -> Any:
        if verb == "create":
            with self._counting:
                self.created[kind_of(path)] += 1
        return super()._run(verb, path, on_disk, on_store)


def kind_of(path: str) -> str:
    """list, manifest, metadata or other."""
    name = path.rsplit("/", 1)[-1]
    if name.endswith(".avro"):
        return "list" if name.startswith("snap-") else "manifest"
    return "metadata" if name.endswith(".metadata.json") else "other"


def avro_files(table: TableHandle) -> set[str]:
    """Manifests and manifest lists that lie in the table's folder."""
    return {info.path for info in table.io.list(table.location) if info.path.endswith(".avro")}


def avro_files_in_use(table: TableHandle) -> set[str]:
    """Manifests and manifest lists that some snapshot reaches, by PyIceberg."""
    static = StaticTable.from_metadata(table.metadata_location)
    used: set[str] = set()
    for snapshot in static.snapshots():
        used.add(snapshot.manifest_list)
        used.update(manifest.manifest_path for manifest in snapshot.manifests(static.io))
    return used


def peer(table: TableHandle) -> StaticTable:
    """The table as PyIceberg reads it."""
    return StaticTable.from_metadata(table.metadata_location)


def columns_by_pyiceberg(table: TableHandle) -> list[tuple[int, str, str]]:
    """Ids, names and types by PyIceberg."""
    return [(f.field_id, f.name, str(f.field_type)) for f in peer(table).schema().fields]


def ids(table: TableHandle) -> list[int]:
    """Snapshot ids in the order of commits."""
    return [snapshot.snapshot_id for snapshot in table.metadata.snapshots]
