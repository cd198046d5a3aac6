"""Partition specs, transforms and sort orders (rules 68-98, 199-200, 202, 208)."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import (
    EvolutionError,
    InvalidMetadataError,
    UnsupportedError,
    ValidationError,
)
from frazil.format import types as T
from frazil.format.partitions.partitioning import (
    UNPARTITIONED,
    PartitionEvolution,
    PartitionExpr,
    PartitionField,
    PartitionSpec,
    parse_partition_expr,
    rebind_spec,
    spec_for,
    unified_partition_type,
)
from frazil.format.partitions.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
    parse_transform,
)
from frazil.format.schema import Schema
from frazil.format.sorting import (
    UNSORTED,
    NullOrder,
    SortDirection,
    SortField,
    SortOrder,
    order_for,
    parse_sort_expr,
    rebind_order,
    reuse_order,
)
from frazil.format.values import coerce

SCHEMA = Schema(
    (
        T.NestedField(1, "id", T.LongType(), required=True),
        T.NestedField(2, "ts", T.TimestamptzType()),
        T.NestedField(3, "s", T.StringType()),
        T.NestedField(4, "p", T.StructType((T.NestedField(5, "q", T.DateType()),))),
        T.NestedField(6, "tags", T.ListType(7, T.StringType())),
        T.NestedField(8, "m", T.MapType(9, T.StringType(), 10, T.LongType())),
        T.NestedField(11, "geo", T.GeometryType()),
        T.NestedField(12, "odd name", T.StringType()),
        T.NestedField(13, "s_trunc", T.StringType()),
        T.NestedField(14, "v", T.VariantType()),
    )
)


@pytest.mark.parametrize(
    ("text", "transform", "column", "name"),
    [
        ("x", IdentityTransform(), "x", None),
        ("identity(x)", IdentityTransform(), "x", None),
        ("month(ts)", MonthTransform(), "ts", None),
        ("months(ts)", MonthTransform(), "ts", None),
        ("year(ts)", YearTransform(), "ts", None),
        ("YEARS( ts )", YearTransform(), "ts", None),
        ("day(ts)", DayTransform(), "ts", None),
        ("days(ts)", DayTransform(), "ts", None),
        ("date(ts)", DayTransform(), "ts", None),
        ("hour(ts)", HourTransform(), "ts", None),
        ("hours(ts)", HourTransform(), "ts", None),
        ("date_hour(ts)", HourTransform(), "ts", None),
        ("bucket(16, id)", BucketTransform(16), "id", None),
        ("bucket(id, 16)", BucketTransform(16), "id", None),
        ("truncate(10,s)", TruncateTransform(10), "s", None),
        ("truncate(s,10)", TruncateTransform(10), "s", None),
        ("void(x)", VoidTransform(), "x", None),
        ("a.b", IdentityTransform(), "a.b", None),
        ("day(a.b.c)", DayTransform(), "a.b.c", None),
        ("`odd name`", IdentityTransform(), "odd name", None),
        ("bucket(4, a.`b c`)", BucketTransform(4), "a.b c", None),
        ("`a``b`", IdentityTransform(), "a`b", None),
        ("month(ts) as m", MonthTransform(), "ts", "m"),
        ("id AS `the id`", IdentityTransform(), "id", "the id"),
        ("year", IdentityTransform(), "year", None),
        ("日付", IdentityTransform(), "日付", None),
    ],
)
def test_partition_exprs(text: str, transform: Transform, column: str, name: str | None) -> None:
    assert parse_partition_expr(text) == PartitionExpr(transform, column, name)


@pytest.mark.parametrize(
    "text",
    ["", "month(", "month()", "month(ts", "month(ts) m", "month(ts) as", "bucket(id)", "bucket(16)",
     "bucket(16, 4, id)", "bucket(0, id)", "truncate(0, s)", "week(ts)", "month(3, ts)", "a.",
     "month(a, b)", "a b", "a-b", "month(ts)) as x", "`", "`month`(ts)", "3", "bucket(4; id)",
     "bucket(99999999999, id)"],
)  # fmt: skip
def test_wrong_partition_exprs(text: str) -> None:
    with pytest.raises(ValidationError):
        parse_partition_expr(text)


def test_spec_for() -> None:
    spec = spec_for(
        SCHEMA,
        ["month(ts)", "bucket(16, id)", "truncate(4, s) as prefix", "p.q", "`odd name`", "void(s)"],
        spec_id=3,
    )
    assert spec.to_json() == {
        "spec-id": 3,
        "fields": [
            {"source-id": 2, "field-id": 1000, "name": "ts_month", "transform": "month"},
            {"source-id": 1, "field-id": 1001, "name": "id_bucket", "transform": "bucket[16]"},
            {"source-id": 3, "field-id": 1002, "name": "prefix", "transform": "truncate[4]"},
            {"source-id": 5, "field-id": 1003, "name": "p.q", "transform": "identity"},
            {"source-id": 12, "field-id": 1004, "name": "odd name", "transform": "identity"},
            {"source-id": 3, "field-id": 1005, "name": "s_null", "transform": "void"},
        ],
    }
    assert PartitionSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    spec.check_against(SCHEMA)
    assert [str(field.field_type) for field in spec.partition_type(SCHEMA).fields] == [
        "int", "int", "string", "date", "string", "string",
    ]  # fmt: skip
    assert spec.identity_source_ids == {5, 12}
    assert not spec.is_unpartitioned
    loose = spec_for(SCHEMA, ["day(TS)"], case_sensitive=False)
    assert loose.fields[0].name == "ts_day"
    assert spec_for(SCHEMA, []) == UNPARTITIONED
    field = PartitionField((1,), 1007, BucketTransform(4), "b")
    assert [f.field_id for f in spec_for(SCHEMA, [field, "ts"]).fields] == [1007, 1008]


@pytest.mark.parametrize(
    ("exprs", "message"),
    [
        (["nothing"], "no column 'nothing'"),
        (["TS"], "no column 'TS'"),
        (["year(s)"], "type string"),
        (["hour(p.q)"], "type date"),
        (["geo"], "type geometry"),
        (["bucket(4, geo)"], "type geometry"),
        (["v"], "not a primitive"),
        (["p"], "not a primitive"),
        (["tags.element"], "in a list or a map"),
        (["m.value"], "in a list or a map"),
        (["month(ts) as id"], "cannot be named 'id'"),
        (["id as s"], "cannot be named 's'"),
        (["truncate(4, s)"], "cannot be named 's_trunc'"),
        (["id", "id as again"], "redundant"),
        (["day(ts)", "hour(ts)"], "redundant"),
        (["bucket(4, id)", "bucket(8, id)"], "have the name 'id_bucket'"),
        (["id as x", "s as x"], "have the name 'x'"),
    ],
)
def test_spec_for_refuses(exprs: list[str], message: str) -> None:
    """Rules 70, 77-80."""
    with pytest.raises(ValidationError, match=message):
        spec_for(SCHEMA, exprs)


def test_field_ids_of_v1() -> None:
    """Rule 199: fields without ids count from 1000."""
    fields = [
        {"source-id": 2, "name": "a", "transform": "day"},
        {"source-id": 1, "name": "b", "transform": "bucket[4]"},
    ]
    assert [f.field_id for f in PartitionSpec.from_fields_json(fields).fields] == [1000, 1001]


def test_multi_argument_transforms() -> None:
    """Rules 92, 202: several sources make a transform unknown, and come back as they were."""
    json_value = {
        "spec-id": 1,
        "fields": [
            {"source-ids": [1, 2], "field-id": 1000, "name": "z", "transform": "bucket[4]"},
            {"source-id": 1, "field-id": 1001, "name": "y", "transform": "zorder[3]"},
        ],
    }
    spec = PartitionSpec.from_json(json_value)
    assert spec.to_json() == json_value
    assert spec.fields[0].transform == UnknownTransform("bucket[4]")
    assert spec.partition_type(SCHEMA).fields[0].field_type == T.UnknownType()
    with pytest.raises(UnsupportedError):
        spec.fields[1].transform.apply(T.LongType(), 1)
    single = {"source-ids": [1], "field-id": 1000, "name": "x", "transform": "identity"}
    field = PartitionSpec.from_fields_json([single]).fields[0]
    assert field.to_json()["source-id"] == 1
    order = {
        "order-id": 1,
        "fields": [{"source-ids": [1, 2], "transform": "zorder", "direction": "asc",
                    "null-order": "nulls-first"}],
    }  # fmt: skip
    assert SortOrder.from_json(order).to_json() == order
    with pytest.raises(EvolutionError, match="not known"):
        PartitionEvolution(
            SCHEMA, [spec], default_spec_id=1, last_partition_id=1001, format_version=3
        )


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {},
        {"spec-id": 0},
        {"spec-id": "0", "fields": []},
        {"spec-id": 0, "fields": [1]},
        {"spec-id": 0, "fields": [{"name": "x", "transform": "identity"}]},
        {"spec-id": 0, "fields": [{"source-ids": [], "name": "x", "transform": "identity"}]},
        {"spec-id": 0, "fields": [{"source-id": 1, "transform": "identity"}]},
        {"spec-id": 0, "fields": [{"source-id": 1, "name": "x"}]},
        {"spec-id": 0, "fields": [{"source-id": 1, "name": "x", "transform": "bucket[0]"}]},
        {
            "spec-id": 0,
            "fields": [
                {"source-id": 1, "name": "x", "transform": "identity"},
                {"source-id": 2, "name": "x", "transform": "identity"},
            ],
        },
    ],
)
def test_malformed_specs(wrong: Any) -> None:
    with pytest.raises(InvalidMetadataError):
        PartitionSpec.from_json(wrong)


def test_dropped_sources_still_have_types() -> None:
    spec = spec_for(SCHEMA, ["day(ts)", "bucket(4, id)", "s", "void(p.q)"])
    kinds = [str(field.field_type) for field in spec.partition_type(Schema()).fields]
    assert kinds == ["date", "int", "unknown", "unknown"]
    assert spec.partition_path(Schema(), (0, 1, "x y", None)).startswith("ts_day=1970-01-01/id_b")
    with pytest.raises(ValidationError, match="4 values, not 1"):
        spec.partition_path(SCHEMA, (1,))


@given(st.datetimes())
def test_time_transforms_agree_with_datetime(moment: datetime) -> None:
    micros = coerce(T.TimestampType(), moment)
    assert YearTransform().apply(T.TimestampType(), micros) == moment.year - 1970
    assert MonthTransform().apply(T.TimestampType(), micros) == (
        (moment.year - 1970) * 12 + moment.month - 1
    )
    since = moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    assert DayTransform().apply(T.TimestampType(), micros) == since.days
    assert HourTransform().apply(T.TimestampType(), micros) == since // timedelta(hours=1)
    assert (
        DayTransform().human_string(T.DateType(), since.days)
        == (date(1970, 1, 1) + timedelta(days=since.days)).isoformat()
    )


ORDERED: list[tuple[T.IcebergType, Transform]] = [
    (T.LongType(), TruncateTransform(7)),
    (T.LongType(), IdentityTransform()),
    (T.TimestampType(), YearTransform()),
    (T.TimestampType(), MonthTransform()),
    (T.TimestampType(), DayTransform()),
    (T.TimestampNanoType(), HourTransform()),
]


@pytest.mark.parametrize(("source_type", "transform"), ORDERED)
@given(a=st.integers(-(2**63), 2**63 - 1), b=st.integers(-(2**63), 2**63 - 1))
def test_order_is_preserved(
    source_type: T.IcebergType, transform: Transform, a: int, b: int
) -> None:
    assert transform.preserves_order
    low, high = sorted((a, b))
    assert transform.apply(source_type, low) <= transform.apply(source_type, high)


@given(st.integers(1, 2**31 - 1), st.text())
def test_buckets_are_in_range(buckets: int, value: str) -> None:
    assert 0 <= BucketTransform(buckets).apply(T.StringType(), value) < buckets


def test_null_gives_null() -> None:
    """Rule 83."""
    for text in ("identity", "bucket[4]", "truncate[4]", "void"):
        assert parse_transform(text).apply(T.LongType(), None) is None
    assert parse_transform("day").human_string(T.DateType(), None) == "null"


def evolve(spec: PartitionSpec, *more: PartitionSpec, version: int = 2) -> PartitionEvolution:
    return PartitionEvolution(
        SCHEMA,
        [spec, *more],
        default_spec_id=spec.spec_id,
        last_partition_id=999,
        format_version=version,
    )


def test_evolution_errors_say_what_is_there() -> None:
    first = spec_for(SCHEMA, ["month(ts)", "bucket(16, id)"])
    with pytest.raises(EvolutionError, match="the fields are: ts_month, id_bucket"):
        evolve(first).remove_field("nothing")
    with pytest.raises(EvolutionError, match="already: the field 'ts_month'"):
        evolve(first).add_field("month(ts)")
    with pytest.raises(EvolutionError, match="removed already"):
        evolve(first).remove_field("ts_month").remove_field("ts_month")
    with pytest.raises(EvolutionError, match="cannot be named 's'"):
        evolve(first).rename_field("ts_month", "s").apply()
    with pytest.raises(EvolutionError, match="no partition spec of id 7"):
        PartitionEvolution(
            SCHEMA, [first], default_spec_id=7, last_partition_id=1001, format_version=2
        )
    with pytest.raises(ValidationError, match="in a list or a map"):
        evolve(first).add_field("tags.element")


def test_unified_partition_type() -> None:
    """Rule 208."""
    first = spec_for(SCHEMA, ["month(ts)", "bucket(16, id)"])
    second = evolve(first).remove_field("ts_month").add_field("day(ts)").apply()
    renamed = evolve(second, first).rename_field("id_bucket", "shard").apply()
    unified = unified_partition_type([renamed, first, second], SCHEMA)
    assert [(f.field_id, f.name, str(f.field_type), f.required) for f in unified.fields] == [
        (1000, "ts_month", "int", False),
        (1001, "shard", "int", False),
        (1002, "ts_day", "date", False),
    ]
    assert unified_partition_type([UNPARTITIONED], SCHEMA) == T.StructType()


def test_unified_partition_type_of_v1() -> None:
    """Rules 71, 90, 208: a void field has the type it had; clashing fields have no union."""
    first = spec_for(SCHEMA, ["month(ts)"])
    voided = evolve(first, version=1).remove_field("ts_month").apply()
    assert voided.fields[0].is_void
    unified = unified_partition_type([first, voided], SCHEMA)
    assert str(unified.fields[0].field_type) == "int"
    with pytest.raises(ValidationError, match="1000 stands for"):
        unified_partition_type([first, spec_for(SCHEMA, ["s"], spec_id=1)], SCHEMA)


def test_unified_names_stay_apart() -> None:
    first = spec_for(SCHEMA, ["month(ts) as key"])
    second = evolve(first).remove_field("key").add_field("bucket(4, id) as key").apply()
    unified = unified_partition_type([first, second], SCHEMA)
    assert [field.name for field in unified.fields] == ["key_1000", "key"]


def test_rebinding_to_fresh_ids() -> None:
    fresh = Schema(
        (T.NestedField(5, "ts", T.TimestamptzType()), T.NestedField(6, "id", T.LongType()))
    )
    spec = spec_for(SCHEMA, ["month(ts)", "bucket(16, id)"], spec_id=4)
    assert [f.source_id for f in rebind_spec(spec, SCHEMA, fresh).fields] == [5, 6]
    order = order_for(SCHEMA, ["id", "day(ts)"])
    assert [f.source_id for f in rebind_order(order, SCHEMA, fresh).fields] == [6, 5]
    with pytest.raises(ValidationError, match="no column 's'"):
        rebind_spec(spec_for(SCHEMA, ["s"]), SCHEMA, fresh)


@pytest.mark.parametrize(
    ("text", "transform", "column", "direction", "nulls"),
    [
        ("ts", "identity", "ts", "asc", "nulls-first"),
        ("ts asc", "identity", "ts", "asc", "nulls-first"),
        ("ts DESC", "identity", "ts", "desc", "nulls-last"),
        ("ts desc nulls first", "identity", "ts", "desc", "nulls-first"),
        ("ts nulls last", "identity", "ts", "asc", "nulls-last"),
        ("bucket(4, id) asc", "bucket[4]", "id", "asc", "nulls-first"),
        ("  day( p.q )  Desc  Nulls  Last ", "day", "p.q", "desc", "nulls-last"),
        ("`odd name` desc", "identity", "odd name", "desc", "nulls-last"),
    ],
)
def test_sort_exprs(text: str, transform: str, column: str, direction: str, nulls: str) -> None:
    expr = parse_sort_expr(text)
    assert (str(expr.transform), expr.column) == (transform, column)
    assert (expr.direction.value, expr.null_order.value) == (direction, nulls)


@pytest.mark.parametrize("text", ["", "ts down", "ts nulls", "ts asc desc", "ts as x", "nulls(ts)"])
def test_wrong_sort_exprs(text: str) -> None:
    with pytest.raises(ValidationError):
        parse_sort_expr(text)


def test_sort_orders() -> None:
    """Rules 93, 94, 200."""
    order = order_for(SCHEMA, ["ts desc", "bucket(4, id) nulls last"])
    assert order.to_json() == {
        "order-id": 1,
        "fields": [
            {"transform": "identity", "source-id": 2, "direction": "desc",
             "null-order": "nulls-last"},
            {"transform": "bucket[4]", "source-id": 1, "direction": "asc",
             "null-order": "nulls-last"},
        ],
    }  # fmt: skip
    assert SortOrder.from_json(json.loads(json.dumps(order.to_json()))) == order
    assert order_for(SCHEMA, []) is UNSORTED
    assert UNSORTED.to_json() == {"order-id": 0, "fields": []}
    assert order.satisfies(order_for(SCHEMA, ["day(ts) desc"]))
    assert not order.satisfies(order_for(SCHEMA, ["day(ts)"]))
    assert not order_for(SCHEMA, ["day(ts) desc"]).satisfies(order)
    for wrong in ("year(s)", "none", "tags.element", "geo"):
        with pytest.raises(ValidationError):
            order_for(SCHEMA, [wrong])


def test_reusing_sort_orders() -> None:
    """Rule 96."""
    one, two = order_for(SCHEMA, ["ts"]), order_for(SCHEMA, ["id"], order_id=5)
    held = [UNSORTED, one, two]
    assert reuse_order(held, order_for(SCHEMA, ["id"])) is two
    assert reuse_order(held, order_for(SCHEMA, ["id desc"])).order_id == 6
    assert reuse_order(held, UNSORTED) is UNSORTED


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {"order-id": 1},
        {"order-id": 1, "fields": []},
        {"order-id": 0, "fields": [{"transform": "identity", "source-id": 1, "direction": "asc",
                                    "null-order": "nulls-first"}]},
        {"order-id": 1, "fields": [{"transform": "identity", "source-id": 1, "direction": "up",
                                    "null-order": "nulls-first"}]},
        {"order-id": 1, "fields": [{"transform": "identity", "source-id": 1, "direction": "asc",
                                    "null-order": "first"}]},
        {"order-id": 1, "fields": [{"transform": "identity", "direction": "asc",
                                    "null-order": "nulls-first"}]},
        {"order-id": 1, "fields": ["id"]},
    ],
)  # fmt: skip
def test_malformed_sort_orders(wrong: Any) -> None:
    with pytest.raises(InvalidMetadataError):
        SortOrder.from_json(wrong)


SPECS = st.lists(
    st.tuples(
        st.sampled_from(
            [IdentityTransform(), VoidTransform(), HourTransform(), UnknownTransform("zorder")]
        )
        | st.builds(BucketTransform, st.integers(1, 2**31 - 1))
        | st.builds(TruncateTransform, st.integers(1, 2**31 - 1)),
        st.lists(st.integers(1, 99), min_size=1, max_size=1).map(tuple),
        st.text(min_size=1),
    ),
    unique_by=lambda field: field[2],
    max_size=5,
)


@given(SPECS, st.integers(0, 99))
def test_specs_and_orders_round_trip(
    fields: list[tuple[Transform, tuple[int, ...], str]], spec_id: int
) -> None:
    spec = PartitionSpec(
        spec_id,
        tuple(
            PartitionField(source_ids, 1000 + place, transform, name)
            for place, (transform, source_ids, name) in enumerate(fields)
        ),
    )
    assert PartitionSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    order = SortOrder(
        len(fields),
        tuple(
            SortField(source_ids, transform, SortDirection.DESC, NullOrder.NULLS_FIRST)
            for transform, source_ids, _ in fields
        ),
    )
    assert SortOrder.from_json(json.loads(json.dumps(order.to_json()))) == order
