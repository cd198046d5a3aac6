"""Joins: files of the large side are left out by the keys of the small one, and no row is lost."""

import pytest

import frazil
from ci_share import in_circles, one_in
from frazil.spark.session import costs

FACTS = (
    "SELECT CAST(id % 40 AS INT) AS k, id, concat('s', lpad(id % 40, 2, '0')) AS s "
    "FROM range(400) WHERE id % 40 BETWEEN {} AND {} UNION ALL SELECT NULL, -1, NULL"
)
DAYS = (
    "SELECT CAST(id AS INT) AS k, id % 10 AS week, id DIV 20 AS part, "
    "concat('s', lpad(id, 2, '0')) AS s "
    "FROM range(60) UNION ALL SELECT NULL, 3, 0, NULL"
)
FILES = 4
SELECTIVE = "week = 3 AND part = 0"
"""Keys 3 and 13: they are in the first and the second of four files."""

JOINS = [
    ("SELECT f.id FROM f JOIN d ON f.k = d.k WHERE {0}", 2),
    ("SELECT f.id, d.week FROM f JOIN d USING (s) WHERE {0}", 2),
    ("SELECT f.id FROM d JOIN f ON d.k = f.k AND d.week = 3 AND d.part = 0", 2),
    ("SELECT id FROM f WHERE k IN (SELECT k FROM d WHERE {0})", 2),
    ("SELECT id FROM f WHERE EXISTS (SELECT 1 FROM d WHERE d.k = f.k AND {1})", 2),
    ("SELECT d.k, f.id FROM f RIGHT JOIN (SELECT * FROM d WHERE {0}) d ON f.k = d.k", 2),
    ("SELECT d.k, f.id FROM (SELECT * FROM d WHERE {0}) d LEFT JOIN f ON f.k = d.k", 2),
    ("SELECT k FROM (SELECT * FROM d WHERE {0}) d ANTI JOIN f USING (k)", 2),
    ("WITH g AS (SELECT k, count(*) AS c FROM f GROUP BY k) "
     "SELECT g.* FROM g JOIN d ON g.k = d.k WHERE {1}", 2),
    ("SELECT f.id FROM (SELECT k AS x, * FROM f) f JOIN d ON f.x = d.k WHERE {1}", 2),
    ("SELECT f.id, x FROM (SELECT 'k#1' AS x, id, k FROM f) f JOIN d ON f.k = d.k WHERE {1}", 2),
    ("SELECT id FROM (SELECT k AS `a AS b#3`, id FROM f) f JOIN d ON `a AS b#3` = d.k "
     "WHERE {1}", 2),
    ("SELECT f.id FROM (SELECT k + 1 AS x, id FROM f) f JOIN d ON f.x = d.k WHERE {1}", FILES),
    ("SELECT a.id, b.id FROM f a JOIN f b ON a.id = b.id JOIN d ON a.k = d.k WHERE {1}", FILES),
    ("SELECT count(*) FROM f JOIN d ON f.k = d.k WHERE {1} "
     "UNION ALL SELECT count(*) FROM f JOIN d ON f.k = d.k WHERE d.week = 5 AND d.part = 0", 2),
    # Rows of f without a partner count here.
    ("SELECT id FROM f WHERE k NOT IN (SELECT k FROM d WHERE {0} AND k IS NOT NULL)", FILES),
    ("SELECT f.id, d.week FROM f LEFT JOIN (SELECT * FROM d WHERE {0}) d ON f.k = d.k", FILES),
    ("SELECT f.id, d.k FROM f FULL JOIN (SELECT * FROM d WHERE {0}) d ON f.k = d.k", FILES),
    ("SELECT f.id FROM f ANTI JOIN (SELECT * FROM d WHERE {0}) d ON f.k = d.k", FILES),
    ("SELECT id, k IN (SELECT k FROM d WHERE {0} AND k IS NOT NULL) AS x FROM f", FILES),
    ("SELECT f.id FROM f JOIN d ON f.k <=> d.k WHERE {1}", FILES),
    ("SELECT f.id FROM f JOIN d ON f.k = d.k OR f.id = 7 WHERE {1}", FILES),
    ("SELECT f.id FROM f JOIN d ON f.k > d.k WHERE {1}", FILES),
    ("SELECT f.id FROM f JOIN d ON f.id = d.k WHERE {1}", FILES),
    # Which rows a window or a limit looks at decides what it gives.
    ("SELECT g.* FROM (SELECT k, id, rank() OVER (ORDER BY id) AS r FROM f) g "
     "JOIN d ON g.k = d.k WHERE {1}", FILES),
    ("SELECT count(*) FROM (SELECT k FROM f ORDER BY id DESC LIMIT 30) g "
     "JOIN d ON g.k = d.k WHERE {1}", FILES),
    ("SELECT g.m FROM (SELECT max(k) AS m FROM f) g JOIN d ON g.m = d.k WHERE d.week = 9", FILES),
    ("SELECT u.k FROM (SELECT k FROM f UNION ALL SELECT k FROM d) u JOIN d ON u.k = d.k "
     "WHERE d.week = 3 AND d.part = 0", FILES),
    ("SELECT f.id FROM f LEFT JOIN d ON f.k = d.k AND {1} WHERE f.id < 80", FILES),
    ("SELECT f.id FROM f JOIN d ON f.k = d.k WHERE {1} AND d.week = 8", 0),
]  # fmt: skip


@pytest.fixture(scope="module")
def sides(spark, tmp_path_factory):
    """Facts in four files by their keys, and days: in a lake, and in a database of Spark."""
    lake = frazil.connect(spark, warehouse=str(tmp_path_factory.mktemp("lake")), name="lake")
    lake.create_namespace("star")
    lake.create_table("star.f", "k int, id bigint, s string")
    spark.sql("CREATE DATABASE plain_star")
    for number in range(FILES):
        rows = spark.sql(FACTS.format(10 * number, 10 * number + 9)).coalesce(1)
        lake.load_table("star.f").append(rows)
        rows.write.mode("append").format("parquet").saveAsTable("plain_star.f")
    lake.create_table_as_select("star.d", spark.sql(DAYS).coalesce(1))
    spark.sql(DAYS).write.format("parquet").saveAsTable("plain_star.d")
    lake.sql("USE star")
    yield lake
    spark.sql("DROP DATABASE plain_star CASCADE")
    lake.close()


@pytest.fixture(autouse=True)
def nothing_is_known(sides):
    """No test sees what was found out in another one."""
    sides.load_table("star.f").io.caches["reads"].clear()


@pytest.fixture
def every_size_is_large(monkeypatch):
    """The tables of the tests count as large ones."""
    monkeypatch.setattr(costs, "LARGE_SIDE_BYTES", 0)


# CI takes each third kind that reads few files, and each sixth that reads all of them.
FEWER = [join for join in JOINS if join[1] < FILES]
ALL_FILES = [join for join in JOINS if join[1] == FILES]


@pytest.mark.parametrize(
    ("query", "files"), in_circles([*one_in(3, FEWER), *one_in(6, ALL_FILES)], test=1)
)
def test_the_rows_of_plain_tables_from_few_files(sides, spark, every_size_is_large, query, files):
    query = query.format(SELECTIVE.replace("week", "d.week").replace("part", "d.part")
                         if " ON " in query and "(SELECT * FROM d" not in query else SELECTIVE,
                         SELECTIVE.replace("week", "d.week").replace("part", "d.part"))  # fmt: skip
    found = sides.sql(query)
    spark.sql("USE plain_star")
    try:
        expected = spark.sql(query)
        assert sorted(map(repr, found.collect())) == sorted(map(repr, expected.collect()))
    finally:
        spark.sql("USE default")
    assert len([name for name in set(found.inputFiles()) if "/star/f/" in name]) == files


@pytest.mark.check
def test_a_column_whose_name_looks_like_several(sides, spark, every_size_is_large):
    """Files are left out by the column that is compared, and not by one of a part of its name."""
    odd = sides.create_table("star.odd", "`k#1\x01x` int, x int")
    for number in range(2):
        rows = spark.sql(f"SELECT CAST(id + {10 * number} AS INT), {100 + number} FROM range(9)")
        odd.append(rows.toDF("k#1\x01x", "x").coalesce(1))
    found = sides.sql("SELECT o.`k#1\x01x` AS k FROM odd o JOIN d ON o.`k#1\x01x` = d.k "
                      "WHERE d.week = 3 AND d.part = 0")  # fmt: skip
    assert sorted(row.k for row in found.collect()) == [3, 13]


@pytest.fixture
def no_optimizer(monkeypatch):
    """What is asked of tables is told by the text alone, as over Spark Connect."""
    monkeypatch.setattr("frazil.spark.sql.query.asked_of_tables", lambda *_: None)
    monkeypatch.setattr("frazil.spark.sql.query.is_connect", lambda _: True)
    monkeypatch.setattr("frazil.spark.sql.binding.bind.is_connect", lambda _: True)


IN_F = [
    ("SELECT f.id FROM f JOIN d ON f.k = d.k WHERE f.k IN (3, 13) AND d.week = 3", 2),
    ("SELECT x.i FROM (SELECT id AS i, f.k AS k FROM f) x JOIN d ON x.k = d.k AND x.k < 10", 1),
    ("SELECT f.id, d.k FROM f LEFT JOIN d ON f.k = d.k AND f.k = 3 WHERE d.week IS NULL", FILES),
    ("SELECT f.id, d.k FROM d LEFT JOIN f ON f.k = d.k AND f.k = 3 WHERE f.id IS NULL", 1),
    ("SELECT f.id, d.k FROM d LEFT JOIN f ON f.k = d.k WHERE coalesce(f.k, 3) = 3", FILES),
    ("SELECT f.id, d.k FROM d FULL JOIN f ON f.k = d.k AND f.k = 3 WHERE f.k = 3", FILES),
    ("SELECT count(*) FROM (SELECT k FROM f ORDER BY id LIMIT 30) g WHERE g.k > 15", FILES),
    ("SELECT g.* FROM (SELECT k, max(id) AS m FROM f GROUP BY k) g WHERE g.m > 350", FILES),
    ("SELECT f.id FROM f, d WHERE f.k = d.k AND (f.k > 35 OR f.k = 3) AND week = 6", 2),
    ("WITH g AS (SELECT * FROM f WHERE s > 's31') SELECT g.id FROM g ANTI JOIN d USING (k)", 1),
    ("SELECT k FROM d WHERE EXISTS (SELECT 1 FROM f WHERE f.k = d.k AND id = 7 AND s < 's08')", 1),
    ("SELECT id FROM f WHERE k = 5 UNION ALL SELECT id FROM f WHERE k = 25", 2),
]  # fmt: skip
"""Conditions on the facts themselves, and how many of their files are read."""


@pytest.mark.parametrize(
    ("query", "files"),
    in_circles(
        [*one_in(3, IN_F), *one_in(30, [(query, FILES if files else 0) for query, files in JOINS])],
        test=1,
    ),
)
def test_what_the_text_alone_tells(sides, spark, no_optimizer, query, files):
    test_the_rows_of_plain_tables_from_few_files(sides, spark, None, query, files)


def test_small_tables_are_joined_as_they_are(sides):
    query = "SELECT f.id FROM f JOIN d ON f.k = d.k WHERE d.week = 3 AND d.part = 0"
    assert len(sides.sql(query).inputFiles()) > FILES - 1


def test_more_keys_than_are_compared_change_nothing(sides, every_size_is_large, monkeypatch):
    monkeypatch.setattr(costs, "JOINED_KEYS", 1)
    found = sides.sql("SELECT f.id FROM f JOIN d ON f.k = d.k WHERE d.week = 3 AND d.part = 0")
    assert found.count() == 20
    assert len(found.inputFiles()) == FILES + 1


@pytest.mark.check
def test_what_is_joined_is_of_the_snapshot_of_the_call(sides, every_size_is_large):
    sides.sql("CREATE TABLE star.late (k INT, week INT)")
    sides.sql("INSERT INTO star.late VALUES (3, 3)")
    query = "SELECT f.id FROM f JOIN star.late d ON f.k = d.k WHERE d.week = 3"
    before = sides.sql(query)
    sides.sql("INSERT INTO star.late VALUES (33, 3)")
    assert (before.count(), sides.sql(query).count()) == (10, 20)
    version = sides.load_table("star.late").metadata.snapshots[0].snapshot_id
    old = f"SELECT f.id FROM f JOIN star.late VERSION AS OF {version} d ON f.k = d.k WHERE week = 3"
    assert sides.sql(old).count() == 10
    sides.sql("DELETE FROM star.late WHERE k = 3")
    assert sides.sql(query).count() == 10
