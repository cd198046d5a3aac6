"""BEGIN, COMMIT and ROLLBACK as statements of a lake, and what may stand between."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from transaction_cases import ROWS, both, collected, rows

import frazil
from ci_share import only_in_soak
from frazil.errors import (
    ConflictError,
    NoSuchTableError,
    SqlSyntaxError,
    UnsupportedError,
    ValidationError,
)
from programs import run_program

pytestmark = [pytest.mark.usefixtures("tables")]
CONNECT = Path(__file__).with_name("connect_program.py")


def test_statements_between_are_one_commit(lake):
    for statement in (
        "BEGIN TRANSACTION;",
        "INSERT INTO db.a VALUES (3, 30)",
        "UPDATE lake.db.a SET n = n + 1 WHERE id = 3",
        "MERGE INTO db.b USING db.a ON b.id = a.id WHEN NOT MATCHED THEN INSERT *",
        "ALTER TABLE db.b ADD COLUMN s STRING",
        "CREATE TABLE db.c AS SELECT * FROM db.b",
        "CREATE TABLE db.d LIKE db.a",
        "INSERT INTO db.d SELECT id, n FROM db.c",
        "CREATE OR REPLACE TABLE db.d AS SELECT id FROM db.d WHERE id > 1",
    ):
        lake.sql(statement)
    assert collected(lake.sql("SELECT id FROM db.d")) == [(2,), (3,)]
    assert [row.tableName for row in lake.sql("SHOW TABLES IN db").collect()] == [*"abcd"]
    assert len(lake.sql("DESCRIBE TABLE db.b").collect()) == 3
    assert both(lake) == (ROWS, ROWS)
    assert lake.list_tables("db") == [("db", "a"), ("db", "b")]
    assert lake.sql("COMMIT").columns == []
    assert rows(lake, "db.a") == [*ROWS, (3, 31)]
    assert rows(lake, "db.b") == [(1, 10, None), (2, 20, None), (3, 31, None)]
    assert rows(lake, "db.d") == [(2,), (3,)]


def test_a_rollback_leaves_nothing(lake, files):
    before = files()
    lake.sql("/* a */ -- b\n start transaction isolation level snapshot")
    lake.sql("DELETE FROM db.a")
    lake.sql("INSERT INTO db.b VALUES (3, 30)")
    assert collected(lake.sql("SELECT count(*) FROM db.a")) == [(0,)]
    lake.sql("ROLLBACK WORK;")
    assert both(lake) == (ROWS, ROWS)
    assert files() == before


REFUSED = {
    "DROP TABLE db.a": UnsupportedError,
    "DROP TABLE db.a PURGE": UnsupportedError,
    "ALTER TABLE db.a RENAME TO db.x": UnsupportedError,
    "CALL system.expire_snapshots('db.a')": UnsupportedError,
    "CREATE NAMESPACE other": UnsupportedError,
    "DROP NAMESPACE db": UnsupportedError,
    "COMMENT ON NAMESPACE db IS 'x'": UnsupportedError,
    "SELECT * FROM db.missing": Exception,
    "INSERT INTO db.missing VALUES (1)": NoSuchTableError,
    "INSERT IN db.a": SqlSyntaxError,
}


IN_CI = ("DROP TABLE db.a PURGE", "ALTER TABLE db.a RENAME TO db.x", "SELECT * FROM db.missing")


@pytest.mark.parametrize(
    "statement", [each if each in IN_CI else only_in_soak(each) for each in REFUSED]
)
def test_after_an_error_it_can_only_be_rolled_back(lake, files, statement):
    before = files()
    lake.sql("BEGIN")
    if statement.startswith("DROP TABLE db.a PURGE"):
        lake.sql("INSERT INTO db.b VALUES (3, 30)")
    with pytest.raises(REFUSED[statement]):
        lake.sql(statement)
    with pytest.raises(ValidationError, match="run ROLLBACK"):
        lake.sql("SELECT 1")
    with pytest.raises(ValidationError, match="rolled back"):
        lake.sql("COMMIT")
    assert both(lake) == (ROWS, ROWS)
    assert files() == before
    assert collected(lake.sql("SELECT 1")) == [(1,)]


def test_what_begins_and_ends_wrongly(lake, session):
    for end in ("COMMIT", "ROLLBACK"):
        with pytest.raises(ValidationError, match="no transaction is open"):
            lake.sql(end)
    lake.sql("BEGIN TRANSACTION")
    with pytest.raises(ValidationError, match="not nested"):
        lake.sql("BEGIN TRANSACTION")
    lake.sql("ROLLBACK TRANSACTION")
    with pytest.raises(SqlSyntaxError):
        lake.sql("BEGIN TRANSACTION ISOLATION LEVEL NONE")
    with pytest.raises(SqlSyntaxError):
        lake.sql("COMMIT NOW")
    with lake.transaction() as tx, pytest.raises(UnsupportedError, match="end of the block"):
        tx.sql("COMMIT")
    # A script of Spark's is none of ours; Spark 4.0 has them where it is told.
    session(spark__sql__scripting__enabled="true")
    assert collected(lake.sql("BEGIN SELECT 7; END")) == [(7,)]


@pytest.mark.check
def test_a_conflict_ends_it(lake, spark):
    lake.sql("BEGIN")
    lake.sql("INSERT INTO db.b SELECT * FROM db.a")
    lake.load_table("db.a").delete("id = 1")
    with pytest.raises(ConflictError):
        lake.sql("COMMIT")
    with pytest.raises(ValidationError, match="no transaction"):
        lake.sql("COMMIT")
    assert rows(lake, "db.b") == ROWS


def test_it_is_of_all_threads_of_the_session_and_of_no_other_session(lake, spark, tmp_path):
    """Threads take turns in it; one may end what another one has begun."""
    own = spark.newSession()
    with (
        frazil.connect(own, warehouse=str(tmp_path / "lake"), name="lake") as there,
        ThreadPoolExecutor(4) as pool,
    ):

        def elsewhere(text):
            return pool.submit(lambda: collected(lake.sql(text))).result()

        lake.sql("BEGIN")
        lake.sql("INSERT INTO db.a VALUES (3, 30)")
        assert elsewhere("SELECT * FROM db.a") == [*ROWS, (3, 30)]
        elsewhere("INSERT INTO db.b VALUES (4, 40)")
        lake.sql("DELETE FROM db.a WHERE id = 1")
        assert elsewhere("SELECT id FROM db.a") == [(2,), (3,)]
        texts = [f"INSERT INTO db.b VALUES ({number}, 0)" for number in range(5, 9)]
        list(pool.map(lake.sql, texts))
        with pytest.raises(ValidationError, match="not nested"):
            elsewhere("BEGIN")
        assert both(lake) == both(there) == (ROWS, ROWS)
        assert collected(there.sql("SELECT * FROM db.a")) == ROWS
        with pytest.raises(ValidationError, match="no transaction is open"):
            there.sql("COMMIT")
        elsewhere("COMMIT")
        more = [(4, 40), *((number, 0) for number in range(5, 9))]
        assert both(lake) == both(there) == ([ROWS[1], (3, 30)], [*ROWS, *more])
        with pytest.raises(ValidationError, match="no transaction is open"):
            lake.sql("ROLLBACK")


@pytest.mark.check
def test_a_statement_of_another_thread_that_fails_counts(lake):
    lake.sql("BEGIN")
    with ThreadPoolExecutor(1) as pool, pytest.raises(NoSuchTableError):
        pool.submit(lake.sql, "INSERT INTO db.missing VALUES (1)").result()
    with pytest.raises(ValidationError, match="rolled back"):
        lake.sql("COMMIT")


def test_a_lake_that_is_closed_rolls_back(lake, spark, files, tmp_path):
    before = files()
    with frazil.connect(spark, warehouse=str(tmp_path / "lake"), name="lake") as other:
        other.sql("BEGIN")
        other.sql("INSERT INTO db.a VALUES (3, 30)")
    assert files() == before
    assert both(lake) == (ROWS, ROWS)


@pytest.mark.soak
def test_over_connect(tmp_path, connect_url):
    assert run_program(CONNECT, tmp_path, connect_url).split() == ["right"]
