"""Defaults of columns in SQL: each becomes a value of the column's type."""

import datetime as dt
from decimal import Decimal

import pyspark
import pytest

from frazil.errors import PredicateError, SchemaMismatchError, UnsupportedError

DEFAULTS = {
    "BOOLEAN DEFAULT true": True,
    "INT DEFAULT 5 * 2": 10,
    "INT DEFAULT 7.0": 7,
    "INT DEFAULT '8'": 8,
    "BIGINT DEFAULT 3": 3,
    "FLOAT DEFAULT 2.5": 2.5,
    "FLOAT DEFAULT 1": 1.0,
    "DOUBLE DEFAULT 2.5": 2.5,
    "DOUBLE DEFAULT 1e3": 1000.0,
    "DECIMAL(9, 2) DEFAULT 1.5": Decimal("1.50"),
    "DECIMAL(9, 2) DEFAULT 4": Decimal("4.00"),
    # Spark 4.0 reads two texts beside each other there.
    "STRING DEFAULT 'it''s'": "its" if pyspark.__version__ < "4.1" else "it's",
    "STRING DEFAULT 5": "5",
    "BINARY DEFAULT X'00FF'": bytearray(b"\x00\xff"),
    "DATE DEFAULT DATE '2024-01-01'": dt.date(2024, 1, 1),
    "DATE DEFAULT '2024-01-02'": dt.date(2024, 1, 2),
    "TIMESTAMP_NTZ DEFAULT TIMESTAMP_NTZ '2024-01-01 01:02:03.4'": dt.datetime(
        2024, 1, 1, 1, 2, 3, 400_000
    ),
    "STRING DEFAULT NULL": None,
}
ZONED = {
    "TIMESTAMP DEFAULT TIMESTAMP '2024-03-31 03:30:00'": "2024-03-31 03:30:00",
    "TIMESTAMP DEFAULT DATE '2024-07-01'": "2024-07-01 00:00:00",
    "TIMESTAMP DEFAULT '2024-10-27 02:30:00'": "2024-10-27 02:30:00",
}
REFUSED = {
    "INT DEFAULT 'text'": SchemaMismatchError,
    "INT DEFAULT 3000000000": SchemaMismatchError,
    "INT DEFAULT DATE '2024-01-01'": SchemaMismatchError,
    "INT DEFAULT nope": PredicateError,
    "DOUBLE DEFAULT rand()": PredicateError,
    "INT DEFAULT (SELECT 1)": UnsupportedError,
    "DATE DEFAULT current_date()": UnsupportedError,
}


def _columns(definitions):
    return ", ".join(f"c{number} {text}" for number, text in enumerate(definitions))


@pytest.mark.check
def test_of_new_tables_and_of_added_columns(lake):
    lake.sql(f"CREATE TABLE db.t (id INT, {_columns(DEFAULTS)}) "
             "TBLPROPERTIES ('format-version' = '3')")  # fmt: skip
    lake.sql("INSERT INTO db.t (id) VALUES (1)")
    assert tuple(lake.sql("SELECT * FROM db.t").collect()[0]) == (1, *DEFAULTS.values())
    lake.sql("CREATE TABLE db.u (id INT) TBLPROPERTIES ('format-version' = '3')")
    lake.sql("INSERT INTO db.u VALUES (1)")
    lake.sql(f"ALTER TABLE db.u ADD COLUMNS ({_columns(DEFAULTS)})")
    lake.sql("INSERT INTO db.u (id) VALUES (2)")
    rows = lake.sql("SELECT * FROM db.u ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(n, *DEFAULTS.values()) for n in (1, 2)]


def test_moments_in_the_zone_of_the_session(lake, session):
    session(spark__sql__session__timeZone="Europe/Oslo")
    lake.sql(f"CREATE TABLE db.t (id INT, {_columns(ZONED)}) "
             "TBLPROPERTIES ('format-version' = '3')")  # fmt: skip
    lake.sql("INSERT INTO db.t (id) VALUES (1)")
    texts = ", ".join(f"CAST(c{number} AS STRING)" for number in range(len(ZONED)))
    assert tuple(lake.sql(f"SELECT {texts} FROM db.t").collect()[0]) == tuple(ZONED.values())


def test_set_default(lake):
    lake.sql("CREATE TABLE db.t (id INT, d DOUBLE) TBLPROPERTIES ('format-version' = '3')")
    lake.sql("ALTER TABLE db.t ALTER COLUMN d SET DEFAULT 0.5")
    lake.sql("INSERT INTO db.t (id) VALUES (1)")
    assert [tuple(row) for row in lake.sql("TABLE db.t").collect()] == [(1, 0.5)]
    with pytest.raises(SchemaMismatchError, match="no value of the column 'd'"):
        lake.sql("ALTER TABLE db.t ALTER COLUMN d SET DEFAULT 'x'")


@pytest.mark.parametrize("definition", REFUSED)
def test_refused(lake, definition):
    with pytest.raises(REFUSED[definition]) as caught:
        lake.sql(f"CREATE TABLE db.t (c {definition}) TBLPROPERTIES ('format-version' = '3')")
    assert "frazil_" not in str(caught.value)
    assert not lake.table_exists("db.t")
