"""CALL of what brings files in, and of changelog views."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.errors import ConfigurationError, ProcedureError, ValidationError


def test_files_are_added(lake, called, tmp_path):
    for key in ("a", "b"):
        folder = tmp_path / "source" / f"k={key}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2]}), folder / "x.parquet")
    lake.create_table("db.t", "id bigint, k string", partition_by="k")
    source = f"`parquet`.`{tmp_path / 'source'}`"
    assert called(
        f"CALL system.add_files(table => 'db.t', source_table => '{source}',"
        " partition_filter => map('k', 'a'), parallelism => 2)"
    ) == [{"added_files_count": 1, "changed_partition_count": 1}]
    with pytest.raises(ValidationError, match="1 of these 2 files"):
        called(f"CALL system.add_files('db.t', '{source}')")
    assert called(f"CALL system.add_files('db.t', '{source}', check_duplicate_files => false)") == [
        {"added_files_count": 2, "changed_partition_count": 2}
    ]
    assert lake.load_table("db.t").count() == 6


def test_tables_of_spark_come_in(spark, lake, called, tmp_path):
    lake.create_namespace("default")
    spark.sql(f"CREATE TABLE called_source (id INT) USING parquet LOCATION '{tmp_path / 's'}'")
    try:
        spark.range(10).selectExpr("int(id)").repartition(2).write.insertInto("called_source")
        assert called(
            "CALL system.snapshot('called_source', 'db.copy', properties => map('a', 'b'))"
        ) == [{"imported_files_count": 2}]
        copy = lake.load_table("db.copy")
        assert (copy.count(), copy.properties["a"]) == (10, "b")
        assert called(
            "CALL system.migrate(table => 'default.called_source', drop_backup => true)"
        ) == [{"migrated_files_count": 2}]
        assert lake.load_table("default.called_source").count() == 10
        assert not spark.catalog.tableExists("called_source_BACKUP_")
    finally:
        for name in ("called_source", "called_source_BACKUP_"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def span(spark, lake):
    """The options of what became of people who were appended: one has another name, one is gone."""
    table = lake.create_table(
        "db.people",
        "id bigint, name string",
        properties={f"write.{each}.mode": "merge-on-read" for each in ("delete", "update")},
    )
    table.append(spark.createDataFrame([(1, "a"), (2, "b"), (3, "c")], "id bigint, name string"))
    start = table.metadata.current_snapshot_id
    table.update({"name": "'B'"}, where="id = 2")
    table.delete("id = 3")
    return f"options => map('start-snapshot-id', '{start}')"


def view(spark, name):
    """The rows of a changelog."""
    columns = ("_change_ordinal", "id", "name", "_change_type")
    return sorted(tuple(row[c] for c in columns) for row in spark.table(name).collect())


TOLD = [(0, 2, "B", "INSERT"), (0, 2, "b", "DELETE"), (1, 3, "c", "DELETE")]


def test_a_changelog_view_of_a_merge_on_read_table(spark, called, span):
    assert called(f"CALL system.create_changelog_view('db.people', {span})") == [
        {"changelog_view": "`people_changes`"}
    ]
    assert view(spark, "people_changes") == TOLD
    [row] = called(
        f"CALL system.create_changelog_view('db.people', 'v1', {span},"
        " identifier_columns => array('id'))"
    )
    assert view(spark, row["changelog_view"]) == [
        (0, 2, "B", "UPDATE_AFTER"),
        (0, 2, "b", "UPDATE_BEFORE"),
        (1, 3, "c", "DELETE"),
    ]
    for wrong, kind in {
        "compute_updates => true": ValidationError,
        "net_changes => true, identifier_columns => array('id')": ValidationError,
        "options => map('start-snapshot', '1')": ConfigurationError,
        "options => map('end-timestamp', 'now')": ConfigurationError,
        "options => map('end-timestamp', '1', 'end-snapshot-id', '1')": ConfigurationError,
        "viewname => 'v'": ProcedureError,
    }.items():
        with pytest.raises(kind):
            called(f"CALL system.create_changelog_view('db.people', {wrong})")
    for name in ("people_changes", "v1"):
        spark.catalog.dropTempView(name)


@pytest.mark.check
def test_a_changelog_view_without_updates_or_of_what_is_left(spark, called, span):
    called(
        f"CALL system.create_changelog_view('db.people', 'v2', {span},"
        " identifier_columns => array('id'), compute_updates => false)"
    )
    assert view(spark, "v2") == TOLD
    called("CALL system.create_changelog_view('db.people', 'v3', net_changes => true)")
    assert [(i, n, k) for _, i, n, k in view(spark, "v3")] == [
        (1, "a", "INSERT"),
        (2, "B", "INSERT"),
    ]
    for name in ("v2", "v3"):
        spark.catalog.dropTempView(name)
