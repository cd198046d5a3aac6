"""Conditions of scans, aggregates and overwrites: the rows are those that plain Spark chooses."""

import pytest
from pyspark.sql import functions as F
from table_rows import frame, rows_of

from ci_share import one_share, only_in_soak
from frazil.errors import ConflictError, PredicateError

NAN = float("nan")
SCHEMA = "id bigint, city string, x double, `a.b` int, s struct<k: int, l: string>"
ROWS = [
    (1, "Oslo", 0.5, 1, (1, "p")),
    (2, "oslo", None, 2, (7, None)),
    (3, "Bergen", NAN, 3, None),
    (4, None, 1.5, None, (4, "q")),
    (11, "Oslo", -0.0, 11, (0, "Oslo")),
    (12, "Paris", NAN, 5, (12, "r")),
    (21, "Rome", 7.0, 21, (None, None)),
]
TEXTS = [
    "upper(city) = 'OSLO'",
    "id + 1 > 12 and length(city) = 4",
    "s.k = id",
    "x > 1 and id % 2 = 1",
    "not (x > id) or `a.b` <> id",
    "`a.b` * 2 = id * 2",
    "s.l = city or id = 3",
    "case when x is null then true else x = 'NaN' end",
    "id in (select k from wanted)",
    "city not in (select name from wanted)",
    "exists (select 1 from wanted where k = id and name = city)",
    "x >= (select min(k) from wanted) and id < 20",
    "id < (select max(k) + 1 from wanted w where w.name = city)",
]


@pytest.fixture
def wanted(spark):
    """A view for sub-queries."""
    rows = spark.createDataFrame([(1, "Oslo"), (12, None), (11, "Oslo")], "k bigint, name string")
    rows.createOrReplaceTempView("wanted")
    yield
    spark.catalog.dropTempView("wanted")


def table_of(lake, spark, version="2", **options):
    """A table of three files, by ids below 10, below 20 and others."""
    table = lake.create_table("db.t", SCHEMA, format_version=version, **options)
    for low in (0, 10, 20):
        chosen = [row for row in ROWS if low <= row[0] < low + 10]
        table.append(frame(spark, chosen, SCHEMA).coalesce(1))
    return table


def same(source):
    """Rows as text, since NaN is not equal to itself."""
    df = source if hasattr(source, "collect") else source.to_df()
    return sorted(map(str, df.collect()))


def chosen(spark, where):
    """The rows that plain Spark chooses."""
    return frame(spark, ROWS, SCHEMA).where(where)


def skipped(scan):
    return sum(each.files for each in scan.plan().skipped)


@pytest.mark.check
@pytest.mark.parametrize("texts", one_share(4, TEXTS))
def test_a_scan_takes_what_spark_takes(lake, spark, wanted, texts):
    table = table_of(lake, spark)
    for text in texts:
        expected = chosen(spark, text).collect()
        assert same(table.scan(where=text)) == sorted(map(str, expected)), text
        narrow = table.scan(where=text, columns=["s.l", "_pos", "id"]).to_df()
        ids = sorted(row.id for row in expected)
        assert sorted(row.id for row in narrow.collect()) == ids, text
        assert narrow.columns == ["s", "_pos", "id"]
        assert narrow.schema["s"].dataType.names == ["l"]
        assert table.scan(where=text).count() == len(expected), text


@pytest.mark.check
def test_what_is_implied_prunes_files(lake, spark, wanted):
    table = table_of(lake, spark)
    for text in ("id < 10 and upper(city) = 'OSLO'", "id = 11 and id in (select k from wanted)"):
        scan = table.scan(where=text)
        assert scan.plan().file_count == 1
        assert skipped(scan) == 2
        assert not scan.plan().is_exact
        assert text in repr(scan)
        assert text in scan.plan().summary()
        assert same(scan) == same(chosen(spark, text))
        assert scan.count() == chosen(spark, text).count()
    unpruned = table.scan(where="upper(city) = 'OSLO'")
    assert skipped(unpruned) == 0
    assert "residual  (upper(city) = 'OSLO')" in unpruned.plan().summary()
    by_city = lake.create_table("db.p", SCHEMA, partition_by=["city"])
    by_city.append(frame(spark, ROWS, SCHEMA))
    one = by_city.scan(where="city = 'Oslo' and abs(x) < 1")
    assert one.plan().file_count == 1
    assert same(one) == same(chosen(spark, "city = 'Oslo' and abs(x) < 1"))


@pytest.mark.check
def test_counts_and_aggregates_read_the_rows(lake, spark, wanted):
    table = table_of(lake, spark)
    for text in ("id < 10 and id + 0 > 1", "id in (select k from wanted)", "length(city) = 4"):
        scan = table.scan(where=text)
        expected = chosen(spark, text)
        (found,) = scan.aggregate(["count(*)", "max(id)", "count(x)"]).to_df().collect()
        assert tuple(found) == tuple(
            expected.agg(F.expr("count(*)"), F.max("id"), F.count("x")).first()
        )
        by_city = rows_of(scan.aggregate("min(s.k)", by="city").to_df())
        assert by_city == rows_of(expected.groupBy("city").agg(F.min("s.k")))
        assert scan.aggregate("count(*)").files_from_metadata == 0
    assert table.scan(where="id < 10").aggregate("count(*)").files_to_scan == 0


def test_a_limit_counts_rows_that_match(lake, spark):
    table = table_of(lake, spark)
    scan = table.scan(where="id + 1 > 4", limit=2)
    assert scan.count() == 2
    assert {row[0] for row in rows_of(scan, "id")} < {4, 11, 12, 21}
    assert table.scan(where="id + 1 > 4", limit=9).count() == 4


@pytest.mark.check
def test_what_spark_refuses_is_refused(lake, spark):
    table = table_of(lake, spark)
    before = table.current_snapshot
    texts = ("id +", "id + 1", "sum(id) > 1", "upper(town) = 'A'", "_pos + 0 > 1")
    for where in (*texts, F.col("n"), table.to_df().id > 1):
        with pytest.raises(PredicateError):
            table.scan(where=where)
        with pytest.raises(PredicateError):
            table.changes(where=where)
        with pytest.raises(PredicateError):
            table.overwrite(frame(spark, [], SCHEMA), where=where)
    for random in ("rand() < 0.5", F.rand() < 0.5, "rand() < 0.5 and id in (values 1, 2)"):
        with pytest.raises(PredicateError):
            table.overwrite(frame(spark, [], SCHEMA), where=random)
    assert table.refresh().current_snapshot == before


@pytest.mark.check
@pytest.mark.parametrize("version", [only_in_soak("2"), "3"])
def test_an_overwrite_rewrites_files_that_hold_a_match(lake, spark, wanted, version):
    table = table_of(lake, spark, version)
    lineage = ["id", "_row_id", "_last_updated_sequence_number"]
    before = {}
    if version == "3":
        before = {row.id: row for row in table.scan(columns=lineage).to_df().collect()}
    files = {row.file_path for row in table.files().collect()}
    table.overwrite(frame(spark, [], SCHEMA), where="id in (select k from wanted where k > 5)")
    # Of the second file every row goes; the others hold no match.
    summary = table.current_snapshot.summary
    assert summary["deleted-data-files"] == "1"
    assert "added-data-files" not in summary
    table.overwrite(frame(spark, [], SCHEMA), where=F.upper("city") == "OSLO")
    summary = table.current_snapshot.summary
    assert (summary["deleted-data-files"], summary["added-data-files"]) == ("1", "1")
    assert summary["added-records"] == "2"
    assert [row[0] for row in rows_of(table)] == [3, 4, 21]
    assert len(files & {row.file_path for row in table.files().collect()}) == 1
    if version == "3":
        for row in table.scan(columns=lineage).to_df().collect():
            assert row == before[row.id]


@pytest.mark.check
def test_an_overwrite_by_its_own_rows_and_by_the_time(lake, spark):
    table = table_of(lake, spark)
    table.to_df().createOrReplaceTempView("own")
    smallest = "id = (select min(id) from own)"
    table.overwrite(table.to_df().where("id = 21").withColumn("id", F.lit(0)), where=smallest)
    assert [row[0] for row in rows_of(table)] == [0, 2, 3, 4, 11, 12, 21]
    table.overwrite(
        frame(spark, [], SCHEMA), where="current_timestamp() > date'2020-01-01' and id < 4"
    )
    assert [row[0] for row in rows_of(table)] == [4, 11, 12, 21]
    spark.catalog.dropTempView("own")


def test_rows_of_another_session(lake, spark, session):
    session(spark__sql__session__timeZone="America/New_York")
    schema = "id bigint, at timestamp"
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    table = lake.create_table("db.t", schema)
    rows = (
        "select id, timestamp'2024-01-01 00:00:00' + make_dt_interval(0, id) as at from range(20)"
    )
    table.append(spark.sql(rows).coalesce(1))
    table.overwrite(other.createDataFrame([], schema), where="hour(at) + 0 < 10")
    assert [row[0] for row in rows_of(table, "id")] == list(range(10, 20))


@pytest.mark.check
def test_rows_that_others_added_meanwhile(lake, spark):
    table = table_of(lake, spark)
    other = lake.load_table("db.t")

    def racing(isolation, where):
        """An overwrite during which another writer adds a row."""

        def add(progress):
            if not added:
                added.append(True)
                other.append(frame(spark, [(31, "Oslo", 1.0, 31, None)], SCHEMA))

        added = []
        table.overwrite(
            frame(spark, [(99, "New", 9.0, 9, None)], SCHEMA),
            where=where,
            isolation=isolation,
            on_progress=add,
        )
        assert added

    for isolation in (None, "serializable"):
        with pytest.raises(ConflictError):
            racing(isolation, "upper(city) = 'OSLO'")
    racing("snapshot", "upper(city) = 'OSLO'")
    assert [row[0] for row in rows_of(table, "id")] == [3, 4, 12, 21, 31, 99]
    # What is implied says that the new row cannot match.
    racing(None, "id < 20 and upper(city) = 'PARIS'")
    assert [row[0] for row in rows_of(table, "id")] == [3, 4, 21, 31, 31, 99, 99]
