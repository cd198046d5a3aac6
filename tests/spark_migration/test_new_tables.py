"""Iceberg tables over the files of Spark's tables, and what becomes of the source."""

import pytest
from migration_rows import COLUMNS, KEYS

from frazil.errors import (
    AlreadyExistsError,
    MissingFileError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
)


def rows(df):
    """All rows as text, whatever their order."""
    return sorted(map(repr, df.collect()))


@pytest.fixture
def old_people(spark, spark_tables, people, tmp_path):
    """The rows as an external table of Spark, two files a partition."""
    name = spark_tables("old_people")
    spark.sql(
        f"CREATE TABLE {name} ({COLUMNS}) USING parquet PARTITIONED BY ({', '.join(KEYS)}) "
        f"LOCATION '{tmp_path / 'old people'}' TBLPROPERTIES ('team' = 'blue')"
    )
    people.repartition(1).write.insertInto(name)
    return name


def files_below(folder):
    """Every file with its time."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.mark.check
def test_a_snapshot_leaves_its_source_alone(spark, lake, old_people, tmp_path):
    before, expected = files_below(tmp_path), rows(spark.table(old_people))
    table = lake.snapshot_table(
        old_people, "db.copy", properties={"write.delete.mode": "merge-on-read"}
    )
    assert rows(table.to_df()) == expected
    kept = {"gc.enabled": "false", "snapshot": "true", "team": "blue"}
    assert kept.items() <= table.properties.items()
    table.delete("id = 1")
    table.append(spark.table(old_people).where("id = 2"))
    table.compact(rewrite_all=True)
    assert sorted(row.id for row in table.to_df().collect()) == [2, 2, 3, 4, 5]
    for refused in (
        lambda: table.maintenance.expire_snapshots(older_than="2099-01-01", retain_last=1),
        lambda: table.maintenance.remove_orphan_files(older_than="2020-01-01"),
        lambda: lake.purge_table("db.copy"),
    ):
        with pytest.raises(ValidationError, match=r"gc\.enabled is false"):
            refused()
    lake.drop_table("db.copy")
    assert files_below(tmp_path) == before
    assert rows(spark.table(old_people)) == expected


def test_a_snapshot_has_a_place_of_its_own(lake, old_people, tmp_path):
    for place in ("old people", "old people/inside", "."):
        with pytest.raises(ValidationError, match="lie in one another"):
            lake.snapshot_table(old_people, "db.copy", location=str(tmp_path / place))
    table = lake.snapshot_table(
        f"spark_catalog.default.{old_people}", "db.copy", location=str(tmp_path / "x")
    )
    assert table.location == f"file://{tmp_path}/x"
    with pytest.raises(TableAlreadyExistsError):
        lake.snapshot_table(old_people, "db.copy")
    with pytest.raises(NoSuchNamespaceError, match="create it first"):
        lake.snapshot_table(old_people, "nowhere.copy")
    with pytest.raises(NoSuchTableError, match=r"default\.nothing"):
        lake.snapshot_table("nothing", "db.other")


def test_files_of_a_managed_table_are_added_and_partitions_may_lie_elsewhere(
    spark, lake, spark_tables, tmp_path
):
    name = spark_tables("managed")
    spark.sql(f"CREATE TABLE {name} (id INT, k STRING) USING parquet PARTITIONED BY (k)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'x:y')")
    spark.sql("SELECT 3 AS id").write.parquet(str(tmp_path / "k=a"))
    spark.sql(f"ALTER TABLE {name} ADD PARTITION (k = 'it''s') LOCATION '{tmp_path / 'k=a'}'")
    expected = rows(spark.table(name))
    table = lake.create_table("db.t", "id int, k string", partition_by="k")
    result = table.maintenance.add_files(name)
    assert (result.added_files_count, result.changed_partition_count) == (3, 3)
    assert rows(table.to_df()) == expected
    with pytest.raises(UnsupportedError, match="is a managed table"):
        lake.migrate(name)
    spark.sql(f"ALTER TABLE {name} ADD PARTITION (k = 'gone') LOCATION '{tmp_path / 'gone'}'")
    (tmp_path / "gone").rmdir()
    with pytest.raises(MissingFileError, match=r"1 partitions of .* have no folder"):
        lake.snapshot_table(name, "db.copy")
    copy = lake.snapshot_table(name, "db.copy", ignore_missing_files=True)
    assert rows(copy.to_df()) == expected


@pytest.mark.check
def test_a_migrated_table_takes_the_place_of_its_source(spark, lake, old_people, tmp_path):
    expected = rows(spark.table(old_people))
    lake.create_namespace("default")
    table = lake.migrate(old_people, properties={"format-version": "3", "note": "new"})
    assert (table.name, table.location) == (
        f"default.{old_people}",
        f"file://{tmp_path}/old people",
    )
    assert {"migrated": "true", "team": "blue", "note": "new"}.items() <= table.properties.items()
    assert rows(table.to_df()) == expected
    assert not spark.catalog.tableExists(old_people)
    assert rows(spark.table(f"{old_people}_BACKUP_")) == expected
    table.overwrite(table.to_df().where("id < 3"))
    result = table.maintenance.expire_snapshots(older_than="2099-01-01", retain_last=1)
    assert result.deleted_data_files == 5
    assert sorted(row.id for row in table.refresh().to_df().collect()) == [1, 2]


def test_a_migration_that_fails_gives_the_name_back(spark, lake, old_people, tmp_path):
    expected = rows(spark.table(old_people))
    with pytest.raises(NoSuchNamespaceError):
        lake.migrate(old_people)
    lake.create_namespace("default")
    spark.sql(f"CREATE TABLE {old_people}_BACKUP_ (id INT) USING parquet")
    with pytest.raises(AlreadyExistsError, match="another backup_table_name"):
        lake.migrate(old_people)
    spark.sql(f"DROP TABLE {old_people}_BACKUP_")
    [damaged] = (tmp_path / "old people" / "dept=hr" / "n=1").rglob("part-*.parquet")
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:100])
    (damaged.parent / f".{damaged.name}.crc").unlink(missing_ok=True)
    with pytest.raises(Exception, match="no parquet file"):
        lake.migrate(old_people)
    damaged.write_bytes(whole)
    assert rows(spark.table(old_people)) == expected
    assert lake.list_tables("default") == []
    table = lake.migrate(old_people, drop_backup=True, backup_table_name="old_people_BACKUP_")
    assert not spark.catalog.tableExists("old_people_BACKUP_")
    assert rows(table.to_df()) == expected


def test_what_is_no_table_of_files_is_refused(spark, lake, spark_tables):
    spark.range(1).createOrReplaceTempView("some_view")
    name = spark_tables("texts")
    spark.sql(f"CREATE TABLE {name} (id INT) USING csv")
    bucketed = spark_tables("bucketed")
    spark.sql(f"CREATE TABLE {bucketed} (id INT) USING parquet CLUSTERED BY (id) INTO 2 BUCKETS")
    for source, message in {
        name: "a table of the source 'csv'",
        bucketed: "is bucketed",
    }.items():
        with pytest.raises(UnsupportedError, match=message):
            lake.snapshot_table(source, "db.t")
    with pytest.raises((UnsupportedError, NoSuchTableError)):
        lake.snapshot_table("some_view", "db.t")
    spark.catalog.dropTempView("some_view")


def test_an_empty_table_becomes_an_empty_table(spark, lake, spark_tables):
    name = spark_tables("empty_source")
    spark.sql(f"CREATE TABLE {name} (id INT, K STRING) USING orc PARTITIONED BY (K)")
    table = lake.snapshot_table(name, "db.t")
    assert (table.count(), table.schema.fields[1].name) == (0, "K")
    assert (
        lake.create_table("db.u", "id int, k string", partition_by="k")
        .maintenance.add_files(name)
        .added_files_count
        == 0
    )


def test_the_files_of_a_delta_table_are_not_taken_for_all_of_it(
    spark, lake, spark_tables, tmp_path
):
    name, place = spark_tables("of_delta"), tmp_path / "of_delta"
    spark.sql(f"CREATE TABLE {name} (id INT) USING parquet LOCATION '{place}'")
    log = place / "_delta_log" / "00000000000000000000.json"
    log.parent.mkdir(parents=True)
    log.write_text("{}")
    lake.create_namespace("default")
    with pytest.raises(UnsupportedError, match="a Delta table, whose log"):
        lake.snapshot_table(name, "db.copy")
    with pytest.raises(UnsupportedError, match="a Delta table, whose log"):
        lake.migrate(name)
    assert not lake.table_exists("db.copy")
    assert spark.catalog.tableExists(name)
