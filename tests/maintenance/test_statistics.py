"""Statistics: sketches and counts beside those of plain Python and of other engines' files."""

from __future__ import annotations

import decimal
import struct
from datetime import UTC, date, datetime
from typing import Any

import mmh3
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent_walk import local, metadata_of
from pyspark.sql import functions as F

from ci_share import only_in_soak
from frazil.errors import FrazilError, InvalidDataFileError, ValidationError
from frazil.format.changes import RemoveSchemas
from frazil.format.puffin.files import blob_bytes, read_puffin_footer
from frazil.format.puffin.theta_sketches import ThetaSketch, parse_theta_sketch
from frazil.spark.abilities import HAS_THETA_SKETCHES
from frazil.spark.maintenance.table_stats import sketches_of
from frazil.table.commit.operation import MetadataOperation

LIMIT = 2**63 - 1


# -- sketches: bytes that Apache DataSketches wrote (Java 9.0 in Spark 4.3, C++ in Python 5.2) ----

PACKED = bytes.fromhex("0104033d011acc9303") + bytes.fromhex(
    "2d0c35ee5befc8ae3efa70d1dfa7ab834e208fb6c9a844"
)


def test_packed_hashes_are_unpacked():
    sketch = parse_theta_sketch(PACKED)
    assert (len(sketch.hashes), sketch.theta, sketch.estimate) == (3, LIMIT, 3.0)
    assert parse_theta_sketch(sketch.to_bytes()) == sketch


@given(st.sets(st.integers(1, LIMIT - 1), max_size=40), st.integers(2**62, LIMIT), st.booleans())
@settings(max_examples=50, deadline=None)
def test_sketches_come_back(hashes, theta, is_exact):
    limit = LIMIT if is_exact else theta
    kept = tuple(sorted(each for each in hashes if each < limit))
    empty = not kept and limit == LIMIT
    sketch = ThetaSketch(kept, limit, is_empty=empty)
    data = sketch.to_bytes()
    assert parse_theta_sketch(data) == sketch
    assert struct.unpack_from("<3B", data)[1:] == (3, 3)


@pytest.mark.parametrize("data", [b"", b"\x01\x03\x03", b"\x02\x03\x02" + bytes(30), PACKED[:20]])
def test_what_is_no_sketch_is_refused(data):
    with pytest.raises(InvalidDataFileError, match="sketch"):
        parse_theta_sketch(data)


# -- statistics of tables ----

DDL = (
    "b boolean, i int, l bigint, f float, d double, m decimal(20,3), day date, at timestamp,"
    " wall timestamp_ntz, s string, raw binary, arr array<int>, deep struct<x: int>"
)
ROW = (
    "id % 2 = 0 as b",
    "int(id % 7) - 3 as i",
    "id as l",
    "float(id % 5) as f",
    "id / 2 as d",
    "cast(id % 11 - 5 as decimal(20,3)) as m",
    "date_add(date'1969-12-30', int(id % 6)) as day",
    "timestamp_micros(id % 9) as at",
    "timestamp_ntz'1969-12-31 23:59:59' as wall",
    "if(id % 4 = 0, null, concat('s', id % 4)) as s",
    "cast(string(id % 3) as binary) as raw",
    "array(1) as arr",
    "named_struct('x', int(id % 8)) as deep",
)
DISTINCT = {
    "b": 2, "i": 7, "l": 100, "f": 5, "d": 100, "m": 11, "day": 6, "at": 9, "wall": 1, "s": 3,
    "raw": 3,
}  # fmt: skip


def blobs(result: Any) -> dict[int, ThetaSketch]:
    """The sketches of a file by field id, read with its footer."""
    data = local(result.statistics_file).read_bytes()
    footer = read_puffin_footer(data)
    return {
        blob.fields[0]: parse_theta_sketch(
            blob_bytes(data[blob.offset : blob.offset + blob.length], blob)
        )
        for blob in footer.blobs
    }


def test_distinct_values_are_counted_in_every_type(spark, lake):
    table = lake.create_table("db.t", DDL)
    assert table.maintenance.compute_table_stats().statistics_file is None
    table.append(spark.range(100).selectExpr(*ROW))
    result = table.maintenance.compute_table_stats()
    assert dict(result.distinct_counts) == DISTINCT
    held = blobs(result)
    ids = {field.name: field.field_id for field in table.schema.fields}
    assert {name: len(held[ids[name]].hashes) for name in DISTINCT} == DISTINCT
    # The same values have the same hashes whoever counts them: those of the C++ library.
    assert held[ids["b"]].hashes == tuple(sorted(hashes_of([b"\0", b"\1"])))
    assert held[ids["i"]].hashes == tuple(sorted(hashes_of(packed("<i", range(-3, 4)))))
    days = [(date(1969, 12, 30) - date(1970, 1, 1)).days + n for n in range(6)]
    assert held[ids["day"]].hashes == tuple(sorted(hashes_of(packed("<i", days))))
    assert held[ids["at"]].hashes == tuple(sorted(hashes_of(packed("<q", range(9)))))
    assert held[ids["wall"]].hashes == tuple(hashes_of(packed("<q", [-1_000_000])))
    assert held[ids["f"]].hashes == tuple(sorted(hashes_of(packed("<f", range(5)))))
    unscaled = [(n - 5) * 1000 for n in range(11)]
    decimals = [
        n.to_bytes(max(1, (n + (n < 0)).bit_length() // 8 + 1), "big", signed=True)
        for n in unscaled
    ]
    assert held[ids["m"]].hashes == tuple(sorted(hashes_of(decimals)))
    registered = metadata_of(table.metadata_location)["statistics"]
    [file] = registered
    size = local(result.statistics_file).stat().st_size
    assert (file["statistics-path"], file["file-size-in-bytes"]) == (result.statistics_file, size)
    assert {b["fields"][0]: b["properties"]["ndv"] for b in file["blob-metadata"]} == {
        ids[name]: str(count) for name, count in DISTINCT.items()
    }
    assert "distinct values" in repr(result)


def packed(kind: str, values: Any) -> list[bytes]:
    return [struct.pack(kind, value) for value in values]


def hashes_of(values: list[bytes]) -> list[int]:
    """What DataSketches makes of bytes: the upper half of MurmurHash3 with its seed, halved."""
    return [mmh3.hash64(value, seed=9001, x64arch=True, signed=False)[0] >> 1 for value in values]


def test_columns_and_snapshots_are_chosen(spark, lake):
    table = lake.create_table("db.t", "id bigint, deep struct<x: int>, arr array<int>")
    row = ("id", "named_struct('x', int(id % 8)) deep", "array(1) arr")
    table.append(spark.range(10).selectExpr(*row))
    first = table.metadata.current_snapshot_id
    table.append(spark.range(10, 30).selectExpr(*row))
    then = table.maintenance.compute_table_stats(columns=["deep.x", "id"], snapshot_id=first)
    now = table.maintenance.compute_table_stats(columns="id")
    assert dict(then.distinct_counts) == {"deep.x": 8, "id": 10}
    assert dict(now.distinct_counts) == {"id": 30}
    assert {each.snapshot_id for each in table.metadata.statistics} == {
        first,
        table.metadata.current_snapshot_id,
    }
    with table.update_schema() as change:
        change.rename_column("id", "key")
    # The snapshot has the names that it was written with.
    assert dict(table.maintenance.compute_table_stats(columns="id").distinct_counts) == {"id": 30}
    for wrong in ("nope", "arr", "deep", []):
        with pytest.raises(FrazilError):
            table.maintenance.compute_table_stats(columns=wrong)


def test_many_values_are_estimated(spark, lake):
    table = lake.create_table("db.t", "id bigint")
    table.append(spark.range(100_000))
    [count] = table.maintenance.compute_table_stats().distinct_counts.values()
    # 4096 hashes: the standard error is 1.6 %.
    assert abs(count - 100_000) < 8_000


ODD = (
    "if(id % 7 = 0, null, id - 5) as l",
    "case id when 0 then double('NaN') when 1 then -0.0d when 2 then 0.0d else id / 3 end as d",
    "if(id % 5 = 0, '', concat('ü', id % 50)) as s",
    "cast(string(id % 9) as binary) as raw",
    "cast(null as bigint) as none",
    "if(id < 0, 1L, null) as rows",
)


@pytest.mark.skipif(not HAS_THETA_SKETCHES, reason="this Spark makes no sketches")
def test_sketches_of_our_own_tasks_are_those_that_spark_makes(spark):
    """They stand in for Spark's, where it makes none."""
    rows = spark.range(300).selectExpr(*ODD)
    columns = [F.col(name) for name in rows.columns]
    [made] = rows.agg(*map(F.theta_sketch_agg, columns)).collect()
    assert sketches_of(rows, columns) == [parse_theta_sketch(bytes(each)) for each in made]
    [many] = sketches_of(spark.range(20_000), [F.col("id")])
    assert len(many.hashes) <= 4096
    assert max(many.hashes) < many.theta
    assert abs(many.estimate - 20_000) < 1_600


# -- statistics of partitions ----


@pytest.mark.parametrize("version", [only_in_soak(2), 3])
def test_partitions_are_counted(spark, lake, version):
    table = lake.create_table(
        "db.t",
        "id bigint, part int, u string",
        partition_by=["part"],
        format_version=version,
        properties={"write.delete.mode": "merge-on-read"},
    )
    assert table.maintenance.compute_partition_stats().partition_statistics_file is None
    part = "if(id % 3 = 2, null, int(id % 3)) as part"
    table.append(spark.range(30).selectExpr("id", part, "string(id) as u"))
    first = table.current_snapshot
    table.append(spark.range(30, 33).selectExpr("id", "1 as part", "string(id) as u"))
    second = table.current_snapshot
    table.delete("id in (0, 3)")
    third = table.current_snapshot
    result = table.maintenance.compute_partition_stats()
    path = local(result.partition_statistics_file)
    rows = pq.read_table(path).to_pylist()
    assert [row["partition"]["part"] for row in rows] == [None, 0, 1]
    assert [row["data_record_count"] for row in rows] == [10, 10, 13]
    assert [row["position_delete_record_count"] for row in rows] == [0, 2, 0]
    vectors = [0, 1, 0] if version == 3 else [None] * 3
    assert [row.get("dv_count") for row in rows] == vectors
    assert [row["position_delete_file_count"] for row in rows] == [0, 0 if version == 3 else 1, 0]
    total = [10, 8 if version == 3 else None, 13]
    assert [row["total_record_count"] for row in rows] == total
    last = [first, third, second]
    assert [row["last_updated_snapshot_id"] for row in rows] == [each.snapshot_id for each in last]
    assert [row["last_updated_at"] for row in rows] == [each.timestamp_ms for each in last]
    files = table.inspect.files().filter(content=0)
    assert (
        sum(row["total_data_file_size_in_bytes"] for row in rows)
        == files["file_size_in_bytes"].sum()
    )
    [registered] = metadata_of(table.metadata_location)["partition-statistics"]
    assert registered["file-size-in-bytes"] == path.stat().st_size
    ids = {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in pq.read_schema(path)}
    wanted = {"partition": 1, "spec_id": 2, "data_record_count": 3, "last_updated_snapshot_id": 12}
    assert wanted.items() <= ids.items()
    assert ("dv_count" in ids) == (version == 3)
    again = table.maintenance.compute_partition_stats(snapshot_id=first.snapshot_id)
    assert again.partitions_count == 3
    assert len(table.metadata.partition_statistics) == 2


def test_tables_without_partitions_have_none_to_count(spark, lake):
    table = lake.create_table("db.t", "id bigint")
    with pytest.raises(ValidationError, match="not partitioned"):
        table.maintenance.compute_partition_stats()


def test_partitions_whose_columns_are_gone_from_every_schema(spark, lake):
    """The metadata does not tell the type of their values any more."""
    table = lake.create_table("db.t", "id bigint, p string", partition_by=["p"])
    table.append(spark.sql("select 1L id, 'a' p"))
    with table.update_spec() as change:
        change.remove_field("p")
    with table.update_schema() as change:
        change.delete_column("p")
    counted = table.maintenance.compute_partition_stats()
    assert counted.partitions_count == 1

    def forgotten(base):
        return [RemoveSchemas(tuple(base.schemas_by_id.keys() - {base.current_schema_id}))]

    table.port.run(MetadataOperation(forgotten))
    with pytest.raises(ValidationError, match="their values have no type"):
        table.maintenance.compute_partition_stats()


def test_partitions_of_every_type_are_counted(spark, lake):
    columns = {
        "d": ("date", "date'2024-01-01'", date(2024, 1, 1)),
        "t": ("timestamp", "timestamp'2024-01-01'", datetime(2024, 1, 1, tzinfo=UTC)),
        "n": ("timestamp_ntz", "timestamp_ntz'2024-01-01'", datetime(2024, 1, 1)),
        "m": ("decimal(9,2)", "1.50bd", decimal.Decimal("1.50")),
        "s": ("string", "'x'", "x"),
        "b": ("binary", "x'01'", b"\x01"),
        "f": ("boolean", "true", True),
        "l": ("bigint", "7L", 7),
    }
    ddl = ", ".join(f"{name} {kind[0]}" for name, kind in columns.items())
    table = lake.create_table("db.t", ddl, partition_by=list(columns))
    values = [f"cast({kind[1]} as {kind[0]}) as {name}" for name, kind in columns.items()]
    table.append(spark.range(3).selectExpr(*values))
    with table.update_spec() as update:
        update.add_field("bucket(4, l)")
    table.append(spark.range(2).selectExpr(*values))
    result = table.maintenance.compute_partition_stats()
    rows = pq.read_table(local(result.partition_statistics_file)).to_pylist()
    assert [(row["spec_id"], row["data_record_count"]) for row in rows] == [(0, 3), (1, 2)]
    for row in rows:
        assert {name: row["partition"][name] for name in columns} == {
            name: kind[2] for name, kind in columns.items()
        }
    [bucket] = set(rows[0]["partition"]) - set(columns)
    assert [row["partition"][bucket] is None for row in rows] == [True, False]
