"""Tables on S3 whose data goes through s3a.

Run by `test_interop_s3a`. Expected rows are plain Python.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from s3a_store import (
    BUCKET,
    SECRET,
    STORE,
    WAREHOUSE,
    Deletes,
    below,
    keys,
    ordered,
    read,
    rows_of,
)

import frazil
from frazil import NestedField, Schema, errors, types
from frazil.spark.hadoop.stores import stores_of
from frazil.spark.lake import Lake, connect
from frazil.spark.session import costs
from frazil.storage.files import FileIO

ODD = ["plain", "a b", "50%", "x=y", "%41", "ü/é", "日本", "a+b&c", "#?*", "'q'", None]


# -- writing and reading ---------------------------------------------------------------------------


def test_native_files(spark: Any, lake: Lake, client: Any, fresh: str) -> None:
    """Flat columns go through Spark's writer: every kind of write, and what it leaves behind."""
    ddl = "id int, city string, day date"
    table = lake.create_table(fresh, ddl, partition_by=["city", "month(day)"])
    rows = [(n, f"c{n % 3}", date(2024, 1 + n % 2, 1 + n)) for n in range(12)]
    table.append(spark.createDataFrame(rows, ddl))
    first = table.refresh().current_snapshot.snapshot_id
    assert read(table) == ordered(rows)
    assert read(table, "city = 'c1'") == ordered([row for row in rows if row[1] == "c1"])
    pruned = table.scan(where="city = 'c1' and day >= '2024-02-01'")
    kept = [row for row in rows if row[1] == "c1" and row[2].month == 2]
    assert rows_of(pruned.to_df()) == ordered(kept)
    assert len(pruned.plan().files) == 1

    table.overwrite(spark.createDataFrame([(100, "c0", date(2024, 1, 9))], ddl), where="id < 4")
    second = [(100, "c0", date(2024, 1, 9)), *(row for row in rows if row[0] >= 4)]
    assert read(table) == ordered(second)
    fresh_rows = [(200, "c2", date(2024, 1, 2)), (201, "c9", date(2024, 5, 1))]
    table.overwrite_partitions(spark.createDataFrame(fresh_rows, ddl))
    third = [r for r in second if (r[1], r[2].month) != ("c2", 1)] + fresh_rows
    assert read(table) == ordered(third)
    assert table.scan().count() == len(third)
    assert read(table, snapshot_id=first) == ordered(rows)

    told = table.changes(first).select("_change_type", "id", "_change_ordinal")
    expected = [("DELETE", n, 0) for n in range(4)] + [("INSERT", 100, 0)]
    gone = [r[0] for r in second if (r[1], r[2].month) == ("c2", 1)]
    expected += [("DELETE", n, 1) for n in gone] + [("INSERT", 200, 1), ("INSERT", 201, 1)]
    assert rows_of(told) == ordered(expected)

    grouped = table.scan().aggregate(["count(*)", "min(id)", "max(id)"], by=["city"]).to_df()
    by_city: dict[str, list[int]] = {}
    for row in third:
        by_city.setdefault(row[1], []).append(row[0])
    assert rows_of(grouped) == ordered([(c, len(i), min(i), max(i)) for c, i in by_city.items()])

    assert not [key for key in below(client, table) if "_temporary" in key or "_SUCCESS" in key]


def test_arrow_files(spark: Any, lake: Lake, client: Any, fresh: str) -> None:
    """Lists, maps, structs and UUIDs go through executors' PyArrow."""
    schema = Schema(
        (
            NestedField(1, "id", types.IntegerType()),
            NestedField(2, "city", types.StringType()),
            NestedField(3, "key", types.UUIDType()),
            NestedField(4, "tags", types.ListType(5, types.StringType())),
            NestedField(6, "counts", types.MapType(7, types.StringType(), 8, types.LongType())),
            NestedField(9, "place", types.StructType((NestedField(10, "x", types.DoubleType()),))),
        )
    )
    ddl = (
        "id int, city string, key string, tags array<string>, counts map<string,bigint>, "
        "place struct<x: double>"
    )
    table = lake.create_table(fresh, schema, partition_by=["city"])
    rows = [
        (n, f"c{n % 2}", str(UUID(int=n)), ["a", None] * (n % 2), {"k": n}, (n / 2,))
        for n in range(6)
    ]
    table.append(spark.createDataFrame(rows, ddl))
    assert read(table) == ordered(
        [(*row[:5], spark.createDataFrame([row], ddl).first()["place"]) for row in rows]
    )
    wanted = table.scan(where=f"key = '{UUID(int=3)}'", columns=["id", "tags"]).to_df()
    assert rows_of(wanted) == [(3, ["a", None])]
    table.overwrite(spark.createDataFrame([], ddl), where="place.x >= 1.5")
    assert [row[0] for row in read(table)] == [0, 1, 2]
    assert table.scan().count() == 3


def test_nested_files(spark: Any, lake: Lake, fresh: str) -> None:
    """Nested columns without UUIDs."""
    table = lake.create_table(fresh, "id int, tags array<int>, at struct<x: int>")
    df = spark.createDataFrame([(1, [1, 2], (3,)), (2, None, None)], table.scan().to_df().schema)
    table.append(df)
    assert [(r[0], r[1]) for r in read(table)] == [(1, [1, 2]), (2, None)]
    assert read(table, "at.x = 3", columns=["id"]) == [(1,)]


def test_metadata_columns(spark: Any, lake: Lake, fresh: str) -> None:
    """The file of a row is spelled as the manifest spells it."""
    table = lake.create_table(fresh, "id int, city string", partition_by=["city"])
    table.append(spark.createDataFrame([(n, f"c{n % 2}") for n in range(6)], "id int, city string"))
    files = {row["file_path"] for row in table.refresh().inspect.dataframes.data_files().collect()}
    found = table.scan(columns=["id", "_file", "_pos", "_spec_id"]).to_df().collect()
    assert {row["_file"] for row in found} == files
    assert all(path.startswith(f"{table.location}/data/") for path in files)
    assert sorted((row["_pos"], row["_spec_id"]) for row in found) == [
        (pos, 0) for pos in (0, 0, 1, 1, 2, 2)
    ]


@pytest.mark.parametrize("log", ["always", "never"])
def test_odd_partition_values(spark: Any, lake: Lake, client: Any, fresh: str, log: str) -> None:
    """Keys with spaces, percent and equals signs, other scripts; through the file log and not."""
    table = lake.create_table(fresh, "id int, city string", partition_by=["city"])
    rows = list(enumerate(ODD))
    table.append(spark.createDataFrame(rows, "id int, city string"))
    spark.conf.set("frazil.read.file-log", log)
    try:
        assert read(table) == ordered(rows)
        for number, city in rows:
            if city is not None:
                quoted = city.replace("'", "''")
                assert read(table, f"city = '{quoted}'") == [(number, city)]
        found = table.scan(columns=["_file"]).to_df()
        listed = {f"s3://{BUCKET}/{key}" for key in below(client, table) if "/data/" in key}
        assert {row[0] for row in found.collect()} == listed
        table.overwrite(spark.createDataFrame([], "id int, city string"), where="id in (2, 4)")
        assert read(table) == ordered([row for row in rows if row[0] not in (2, 4)])
    finally:
        spark.conf.unset("frazil.read.file-log")


@pytest.mark.parametrize("folder", ["a b/50%25 x=y/日本", "we#ird+?{a}[b]*&'"])
def test_odd_table_location(spark: Any, lake: Lake, client: Any, fresh: str, folder: str) -> None:
    """A table below a folder of such a name, native and Arrow."""
    table = lake.create_table(fresh, "id int, n int", location=f"{WAREHOUSE}/{folder}")
    table.append(spark.createDataFrame([(1, 2)], "id int, n int"))
    assert read(table) == [(1, 2)]
    with table.update_schema() as change:
        change.add_column("tags", types.ListType(3, types.IntegerType()))
    table.refresh().append(spark.createDataFrame([(2, 3, [4])], "id int, n int, tags array<int>"))
    assert read(table) == [(1, 2, None), (2, 3, [4])]
    table.overwrite(spark.createDataFrame([], "id int, n int, tags array<int>"), where="n = 2")
    assert read(table) == [(2, 3, [4])]
    lake.purge_table(fresh)
    assert below(client, table) == []


def test_many_files(spark: Any, lake: Lake, client: Any, fresh: str) -> None:
    """So many that executors read their footers; a purge removes them all."""
    table = lake.create_table(fresh, "id int, city string", partition_by=["city"])
    rows = [(number, f"c {number}%") for number in range(costs.REMOTE_FOOTERS.here + 2)]
    table.append(spark.createDataFrame(rows, "id int, city string"))
    assert read(table) == ordered(rows)
    lake.purge_table(fresh)
    assert below(client, table) == []


@pytest.mark.parametrize("ddl", ["id int, city string", "id int, city string, t array<int>"])
@pytest.mark.parametrize("by", [[], ["city"]])
def test_no_rows(spark: Any, lake: Lake, client: Any, fresh: str, by: list[str], ddl: str) -> None:
    """A write of no rows leaves nothing in the data folder."""
    table = lake.create_table(fresh, ddl, partition_by=by)
    table.append(spark.createDataFrame([], ddl))
    assert [key for key in below(client, table) if "/data/" in key] == []


def test_moved_prefix(spark: Any, lake: Lake, client: Any, fresh: str, tmp_path: Path) -> None:
    """A table that was copied to another prefix, with its deletes."""
    table = lake.create_table(fresh, "id int, city string")
    table.append(spark.createDataFrame([(1, "a b"), (2, "50%")], "id int, city string"))
    table.refresh().files.row_delta(added_deletes=[Deletes(client, table, tmp_path).keys([1])])
    target = f"s3://{BUCKET}/copy of/x%y"
    for key in below(client, table):
        name = f"copy of/x%y/{key.partition(table.location.rpartition('/')[2] + '/')[2]}"
        client.copy_object(Bucket=BUCKET, Key=name, CopySource={"Bucket": BUCKET, "Key": key})
        client.delete_object(Bucket=BUCKET, Key=key)
    opened = frazil.open_table(target, spark=spark, moved={table.location: target}, **STORE)
    assert rows_of(opened.scan().to_df()) == [(2, "50%")]


def test_object_storage_layout(spark: Any, lake: Lake, client: Any, fresh: str) -> None:
    """Entropy folders, and a data path in another folder."""
    properties = {
        "write.object-storage.enabled": "true",
        "write.data.path": f"s3://{BUCKET}/elsewhere",
    }
    table = lake.create_table(fresh, "id int", properties=properties)
    table.append(spark.createDataFrame([(1,), (2,)], "id int"))
    assert read(table) == [(1,), (2,)]
    assert keys(client, "elsewhere/")


def test_s3a_location(spark: Any, lake: Lake, fresh: str) -> None:
    """A table whose own paths say s3a."""
    table = lake.create_table(fresh, "id int, tags array<int>", location=f"s3a://{BUCKET}/own")
    table.append(spark.createDataFrame([(1, [1])], "id int, tags array<int>"))
    assert read(table) == [(1, [1])]


# -- deletes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("log", ["always", "never"])
@pytest.mark.parametrize("version", [2, 3])
def test_deletes(
    spark: Any, lake: Lake, client: Any, fresh: str, tmp_path: Path, version: int, log: str
) -> None:
    """Position deletes, vectors and equality deletes whose files lie on S3."""
    table = lake.create_table(fresh, "id int, v string", format_version=version)
    for start in (0, 10):
        rows = [(n, f"v{n}") for n in range(start, start + 10)]
        table.append(spark.createDataFrame(rows, "id int, v string").coalesce(1))
    made = Deletes(client, table, tmp_path)
    spark.conf.set("frazil.read.file-log", log)
    try:
        paths = {
            row["id"]: row["_file"]
            for row in table.refresh().scan(columns=["id", "_file"]).to_df().collect()
        }
        if version == 2:
            files = [made.positions({paths[0]: [0, 3], paths[10]: [9]})]
        else:
            files = [made.vector(paths[0], [0, 3]), made.vector(paths[10], [9])]
        table.files.row_delta(added_deletes=files)
        left = {n: f"v{n}" for n in range(20) if n not in (0, 3, 19)}
        assert read(table) == ordered(list(left.items()))
        before = table.refresh().current_snapshot.snapshot_id
        table.files.row_delta(added_deletes=[made.keys([5, 15])])
        left = {n: v for n, v in left.items() if n not in (5, 15)}
        assert read(table) == ordered(list(left.items()))
        assert table.scan().count() == len(left)
        assert rows_of(table.changes(before).select("id", "_change_type")) == [
            (15, "DELETE"),
            (5, "DELETE"),
        ]
        deleted = table.inspect.dataframes.position_deletes().select("file_path", "pos")
        assert rows_of(deleted) == ordered([(paths[0], 0), (paths[0], 3), (paths[10], 9)])
        table.overwrite(spark.createDataFrame([(40, "new")], "id int, v string"), where="id = 7")
        left.pop(7)
        left[40] = "new"
        assert read(table) == ordered(list(left.items()))
    finally:
        spark.conf.unset("frazil.read.file-log")


# -- metadata tables, expiry, purge ----------------------------------------------------------------


def test_metadata_tables(spark: Any, lake: Lake, fresh: str) -> None:
    """Each of them, where executors read the manifests from S3."""
    table = lake.create_table(fresh, "id int, city string", partition_by=["city"])
    for number in range(3):
        table.append(spark.createDataFrame([(number, "a"), (number, "b")], "id int, city string"))
    table.refresh()
    counts = {"history": 3, "snapshots": 3, "refs": 1, "metadata_log_entries": 4, "manifests": 3}
    counts |= {"entries": 6, "files": 6, "data_files": 6, "delete_files": 0, "partitions": 2}
    counts |= {"all_entries": 6, "all_files": 6, "all_data_files": 6, "all_delete_files": 0}
    counts |= {"all_manifests": 6, "position_deletes": 0}
    assert {name: getattr(table.inspect.dataframes, name)().count() for name in counts} == counts


def test_expiry_and_purge(spark: Any, lake: Lake, client: Any, fresh: str) -> None:
    """What snapshots no longer reach goes; a purged table leaves no object."""
    table = lake.create_table(fresh, "id int, city string", partition_by=["city"])
    for number in range(3):
        rows = [(number, "a b"), (number, "50%")]
        table.overwrite(spark.createDataFrame(rows, "id int, city string"))
    before = len(below(client, table))
    result = table.refresh().maintenance.expire_snapshots(older_than="2999-01-01", retain_last=1)
    assert result.deleted_data_files == 4
    assert read(table) == [(2, "50%"), (2, "a b")]
    assert len(below(client, table)) < before
    assert len([key for key in below(client, table) if key.endswith(".parquet")]) == 2
    lake.purge_table(fresh)
    assert below(client, table) == []


def test_failed_writes_leave_nothing(spark: Any, lake: Lake, client: Any, fresh: str) -> None:
    """A job that fails removes its folder."""
    for kind, ddl in {"native": "id int, n int", "arrow": "id int, n int, t array<int>"}.items():
        table = lake.create_table(f"{fresh}_{kind}", ddl)
        before = below(client, table)
        rows = spark.range(0, 50, 1, 5).selectExpr(
            "cast(id as int) id",
            "if(id = 45, cast(raise_error('no') as int), 1) n",
            *(["array(1) t"] if kind == "arrow" else []),
        )
        with pytest.raises(Exception, match="no"):
            table.append(rows)
        assert below(client, table) == before, kind


@pytest.mark.parametrize("ddl", ["id int, city string", "id int, city string, t array<int>"])
def test_stores_that_refuse(spark: Any, lake: Lake, fresh: str, ddl: str) -> None:
    """The reason is told where a data path cannot be written, native and Arrow."""
    table = lake.create_table(fresh, ddl, properties={"write.data.path": "s3://not-there/data"})
    row = (1, "a", [1])[: ddl.count(",") + 1]
    with pytest.raises(errors.StorageError, match="not-there"):
        table.append(spark.createDataFrame([row], ddl))


def test_missing_files(spark: Any, lake: Lake, client: Any, fresh: str) -> None:
    """A data file that is gone is told by name, and without credentials."""
    table = lake.create_table(fresh, "id int, city string", partition_by=["city"])
    table.append(spark.createDataFrame([(1, "a b")], "id int, city string"))
    path = table.refresh().inspect.dataframes.data_files().first()["file_path"]
    client.delete_object(Bucket=BUCKET, Key=path.removeprefix(f"s3://{BUCKET}/"))
    with pytest.raises(errors.MissingFileError) as told:
        table.scan(where="id = 1").to_arrow()
    assert path.removeprefix("s3") in str(told.value)
    assert SECRET not in str(told.value)


# -- other ways to the same tables -----------------------------------------------------------------


def test_filesystem_catalog(spark: Any, client: Any) -> None:
    """Commits by create-if-absent; a second writer of a version is refused and tries again."""
    with connect(spark, type="hadoop", warehouse=f"s3://{BUCKET}/hadoop", **STORE) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", "id int, city string", partition_by=["city"])
        other = lake.load_table("db.t")
        table.append(spark.createDataFrame([(1, "a b")], "id int, city string"))
        other.append(spark.createDataFrame([(2, "50%")], "id int, city string"))
        assert read(table) == [(1, "a b"), (2, "50%")]
        assert lake.list_tables("db") == [("db", "t")]
        appended = spark.createDataFrame([(3, "c")], "id int, city string")
        writers = [lake.load_table("db.t") for _ in range(3)]
        with ThreadPoolExecutor(len(writers)) as pool:
            list(pool.map(lambda writer: writer.append(appended), writers))
        assert read(table) == [(1, "a b"), (2, "50%"), *[(3, "c")] * len(writers)]
        opened = frazil.open_table(table.location, spark=spark, **STORE)
        assert opened.scan().count() == 2 + len(writers)
        lake.purge_table("db.t")
        assert [key for key in keys(client, "hadoop/db/t/") if not key.endswith("/")] == []


def test_a_name_is_taken_once_by_the_connector(spark: Any, client: Any, tmp_path: Path) -> None:
    """Files by the connector itself: what is there stays, in one part and in many."""
    files = FileIO({"io": "hadoop"}, stores=stores_of({"io": "hadoop"}, spark))
    (tmp_path / "small").write_bytes(b"other")
    (tmp_path / "large").write_bytes(bytes(70 << 20))
    path = f"s3a://{BUCKET}/check/taken"
    files.create(path, b"first")
    for make in (
        lambda: files.create(path, b"second"),
        lambda: files.create_unique(path, b"second"),
        lambda: files.upload(str(tmp_path / "small"), path),
        lambda: files.upload(str(tmp_path / "large"), path),
    ):
        with pytest.raises(errors.AlreadyExistsError, match="exists"):
            make()
    # A request that was sent twice is no second writer.
    files.create_unique(path, b"first")
    assert client.get_object(Bucket=BUCKET, Key="check/taken")["Body"].read() == b"first"
    assert client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []) == []


def test_many_files_are_deleted_by_the_connector(spark: Any, client: Any) -> None:
    """Whether they are there or not, and whatever their names are."""
    files = FileIO({"io": "hadoop"}, stores=stores_of({"io": "hadoop"}, spark))
    names = [*(f"f {number}" for number in range(300)), "ü%41+?#", "&<>"]
    gone = [f"s3://{BUCKET}/check/many/{name}" for name in names]
    for name in (*names, "kept"):
        client.put_object(Bucket=BUCKET, Key=f"check/many/{name}", Body=b"1")
    assert files.delete_many([*gone, f"s3://{BUCKET}/check/many/none"]) == {}
    assert keys(client, "check/many/") == ["check/many/kept"]


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_scratch_on_s3(spark: Any, lake: Lake, client: Any, fresh: str, scheme: str) -> None:
    """The file log of a scan on S3 too, and gone once the scan is made."""
    table = lake.create_table(fresh, "id int, city string")
    table.append(spark.createDataFrame([(1, "x")], "id int, city string"))
    spark.conf.set("frazil.scratch", f"{scheme}://{BUCKET}/scratch")
    try:
        assert read(table) == [(1, "x")]
    finally:
        spark.conf.unset("frazil.scratch")
    assert keys(client, "scratch") == []


def test_session_with_a_file_system_for_s3(spark: Any, lake: Lake, fresh: str) -> None:
    """Where the session names the connector for `s3` itself, paths stay as they are."""
    spark.conf.set("spark.hadoop.fs.s3.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem")
    spark.conf.set("fs.s3.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem")
    try:
        table = lake.create_table(fresh, "id int, city string", partition_by=["city"])
        rows = list(enumerate(ODD))
        table.append(spark.createDataFrame(rows, "id int, city string"))
        assert read(table) == ordered(rows)
        spark.conf.set("frazil.read.file-log", "never")
        assert read(table) == ordered(rows)
    finally:
        for key in ("spark.hadoop.fs.s3.impl", "fs.s3.impl", "frazil.read.file-log"):
            spark.conf.unset(key)


def test_nothing_shows_the_secret(spark: Any, lake: Lake, fresh: str) -> None:
    """Neither representations nor plans."""
    table = lake.create_table(fresh, "id int, tags array<int>")
    table.append(spark.createDataFrame([(1, [1])], "id int, tags array<int>"))
    scan = table.refresh().scan(where="id = 1")
    shown = [repr(lake), repr(lake.catalog), repr(table), repr(table.io), repr(scan)]
    frames = (scan.to_df(), table.files(), table.inspect.dataframes.position_deletes())
    shown += [frame._jdf.queryExecution().toString() for frame in frames]
    assert SECRET not in "\n".join(shown)
