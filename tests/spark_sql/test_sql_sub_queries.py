"""Sub-queries as values of a row, over tables that are read as unions."""

import pytest

from frazil.spark.sql.binding.sub_queries import has_sub_queries_as_values
from frazil.spark.words import words_of

VALUES = (
    "SELECT (SELECT max(b) FROM u WHERE u.a = t.a) FROM t",
    "SELECT a, coalesce((SELECT max(b) FROM u WHERE u.a = t.a), 0) AS b FROM t",
    "SELECT * FROM (SELECT EXISTS (SELECT 1 FROM u WHERE u.a = t.a) AS e FROM t) WHERE e",
    "SELECT extract(YEAR FROM d), CASE WHEN a IN (SELECT a FROM u) THEN 1 END FROM t",
    "WITH x AS (SELECT (SELECT count(*) FROM u WHERE u.a = t.a) AS n FROM t) TABLE x",
    "FROM t |> EXTEND (SELECT max(b) FROM u WHERE u.a = t.a) AS m",
)
ROWS = (
    "SELECT a FROM (SELECT a FROM t)",
    "SELECT a FROM t WHERE b > (SELECT avg(b) FROM u WHERE u.a = t.a)",
    "SELECT a FROM t JOIN (SELECT a FROM u) USING (a) WHERE EXISTS (SELECT 1 FROM u)",
    "WITH x AS (SELECT a FROM t) SELECT a, count(*) FROM x, (SELECT 1) GROUP BY a ORDER BY a",
    "(SELECT a FROM t) UNION ALL (SELECT a FROM u)",
)


@pytest.mark.parametrize("query", VALUES)
def test_are_seen(query):
    assert has_sub_queries_as_values(words_of(query))


@pytest.mark.parametrize("query", ROWS)
def test_others_are_not(query):
    assert not has_sub_queries_as_values(words_of(query))


@pytest.fixture
def tables(lake):
    """Two tables: one with deletes in some files, one whose columns changed."""
    lake.sql(
        "CREATE TABLE db.t (a INT, b INT) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read',"
        " 'write.update.mode' = 'merge-on-read')"
    )
    lake.sql("INSERT INTO db.t VALUES (1, 10), (2, 20), (3, 30), (4, NULL)")
    lake.sql("INSERT INTO db.t VALUES (5, 50)")
    lake.sql("DELETE FROM db.t WHERE a = 3")
    lake.sql("CREATE TABLE db.u (a INT)")
    lake.sql("INSERT INTO db.u VALUES (1), (1), (5)")
    lake.sql("ALTER TABLE db.u ADD COLUMN c INT FIRST")
    lake.sql("INSERT INTO db.u VALUES (7, 2), (9, 2)")
    return lake


ANSWERS = {
    "SELECT t.a, (SELECT max(u.c) FROM db.u u WHERE u.a = t.a) AS m FROM db.t t": [
        (1, None), (2, 9), (4, None), (5, None)],
    "SELECT u.a, (SELECT sum(t.b) FROM db.t t WHERE t.a = u.a) + 1 AS s FROM db.u u": [
        (1, 11), (1, 11), (2, 21), (2, 21), (5, 51)],
    "SELECT t.a, EXISTS (SELECT 1 FROM db.u u WHERE u.a = t.a) AS e FROM db.t t WHERE t.a > 1": [
        (2, True), (4, False), (5, True)],
    "SELECT t.a, t.a NOT IN (SELECT u.a FROM db.u u WHERE u.a >= t.a) AS e FROM db.t t": [
        (1, False), (2, False), (4, True), (5, False)],
    "SELECT a, (SELECT count(*) FROM db.t s WHERE s.a < v.a) AS n FROM db.v v": [
        (1, 0), (2, 1), (5, 3)],
    "SELECT (SELECT count(*) FROM db.u u WHERE u.a = t.a) AS n, count(*) FROM db.t t GROUP BY 1": [
        (0, 1), (1, 1), (2, 2)],
    "SELECT x, (SELECT max(b) FROM db.t) AS m FROM (SELECT (SELECT min(u.c) FROM db.u u "
    "WHERE u.a = t.a) AS x FROM db.t t) WHERE x IS NOT NULL": [(7, 50)],
}  # fmt: skip


@pytest.mark.check
def test_over_unions(tables):
    tables.sql("CREATE VIEW db.v AS SELECT a FROM db.t UNION SELECT a FROM db.u WHERE a < 4")
    tables.sql("DELETE FROM db.t WHERE a = 4")
    tables.sql("INSERT INTO db.t VALUES (4, NULL)")
    answers = {**ANSWERS}
    answers["SELECT a, (SELECT count(*) FROM db.t s WHERE s.a < v.a) AS n FROM db.v v"] = [
        (1, 0), (2, 1), (4, 2), (5, 3)]  # fmt: skip
    for query, rows in answers.items():
        assert sorted(map(tuple, tables.sql(query).collect())) == sorted(rows), query


@pytest.mark.check
def test_as_values_of_changes(tables):
    """The same in UPDATE, MERGE and INSERT."""
    tables.sql("UPDATE db.t SET b = (SELECT max(u.c) FROM db.u u WHERE u.a = t.a) WHERE a < 5")
    assert _rows(tables, "TABLE db.t") == ["1|None", "2|9", "4|None", "5|50"]
    tables.sql("INSERT INTO db.t SELECT u.a + 10, (SELECT max(t.b) FROM db.t t WHERE t.a = u.a) "
               "FROM db.u u WHERE u.a <> 1")  # fmt: skip
    assert _rows(tables, "TABLE db.t") == ["12|9", "12|9", "15|50", "1|None", "2|9", "4|None",
                                           "5|50"]  # fmt: skip
    tables.sql("MERGE INTO db.t t USING (SELECT DISTINCT a FROM db.u) s ON t.a = s.a WHEN MATCHED "
               "THEN UPDATE SET b = (SELECT count(*) FROM db.u u WHERE u.a = s.a)")  # fmt: skip
    assert _rows(tables, "SELECT * FROM db.t WHERE a < 6") == ["1|2", "2|2", "4|None", "5|1"]


def _rows(lake, query):
    return sorted("|".join(map(str, row)) for row in lake.sql(query).collect())
