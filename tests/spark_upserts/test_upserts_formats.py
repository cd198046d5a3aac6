"""How sources write changes down: each format's rows beside what they say of a table."""

import base64
import datetime
import decimal
import json

import pytest

import frazil
from ci_share import in_circles, only_in_check, only_in_soak
from frazil.errors import FrazilError, ValidationError

DDL = "id bigint, name string"


def rows(table):
    """All rows, sorted."""
    return sorted(tuple(row) for row in table.scan().to_df().collect())


@pytest.fixture
def table_settings():
    """A table with two rows."""
    return {"schema": DDL, "format_version": 2, "appends": [[(1, "a"), (2, "b")]]}


@pytest.mark.check
def test_plain_rows_with_words_of_ones_own(table):
    df = table.spark.createDataFrame([(1, "A", "weg"), (3, "c", "da")], f"{DDL}, what string")
    words = frazil.changes.plain("what", deletes="weg", upserts=["da"])
    table.apply_changes(df, keys="id", format=words)
    assert rows(table) == [(2, "b"), (3, "c")]
    with pytest.raises(ValidationError, match="cannot stand for"):
        frazil.changes.plain("what", deletes="x", upserts=["X"])


@pytest.mark.check
def test_an_op_column_that_the_table_has_stays(lake):
    table = lake.create_table("db.o", f"{DDL}, op string", format_version=2)
    df = lake.spark.createDataFrame([(1, "a", "I")], f"{DDL}, op string")
    table.apply_changes(df, keys="id", op="op")
    assert rows(table) == [(1, "a", "I")]


@pytest.mark.check
def test_a_change_feed_of_delta(table):
    ddl = f"{DDL}, _change_type string, _commit_version bigint, _commit_timestamp timestamp"
    now = datetime.datetime(2024, 1, 1)
    df = table.spark.createDataFrame(
        [
            (1, "a", "update_preimage", 5, now),
            (1, "A", "update_postimage", 5, now),
            (2, "b", "delete", 6, now),
            (3, "c", "insert", 5, now),
            (3, "c", "delete", 7, now),
            (3, "C", "insert", 7, now),
            # A row whose key changed.
            (4, "d", "insert", 5, now),
            (4, "d", "update_preimage", 6, now),
            (5, "d", "update_postimage", 6, now),
        ],
        ddl,
    )
    table.apply_changes(df, keys="id", format=frazil.changes.change_feed())
    assert rows(table) == [(1, "A"), (3, "C"), (5, "d")]


@pytest.mark.check
@pytest.mark.parametrize("mode", ["equality-deletes", only_in_soak("merge")])
def test_a_table_feeds_another_by_its_changes(table, lake, mode):
    copy = lake.create_table("db.copy", DDL, format_version=2)
    start = None
    for changes in ([(1, "A", "u"), (3, "c", "i")], [(3, None, "d"), (1, "AA", "u")]):
        df = lake.spark.createDataFrame(changes, f"{DDL}, op string")
        table.apply_changes(df, keys="id", op="op", mode=mode)
        if start is None:
            feed = table.changes()
        else:
            feed = table.changes(from_snapshot_id=start)
        copy.apply_changes(feed, keys="id", format=frazil.changes.change_feed())
        start = table.current_snapshot.snapshot_id
        assert rows(copy) == rows(table)


def test_events_of_debezium_flattened(table):
    ddl = f"{DDL}, __op string, __deleted string, __lsn bigint"
    df = table.spark.createDataFrame(
        [(1, "A", "u", "false", 2), (1, "a", "u", "false", 1), (2, "b", "d", "true", 3)], ddl
    )
    flattened = frazil.changes.debezium_flattened()
    table.apply_changes(df, keys="id", order_by="__lsn", format=flattened)
    assert rows(table) == [(1, "A")]
    only_deleted = df.drop("__op").where("id = 1 and __lsn = 2").withColumn("__deleted", _true())
    table.apply_changes(only_deleted, keys="id", format=flattened)
    assert rows(table) == []
    with pytest.raises(ValidationError, match="'__op' or '__deleted'"):
        table.apply_changes(df.select("id", "name"), keys="id", format=flattened)


def _true():
    from pyspark.sql import functions as F

    return F.lit("true")


def test_files_of_aws_dms(table):
    ddl = f"Op string, {DDL}, at timestamp"
    at = datetime.datetime(2024, 1, 1)
    df = table.spark.createDataFrame([("I", 3, "c", at), ("U", 1, "A", at), ("D", 2, "b", at)], ddl)
    table.apply_changes(df, keys="id", order_by="at", format=frazil.changes.dms())
    assert rows(table) == [(1, "A"), (3, "c")]
    full = table.spark.createDataFrame([(4, "d")], DDL)
    table.apply_changes(full, keys="id", format=frazil.changes.dms())
    assert rows(table) == [(1, "A"), (3, "c"), (4, "d")]


# -- Debezium's JSON -----------------------------------------------------------------------------


def event(op, before=None, after=None, lsn=1, **more):
    """An event as Debezium's JSON converter writes it, without its schema."""
    return json.dumps(
        {"before": before, "after": after, "op": op, "ts_ms": 7, "source": {"lsn": lsn}, **more}
    )


def applied(table, *events, order_by="source.lsn", **format):
    """Apply events, in a column as Kafka's."""
    df = table.spark.createDataFrame(
        [(number, text) for number, text in enumerate(events)], "offset bigint, value string"
    )
    return table.apply_changes(
        df, keys="id", order_by=order_by, format=frazil.changes.debezium(**format)
    )


@pytest.mark.check
def test_events_of_debezium_as_json(table):
    applied(
        table,
        event("c", after={"id": 3, "name": "c"}, lsn=1),
        event("u", {"id": 1, "name": "a"}, {"id": 1, "name": "A"}, lsn=2),
        event("u", None, {"id": 1, "name": "AA"}, lsn=10),
        event("u", None, {"id": 1, "name": "not the last"}, lsn=9),
        event("d", {"id": 2, "name": None}, lsn=3),
        None,
        event("r", after={"id": 4, "name": None}, lsn=0),
        json.dumps({"op": "m", "message": {"prefix": "x"}}),
    )
    assert rows(table)[0] == (1, "AA")
    assert {row[0] for row in rows(table) if row[1] is None} == {4}
    assert len(table.refresh().scan().to_df().collect()) == 3


@pytest.mark.check
def test_columns_of_kafka_order_events(table):
    applied(
        table,
        event("c", after={"id": 3, "name": "first"}),
        event("u", after={"id": 3, "name": "last"}),
        order_by="offset",
    )
    assert rows(table)[-1] == (3, "last")


@pytest.mark.check
def test_events_of_debezium_in_the_order_of_their_arrival(table):
    """Positions of the log are no order where several logs feed a topic."""
    events = [
        event("c", after={"id": 3, "name": "first"}, lsn=9),
        event("u", after={"id": 3, "name": "last"}, lsn=2),
        event("d", {"id": 1, "name": "a"}, lsn=8),
        event("c", after={"id": 1, "name": "again"}, lsn=1),
        event("u", {"id": 2, "name": "b"}, {"id": 9, "name": "b"}, lsn=5),
        None,
    ]
    df = table.spark.createDataFrame([(text,) for text in events], "value string").coalesce(1)
    table.apply_changes(
        df, keys="id", order_by=frazil.changes.ARRIVAL, format=frazil.changes.debezium()
    )
    assert rows(table) == [(1, "again"), (3, "last"), (9, "b")]


@pytest.mark.parametrize(
    ("text", "says"),
    in_circles(
        [
            ("not json", "no event of a change by Debezium: op is missing"),
            only_in_soak('{"id": 1}', "op is missing"),
            only_in_soak(json.dumps({"op": "t"}), "op is t"),
            only_in_soak(event("d"), "tells no key id"),
            (event("u", after={"name": "x"}), "tells no key id"),
            (event("c", after={"id": "one", "name": "x"}), "'id' .long. the value 'one'"),
            (event("c", after={"id": 1, "name": "x", "age": 3, "tall": True}), "fields age, tall"),
            (
                event("c", after={"id": 1, "name": "__debezium_unavailable_value"}),
                "REPLICA IDENTITY",
            ),
        ],
        test=1,
    ),
)
def test_events_that_cannot_be_applied_stop(table, text, says):
    with pytest.raises(FrazilError, match=says):
        applied(table, event("c", after={"id": 3, "name": "c"}), text)
    assert rows(table.refresh()) == [(1, "a"), (2, "b")]


def test_values_of_every_type_are_read_exactly(lake):
    ddl = (
        "id bigint, b boolean, i int, f double, n decimal(9, 2), w decimal(20, 0), d date, "
        "t timestamp_ntz, z timestamp, s string, x binary, p struct<a: int, b: array<string>>"
    )
    table = lake.create_table("db.v", ddl, format_version=2)
    first = {
        "id": 1,
        "b": True,
        "i": -7,
        "f": 1.5,
        "n": "-12.30",
        "w": "12345678901234567890",
        "d": 19782,
        "t": -1,
        "z": "2024-02-29T23:59:59.123456Z",
        "s": "7",
        "x": base64.b64encode(b"\x00\xff").decode(),
        "p": {"a": 1, "b": ["u", None]},
    }
    second = {**dict.fromkeys(first), "id": 2, "d": "2024-02-29", "t": "2024-02-29T01:02:03.5"}
    applied(table, event("c", after=first), event("c", after=second))
    found = {row.id: row for row in table.scan().to_df().collect()}
    one, two = found[1], found[2]
    D = decimal.Decimal
    assert (one.b, one.i, one.f, one.n, one.w) == (True, -7, 1.5, D("-12.30"), D(first["w"]))
    assert one.d == datetime.date(2024, 2, 29)
    assert one.t == datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)
    assert one.s == "7"
    assert bytes(one.x) == b"\x00\xff"
    assert (one.p.a, one.p.b) == (1, ["u", None])
    utc = table.scan("z = timestamp'2024-02-29 23:59:59.123456 UTC'")
    assert utc.count() == 1
    assert two.d == datetime.date(2024, 2, 29)
    assert two.t == datetime.datetime(2024, 2, 29, 1, 2, 3, 500000)
    assert two[1:6] == (None,) * 5
    applied(
        table,
        event("u", after={**first, "t": 1709168523500, "id": 3}),
        order_by="ts_ms",
        times="millis",
    )
    [row] = table.scan("id = 3").to_df().collect()
    assert row.t == datetime.datetime(2024, 2, 29, 1, 2, 3, 500000)


def stating(row, **types):
    """An event that states the types of its row."""
    after = [{"field": name, **_kind(kind)} for name, kind in types.items()]
    schema = {"type": "struct", "fields": [{"field": "after", "fields": after}]}
    return json.dumps({"schema": schema, "payload": json.loads(event("u", after=row))})


def _kind(kind):
    return {"type": "int32", "name": kind} if "." in kind else {"type": kind}


NUMBERS = [
    # Events before and after a change of the source, which may be set back.
    only_in_check(["int16", "int32", "int64"], [7, 70_000, 2**40], "long"),
    only_in_soak(["int64", "int32"], [2**40, 7], "long"),
    only_in_soak(["float", "double"], [0.5, 0.1], "double"),
]


@pytest.mark.parametrize(("kinds", "values", "expected"), NUMBERS, ids=str)
def test_the_widest_type_that_the_events_state_counts(lake, kinds, values, expected):
    table = lake.create_table("db.w", "id bigint, v int", format_version=2)
    events = [
        stating({"id": n, "b": value, "a": n, "v": n}, id="int64", b=kind, a="int32", v="int32")
        for n, (kind, value) in enumerate(zip(kinds, values, strict=True))
    ]
    df = lake.spark.createDataFrame([(text,) for text in events], "value string")
    apply = {"keys": "id", "format": frazil.changes.debezium(), "on_new_columns": "add"}
    table.apply_changes(df, **apply)
    # New columns in the order of the events' fields.
    names = [(field.name, str(field.field_type)) for field in table.refresh().schema.fields]
    assert names == [("id", "long"), ("v", "int"), ("b", expected), ("a", "int")]
    assert rows(table) == [(n, n, value, n) for n, value in enumerate(values)]
    later = stating({"id": 9, "v": 2**40}, id="int64", v="int64")
    table.apply_changes(lake.spark.createDataFrame([(later,)], "value string"), **apply)
    assert rows(table.refresh())[-1] == (9, 2**40, None, None)


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        (["int32", "string"], "'b', which the table lacks, the type int, then string"),
        only_in_soak(["io.debezium.time.Date", "string"], "the type date, then string"),
        # What the connector's settings decide is not told.
        (["int32", "org.apache.kafka.connect.data.Decimal"], "the fields b, which the table lacks"),
    ],
    ids=str,
)
def test_types_of_events_of_which_none_holds_all_values_stop(table, kinds, says):
    events = [stating({"id": n, "b": "7"}, id="int64", b=kind) for n, kind in enumerate(kinds)]
    df = table.spark.createDataFrame([(text,) for text in events], "value string")
    with pytest.raises(ValidationError, match=says):
        table.apply_changes(df, keys="id", format=frazil.changes.debezium(), on_new_columns="add")
    assert rows(table.refresh()) == [(1, "a"), (2, "b")]


@pytest.mark.check
def test_decimals_as_bytes_stop(lake):
    """What Debezium writes by default for 12.30 in a numeric(9, 2)."""
    table = lake.create_table("db.v", "id bigint, n decimal(9, 2)", format_version=2)
    encoded = base64.b64encode((1230).to_bytes(2, "big")).decode()
    for value in (encoded, "1234"):
        with pytest.raises(ValidationError, match="which is none"):
            applied(table, event("c", after={"id": 1, "n": value}))
