"""Entries that move to a new manifest as bytes are what entries decoded one by one would be."""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planning_tables import open_table, table_lines

from ci_share import examples
from frazil.errors import FrazilError
from frazil.format.manifests import (
    Content,
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import parse_transform
from frazil.format.schema import Schema
from frazil.format.types import DoubleType, LongType, NestedField, StringType
from frazil.storage import avro
from frazil.storage.avro.columns import decode_manifests
from frazil.storage.avro.container import read_container
from frazil.storage.avro.entry_records import HEAD
from frazil.storage.avro.manifest_copy import (
    CarriedEntries,
    Carry,
    copy_manifest,
    only_rows,
    rows_of,
)
from frazil.storage.files import FileIO
from programs import run_program

SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "name", StringType()),
        NestedField(3, "x", DoubleType()),
    )
)
SPEC = PartitionSpec(
    0,
    (
        PartitionField((2,), 1000, parse_transform("identity"), "name"),
        PartitionField((3,), 1001, parse_transform("identity"), "x"),
    ),
)
NEW = 99
LONGS = st.integers(0, 2**47)
COUNTS = st.none() | st.dictionaries(st.integers(1, 3), LONGS, max_size=3)
BOUNDS = st.none() | st.dictionaries(st.integers(1, 3), st.binary(max_size=12), max_size=3)


@st.composite
def entries_of(draw: st.DrawFn, version: int) -> ManifestEntry:
    """One entry that a table of the version may have, as its manifest states it."""
    status = draw(st.sampled_from(EntryStatus))
    numbers = {}
    if version > 1 and status is not EntryStatus.ADDED:
        numbers = {"sequence_number": draw(LONGS), "file_sequence_number": draw(LONGS)}
    file = DataFile(
        content=Content.DATA,
        # Names that are the start of one another, and that occur in bounds.
        file_path=draw(st.sampled_from(["a", "aa", "aaa", "b", "s3://b/é.parquet"])),
        partition=(
            draw(st.none() | st.sampled_from(["n", "ø"])),
            draw(st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan")])),
        ),
        record_count=draw(st.integers(0, 1000)),
        file_size_in_bytes=draw(LONGS),
        column_sizes=draw(COUNTS),
        value_counts=draw(COUNTS),
        lower_bounds=draw(BOUNDS),
        upper_bounds=draw(BOUNDS | st.just({2: b"\x00\x02\x00\x00\x00\x02a"})),
        split_offsets=draw(st.none() | st.just((4, 2**40))),
        sort_order_id=draw(st.none() | st.just(1)),
        first_row_id=draw(st.none() | LONGS) if version > 2 else None,
    )
    snapshot_id = draw(st.sampled_from([7, 8, 2**62]))
    return ManifestEntry(status=status, snapshot_id=snapshot_id, data_file=file, **numbers)


def written(
    folder: Path, name: str, entries: list[ManifestEntry], version: int, codec: str, **stated: Any
) -> ManifestFile:
    """A manifest of the entries as a committed list would state it."""
    manifest = avro.write_manifest(
        FileIO(),
        str(folder / name),
        entries,
        spec=SPEC,
        schema=SCHEMA,
        format_version=version,
        content=ManifestContent.DATA,
        snapshot_id=5,
        codec=codec,
    )
    numbers = {"sequence_number": 3, "min_sequence_number": 1} if version > 1 else {}
    return replace(manifest, **{**numbers, **stated})


def carried(
    io: FileIO, manifest: ManifestFile, specs: Any, schema: Schema, *, seed: int
) -> tuple[CarriedEntries, list[ManifestEntry]]:
    """A manifest with a choice for each live entry, and the entries that must come of it."""
    container = read_container(io.read(manifest.manifest_path), file="m.avro")
    of_table = {"specs": specs, "schema": schema}
    [decoded] = decode_manifests([(manifest, container)], **of_table, statistics=())
    chance = random.Random(seed)
    choices, expected = [], []
    for entry in avro.read_manifest(io, manifest, specs=specs, schema=schema):
        choice = chance.choice([Carry.DROPPED, Carry.EXISTING, Carry.EXISTING, Carry.DELETED])
        if not entry.is_live:
            choice = Carry.DROPPED
        choices.append(int(choice))
        if choice is Carry.EXISTING:
            expected.append(replace(entry, status=EntryStatus.EXISTING))
        elif choice is Carry.DELETED:
            expected.append(replace(entry, status=EntryStatus.DELETED, snapshot_id=NEW))
    carry = pl.Series(choices, dtype=pl.Int8)
    # Some callers know what the records state, others read it again.
    stated = decoded.stated if seed % 2 else None
    source = CarriedEntries(manifest, container, decoded.entries, carry, stated=stated)
    return source, expected


def stated(manifest: ManifestFile, *, specs: Any, schema: Schema) -> tuple[Any, Any]:
    """What the heads of a manifest's records say, and its entries."""
    container = read_container(FileIO().read(manifest.manifest_path), file="m.avro")
    [decoded] = decode_manifests([(manifest, container)], specs=specs, schema=schema)
    heads = decoded.stated.select(name for name in HEAD if name in decoded.stated.columns)
    return heads.rows(), avro.read_manifest(FileIO(), manifest, specs=specs, schema=schema)


def same(one: Any, other: Any) -> bool:
    """Equality under which NaN is NaN, -0.0 is not 0.0, and maps have no order."""
    return _plain(one) == _plain(other)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return repr(value) if isinstance(value, float) else value


@given(data=st.data(), version=st.integers(1, 3), codec=st.sampled_from(["gzip", "zstd", "none"]))
@settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_copied_entries_are_those_that_were_written_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, version: int, codec: str
) -> None:
    folder = tmp_path_factory.mktemp("copy")
    io, sources, expected = FileIO(), [], []
    for number in range(data.draw(st.integers(1, 3))):
        entries = data.draw(st.lists(entries_of(version), max_size=6))
        ids = {"first_row_id": data.draw(st.none() | LONGS)} if version > 2 else {}
        manifest = written(folder, f"m{number}.avro", entries, version, codec, **ids)
        source, of_source = carried(
            io, manifest, {0: SPEC}, SCHEMA, seed=data.draw(st.integers(0, 99))
        )
        sources.append(source)
        expected += of_source
    settled = {
        "spec": SPEC,
        "schema": SCHEMA,
        "format_version": version,
        "content": ManifestContent.DATA,
        "snapshot_id": NEW,
        "codec": codec,
    }
    copied = copy_manifest(io, str(folder / "copied.avro"), sources, **settled)
    if copied is None:
        return
    one_by_one = avro.write_manifest(io, str(folder / "single.avro"), expected, **settled)
    of_table = {"specs": {0: SPEC}, "schema": SCHEMA}
    assert same(stated(copied, **of_table), stated(one_by_one, **of_table))
    unlike = {"manifest_path": "", "manifest_length": 0}
    assert same(replace(copied, **unlike), replace(one_by_one, **unlike))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_usual_entries_are_copied_and_unchanged_blocks_stay_as_they_are(
    tmp_path: Path, version: int
) -> None:
    """Distinct paths: no entry is decoded; of many blocks, one is packed anew."""
    numbers = {"sequence_number": 1, "file_sequence_number": 1} if version > 1 else {}
    entries = [
        ManifestEntry(
            status=EntryStatus.EXISTING,
            snapshot_id=7,
            data_file=DataFile(
                file_path=f"s3://bucket/table/data/{n:05d}.parquet",
                partition=("n", 1.0),
                record_count=n,
                file_size_in_bytes=n,
                lower_bounds={1: random.Random(n).randbytes(200)},
                first_row_id=n if version > 2 else None,
            ),
            **numbers,
        )
        for n in range(5000)
    ]
    io, manifest = FileIO(), written(tmp_path, "m.avro", entries, version, "gzip")
    source, _ = carried(io, manifest, {0: SPEC}, SCHEMA, seed=0)
    carry = [int(Carry.EXISTING)] * 5000
    carry[4000] = int(Carry.DELETED)
    source = replace(source, carry=pl.Series(carry, dtype=pl.Int8))
    copied = copy_manifest(
        io,
        str(tmp_path / "copied.avro"),
        [source],
        spec=SPEC,
        schema=SCHEMA,
        format_version=version,
        content=ManifestContent.DATA,
        snapshot_id=NEW,
        codec="gzip",
    )
    assert copied is not None
    assert (copied.deleted_files_count, copied.deleted_rows_count) == (1, 4000)
    first = source.records.container.packed[0]
    assert len(first) > 64 * 1024
    assert bytes(first) in io.read(copied.manifest_path)
    some = only_rows(source, pl.Series([4000]))
    assert some is not None
    [removed] = rows_of(some, specs={0: SPEC}, schema=SCHEMA)
    assert removed.data_file == entries[4000].data_file


@pytest.mark.parametrize("line", table_lines(), ids=lambda line: line["table"])
def test_entries_of_other_writers(line: dict[str, Any], tmp_path: Path) -> None:
    """Manifests of every fixture table: copied right, or not copied."""
    table = open_table(line)
    metadata = table.metadata
    if metadata.current_snapshot is None:
        pytest.skip("no snapshot")
    try:
        manifests = avro.manifests_of(table.io, metadata.current_snapshot)
    except FrazilError:
        pytest.skip("an unreadable list")
    for number, manifest in enumerate(manifests):
        try:
            source, expected = carried(
                table.io, manifest, metadata.specs_by_id, metadata.schema, seed=number
            )
        except FrazilError:
            continue
        settled = {
            "spec": metadata.spec_by_id(manifest.partition_spec_id),
            "schema": metadata.schema,
            "format_version": metadata.format_version,
            "content": manifest.content,
            "snapshot_id": NEW,
            "codec": "gzip",
        }
        copied = copy_manifest(FileIO(), str(tmp_path / f"c{number}.avro"), [source], **settled)
        if copied is None:
            continue
        single = avro.write_manifest(
            FileIO(), str(tmp_path / f"s{number}.avro"), expected, **settled
        )
        of_table = {"specs": metadata.specs_by_id, "schema": metadata.schema}
        assert same(stated(copied, **of_table), stated(single, **of_table))
        unlike = {"manifest_path": "", "manifest_length": 0}
        assert same(replace(copied, **unlike), replace(single, **unlike))


def test_copying_imports_no_pandas(tmp_path: Path) -> None:
    """It takes half a second to import, more than a commit takes."""
    program = f"""
import sys
from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.format.manifests import DataFile
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import spec_for
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField
from frazil.table.handle import TableHandle

schema = Schema((NestedField(1, "id", LongType(), False),))
catalog = FilesystemCatalog("c", {{"warehouse": {str(tmp_path)!r}}})
catalog.create_namespace("db")
location = catalog.default_table_location("db.t")
metadata = new_table_metadata(schema, spec_for(schema, []), location=location)
table = TableHandle(catalog, catalog.create_table("db.t", metadata))
files = [
    DataFile(file_path=f"{{location}}/data/{{n}}.parquet", record_count=1, file_size_in_bytes=1)
    for n in range(3)
]
table.files.append(files[:2])
table.files.overwrite(files[2:], removed=files[:1])
assert len(table.inspect.files()) == 2
print("pandas" in sys.modules)
"""
    assert run_program(program).split() == ["False"]
