"""Deletes by place become position delete files or vectors, and readers leave the rows out."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pyarrow.parquet as pq
import pytest
from deletes_read_back import local, places_of, rows_of

from ci_share import one_of_each, only_in_soak, these
from frazil.errors import (
    ConfigurationError,
    InvalidDataFileError,
    MissingFileError,
    StorageError,
    UnsupportedError,
    ValidationError,
)
from frazil.spark.delete_files.write import WrittenDeletes, write_deletes
from frazil.storage import avro
from frazil.storage.files import FileIO
from frazil.table.manifests.files import read_entries

WAYS = ("driver", "executors", "kept by executors")


def several_specs(lake, spark, version, **properties):
    """A table of files without a partition, by city, and by city and a bucket."""
    table = lake.create_table(
        "db.t", "id bigint, city string", format_version=version, properties=properties
    )
    rows = "id", "element_at(array('Oslo', 'Lima', 'a/b', null), int(id % 4) + 1) as city"
    table.append(spark.range(0, 300).selectExpr(*rows).repartition(2))
    table.update_spec().add_field("city").commit()
    table.append(spark.range(300, 600).selectExpr(*rows).coalesce(1))
    table.update_spec().add_field("bucket(3, id)").commit()
    table.append(spark.range(600, 900).selectExpr(*rows).coalesce(1))
    return table


def ids_by_place(table):
    """The id of the row at each place of each file."""
    return {
        path: pq.read_table(local(path), columns=["id"], partitioning=None)["id"].to_pylist()
        for path in table.inspect.files()["file_path"]
    }


def every(ids, step, start=0):
    """The places of every so-manieth row."""
    return {path: set(range(start, len(rows), step)) for path, rows in ids.items()}


def left(ids, deleted):
    """The ids of rows that stay."""
    return sorted(
        row
        for path, rows in ids.items()
        for n, row in enumerate(rows)
        if n not in deleted.get(path, ())
    )


def read(table):
    """The ids that Frazil reads, by what the delete files say."""
    table.io.caches["deletes"].clear()
    return read_by_what_is_kept(table)


def read_by_what_is_kept(table):
    """The ids that Frazil reads."""
    return sorted(row.id for row in table.refresh().scan().to_df().select("id").collect())


def commit(table, written: WrittenDeletes):
    table.files.row_delta(
        added_deletes=written.added,
        removed_deletes=written.removed,
        referenced_data_files=written.referenced_paths,
    )


def added_files(table):
    """Entries of data files."""
    return [
        entry.data_file
        for manifest in avro.manifests_of(table.io, table.current_snapshot)
        for entry in read_entries(table.io, table.metadata, manifest)
        if entry.data_file.is_data
    ]


@pytest.mark.check
@pytest.mark.parametrize(("version", "way_taken"), these([(2, "driver")], [2, 3], WAYS))
def test_later_deletes_take_over_those_of_one_file(lake, spark, write, way, version, way_taken):
    table = several_specs(lake, spark, version)
    ids = ids_by_place(table)
    first, second = every(ids, 5), every(ids, 3)
    untouched = max(first)
    del second[untouched]
    before = write(table, first)
    commit(table, before)
    with way(way_taken):
        after = write(table, second)
    both = {path: first[path] | second[path] for path in second}
    assert places_of(after.added) == both
    specs = {f.file_path: (f.spec_id, f.partition) for f in added_files(table)}
    for delete in after.added:
        about = {specs[path] for path, _ in rows_of(delete)}
        assert about == {(delete.spec_id, delete.partition)}
    assert after.deleted_rows == sum(len(second[path] - first[path]) for path in second)
    keys = {(f.file_path, f.content_offset) for f in before.added}
    kept = {(f.file_path, f.content_offset) for f in before.added
            if f.referenced_data_file == untouched}  # fmt: skip
    assert {(f.file_path, f.content_offset) for f in after.removed} == keys - kept
    commit(table, after)
    assert read(table) == left(ids, both | {untouched: first[untouched]})
    summary = table.current_snapshot.summary
    live = sum(map(len, both.values())) + len(first[untouched])
    assert int(summary["total-position-deletes"]) == live

    with way(way_taken):
        again = write(table, second)
    assert again == WrittenDeletes()


@pytest.mark.check
@pytest.mark.parametrize(
    ("version", "properties"),
    [
        only_in_soak(2, {"write.delete.target-file-size-bytes": "1"}),
        only_in_soak(2, {"write.delete.granularity": "partition"}),
        (3, {}),
    ],
)
def test_the_next_read_knows_what_was_written(lake, spark, write, version, properties):
    """Beside what earlier deletes delete, which the same process wrote or read."""
    table = several_specs(lake, spark, version, **properties)
    ids = ids_by_place(table)
    deleted = {path: set() for path in ids}
    for start in (0, 70):
        new = every(ids, 97 if start else 5, start)
        written = write(table, new)
        commit(table, written)
        deleted = {path: found | new[path] for path, found in deleted.items()}
        table.refresh()
        paths = {local(delete.file_path) for delete in written.added}
        kept = {path: path.read_bytes() for path in paths}
        for path in paths:
            path.unlink()
        assert read_by_what_is_kept(table) == left(ids, deleted)
        for path, data in kept.items():
            path.write_bytes(data)
    assert read(table) == left(ids, deleted)


@pytest.mark.check
@pytest.mark.parametrize(
    "way_taken", [*map(only_in_soak, ("driver", "executors")), "kept by executors"]
)
def test_vectors_of_an_upgraded_table(lake, spark, write, way, way_taken):
    """A vector holds what position delete files of both granularities do; shared ones stay."""
    table = several_specs(lake, spark, 2)
    ids = ids_by_place(table)
    shared, own, new = every(ids, 11), every(ids, 13), every(ids, 17)
    for deleted, granularity in ((shared, "partition"), (own, "file")):
        written = write(table, deleted, granularity=granularity)
        commit(table, written)
        if granularity == "partition":
            of_one = {f.file_path for f in written.added if f.referenced_data_file is not None}
            assert len(of_one) < len(written.added)
        else:
            # A file of one data file is taken over, whichever granularity made it.
            assert {f.file_path for f in written.removed} == of_one
            of_one = {f.file_path for f in written.added}
    table.upgrade(3)
    with way(way_taken):
        written = write(table, new)
    everything = {path: shared[path] | own[path] | new[path] for path in ids}
    assert places_of(written.added) == everything
    assert {f.file_path for f in written.removed} == of_one
    commit(table, written)
    assert read(table) == left(ids, everything)


@pytest.mark.check
def test_a_file_that_a_table_holds_twice(lake, spark):
    """What one delete file deletes in two entries of a path is what both have afterwards."""
    table = lake.create_table(
        "db.t", "id bigint", format_version=2,
        properties={
            "write.delete.mode": "merge-on-read",
            "write.delete.granularity": "partition",
        },
    )  # fmt: skip
    table.append(spark.range(30).coalesce(1))
    [file] = added_files(table)
    table.delete("id = 5")
    table.files.append([file])
    assert table.scan("id = 5").to_df().count() == 1
    table.delete("id in (5, 20)")
    expected = sorted({*range(30)} - {5, 20}) * 2
    assert sorted(row.id for row in table.to_df().collect()) == sorted(expected)


@pytest.mark.parametrize("way_taken", [only_in_soak("driver"), "executors"])
def test_a_full_file_is_closed(lake, spark, write, way, way_taken):
    """Files near the target size, and of row groups as the properties say."""
    table = lake.create_table(
        "db.t", "id bigint", format_version=2,
        properties={
            "write.delete.parquet.row-group-size-bytes": "8000",
            "write.delete.parquet.compression-codec": "uncompressed",
        },
    )  # fmt: skip
    table.append(spark.range(20_000).coalesce(1))
    ids = ids_by_place(table)
    wanted = every(ids, 1)
    with way(way_taken):
        written = write(table, wanted, target_size=40_000)
    assert places_of(written.added) == wanted
    assert len(written.added) > 3
    assert all(len(file.split_offsets) > 1 for file in written.added[:-1])
    assert all(file.file_size_in_bytes < 80_000 for file in written.added)
    assert written.deleted_rows == 20_000
    commit(table, written)
    assert read(table) == []


@pytest.mark.check
@pytest.mark.parametrize("version", [only_in_soak(2), 3])
def test_thousands_of_files(lake, spark, places, planned, version):
    """Without a file of data: of a plan whose files are only named."""
    table = lake.create_table("db.t", "id bigint", format_version=version)
    table.append(spark.range(10).coalesce(1))
    plan, _ = planned(table)
    count = 2_000
    files = pl.concat([plan.files] * count).with_columns(
        pl.int_range(count, dtype=pl.UInt32).alias("ordinal"),
        pl.format("file:///data/{}.parquet", pl.int_range(count)).alias("file_path"),
    )
    rows = spark.range(0, count * 2, 1, 4).selectExpr("id div 2", "(id % 2) * 5 + id div 1000")
    written = write_deletes(
        rows,
        plan=replace(plan, files=files),
        metadata=table.metadata,
        io=table.io,
        granularity="partition",
    )
    wanted: dict[str, set[int]] = {}
    for n in range(count * 2):
        wanted.setdefault(f"file:///data/{n // 2}.parquet", set()).add(n % 2 * 5 + n // 1000)
    if version == 2:
        assert places_of(written.added) == wanted
        assert len(written.paths) == 1
    else:
        assert len(written.added) == count
        assert len(written.paths) == 1
        assert places_of(written.added[::100]) == {
            f.referenced_data_file: wanted[f.referenced_data_file] for f in written.added[::100]
        }
    assert written.deleted_rows == count * 2


@pytest.mark.parametrize(
    ("version", "way_taken"), one_of_each([2, 3], ["driver", "kept by executors"])
)
def test_positions_beyond_32_bits(lake, spark, places, planned, way, version, way_taken):
    table = lake.create_table("db.t", "id bigint", format_version=version)
    table.append(spark.range(10).coalesce(1))
    plan, ordinals = planned(table)
    (path,) = ordinals
    rows = plan.files.with_columns(pl.lit(2**37).alias("record_count"))
    wanted = {path: {0, 2**31 - 1, 2**31, 2**32 + 5, 2**37 - 1}}
    with way(way_taken):
        written = write_deletes(
            places([(ordinals[path], n) for n in sorted(wanted[path])]),
            plan=replace(plan, files=rows),
            metadata=table.metadata,
            io=table.io,
        )
    assert places_of(written.added) == wanted


NO_ROWS = [
    ((5, 0), r"data files \[5\], which are not in the plan"),
    ((0, 10), "position 10 of .* has 10 rows"),
    ((0, -1), "at position -1 of the data file with the ordinal 0"),
    ((0, 1 << 37), "at position 137438953472 "),
    ((-1, 0), "ordinal -1"),
    ((0, None), "position NULL"),
    ((None, 3), "ordinal NULL"),
]


@pytest.fixture(scope="module")
def ten_rows(shared_lake, spark):
    """A table of one file, which no test changes."""
    table = shared_lake.create_table("db.ten", "id bigint", format_version=3)
    table.append(spark.range(10).coalesce(1))
    return table


@pytest.mark.parametrize(
    ("case", "way_taken"), one_of_each(NO_ROWS, ["driver", "kept by executors"], test=1)
)
def test_a_place_that_is_no_row(ten_rows, spark, planned, way, case, way_taken):
    (place, told), table = case, ten_rows
    plan, _ = planned(table)
    rows = spark.createDataFrame([(0, 1), place], "file bigint, pos bigint")
    with way(way_taken), pytest.raises(ValidationError, match=told):
        write_deletes(rows, plan=plan, metadata=table.metadata, io=table.io)


def test_tables_that_take_no_such_deletes(lake, spark, places, planned):
    table = lake.create_table("db.t", "id bigint", format_version=1)
    table.append(spark.range(10).coalesce(1))
    plan, _ = planned(table)
    rows = places([(0, 1)])
    with pytest.raises(UnsupportedError, match="version 1 have no delete files"):
        write_deletes(rows, plan=plan, metadata=table.metadata, io=table.io)
    table.upgrade(2)
    table.set_properties({"write.delete.format.default": "avro"})
    with pytest.raises(UnsupportedError, match="avro delete files"):
        write_deletes(rows, plan=plan, metadata=table.metadata, io=table.io)
    with pytest.raises(ConfigurationError, match=r"write\.delete\.granularity"):
        table.set_properties({"write.delete.granularity": "row"})


class FullStore(FileIO):
    """Takes some files and refuses the next."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def create_unique(self, path: str, data: bytes) -> None:
        if self.room == 0:
            raise StorageError(f"cannot create {path}: no space left")
        self.room -= 1
        super().create_unique(path, data)


def below(table):
    """Every file of a table."""
    folder = local(table.metadata.location)
    return {str(path) for path in folder.rglob("*") if path.is_file()}


def test_files_of_a_failed_write_are_removed(lake, spark, write):
    table = several_specs(lake, spark, 2)
    before = below(table)
    with pytest.raises(StorageError, match="no space left"):
        write(table, every(ids_by_place(table), 7), io=FullStore(3))
    assert below(table) == before


@pytest.mark.parametrize(
    "way_taken", [only_in_soak("driver"), "executors", only_in_soak("kept by executors")]
)
def test_an_earlier_delete_that_cannot_be_read(lake, spark, write, way, way_taken):
    table = several_specs(lake, spark, 3)
    ids = ids_by_place(table)
    first = write(table, every(ids, 5))
    commit(table, first)
    local(first.added[-1].file_path).write_bytes(b"PFA1")
    table.io.caches["deletes"].clear()
    before = below(table)
    with way(way_taken), pytest.raises((InvalidDataFileError, MissingFileError, StorageError)):
        write(table, every(ids, 7))
    assert below(table) == before
