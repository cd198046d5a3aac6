"""A table of PostgreSQL followed: types, changes, schema, and what stops."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from ci_share import only_in_soak
from frazil.cdc.connections import Dsn
from frazil.errors import (
    ConfigurationError,
    NotFoundError,
    StorageError,
    UnsupportedError,
    ValidationError,
)

TYPES = """create type mood as enum ('sad', 'glad'); create domain cents as numeric(8, 2);
create table t (id bigint primary key, b boolean, i2 smallint, i4 integer, r real, f double
precision, n numeric(10, 3), big numeric, c cents, d date, h time, ts timestamp, tz timestamptz,
u uuid, raw bytea, s text, v varchar(5), p char(3), m mood, j jsonb, ai integer[], at text[],
twice bigint generated always as (id * 2) stored)"""

ROW = """(%s, true, -2, 7, 1.5, 'NaN', 12.345, 1e40, 1.10, '1969-12-31', '23:59:59.999999',
'2024-02-29 01:02:03.000004', '2024-02-29 01:02:03.5+02', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11',
'\\x00ff5c', E'tab\\t\\\\N "x"', 'ab', 'a', 'glad', '{"a": [1]}', '{1,null,3}',
array['a,b', null, '"{}'])"""

EXPECTED = {
    "b": True,
    "i2": -2,
    "i4": 7,
    "r": 1.5,
    "n": Decimal("12.345"),
    "big": "1" + "0" * 40,
    "c": Decimal("1.10"),
    "d": date(1969, 12, 31),
    "ts": datetime(2024, 2, 29, 1, 2, 3, 4),
    "tz": datetime(2024, 2, 28, 23, 2, 3, 500000, tzinfo=UTC),
    "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "raw": b"\x00\xff\\",
    "s": 'tab\t\\N "x"',
    "v": "ab",
    "p": "a  ",
    "m": "glad",
    "j": '{"a": [1]}',
    "ai": [1, None, 3],
    "at": ["a,b", None, '"{}'],
}
ICEBERG = (
    "long boolean int int float double decimal(10, 3) string decimal(8, 2) date time timestamp "
    "timestamptz uuid binary string string string string string"
)


def test_every_type_loaded_and_changed(database):
    database.run(TYPES, f"insert into t values {ROW % 1}", "insert into t (id) values (3)")
    table = database.drain()
    kinds = [str(field.field_type) for field in table.schema.fields]
    assert " ".join(kinds[:20]) == ICEBERG
    assert [field.name for field in table.schema.fields][20:] == ["ai", "at"]
    database.run(f"insert into t values {ROW % 2}", "update t set i4 = 7 where id = 1")
    table = database.drain()
    rows = {row["id"]: row for row in table.to_df().toArrow().to_pylist()}
    assert set(rows) == {1, 2, 3}
    for key in (1, 2):
        found = rows[key]
        assert {name: found[name] for name in EXPECTED} == EXPECTED
        assert found["f"] != found["f"]
        micros = 86_399_999_999
        assert found["h"] in (micros, time(23, 59, 59, 999999))
    assert all(value is None for name, value in rows[3].items() if name != "id")


def test_changes_keys_and_truncation(database):
    database.run(
        "create table t (id int, k text, v int, primary key (id, k))",
        "insert into t select n, 'k' || n % 3, n from generate_series(1, 20) n",
    )
    database.drain()
    database.run(
        "update t set v = -v where id < 5",
        "delete from t where id = 6",
        "update t set id = id + 100 where id = 7",
        # Two rows change their keys with each other.
        "begin; update t set id = 999 where id = 8; update t set id = 8, k = 'k2' where id = 9; "
        "update t set id = 9 where id = 999; commit",
        "begin; insert into t values (50, 'x', 1); delete from t where id = 50; commit",
        "begin; insert into t values (51, 'x', 1); rollback",
    )
    database.drain(batch_rows=2)
    ours, theirs = database.both()
    assert ours == theirs
    database.run(
        "begin; insert into t values (60, 'a', 1); truncate t; insert into t values (61, 'a', 1), "
        "(62, 'b', 2); update t set v = 5 where id = 61; delete from t where id = 62; commit",
    )
    database.drain()
    assert database.both()[0] == ["(61, 'a', 5)"] == database.both()[1]
    database.run("truncate t")
    assert database.drain().count() == 0
    database.run("insert into t values (1, 'z', 1)")
    database.drain()
    assert database.both()[0] == ["(1, 'z', 1)"]
    last = database.table.current_snapshot.summary
    [name] = [n for n in database.table.properties if n.startswith("frazil.stream.last-batch.")]
    high, low = last["frazil.cdc.lsn"].split("/")
    assert int(database.table.properties[name]) == (int(high, 16) << 32) + int(low, 16)


@pytest.mark.parametrize("identity", ["default", only_in_soak("full")])
def test_long_values_that_updates_leave_alone(database, identity):
    """The log holds them only where they change, or with the full row before."""
    long = "(select string_agg(md5((n * {})::text), '') from generate_series(1, 400) n)"
    database.run(
        "create table t (id int primary key, big text, raw bytea, v int)",
        f"alter table t replica identity {identity}",
        f"insert into t values (1, {long.format(1)}, null, 1), (2, {long.format(2)}, null, 2), "
        f"(3, {long.format(3)}, {long.format(3)}::bytea, 3)",
    )
    database.drain()
    database.run(
        "update t set v = 10 where id = 1",
        "update t set id = 20, v = 11 where id = 2",
        "update t set v = 12 where id = 20",
        f"insert into t values (4, {long.format(4)}, null, 4)",
        "update t set v = 5 where id = 4",
        f"update t set big = {long.format(7)} where id = 3",
        "update t set v = 6 where id = 3",
    )
    database.drain()
    columns = "concat_ws('|', id, md5(big), md5(raw), v)"
    ours, theirs = database.both(columns)
    assert ours == theirs
    assert len(ours) == 4


def test_columns_that_come_and_go(database):
    database.run(
        "create table t (id int primary key, a int, b text)", "insert into t values (1, 1, 'x')"
    )
    database.drain()
    database.run(
        "insert into t values (2, 2, 'y')",
        "alter table t add column c uuid, alter column a type bigint",
        "insert into t values (3, 5000000000, 'z', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')",
    )
    table = database.drain()
    kinds = {field.name: str(field.field_type) for field in table.schema.fields}
    assert kinds == {"id": "int", "a": "long", "b": "string", "c": "uuid"}
    ours, theirs = database.both("concat_ws('|', id, a, b, c)")
    assert ours == theirs
    database.run("alter table t drop column b", "insert into t values (4, 4)")
    rows = {row["id"]: row["b"] for row in database.drain().to_df().collect()}
    assert rows == {1: "x", 2: "y", 3: "z", 4: None}


def test_what_cannot_be_followed_is_said(database, postgres):
    database.run(
        "create table t (id int primary key, v interval)",
        "create table no_key (id int)",
        "create table f (id float8 primary key)",
        "create view v as select 1 as id",
        "create publication others for table no_key",
        "create publication filtered for table t where (id > 3)",
        "create publication part for table t (id)",
    )
    cases = [
        ({}, UnsupportedError, "interval"),
        ({"source": "public.no_key", "publication": "q"}, ValidationError, "primary key"),
        ({"source": "public.f", "publication": "q"}, UnsupportedError, "'id'"),
        ({"source": "public.v"}, UnsupportedError, "no permanent table"),
        ({"source": "public.nope"}, NotFoundError, "--source"),
        ({"publication": "others"}, ConfigurationError, "ADD TABLE"),
        ({"publication": "filtered"}, ConfigurationError, "WHERE"),
    ]
    for settings, error, said in cases:
        with pytest.raises(error, match=said):
            database.drain(**settings)
    assert (
        database.run(
            f"select slot_name from pg_replication_slots where slot_name = '{database.slot}'"
        )
        == []
    )
    # Its publication leaves the refused column out.
    database.run("insert into t values (1, '1 day')")
    assert database.drain(publication="part").to_df().columns == ["id"]
    other = f"postgresql://frazil:s3cr3t-pw@127.0.0.1:{postgres.port}/postgres"
    with pytest.raises(ConfigurationError, match="wal_level = logical"):
        database.drain(dsn=Dsn.of(other))
    with pytest.raises(StorageError, match="password authentication failed") as raised:
        database.drain(dsn=Dsn.of(other.replace("s3cr3t", "wr0ng")))
    assert "wr0ng" not in str(raised.value)
    with pytest.raises(ConfigurationError) as raised:
        Dsn.of("postgresql//me:hush-hush@host/db")
    assert "hush" not in str(raised.value)
    assert "s3cr3t" not in repr(Dsn.of(other))


def test_slots_and_tables_of_others_are_left_alone(database):
    database.run("create table t (id int primary key)", "insert into t values (1)")
    database.run(f"select pg_create_logical_replication_slot('{database.slot}', 'pgoutput')")
    with pytest.raises(ConfigurationError, match="knows nothing"):
        database.drain()
    database.run(f"select pg_drop_replication_slot('{database.slot}')")
    table = database.lake.create_table("db.t", "id int not null")
    table.append(database.lake.spark.sql("select 9 as id"))
    with pytest.raises(ValidationError, match="has rows"):
        database.drain()
    database.drain(loads_again=True)
    assert database.both()[0] == ["(1,)"]
    database.run("insert into t values (2)")
    database.run(f"select pg_replication_slot_advance('{database.slot}', pg_current_wal_lsn())")
    with pytest.raises(ValidationError, match="are gone"):
        database.drain()
    database.drain(loads_again=True)
    assert database.follower().drop_slot()
    assert not database.follower().drop_slot()
    database.drain(loads_again=True)
    database.run(f"select pg_drop_replication_slot('{database.slot}')")
    with pytest.raises(ValidationError, match="is gone"):
        database.drain()
