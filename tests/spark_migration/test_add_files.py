"""Files of a folder become files of a table: the rows are those that Spark reads of the folder."""

import shutil
from dataclasses import replace
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from migration_rows import COLUMNS, KEYS

from ci_share import only_in_soak
from frazil.errors import (
    InvalidDataFileError,
    MissingFileError,
    SchemaMismatchError,
    UnsupportedError,
    ValidationError,
)
from frazil.spark.session import costs

NAMES = ("id", "name", "at", "point", "dept", "n", "day")


def rows(df):
    """All rows as text, whatever their order."""
    return sorted(map(repr, df.select(*NAMES).collect()))


def add(table, folder, **settings):
    """The counts of adding Parquet files."""
    result = table.maintenance.add_files(f"`parquet`.`{folder}`", **settings)
    return result.added_files_count, result.changed_partition_count


@pytest.mark.check
@pytest.mark.parametrize("version", [only_in_soak(1), only_in_soak(2), 3])
def test_rows_are_those_of_the_folder_and_the_table_lives_on(people, folder, target, version):
    table = target(format_version=version)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    assert add(table, folder) == (5, 5)
    assert rows(table.to_df()) == rows(people)
    for where, ids in {
        "dept = 'x:y / 50%'": [2],
        "dept is null": [3],
        "n < 2 and day = '2024-01-31'": [1],
        "day is null and id > 3": [5],
        "point.x = 4": [4],
        "at < '2000-01-01'": [3],
    }.items():
        assert sorted(r.id for r in table.scan(where).to_df().collect()) == ids, where
    mode = "copy-on-write" if version == 1 else "merge-on-read"
    table.set_properties({f"write.{each}.mode": mode for each in ("delete", "update", "merge")})
    table.delete("id = 1")
    changed = people.where("id in (2, 3, 4, 5)")
    source = changed.where("id = 4").selectExpr("id + 5 as id", "name", "at", "point", *KEYS)
    merge = table.merge(source.union(changed.where("id = 2")), on=["id"])
    merge.when_matched_delete().when_not_matched_insert_all().execute()
    left = changed.where("id != 2").union(source)
    assert rows(table.to_df()) == rows(left)
    table.compact(rewrite_all=True)
    assert rows(table.refresh().to_df()) == rows(left)
    assert {p: p.stat().st_mtime_ns for p in before} == before
    if version == 3:
        lineage = table.scan(columns=["id", "_row_id"]).to_df().collect()
        assert len({row["_row_id"] for row in lineage}) == 4
    table.maintenance.expire_snapshots(older_than="2099-01-01", retain_last=1)
    assert rows(table.refresh().to_df()) == rows(left)
    assert table.maintenance.check().is_sound


def test_a_filter_chooses_partitions(folder, target):
    table = target()
    assert add(table, folder, partition_filter={"dept": "hr"}) == (2, 2)
    assert add(table, folder, partition_filter={"N": None}) == (1, 1)
    assert add(table, folder, partition_filter={"day": "1969-12-31", "n": "-2"}) == (1, 1)
    assert sorted(row.id for row in table.to_df().collect()) == [1, 2, 3, 4]
    with pytest.raises(ValidationError, match=r"no partition .* has .*sales"):
        add(table, folder, partition_filter={"dept": "sales"})
    with pytest.raises(ValidationError, match="'id', which is no partition column"):
        add(table, folder, partition_filter={"id": 1})
    with pytest.raises(ValidationError, match="is no value of the column, which is int"):
        add(table, folder, partition_filter={"n": "one"})


@pytest.mark.check
def test_a_file_is_added_once(people, folder, target):
    table = target()
    add(table, folder)
    link = folder.parent / "link"
    link.symlink_to(folder)
    for again in (folder, link, f"file:{folder}"):
        with pytest.raises(ValidationError, match="has 5 of these 5 files"):
            add(table, again)
    assert len(table.refresh().metadata.snapshots) == 1
    table.delete("dept = 'hr'")
    assert add(table, folder, partition_filter={"dept": "hr"}) == (2, 2)
    assert rows(table.to_df()) == rows(people)
    assert add(table, folder, check_duplicate_files=False) == (5, 5)
    assert rows(table.to_df()) == rows(people.union(people))


def test_a_file_that_is_there_twice_can_be_compacted(spark, lake, tmp_path):
    spark.sql("SELECT id FROM range(3)").coalesce(1).write.parquet(str(tmp_path / "a"))
    on_read = {"write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.t", "id bigint", format_version=3, properties=on_read)
    for _ in range(2):
        add(table, tmp_path / "a", check_duplicate_files=False)
    with pytest.raises(ValidationError, match="more than once, and a data file can have one"):
        table.delete("id = 1")
    assert table.compact(rewrite_all=True).rewritten_data_files_count == 2
    table.delete("id = 1")
    assert sorted(row[0] for row in table.to_df().collect()) == [0, 0, 2, 2]


def test_partitionings_must_match(spark, lake, people, folder, tmp_path):
    plain = lake.create_table("db.plain", COLUMNS)
    with pytest.raises(ValidationError, match=r"matches the partition columns \['dept', 'n'"):
        add(plain, folder)
    people.write.parquet(str(tmp_path / "flat"))
    with pytest.raises(ValidationError, match="unpartitioned spec"):
        add(plain, tmp_path / "flat", partition_filter={"dept": "hr"})
    swapped = lake.create_table("db.swapped", COLUMNS, partition_by=["n", "dept", "day"])
    with pytest.raises(ValidationError, match="no partition spec of the table"):
        add(swapped, folder)
    # A spec that the table had before takes the files of its partitions.
    table = lake.create_table("db.evolved", COLUMNS, partition_by=KEYS)
    with table.update_spec() as update:
        update.remove_field("n")
    assert add(table, folder) == (5, 5)
    assert rows(table.to_df()) == rows(people)
    assert {file["spec_id"] for file in table.inspect.files().to_dicts()} == {0}


@pytest.mark.parametrize("sensitive", [False, True])
def test_names_in_another_case_are_found_as_spark_finds_them(spark, lake, tmp_path, sensitive):
    pq.write_table(pa.table({"ID": [1, 2], "Name": ["a", None]}), tmp_path / "upper.parquet")
    pq.write_table(pa.table({"id": [3], "name": ["c"]}), tmp_path / "lower.parquet")
    table = lake.create_table("db.t", "id bigint, name string")
    spark.conf.set("spark.sql.caseSensitive", str(sensitive).lower())
    try:
        read = spark.read.schema("id bigint, name string").parquet(str(tmp_path / "*.parquet"))
        expected = sorted(map(str, read.collect()))
        if sensitive:
            with pytest.raises(SchemaMismatchError, match=r"none of its columns .* is one of"):
                table.maintenance.add_files(str(tmp_path / "upper.parquet"), format="parquet")
            return
        for name in ("upper", "lower"):
            table.maintenance.add_files(str(tmp_path / f"{name}.parquet"), format="parquet")
        assert sorted(map(str, table.to_df().collect())) == expected
        assert table.scan("id = 2").count() == 1
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_file_that_does_not_fit_is_refused_with_all_others(lake, tmp_path):
    pq.write_table(pa.table({"id": [7]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["seven"]}), tmp_path / "b.parquet")
    table = lake.create_table("db.t", "id bigint")
    with pytest.raises(SchemaMismatchError, match=r"b\.parquet .* id is stored as string"):
        table.maintenance.add_files(str(tmp_path), format="parquet")
    assert table.refresh().metadata.snapshots == ()
    assert "schema.name-mapping.default" not in table.properties


@pytest.mark.check
def test_files_of_other_writers(spark, lake, tmp_path):
    """INT96, milliseconds, unsigned and narrow numbers, dictionaries, more and fewer columns."""
    spark.sql("SELECT 1L AS id, TIMESTAMP '1969-12-31 23:59:59.000001' AS at").coalesce(
        1
    ).write.option("parquet.enable.dictionary", "false").parquet(str(tmp_path / "s"))
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        spark.sql("SELECT 2L AS id, TIMESTAMP '2024-01-01 00:00:00.5' AS at").write.parquet(
            str(tmp_path / "int96")
        )
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    place = tmp_path / "arrow"
    place.mkdir()
    pq.write_table(
        pa.table(
            {
                "id": pa.array([3, 4], pa.uint32()),
                "at": pa.array([-1, 1], pa.timestamp("ms", "Europe/Oslo")),
                "kind": pa.array(["a", "b"]).dictionary_encode(),
                "wide": pa.array([1.5, None], pa.float32()),
                "stranger": [1, 2],
            }
        ),
        place / "a.parquet",
    )
    view = pa.array(["v"], pa.string_view())
    pq.write_table(pa.table({"id": pa.array([5], pa.int8()), "kind": view}), place / "b.parquet")
    table = lake.create_table("db.t", "id bigint, at timestamp, kind string, wide double")
    for each in ("s", "int96", "arrow"):
        table.maintenance.add_files(str(tmp_path / each), format="parquet")
    moments = table.scan().to_df().selectExpr("id", "unix_micros(at) as at", "kind", "wide")
    assert sorted(moments.collect(), key=lambda row: row.id) == [
        (1, -999_999, None, None),
        (2, 1_704_067_200_500_000, None, None),
        (3, -1_000, "a", 1.5),
        (4, 1_000, "b", None),
        (5, None, "v", None),
    ]
    for where, count in {"at < '1970-01-01'": 2, "at = '1970-01-01 00:00:00.001'": 1}.items():
        assert table.scan(where).count() == count
    assert table.scan("id = 4 and wide is null").count() == 1


@pytest.mark.check
@pytest.mark.parametrize("kind", [only_in_soak("orc"), "avro"])
def test_orc_and_avro_files(spark, lake, tmp_path, kind):
    place = tmp_path / "k=x%3Ay"
    place.mkdir()
    values = [{"id": 1, "name": "a", "tags": ["p", "q"]}, {"id": 2, "name": None, "tags": None}]
    if kind == "orc":
        written = spark.createDataFrame(
            [tuple(each.values()) for each in values], "id int, name string, tags array<string>"
        )
        written.coalesce(1).write.mode("overwrite").orc(str(place))
    else:
        fields = [
            {"name": "id", "type": "int"},
            {"name": "name", "type": ["null", "string"]},
            {"name": "tags", "type": ["null", {"type": "array", "items": "string"}]},
        ]
        schema = {"type": "record", "name": "row", "fields": fields}
        with open(place / "a.avro", "wb") as file:
            fastavro.writer(file, schema, values)
    table = lake.create_table(
        "db.t", "id bigint, name string, tags array<string>, k string", partition_by="k"
    )
    result = table.maintenance.add_files(f"{kind}.`{tmp_path}`")
    assert (result.added_files_count, result.changed_partition_count) == (1, 1)
    assert sorted(table.to_df().collect()) == [
        (1, "a", ["p", "q"], "x:y"),
        (2, None, None, "x:y"),
    ]
    table.delete("id = 1")
    assert [row.k for row in table.to_df().collect()] == ["x:y"]


def test_an_avro_file_of_a_codec_that_is_not_known(lake, tmp_path):
    schema = {"type": "record", "name": "row", "fields": [{"name": "id", "type": "long"}]}
    with open(tmp_path / "a.avro", "wb") as file:
        fastavro.writer(file, schema, [{"id": 1}])
    table = lake.create_table("db.t", "id bigint")
    table.maintenance.add_files(f"avro.`{tmp_path}`")
    assert table.to_df().collect() == [(1,)]
    content = (tmp_path / "a.avro").read_bytes()
    assert table.inspect.files()["file_size_in_bytes"].to_list() == [len(content)]
    assert content.count(b"null") == 1
    (tmp_path / "a.avro").write_bytes(content.replace(b"null", b"lzma"))
    with pytest.raises(UnsupportedError, match=r"at snapshot \d+ .*codec 'lzma'"):
        lake.load_table("db.t").scan().to_arrow()


def test_folders_that_say_nothing_or_too_much(lake, target, folder, tmp_path):
    table = target()
    empty = tmp_path / "empty"
    empty.mkdir()
    plain = lake.create_table("db.plain", "id bigint")
    for nothing in (None, "_SUCCESS", ".hidden", "zero.parquet"):
        if nothing:
            (empty / nothing).touch()
        assert add(plain, empty) == (0, 0)
    with pytest.raises(MissingFileError, match="there is no folder"):
        add(plain, tmp_path / "nowhere")
    shutil.copytree(folder, tmp_path / "twice" / "inner")
    with pytest.raises(ValidationError, match="names no partition"):
        add(table, tmp_path / "twice")
    shutil.copytree(folder / "dept=hr", folder / "team=x")
    with pytest.raises(ValidationError, match="different partition columns"):
        add(table, folder)
    shutil.rmtree(folder / "team=x")
    shutil.move(folder / "dept=hr" / "n=1", folder / "dept=hr" / "n=one")
    with pytest.raises(ValidationError, match="is no value of the column, which is int"):
        add(table, folder)
    (empty / "zero.parquet").write_bytes(b"text")
    with pytest.raises(InvalidDataFileError, match="no parquet file"):
        add(plain, empty)
    with pytest.raises(UnsupportedError, match="format 'csv'"):
        plain.maintenance.add_files(str(empty), format="csv")
    with pytest.raises(ValidationError, match="looks like a path"):
        plain.maintenance.add_files(str(empty))
    with pytest.raises(ValidationError, match="parallelism is 0"):
        add(table, folder, parallelism=0)
    assert len(table.refresh().metadata.snapshots) == 0


def test_a_target_whose_schema_evolved(lake, tmp_path):
    table = lake.create_table("db.t", "id int, old string", format_version=3)
    pq.write_table(
        pa.table({"id": pa.array([1], pa.int32()), "old": ["a"]}), tmp_path / "1.parquet"
    )
    add(table, tmp_path / "1.parquet", parallelism=1)
    with table.update_schema() as update:
        update.rename_column("old", "new")
        update.update_column("id", "long")
        update.add_column("extra", "int", default=7)
    pq.write_table(pa.table({"id": [2], "new": ["b"]}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"id": [3], "old": ["c"], "extra": [8]}), tmp_path / "3.parquet")
    add(table, tmp_path / "2.parquet")
    with pytest.raises(SchemaMismatchError, match="extra is stored as int64"):
        add(table, tmp_path / "3.parquet")
    assert sorted(table.to_df().collect()) == [(1, "a", 7), (2, "b", 7)]
    assert add(table, tmp_path / "2.parquet", check_duplicate_files=False) == (1, 1)


def test_a_null_partition_is_null_whatever_the_default(spark, lake, tmp_path):
    table = lake.create_table("db.t", "id int", format_version=3)
    with table.update_schema() as update:
        update.add_column("k", "int", default=9)
    with table.update_spec() as update:
        update.add_field("k")
    folder = tmp_path / "k=__HIVE_DEFAULT_PARTITION__"
    spark.sql("SELECT 1 AS id").write.orc(str(folder))
    table.maintenance.add_files(str(tmp_path), format="orc")
    spark.sql("SELECT 2 AS id").write.parquet(str(tmp_path / "p" / folder.name))
    add(table, tmp_path / "p")
    assert sorted(table.to_df().collect()) == [(1, None), (2, None)]


def test_many_files_are_read_by_executors(spark, lake, tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "REMOTE_FOOTERS", replace(costs.REMOTE_FOOTERS, here=1))
    for number in range(4):
        folder = tmp_path / f"k=p{number % 2}"
        folder.mkdir(exist_ok=True)
        pq.write_table(pa.table({"ID": [number]}), folder / f"{number}.parquet")
    table = lake.create_table("db.t", "id bigint, k string", partition_by="k")
    assert add(table, tmp_path, parallelism=2) == (4, 2)
    expected = [(n, f"p{n % 2}") for n in range(4)]
    assert sorted(table.to_df().collect()) == expected
    (tmp_path / "k=p0" / "x.parquet").write_bytes(b"no Parquet")
    with pytest.raises(InvalidDataFileError, match=r"k=p0/x\.parquet"):
        add(table, tmp_path, check_duplicate_files=False)
    assert Path(tmp_path / "k=p1" / "1.parquet").exists()
    assert sorted(table.refresh().to_df().collect()) == expected
