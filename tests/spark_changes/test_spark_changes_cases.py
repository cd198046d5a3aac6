"""Changelogs and incremental reads, one kind of commit at a time."""

from collections import Counter

import pyspark
import pytest
from changes_model import Model, collected, shown
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from ci_share import only_in_soak
from frazil.errors import NoSuchSnapshotError, PredicateError, ValidationError

A, B, C, D = (
    (1, "p", 1.0, None),
    (2, "p", float("nan"), {"k": 1}),
    (2, "p", float("nan"), {"k": 1}),
    (3, "p", -0.0, {}),
)


@pytest.fixture
def model(lake, tmp_path):
    return Model(lake, tmp_path / "files", version=2, partitioned=False)


@pytest.fixture
def vectors(lake, tmp_path):
    return Model(lake, tmp_path / "files", version=3, partitioned=False)


def told(changes):
    """(type, id, ordinal) of every change."""
    return sorted(
        (kind, row[0], ordinal) for kind, row, ordinal, _ in collected(changes).elements()
    )


@pytest.mark.check
def test_every_kind_of_commit_of_version_2(model):
    first, second = model.data_file([A, B, C, D]), model.data_file([A])
    model.append(first, second)
    path = first.file.file_path
    model.delta([model.position_file({(path, 0), (path, 1)}, (), scoped=True)])
    equality = model.equality_file((0,), {(3,), (None,)}, ())
    model.delta([equality])
    model.rewrite([first])
    model.overwrite([model.data_file([A, D])], [second])
    assert collected(model.table.changes()) == model.changelog(-1, 4)
    assert collected(model.table.net_changes()) == model.net(-1, 4)
    assert told(model.table.net_changes(model.ids[1], model.ids[4])) == []


@pytest.mark.check
def test_rows_come_back_when_their_deletes_are_taken_back(model):
    data = model.data_file([A, B])
    model.append(data)
    delete = model.equality_file((0,), {(1,), (2,)}, ())
    model.delta([delete])
    path = data.file.file_path
    model.delta([model.position_file({(path, 1)}, (), scoped=False)])
    model.delta(removed=[delete])
    assert told(model.table.changes(model.ids[0])) == [
        ("DELETE", 1, 0),
        ("DELETE", 2, 0),
        ("INSERT", 1, 2),
    ]


def test_a_larger_vector_deletes_what_it_has_more(vectors):
    data = vectors.data_file([A, B, C, D])
    vectors.append(data)
    small, large = vectors.vector(data, {1}), vectors.vector(data, {1, 3})
    vectors.delta([small])
    vectors.delta([large], [small])
    vectors.delta([vectors.vector(data, {0})], [large])
    assert told(vectors.table.changes(vectors.ids[0])) == [
        ("DELETE", 1, 2),
        ("DELETE", 2, 0),
        ("DELETE", 3, 1),
        ("INSERT", 2, 2),
        ("INSERT", 3, 2),
    ]
    assert collected(vectors.table.net_changes()) == vectors.net(-1, 3)


@pytest.mark.check
def test_updates_of_a_key(lake, spark):
    table = lake.create_table("db.u", "id bigint, city string, n int")
    table.append(
        spark.sql(
            "select * from values (1L, 'Oslo', 1), (2L, 'Lima', 2), (null, 'x', 3) "
            "as t(id, city, n)"
        )
    )
    start = table.current_snapshot.snapshot_id
    table.overwrite(
        spark.sql(
            "select * from values (1L, 'Bergen', 1), (null, 'y', 3), (4L, 'z', 4) as t(id, city, n)"
        ),
        where="id = 1 or id is null",
    )
    found = table.changes(start, identifier_columns=["ID"])
    rows = sorted((r["_change_type"], r["id"] or 0, r["city"]) for r in found.collect())
    assert rows == [
        ("INSERT", 4, "z"),
        ("UPDATE_AFTER", 0, "y"),
        ("UPDATE_AFTER", 1, "Bergen"),
        ("UPDATE_BEFORE", 0, "x"),
        ("UPDATE_BEFORE", 1, "Oslo"),
    ]
    with pytest.raises(ValidationError, match="no column 'nobody'"):
        table.changes(start, identifier_columns=["nobody"])
    with pytest.raises(ValidationError, match="at least one"):
        table.changes(start, identifier_columns=[])
    deep = lake.create_table("db.deep", "id bigint, visits array<struct<at bigint>>")
    with pytest.raises(ValidationError, match="inside a list or map"):
        deep.changes(identifier_columns="visits.element.at")
    table.overwrite(
        spark.sql("select * from values (7L, 'a', 1), (7L, 'b', 1) as t(id, city, n)"),
        where="id = 2",
    )
    with pytest.raises(PySparkException, match="several rows of one key \\(id\\)"):
        table.changes(start, identifier_columns=["id"]).collect()


@pytest.mark.check
def test_rows_are_read_with_the_schema_of_the_end(lake, spark):
    table = lake.create_table("db.e", "id int, city string, x float")
    table.append(
        spark.sql("select 1 id, 'Oslo' city, float(1) x union all select 2, 'Lima', float(2)")
    )
    before = table.current_snapshot.snapshot_id
    with table.update_schema() as update:
        update.update_column("id", "long")
        update.rename_column("city", "town")
        update.delete_column("x")
        update.add_column("new", "int")
    table.overwrite(spark.sql("select 1L id, 'Rome' town, 9 new"), where="id = 1")
    found = table.changes()
    assert found.columns == [
        "id",
        "town",
        "new",
        "_change_type",
        "_change_ordinal",
        "_commit_snapshot_id",
    ]
    rows = sorted(tuple(r)[:5] for r in found.collect() if r["_change_ordinal"] == 1)
    assert rows == [(1, "Oslo", None, "DELETE", 1), (1, "Rome", 9, "INSERT", 1)]
    old = table.changes(None, before)
    assert old.columns[:3] == ["id", "city", "x"]
    assert old.count() == 2
    assert found.dtypes[3:] == [
        ("_change_type", "string"),
        ("_change_ordinal", "int"),
        ("_commit_snapshot_id", "bigint"),
    ]


@pytest.mark.check
def test_a_predicate_filters_both_sides_and_leaves_files_out(lake, spark):
    table = lake.create_table("db.w", "id bigint, day string", partition_by=["day"])
    table.append(spark.sql("select id, if(id < 5, 'mon', 'tue') day from range(10)"))
    start = table.current_snapshot.snapshot_id
    table.overwrite(spark.sql("select 20L id, 'mon' day"), where="id in (1, 7)")
    missing = [
        row["file_path"]
        for row in table.inspect.dataframes.data_files().collect()
        if "tue" in row["file_path"]
    ]
    assert missing
    for path in missing:
        table.io.delete(path)
    found = table.changes(start, where="day = 'mon'")
    assert sorted((r["_change_type"], r["id"]) for r in found.collect()) == [
        ("DELETE", 1),
        ("INSERT", 20),
    ]
    found = table.changes(start, where="day = 'mon' and id > 1")
    assert [(r["_change_type"], r["id"]) for r in found.collect()] == [("INSERT", 20)]


@pytest.mark.skipif(pyspark.__version__ < "4.1", reason="it reads no variants")
def test_nested_values_are_compared(lake, spark):
    table = lake.create_table(
        "db.n",
        "id bigint, s struct<x: double, m: map<string, array<float>>>, b binary, v variant",
        format_version=3,
    )
    row = (
        "select id, named_struct('x', double('NaN'), "
        "'m', map('a', array(float('-0.0')), 'b', null)) s, "
        "x'00ff' b, parse_json('{\"k\": [1, \"1\"]}') v from range(3)"
    )
    table.append(spark.sql(row))
    start = table.current_snapshot.snapshot_id
    table.overwrite(spark.sql(row + " where id = 9"), where="id = 1")
    found = table.changes(start)
    assert [(r["id"], r["_change_type"]) for r in found.collect()] == [(1, "DELETE")]
    assert found.select("s.x").collect()[0][0] != 0
    table.overwrite(
        spark.sql(row.replace("-0.0", "0.0").replace('"1"', "1") + " where id = 2"), where="id = 2"
    )
    again = [
        (r["_change_type"], r["id"])
        for r in table.changes(table.metadata.snapshots[1].snapshot_id).collect()
    ]
    assert sorted(again) == [("DELETE", 2), ("INSERT", 2)]


@pytest.mark.check
def test_incremental_reads_appends_alone(model):
    model.table.set_properties({"commit.manifest.min-count-to-merge": "2"})
    files = [model.data_file([(place, "p", None, None)]) for place in range(5)]
    model.append(files[0])
    model.append(files[1])
    model.delta([model.equality_file((0,), {(1,)}, ())])
    model.append(files[2], files[3])
    model.overwrite([files[4]], [files[2]])

    def ids(scan):
        return sorted(row["id"] for row in scan.to_df().collect())

    table = model.table
    assert ids(table.incremental()) == [0, 1, 2, 3]
    assert ids(table.incremental(model.ids[0])) == [1, 2, 3]
    assert ids(table.incremental(model.ids[0], model.ids[2], columns=["id"])) == [1]
    scan = table.incremental(model.ids[1], model.ids[4], where="id >= 3", columns=["id", "_file"])
    assert scan.to_df().columns == ["id", "_file"]
    assert ids(scan) == [3]
    assert scan.count() == 1
    assert table.incremental(model.ids[4]).count() == 0
    times = [snapshot.timestamp_ms for snapshot in table.metadata.snapshots]
    assert table.incremental(from_timestamp=times[-1]).count() == 0


def test_incremental_after_an_expired_snapshot(model):
    for place in range(3):
        model.append(model.data_file([(place, "p", None, None)]))
    table = model.table
    table.maintenance.expire_snapshots(snapshot_ids=[model.ids[0]])
    assert sorted(r["id"] for r in table.incremental(model.ids[0]).to_df().collect()) == [1, 2]
    with pytest.raises(NoSuchSnapshotError, match="has expired"):
        table.changes(model.ids[0])
    assert told(table.changes(model.ids[1])) == [("INSERT", 2, 0)]


def test_an_empty_range_has_the_columns(model):
    model.append(model.data_file([A]))
    found = model.table.changes(model.ids[0])
    assert found.columns == [
        "id",
        "s",
        "x",
        "m",
        "_change_type",
        "_change_ordinal",
        "_commit_snapshot_id",
    ]
    assert found.collect() == []


@pytest.mark.check
def test_a_file_that_is_listed_twice_counts_twice(model):
    data = model.data_file([A])
    model.append(data)
    model.append(data)
    assert len(model.table.to_df().collect()) == 2
    assert len(model.table.incremental(columns=["id", "_file"]).to_df().collect()) == 2
    assert collected(model.table.changes()) == Counter(
        {("INSERT", shown(A), place, model.ids[place]): 1 for place in range(2)}
    )


def test_a_column_of_a_changelog_s_name_is_refused(lake, spark):
    table = lake.create_table("db.r", "id bigint, _change_type string")
    with pytest.raises(ValidationError, match="'_change_type'"):
        table.changes()


@pytest.mark.check
def test_deletes_after_a_file_that_deletes_nothing_apply(model):
    first, second = model.data_file([A, D]), model.data_file([B])
    model.append(first, second)
    for path in (first.file.file_path, "file:///no/such/file.parquet", second.file.file_path):
        model.delta([model.position_file({(path, 0)}, (), scoped=False)])
    assert [row["id"] for row in model.table.to_df().collect()] == [3]
    assert collected(model.table.changes()) == model.changelog(-1, 3)


def test_one_equality_delete_file_is_under_several_snapshots(lake, tmp_path):
    """It took rows of two files before each of them got a vector, in commits of their own."""
    model = Model(lake, tmp_path / "files", version=3, partitioned=True)
    first, second = model.data_file([A, B]), model.data_file([A, D])
    model.append(first, second)
    model.delta([model.equality_file((0,), {(1,)}, ("p",))])
    model.delta([model.vector(first, {0, 1})])
    model.delta([model.vector(second, {0})])
    assert collected(model.table.changes()) == model.changelog(-1, 3)
    assert told(model.table.changes(model.ids[1])) == [("DELETE", 2, 0)]


# Conditions of changelogs: the changes of the rows that plain Spark chooses.


SCHEMA = "id bigint, city string, x double"
NAN = float("nan")
FIRST = [(1, "Oslo", 0.5), (2, "oslo", NAN), (3, "Rome", None)]
SECOND = [(11, "Oslo", NAN), (12, None, 2.0)]
CONDITIONS = [
    only_in_soak("upper(city) = 'OSLO'"),
    only_in_soak("x > id or id % 2 = 0"),
    "city in (select name from wanted)",
    only_in_soak(lambda: F.col("x") > F.col("id")),
]
TYPES = ("_change_type", "_change_ordinal")


@pytest.fixture
def wanted(spark):
    spark.createDataFrame([("Oslo",), ("Rome",)], "name string").createOrReplaceTempView("wanted")
    yield
    spark.catalog.dropTempView("wanted")


@pytest.fixture(scope="module")
def changed(spark, shared_lake):
    """Two appends, a copy-on-write overwrite, a merge-on-read delete and an update."""
    made = shared_lake.create_table(
        "db.t", SCHEMA, format_version="3", properties={"write.delete.mode": "merge-on-read"}
    )
    for rows in (FIRST, SECOND):
        made.append(spark.createDataFrame(rows, SCHEMA).coalesce(1))
    made.overwrite(spark.createDataFrame([(2, "OSLO", 5.0)], SCHEMA), where="id = 2")
    made.delete("id = 11")
    made.update(set={"city": "'oslo'"}, where="id = 3")
    return made


# What each snapshot did, worked out by hand.
CHANGES = [
    *((row, "INSERT", 0) for row in FIRST),
    *((row, "INSERT", 1) for row in SECOND),
    (FIRST[1], "DELETE", 2),
    ((2, "OSLO", 5.0), "INSERT", 2),
    (SECOND[0], "DELETE", 3),
    (FIRST[2], "DELETE", 4),
    ((3, "oslo", None), "INSERT", 4),
]
NET = [
    (FIRST[0], "INSERT", 0),
    (SECOND[1], "INSERT", 1),
    ((2, "OSLO", 5.0), "INSERT", 2),
    ((3, "oslo", None), "INSERT", 4),
]


def expected(spark, changes, where):
    """The changes whose rows plain Spark chooses."""
    rows = [(*row, kind, ordinal) for row, kind, ordinal in changes]
    return spark.createDataFrame(rows, f"{SCHEMA}, _change_type string, _change_ordinal int").where(
        where
    )


def same(df):
    """Rows as text, since NaN is not equal to itself."""
    return Counter(map(str, df.select("id", "city", "x", *TYPES).collect()))


@pytest.mark.check
@pytest.mark.parametrize("condition", CONDITIONS)
def test_changes_of_rows_that_match(spark, wanted, changed, condition):
    where = condition() if callable(condition) else condition
    assert same(changed.changes(where=where)) == same(expected(spark, CHANGES, where))
    assert same(changed.net_changes(where=where)) == same(expected(spark, NET, where))
    appended = [change for change in CHANGES if change[2] < 2]
    found = changed.incremental(where=where, columns=["id", "city", "x"]).to_df()
    assert Counter(map(str, found.collect())) == Counter(
        map(str, expected(spark, appended, where).select("id", "city", "x").collect())
    )


@pytest.mark.check
def test_what_is_implied_prunes_and_updates_are_told(spark, changed):
    where = "id < 10 and length(city) = 4 and x is not null"
    found = changed.changes(where=where, identifier_columns="id")
    kinds = Counter((row.id, row._change_ordinal, row._change_type) for row in found.collect())
    assert kinds == {
        (1, 0, "INSERT"): 1,
        (2, 0, "INSERT"): 1,
        (2, 2, "UPDATE_BEFORE"): 1,
        (2, 2, "UPDATE_AFTER"): 1,
    }
    assert changed.incremental(where=where).plan().file_count == 1
    assert same(changed.changes(where=where)) == same(expected(spark, CHANGES, where))


def test_a_random_condition_is_refused(changed):
    for read in (changed.changes, changed.net_changes):
        with pytest.raises(PredicateError, match="rand"):
            read(where="rand() < x")
