"""Plans: which files and deletes a scan reads, against the reference rules and real tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID
from weakref import ref

import polars as pl
import pytest
from planning_tables import manifest_of, open_table, snapshot_of, table_lines

from delete_rules import deletes_for
from frazil.errors import MissingFileError
from frazil.format.changes.apply import apply_updates
from frazil.format.changes.updates import AddSnapshot, SetSnapshotRef
from frazil.format.manifests import (
    Content,
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.format.metadata import TableMetadata
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import parse_transform
from frazil.format.predicates import AlwaysTrue, bind, parse_predicate
from frazil.format.predicates.projection.project import inclusive_projection
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot, SnapshotRef
from frazil.format.types import LongType, NestedField, StringType, UUIDType
from frazil.format.values import to_bytes
from frazil.planning.cache import ManifestCache, memory_of_plan
from frazil.planning.changes import changed_files
from frazil.planning.counts.rows import count_rows
from frazil.planning.frames import memory_of
from frazil.planning.load import entries
from frazil.planning.plan import kept_plan, plan
from frazil.planning.scan_plan import ScanPlan, SkipReason
from frazil.storage import avro
from frazil.storage.files import FileIO
from pruned_by_columns import may_keep, may_match

SCHEMA = Schema(
    (
        NestedField(1, "part", LongType()),
        NestedField(2, "id", LongType()),
        NestedField(3, "name", StringType()),
    )
)
SPEC = PartitionSpec(0, (PartitionField((1,), 1000, parse_transform("identity"), "part"),))
LINES = [line for line in table_lines() if "lineitem" not in line["table"]]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["table"])
def test_a_fixture_plan_is_that_of_the_reference_rules(line: dict[str, Any]) -> None:
    table = open_table(line)
    metadata, snapshot = table.metadata, table.metadata.current_snapshot
    found = plan(metadata, snapshot, table.io, cache=ManifestCache())
    live = _live_entries(table, snapshot)
    data = [entry for entry in live if entry.data_file.content is Content.DATA]
    deletes = [entry for entry in live if entry.data_file.content is not Content.DATA]
    assert found.files["file_path"].to_list() == [entry.data_file.file_path for entry in data]
    if "equality" not in line["table"] and "rows" in line and not deletes:
        assert found.record_count == line["count"]
    for ordinal, entry in enumerate(data):
        expected = {
            delete.data_file.file_path
            for delete in deletes_for(entry, deletes, specs=metadata.specs_by_id)
        }
        paths = set(found.deletes_of(ordinal)["file_path"])
        # Bounds may show that a delete which applies has no row in the file.
        assert paths <= expected
        if not entry.data_file.lower_bounds:
            assert paths == expected


def test_some_files_of_a_plan_hold_no_text_of_the_others() -> None:
    files = [
        DataFile(
            file_path=f"file:///lake/data/{number:06d}.parquet",
            file_format="PARQUET",
            spec_id=0,
            partition=(),
            record_count=1,
            file_size_in_bytes=1,
        )
        for number in range(20_000)
    ]
    some = ScanPlan.of_new_files(files, SCHEMA).restricted_to([3, 19_999])
    paths = some.files["file_path"]
    assert paths.to_list() == [files[3].file_path, files[19_999].file_path]
    text = paths.to_arrow(compat_level=pl.CompatLevel.newest())
    assert sum(buffer.size for buffer in text.buffers() if buffer) < 1_000


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["table"])
def test_some_files_of_a_fixture_plan_are_as_they_were(line: dict[str, Any]) -> None:
    table = open_table(line)
    found = plan(table.metadata, table.metadata.current_snapshot, table.io, cache=ManifestCache())
    some = found.restricted_to(range(len(found.files) // 3))
    assert some.files.schema == found.files.schema
    assert some.files.rows() == found.files.rows()[: len(found.files) // 3]


def _live_entries(table: Any, snapshot: Snapshot | None) -> list[ManifestEntry]:
    metadata = table.metadata
    if snapshot is None:
        return []
    return [
        entry
        for manifest in avro.manifests_of(table.io, snapshot)
        for entry in avro.read_manifest(
            table.io, manifest, specs=metadata.specs_by_id, schema=metadata.schema
        )
        if entry.is_live
    ]


FILTERS = [
    ("duckdb_generated_bounds", "block_number between 5000000 and 5000100"),
    ("duckdb_hive_partitioned_table", "event_type = 'click'"),
    ("duckdb_partition_decimal_hugeint", "partition_col > 0"),
    ("duckdb_partition_bool", "not partition_col"),
    ("duckdb_partition_float", "partition_col < 2"),
    ("duckdb_partition_binary", "partition_col is not null"),
    ("duckdb_partition_timestamptz", "partition_col >= '2020-01-01'"),
    ("duckdb_is_null_is_not_null", "id is null"),
    ("impala_iceberg_partitioned", "action = 'click' and id < 10"),
    ("impala_iceberg_partitioned", "event_time >= '2020-01-01 09:00:00'"),
    ("impala_iceberg_timestamp_part", "ts >= '2000-01-01'"),
    ("polars_iceberg_table", "ts < '2023-03-02'"),
]


@pytest.mark.parametrize(("name", "where"), FILTERS)
def test_a_filter_keeps_the_files_that_it_keeps_one_by_one(name: str, where: str) -> None:
    lines = [line for line in LINES if line["table"] == name]
    if not lines:
        pytest.skip("the fixtures are not beside this checkout")
    table = open_table(lines[0])
    metadata = table.metadata
    columns = {field.name for field in metadata.schema.fields}
    if "partition_col" in where and "partition_col" not in columns:
        spec = metadata.spec
        source = metadata.schema.find_column_name(spec.fields[0].source_id)
        where = where.replace("partition_col", str(source))
    bound = bind(parse_predicate(where), metadata.schema)
    found = plan(metadata, metadata.current_snapshot, table.io, where=bound, cache=ManifestCache())
    kept = []
    for entry in _live_entries(table, metadata.current_snapshot):
        spec = metadata.spec_by_id(entry.data_file.spec_id)
        projected = inclusive_projection(bound, spec, metadata.schema)
        if (
            entry.data_file.content is Content.DATA
            and may_keep(projected, spec, metadata.schema, entry.data_file.partition)
            and may_match(bound, entry.data_file)
        ):
            kept.append(entry.data_file.file_path)
    assert found.files["file_path"].to_list() == kept
    skipped = [each.files for each in found.skipped]
    everything = plan(metadata, metadata.current_snapshot, table.io, cache=ManifestCache())
    if None not in skipped:
        assert found.file_count + sum(filter(None, skipped)) == everything.file_count


class Writer:
    """A table whose snapshots are written entry by entry."""

    def __init__(self, folder: Path) -> None:
        self.io = FileIO()
        self.location = f"file://{folder}"
        self.metadata = new_table_metadata(SCHEMA, SPEC, location=self.location, format_version=2)
        self.manifests: list[ManifestFile] = []
        self.number = 0

    def commit(self, added: Sequence[DataFile], deletes: Sequence[DataFile] = ()) -> TableMetadata:
        """One snapshot that adds these files in new manifests."""
        self.number += 1
        manifests = list(self.manifests)
        for content, files in ((ManifestContent.DATA, added), (ManifestContent.DELETES, deletes)):
            if files:
                manifests.append(self.write(files, content))
        return self.snapshot(manifests)

    def write(
        self, files: Sequence[DataFile | ManifestEntry], content: ManifestContent
    ) -> ManifestFile:
        name = f"m{self.number}-{content}"
        given = {"spec": SPEC, "content": content, "snapshot_id": self.number}
        return manifest_of(self.io, self.metadata, name, files, **given)

    def snapshot(self, manifests: Sequence[ManifestFile]) -> TableMetadata:
        number = self.number
        snapshot = snapshot_of(
            self.io, self.metadata, manifests, sequence_number=number, snapshot_id=number
        )
        self.manifests = list(avro.read_manifest_list(self.io, snapshot.manifest_list or ""))
        ref = SnapshotRef(snapshot_id=self.number, type="branch")
        self.metadata = apply_updates(
            self.metadata, [AddSnapshot(snapshot), SetSnapshotRef("main", ref)]
        )
        return self.metadata

    def plan(self, where: str | None = None, **stated: Any) -> ScanPlan:
        bound = None if where is None else bind(parse_predicate(where), self.metadata.schema)
        stated = {"cache": ManifestCache(), **stated}
        snapshot = self.metadata.current_snapshot
        return plan(self.metadata, snapshot, self.io, where=bound, **stated)


def data_file(name: str, part: int, low: int, high: int, **stated: Any) -> DataFile:
    """A file of ids from low to high without NULLs."""
    return DataFile(
        file_path=name,
        partition=(part,),
        **{
            "record_count": 10,
            "file_size_in_bytes": 1000,
            "null_value_counts": {1: 0, 2: 0},
            "lower_bounds": {2: to_bytes(LongType(), low)},
            "upper_bounds": {2: to_bytes(LongType(), high)},
            **stated,
        },
    )


def equality_deletes(*ids: int, **stated: Any) -> DataFile:
    """Deletes in partition 1 by the columns of these ids."""
    return DataFile(
        file_path="eq",
        content=Content.EQUALITY_DELETES,
        equality_ids=ids,
        partition=(1,),
        record_count=5,
        file_size_in_bytes=10,
        **stated,
    )


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    writer = Writer(tmp_path)
    writer.commit([data_file("a", 1, 0, 9), data_file("b", 2, 10, 19)])
    writer.commit([data_file("c", 3, 20, 29), data_file("d", 4, 30, 39, record_count=0)])
    return writer


def test_files_are_numbered_in_the_order_of_the_manifests(writer: Writer) -> None:
    found = writer.plan()
    assert found.files["ordinal"].to_list() == [0, 1, 2, 3]
    assert found.files["file_path"].to_list() == ["a", "b", "c", "d"]
    assert found.files["partition"].to_list() == [{"1000": part} for part in (1, 2, 3, 4)]
    assert found.files["sequence_number"].to_list() == [1, 1, 2, 2]
    assert found.files["snapshot_id"].to_list() == [1, 1, 2, 2]
    assert found.is_exact
    assert (found.file_count, found.record_count, found.size_in_bytes) == (4, 30, 4000)


@pytest.mark.parametrize(
    ("where", "files", "skipped"),
    [
        ("part = 1", "a", {SkipReason.MANIFEST_SUMMARY: 2, SkipReason.PARTITION_VALUE: 1}),
        ("id = 15", "b", {SkipReason.COLUMN_BOUNDS: 2, SkipReason.EMPTY: 1}),
        (
            "id >= 10 and part <> 2",
            "c",
            {SkipReason.COLUMN_BOUNDS: 1, SkipReason.PARTITION_VALUE: 1, SkipReason.EMPTY: 1},
        ),
        ("part = 7", "", {SkipReason.MANIFEST_SUMMARY: 4}),
        ("name = 'x'", "abc", {SkipReason.EMPTY: 1}),
        ("part = 1 or id = 25", "ac", {SkipReason.COLUMN_BOUNDS: 1, SkipReason.EMPTY: 1}),
        ("id is null", "", {SkipReason.COLUMN_BOUNDS: 3, SkipReason.EMPTY: 1}),
    ],
)
def test_why_files_are_skipped(
    writer: Writer, where: str, files: str, skipped: dict[SkipReason, int]
) -> None:
    """Rules 171-174."""
    found = writer.plan(where)
    assert "".join(found.files["file_path"]) == files
    assert {each.reason: each.files for each in found.skipped} == skipped


@pytest.mark.parametrize(
    ("where", "decided"),
    [
        ("part = 1", [True]),
        ("id >= 5", [False, True, True]),
        ("part in (1, 2) and id <= 12", [True, False]),
        ("id < 100", [True, True, True]),
        ("name = 'x'", [False, False, False]),
    ],
)
def test_files_whose_rows_all_match_need_no_check(
    writer: Writer, where: str, decided: list[bool]
) -> None:
    """Rule 183."""
    found = writer.plan(where)
    assert found.files["all_rows_match"].to_list() == decided
    assert found.is_exact is all(decided)


def test_deletes_come_with_the_files_they_apply_to(writer: Writer) -> None:
    """Rule 178: an equality delete reaches older files of its partition, not its own commit's."""
    three = {2: to_bytes(LongType(), 3)}
    delete = equality_deletes(2, null_value_counts={2: 0}, lower_bounds=three, upper_bounds=three)
    writer.commit([data_file("e", 1, 0, 9)], [delete])
    found = writer.plan()
    assert found.pairs.rows() == [(0, 0)]
    assert found.deletes["equality_ids"].to_list() == [[2]]
    assert found.to_polars()["deletes"].to_list() == [[0], [], [], [], []]
    assert not found.is_exact
    assert writer.plan("part = 2").delete_count == 0
    assert writer.plan("id = 8").delete_count == 0, "its key cannot match"
    assert writer.plan("id = 3").delete_count == 1
    text = found.summary()
    assert "5 files" in text
    assert "0 position, 1 equality, on 1 file" in text


def test_a_column_beside_the_keys_does_not_decide_over_a_delete(writer: Writer) -> None:
    """The deleted row's other columns are those of an older row (rule 229)."""
    delete = equality_deletes(2, lower_bounds={3: b"old"}, upper_bounds={3: b"old"})
    writer.commit([], [delete])
    assert writer.plan("name = 'new'").delete_count == 1


@pytest.mark.parametrize(
    ("ids", "counts", "may_hold"),
    [
        ((2,), {2: 0}, False),
        ((2,), {2: 1}, True),
        ((2,), {}, True),
        ((3, 2), {2: 0, 3: 0}, False),
        ((3, 2), {2: 0, 3: 2}, True),
        ((3, 2), {2: 0}, True),
    ],
)
def test_metrics_tell_whether_a_key_may_be_null(
    writer: Writer, ids: tuple[int, ...], counts: dict[int, int], may_hold: bool
) -> None:
    """Rule 230: where no deleted key is NULL, no NULL matches; unknown counts say nothing."""
    writer.commit([], [equality_deletes(*ids, null_value_counts=counts)])
    assert writer.plan().deletes["may_hold_null_keys"].to_list() == [may_hold]


def test_an_empty_table_reads_nothing() -> None:
    metadata = new_table_metadata(SCHEMA, SPEC, location="file:///nowhere")
    found = plan(metadata, None, FileIO(), where=bind(parse_predicate("id = 1"), SCHEMA))
    assert (found.file_count, found.delete_count, found.record_count) == (0, 0, 0)
    assert found.is_exact
    assert entries(metadata, None, FileIO()).is_empty()
    assert "empty table" in repr(found)


def test_a_missing_manifest_is_named(writer: Writer) -> None:
    path = writer.manifests[0].manifest_path
    writer.io.delete(path)
    with pytest.raises(MissingFileError, match="m1-"):
        writer.plan()


def test_a_cached_manifest_is_not_read_again(writer: Writer) -> None:
    cache = ManifestCache()
    first = writer.plan("id = 15", cache=cache)
    for manifest in writer.manifests:
        writer.io.delete(manifest.manifest_path)
    again = writer.plan("id = 15", cache=cache)
    assert again.files.equals(first.files)
    assert writer.plan(cache=cache).file_count == 4, "fewer columns are needed, all are there"
    with pytest.raises(MissingFileError):
        writer.plan("name = 'x'", cache=cache)


def test_columns_are_added_to_cached_manifests(writer: Writer) -> None:
    cache = ManifestCache()
    for where, files in (
        ("id = 15", "b"),
        ("part = 1", "a"),
        ("name is null", "abc"),
        ("id = 15", "b"),
    ):
        assert "".join(writer.plan(where, cache=cache).files["file_path"]) == files


def test_the_plan_of_a_whole_snapshot_is_kept(writer: Writer) -> None:
    cache = ManifestCache()
    first = writer.plan(cache=cache)
    assert writer.plan(cache=cache) is first
    assert writer.plan("id = 15", cache=cache).file_count == 1
    assert writer.plan("id >= -1000", cache=cache) is not first
    with_counts = writer.plan(cache=cache, statistics={"null_value_counts": {2}})
    assert "null_value_counts.2" in with_counts.files.columns
    assert writer.plan(cache=cache) is first
    writer.commit([data_file("e", 5, 40, 49)])
    assert "".join(writer.plan(cache=cache).files["file_path"]) == "abcde"


def test_the_plan_of_a_predicate_is_kept_where_it_is_asked_for(writer: Writer) -> None:
    def asked(where: str) -> ScanPlan:
        bound = bind(parse_predicate(where), writer.metadata.schema)
        return kept_plan(writer.metadata, writer.metadata.current_snapshot, writer.io, where=bound)

    first = asked("id = 15")
    assert asked("id = 15") is first
    assert "".join(first.files["file_path"]) == "b"
    for where in ("id = 16", "id = 15 and part = 1", "part = 1"):
        assert asked(where).files.equals(writer.plan(where).files)
    writer.commit([data_file("e", 5, 15, 15)])
    assert "".join(asked("id = 15").files["file_path"]) == "be"


def test_a_kept_plan_is_of_one_schema_and_its_specs(writer: Writer) -> None:
    cache = ManifestCache()
    snapshot, first = writer.metadata.current_snapshot, writer.plan(cache=cache)
    renamed = replace(SCHEMA, fields=(*SCHEMA.fields[:2], replace(SCHEMA.fields[2], name="n")))
    other_spec = PartitionSpec(1, (PartitionField((2,), 1001, parse_transform("void"), "v"),))
    for metadata, schema in (
        (replace(writer.metadata, schemas=(replace(renamed, schema_id=0),)), None),
        (replace(writer.metadata, schemas=(SCHEMA, replace(renamed, schema_id=1))), None),
        (replace(writer.metadata, partition_specs=(SPEC, other_spec)), None),
        (writer.metadata, renamed),
    ):
        found = plan(metadata, snapshot, writer.io, schema=schema, cache=cache)
        assert found is not first
        assert found.schema == (schema or metadata.schema)
    assert plan(writer.metadata, snapshot, writer.io, cache=cache).schema == SCHEMA


def test_a_plan_that_would_take_the_room_of_many_manifests_is_not_kept(writer: Writer) -> None:
    first = writer.plan()
    size = memory_of_plan(first)
    small, large = ManifestCache(size * 15), ManifestCache(size * 17)
    assert writer.plan(cache=large) is writer.plan(cache=large)
    held = writer.plan(cache=small)
    assert writer.plan(cache=small) is held, "somebody has it"
    gone = ref(held)
    del held
    assert gone() is None
    assert writer.plan(cache=small).files.equals(first.files)


def test_the_cache_makes_room_for_what_was_used_last() -> None:
    frame = pl.DataFrame({"x": [1, 2, 3]})
    size = memory_of(frame)
    cache = ManifestCache(max_bytes=2 * size)
    cache.keep_manifest("a", frame)
    cache.keep_manifest("b", frame)
    assert cache.manifest("a") is not None
    cache.keep_manifest("c", frame)
    assert cache.manifest("b") is None
    assert cache.manifest("a") is not None
    assert cache.statistics.size_in_bytes == 2 * size
    cache.keep_manifest("a", frame)
    assert cache.statistics.entries == 2
    cache.resize(size)
    assert cache.statistics.entries == 1
    cache.clear()
    assert cache.statistics.size_in_bytes == 0


def test_entries_of_every_status(writer: Writer) -> None:
    """What snapshots added and removed, for metadata tables and incremental reads."""
    first, second = writer.metadata.snapshots
    [a, b] = avro.read_manifest(
        writer.io, writer.manifests[0], specs=writer.metadata.specs_by_id, schema=SCHEMA
    )
    writer.number += 1
    removed = ManifestEntry(
        status=EntryStatus.DELETED,
        snapshot_id=writer.number,
        sequence_number=a.sequence_number,
        file_sequence_number=a.file_sequence_number,
        data_file=a.data_file,
    )
    kept = ManifestEntry(
        status=EntryStatus.EXISTING,
        snapshot_id=b.snapshot_id,
        sequence_number=b.sequence_number,
        file_sequence_number=b.file_sequence_number,
        data_file=b.data_file,
    )
    rewritten = writer.write([removed, kept], ManifestContent.DATA)
    metadata = writer.snapshot([rewritten, writer.manifests[1]])
    every = entries(metadata, metadata.current_snapshot, writer.io, cache=ManifestCache())
    assert every.select("file_path", "status").rows() == [("a", 2), ("b", 0), ("c", 1), ("d", 1)]
    assert every["lower_bounds"][0].to_list() == [{"key": 2, "value": bytes(8)}]
    assert writer.plan().files["file_path"].to_list() == ["b", "c", "d"]
    third = metadata.current_snapshot
    assert third is not None
    for parent, snapshot, added, gone in (
        (None, first, "ab", ""),
        (first, second, "cd", ""),
        (second, third, "", "a"),
        (first, third, "cd", "a"),
    ):
        changed = changed_files(metadata, snapshot, parent, writer.io)
        assert "".join(changed.added.files["file_path"]) == added
        assert "".join(changed.removed.files["file_path"]) == gone


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["table"])
def test_a_fixture_has_as_many_rows_as_its_readers_found(line: dict[str, Any]) -> None:
    if "count" not in line:
        pytest.skip("not known")
    table = open_table(line)
    metadata, snapshot = table.metadata, table.metadata.current_snapshot
    found = count_rows(
        metadata,
        snapshot,
        table.io,
        where=AlwaysTrue(),
        schema=metadata.schema,
        whole_plan=lambda: plan(metadata, snapshot, table.io),
    )
    if found.rest is None:
        assert found.known == line["count"]
    else:
        assert found.known <= line["count"] <= found.known + found.rest.record_count


OF_UUID = Schema((NestedField(1, "u", UUIDType()),))
LOW_HALF_NEGATIVE, ONE, NEXT_HIGH_HALF = UUID(int=1 << 63), UUID(int=1), UUID(int=1 << 64)


@pytest.mark.parametrize(
    "where",
    [f"u < '{LOW_HALF_NEGATIVE}'", f"u <= '{ONE}'", f"u >= '{ONE}'", f"u > '{UUID(int=0)}'"],
)
def test_a_row_between_java_ordered_bounds_is_never_pruned(where: str) -> None:
    """UUIDs are ordered by two signed halves there, while predicates compare bytes."""
    # In Java's order: 0…8000… (negative low half) < 0…01 < 1…0; the row 0…01 matches.
    lower, upper = LOW_HALF_NEGATIVE.bytes, NEXT_HIGH_HALF.bytes
    file = DataFile(
        content=Content.DATA,
        file_path="f",
        file_format="parquet",
        spec_id=0,
        partition=(),
        record_count=3,
        file_size_in_bytes=1,
        value_counts={1: 3},
        null_value_counts={1: 0},
        lower_bounds={1: lower},
        upper_bounds={1: upper},
    )
    bound = bind(parse_predicate(where), OF_UUID)
    assert may_match(bound, file)
