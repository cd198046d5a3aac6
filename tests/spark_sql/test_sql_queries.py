"""Queries of every shape: the rows of plain Spark tables, from files that predicates allow."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import AnalysisException, PySparkException

import frazil
from ci_share import in_circles, one_in
from frazil.errors import NoSuchTableError, SqlSyntaxError, ValidationError
from frazil.spark.session import costs
from frazil.spark.sql.parsers.spark_parser import names_by_spark
from frazil.spark.sql.parsers.sqlglot_parser import names_by_sqlglot

FACTS = (
    "SELECT id, CAST(id % 5 AS INT) AS k, concat('n', id % 7) AS n, "
    "TIMESTAMP '2024-01-01' + make_interval(0, 0, 0, CAST(id AS INT)) AS ts, "
    "CAST(id / 3 AS DOUBLE) AS d FROM range({}, {})"
)
DIMENSIONS = "SELECT CAST(id AS INT) AS k, concat('dim', id) AS name FROM range(0, 4)"

QUERIES = [
    "SELECT * FROM db.t WHERE id BETWEEN 25 AND 34",
    "SELECT lake.db.t.id, db.t.n FROM lake.db.t WHERE t.id < 3",
    "SELECT t.id, u.name FROM db.t JOIN db.u ON t.k = u.k WHERE u.k = 2 AND t.id > 30",
    "SELECT u.name, count(*) FROM db.u LEFT JOIN db.t USING (k) GROUP BY u.name",
    "WITH a AS (SELECT * FROM db.t WHERE id < 12), b AS (SELECT id, n FROM a) "
    "SELECT a.id, b.n FROM a JOIN b ON a.id = b.id",
    "WITH t AS (SELECT 1 AS id) SELECT * FROM t",
    "SELECT * FROM db.t t WHERE d = (SELECT max(d) FROM db.t s WHERE s.k = t.k)",
    "SELECT id FROM db.t WHERE EXISTS (SELECT 1 FROM db.u WHERE u.k = t.k AND name = 'dim3')",
    "SELECT id FROM db.t WHERE k NOT IN (SELECT k FROM db.u)",
    "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id DESC) AS r FROM db.t WHERE id < 20",
    "SELECT id FROM db.t WHERE id < 5 UNION SELECT k FROM db.u EXCEPT SELECT 1",
    "SELECT * FROM (SELECT k, n, id FROM db.t) PIVOT (sum(id) FOR n IN ('n1', 'n2'))",
    "SELECT t.id, x FROM db.t, LATERAL (SELECT t.id * 2 AS x) WHERE t.id < 3",
    "SELECT id, x FROM db.t LATERAL VIEW explode(array(k, 1)) AS x WHERE id = 7",
    "FROM db.t |> WHERE id > 35 |> AGGREGATE count(*) AS c GROUP BY k",
    "SELECT k, sum(id) FROM db.t GROUP BY ROLLUP (k) HAVING sum(id) > 100 OR k IS NULL",
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) "
    "SELECT t.* FROM db.t JOIN r ON t.id = r.n",
    "SELECT id /* FROM db.u */ FROM db.t -- FROM db.u\nWHERE n = 'FROM db.u' OR id = 1",
    "SELECT `t`.`id` FROM `db`.`t` WHERE `t`.`k` = 1",
    "SELECT /*+ BROADCAST(u) */ count(*) FROM db.t JOIN db.u ON t.k = u.k",
    "SELECT a.id FROM db.t a, db.t b WHERE a.id = b.id + 1 AND b.id = 9",
    "SELECT count(*) FROM db.t WHERE id IN (3, 17, 38) OR (k = 4 AND id > 30)",
    "SELECT date_trunc('month', ts) AS m, count(*) FROM db.t WHERE ts >= '2024-02-01' GROUP BY 1",
    "SELECT count(*) FROM db.t WHERE d > 2.5 AND n LIKE 'n%' AND id <> 4",
    "SELECT CASE WHEN k = 1 THEN 'one' ELSE 'other' END AS c, max(id) FROM db.t GROUP BY c",
    "SELECT v.id, t.n FROM VALUES (1), (2) AS v (id) JOIN db.t ON v.id = t.id",
    "SELECT (SELECT max(id) FROM db.t) AS m, id FROM db.u JOIN db.t ON t.k = u.k WHERE id < 6",
]


@pytest.fixture(scope="module")
def sides(spark, tmp_path_factory):
    """The same rows in tables of a lake and in views of Spark."""
    import frazil

    lake = frazil.connect(spark, warehouse=str(tmp_path_factory.mktemp("lake")), name="lake")
    lake.create_namespace("db")
    rows = spark.sql(FACTS.format(0, 40)).cache()
    table = lake.create_table("db.t", rows)
    for start in range(0, 40, 10):
        table.append(spark.sql(FACTS.format(start, start + 10)).coalesce(1))
    rows.createOrReplaceTempView("plain_t")
    lake.create_table_as_select("db.u", spark.sql(DIMENSIONS))
    spark.sql(DIMENSIONS).createOrReplaceTempView("plain_u")
    yield lake
    for name in ("plain_t", "plain_u"):
        spark.catalog.dropTempView(name)
    lake.close()


def plain(query: str) -> str:
    """The query over Spark's own views; names of the lake elsewhere are aliases there."""
    table = r"\b(FROM|JOIN|,) (?:lake\.)?`?db`?\.`?([tu])`?(?![.`])"
    named = re.sub(table + r"(?= (?:AS )?[a-z]\b)", r"\1 plain_\2", query)
    named = re.sub(table, r"\1 plain_\2 AS \2", named)
    return re.sub(r"(?:lake\.)?db\.([tu])\.", r"\1.", named)


@pytest.mark.check
@pytest.mark.parametrize("query", one_in(4, QUERIES))
def test_the_rows_of_plain_spark_tables(sides, spark, query, no_leftovers):
    if "RECURSIVE" in query and pyspark.__version__ < "4.1":
        pytest.skip("Spark 4.0 does not yet repeat a query")
    found, expected = sides.sql(query), spark.sql(plain(query))
    assert found.columns == expected.columns
    assert sorted(map(repr, found.collect())) == sorted(map(repr, expected.collect()))


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("SELECT * FROM db.t WHERE id = 33", 1),
        ("SELECT * FROM db.t WHERE id * 2 = 66", 4),
        ("SELECT * FROM db.t WHERE id > 5 + 20 AND id < 30", 1),
        ("SELECT a.id FROM db.t a JOIN db.t b ON a.id = b.id WHERE b.id > 30", 1),
        ("SELECT id FROM db.t WHERE id < 5 UNION ALL SELECT id FROM db.t WHERE id > 36", 2),
        ("WITH c AS (SELECT * FROM db.t) SELECT * FROM c WHERE id = 1 OR id = 11", 2),
        ("SELECT * FROM db.t WHERE ts >= TIMESTAMP '2024-02-05' - INTERVAL 2 DAYS", 1),
        ("SELECT * FROM db.t WHERE ts > current_timestamp() - INTERVAL 100 YEARS", 4),
        ("SELECT * FROM db.t WHERE ts > current_timestamp()", 0),
        # It may be asked for again when it is later.
        ("SELECT * FROM db.t WHERE ts < current_timestamp() - INTERVAL 100 YEARS", 4),
        ("SELECT * FROM db.t", 4),
    ],
)
def test_only_files_that_can_hold_rows_are_opened(sides, query, files):
    assert len(set(sides.sql(query).inputFiles())) == files


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("SELECT * FROM db.t WHERE id = 33 ORDER BY id", 4),
        ("SELECT a.id FROM db.t a JOIN db.t b ON a.id = b.id WHERE b.id > 31", 4),
        ("SELECT count(*) FROM db.t WHERE id >= 20", 4),
        ("SELECT count(*) FROM db.t", 0),
    ],
)
def test_few_files_on_a_local_disk_are_opened(
    sides, spark, small_tables_are_opened_whole, monkeypatch, query, files
):
    """Nothing is asked of Spark's optimizer for them: the rows are the same."""
    found = sides.sql(query)
    assert len(set(found.inputFiles())) == files
    assert sorted(found.collect()) == sorted(spark.sql(plain(query)).collect())
    monkeypatch.setattr(costs, "OPENED_FILES", 3)
    if files:
        assert len(set(sides.sql(query + " -- again").inputFiles())) < files


@pytest.mark.parametrize(
    ("query", "files"),
    in_circles(
        [
            ("SELECT count(*) FROM db.t", 0),
            ("SELECT count(1) AS `a b`, min(id), max(id) AS m, count(n) FROM db.t", 0),
            ("SELECT max(k) AS k FROM (SELECT k, id FROM db.t)", 0),
            ("SELECT count(*), max(ts) FROM db.t WHERE id >= 20", 0),
            ("SELECT min(d), count(*), count(*) FROM db.t WHERE id < 0", 0),
            # Files hold other rows too, or metadata does not know it.
            ("SELECT count(*) FROM db.t WHERE id >= 25", 2),
            ("SELECT count(*) FROM db.t WHERE id >= 20 AND n LIKE '%1'", 2),
            ("SELECT count(*) FROM db.t WHERE id >= 20 AND id % 2 = 0", 2),
            ("SELECT count(DISTINCT k) FROM db.t", 4),
            ("SELECT count(*) FILTER (WHERE k = 1) FROM db.t", 4),
            ("SELECT count(*) FROM db.t HAVING count(*) > 50", 4),
            ("SELECT max(id) + 1 AS m FROM db.t", 4),
            ("SELECT k, count(*) FROM db.t GROUP BY k", 4),
            ("SELECT count(*) FROM (SELECT * FROM db.t LIMIT 7)", 4),
            ("SELECT count(NULL) FROM db.t", 4),
            ("SELECT count(k, n) FROM db.t", 4),
        ],
        test=1,
    ),
)
def test_aggregates_that_metadata_knows_open_no_file(sides, spark, query, files):
    found, expected = sides.sql(query), spark.sql(plain(query))
    assert found.dtypes == expected.dtypes
    assert sorted(map(repr, found.collect())) == sorted(map(repr, expected.collect()))
    assert len(set(found.inputFiles())) == files


NAMES = [
    "TABLE db.t",
    "TABLE lake.db.`t` UNION ALL TABLE db.u",
    "WITH c AS (TABLE db.t) TABLE c",
    "SELECT id FROM db.u WHERE id IN (TABLE db.t) ORDER BY id",
    "SELECT * FROM db.t FOR SYSTEM_VERSION AS OF 5",
    "SELECT * FROM db.t SYSTEM_VERSION AS OF 5 x JOIN db.u FOR VERSION AS OF 'b'",
    "SELECT * FROM db.t SYSTEM_TIME AS OF '2024-01-01'",
    "SELECT 'SYSTEM_VERSION' AS of, system_time AS of FROM db.t",
]
"""Queries that are only read for the names in them."""


@pytest.mark.parametrize("query", [*(q for q in QUERIES if "|>" not in q), *NAMES])
def test_both_parsers_find_the_same_names(spark, query):
    found = [
        sorted((n.parts, n.start, n.stop, n.is_aliased) for n in names)
        for names in (names_by_spark(spark, query), names_by_sqlglot(query))
    ]
    assert found[0] == found[1]


def test_parameters_and_frames(sides, spark, no_leftovers):
    frame = spark.range(3, 6)
    by_name = sides.sql("SELECT id FROM db.t WHERE id IN (:a, :b)", {"a": 2, "b": 3})
    assert sorted(row.id for row in by_name.collect()) == [2, 3]
    [[count]] = sides.sql("SELECT count(*) FROM db.t WHERE id > ? AND n <> ?", [30, "n1"]).collect()
    assert count == sum(1 for i in range(31, 40) if i % 7 != 1)
    joined = sides.sql(
        "SELECT t.id, '{{}}' AS b FROM db.t JOIN {f} USING (id) WHERE id > {x}", f=frame, x=3
    )
    assert sorted(map(tuple, joined.collect())) == [(4, "{}"), (5, "{}")]
    with pytest.raises(SqlSyntaxError, match="braces"):
        sides.sql("SELECT * FROM {nope}", f=frame)


def test_what_is_named_is_no_code(sides):
    injected = "x' OR '1' = '1"
    assert sides.sql("SELECT * FROM db.t WHERE n = :v", {"v": injected}).count() == 0
    sides.sql("CREATE TABLE db.injected (id INT, `a``b; DROP` STRING)")
    sides.sql("INSERT INTO db.injected VALUES (1, 'x'), (2, 'y')")
    sides.sql("UPDATE db.injected SET `a``b; DROP` = :v WHERE id = :i", {"v": injected, "i": 1})
    rows = sides.sql("SELECT * FROM db.injected ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(1, injected), (2, "y")]
    sides.sql("DROP TABLE db.injected PURGE")


def test_a_frame_that_is_kept_does_not_change(sides, spark):
    sides.sql("CREATE TABLE db.kept (id INT)")
    sides.sql("INSERT INTO db.kept VALUES (1)")
    before = sides.sql("SELECT * FROM db.kept")
    assert [tuple(row) for row in sides.table("db.kept").collect()] == [(1,)]
    sides.sql("INSERT INTO db.kept VALUES (2)")
    assert before.count() == 1
    assert sides.sql("SELECT * FROM db.kept").count() == 2
    sides.sql("DROP TABLE db.kept PURGE")


def test_versions_metadata_tables_and_reserved_columns(sides):
    table = sides.load_table("db.t")
    first = table.snapshots().orderBy("committed_at").first().snapshot_id
    counts = [
        sides.sql(f"SELECT count(*) FROM db.t {said}").collect()[0][0]
        for said in (f"VERSION AS OF {first}", f"FOR SYSTEM_VERSION AS OF '{first}'")
    ]
    assert counts == [10, 10]
    assert sides.sql(f"SELECT count(*) FROM db.t.snapshot_id_{first}").collect()[0][0] == 10
    assert sides.sql("SELECT operation FROM db.t.snapshots").count() == 4
    assert sides.sql("SELECT DISTINCT _file FROM db.t").count() == 4
    assert sides.sql("SELECT * FROM db.t WHERE _pos = 0").columns == ["id", "k", "n", "ts", "d"]
    assert sides.sql("SELECT *, _pos FROM db.t").columns == ["id", "k", "n", "ts", "d", "_pos"]
    inner = sides.sql("SELECT * FROM (SELECT id, _pos FROM db.t) WHERE _pos = 9")
    assert sorted(row.id for row in inner.collect()) == [9, 19, 29, 39]
    later = "SELECT count(*) FROM db.t TIMESTAMP AS OF current_timestamp() + INTERVAL 1 HOUR"
    assert sides.sql(later).collect()[0][0] == 40
    with pytest.raises(ValidationError, match="another one"):
        sides.sql(f"SELECT * FROM db.t.snapshot_id_{first} VERSION AS OF {first}")


def test_errors_name_what_the_user_wrote(sides, no_leftovers):
    with pytest.raises(AnalysisException) as raised:
        sides.sql("SELECT t.id,\n  u.nope FROM db.t JOIN db.u ON t.k = u.k")
    assert raised.value.getCondition() == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    assert "line 2, column 3" in str(raised.value)
    assert "frazil" not in str(raised.value)
    with pytest.raises(NoSuchTableError, match=r"db\.nope"):
        sides.sql("SELECT * FROM lake.db.nope")
    plan = sides.sql("EXPLAIN EXTENDED SELECT * FROM db.t WHERE id = 1").collect()[0][0]
    assert "frazil_" not in plan.replace("frazil_p", "")
    # It is the plan of the one file that the query would open.
    assert "1 paths" in plan or plan.count(".parquet") <= 2, plan


def test_errors_while_rows_are_read_have_the_users_names(sides, no_leftovers, capsys):
    sides.sql("CREATE OR REPLACE VIEW db.w AS SELECT id, k FROM db.t")
    query = "SELECT raise_error(concat('no ', a.k)) FROM db.t a, db.t b, db.w WHERE a.id = w.id"
    for found in (sides.sql(query), sides.sql(query)):
        with pytest.raises(PySparkException) as raised:
            found.collect()
        assert "frazil_" not in str(raised.value)
        found.explain(True)
        assert "frazil_" not in capsys.readouterr().out.replace("frazil_p", "")
    divided = "SELECT id / (id - id) AS x FROM db.t"
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO") as raised:
        sides.sql(divided).collect()
    assert "FROM db.t" in str(raised.value)
    assert "frazil_" not in str(raised.value)
    sides.sql("DROP VIEW db.w")


def test_a_view_of_the_users_keeps_its_name(sides, spark):
    spark.range(7).createOrReplaceTempView("`db.t`")
    try:
        assert sides.sql("SELECT count(k) AS n FROM db.t").collect()[0].n == 40
        assert sides.sql("SELECT max(k) AS n FROM db.t WHERE id < 3").collect()[0].n is not None
        assert spark.sql("SELECT count(*) AS n FROM `db.t`").collect()[0].n == 7
    finally:
        spark.catalog.dropTempView("db.t")


def test_rows_that_the_user_keeps_stay_kept(sides, capsys):
    whole = sides.sql("TABLE db.u").cache()
    assert whole.count() == 4
    assert sides.sql("SELECT count(k) AS n FROM db.u WHERE k < 3").collect()[0].n == 3
    capsys.readouterr()
    whole.select("name").explain()
    assert "InMemoryTableScan" in capsys.readouterr().out
    whole.unpersist()


def test_variables_and_letters_beyond_16_bits(sides, session):
    session(my__low="37")
    query = "SELECT '😀${my.low}' AS face, id FROM db.t /* 😀 */ WHERE id > ${my.low} ORDER BY id"
    assert [tuple(row) for row in sides.sql(query).collect()] == [("😀37", 38), ("😀37", 39)]


def test_rows_of_other_libraries_and_of_another_session(sides, spark):
    given = pa.table({"id": [1, 2]})
    joined = sides.sql("SELECT t.id FROM db.t JOIN {given} AS g USING (id)", given=given)
    assert sorted(row.id for row in joined.collect()) == [1, 2]
    other = spark.newSession().range(3)
    with pytest.raises(ValidationError, match="session"):
        sides.sql("SELECT * FROM {other}", other=other)


@pytest.mark.check
def test_statements_of_several_threads(sides, no_leftovers):
    def count(number):
        query = f"SELECT count(*) FROM db.t a JOIN db.u USING (k) WHERE a.id < {number % 4 * 10}"
        return sides.sql(query).collect()[0][0]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(count, range(12)))
    assert found == [0, 8, 16, 24] * 3


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_texts_are_read_by_the_settings_of_the_lakes_session(spark, tmp_path, ansi):
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", ansi)
    lake = frazil.connect(session, warehouse=str(tmp_path))
    lake.sql("CREATE NAMESPACE db")
    lake.sql("CREATE TABLE db.t (id BIGINT) USING iceberg")
    text = "INSERT INTO db.t SELECT col1 FROM VALUES (CAST('None' AS BIGINT)), (1)"

    def run():
        if ansi == "true":
            with pytest.raises(PySparkException):
                lake.sql(text)
        else:
            lake.sql(text)

    with ThreadPoolExecutor(1) as pool:
        # A thread that has not asked Spark for anything has no session.
        pool.submit(run).result()
    run()
    found = [row.id for row in lake.load_table("db.t").to_df().collect()]
    assert sorted(found, key=str) == ([] if ansi == "true" else [1, 1, None, None])
