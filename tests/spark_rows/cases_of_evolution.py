"""Merges that change the schema, write defaults, upgrades, old versions."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F
from row_case import Bench, Case, refused

from frazil.errors import FrazilError, SchemaMismatchError, ValidationError

KV = "id int, v int"


def _evolving(bench: Bench, ddl: str, *rows: tuple) -> None:
    """The columns by name at the end are the source's too."""
    merge = bench.table.merge(bench.frame(ddl, *rows), ["id"]).when_matched_update_all()
    merge.when_not_matched_insert_all().with_schema_evolution().execute()


def _keeps_required(bench: Bench) -> None:
    _evolving(bench, "id bigint, s struct<x: int, y: int>", (1, (5, 6)), (2, (7, 8)))
    assert [str(field) for field in bench.table.schema.fields] == [
        "1: id: required long",
        "2: s: required struct<3: x: required int, 4: y: optional int>",
    ]


def _only_named(bench: Bench) -> None:
    source = bench.frame("id int, s struct<x: int, y: int, z: int>, n int", (1, (5, 6, 7), 9))
    merge = bench.table.merge(source, ["id"]).with_schema_evolution()
    merge.when_matched_update(
        {"s.x": "source.s.x", "target.s.z": "source.s.z", "n": F.col("n")}
    ).execute()
    assert bench.table.to_df().columns == ["id", "s", "n"]


def _as_if_before(bench: Bench) -> None:
    """As in Spark and Delta, `b` is the source's alone, which the merge itself adds."""
    source = bench.frame("id int, b int", (1, 10), (2, 20), (3, 30), (4, 40))
    merge = bench.table.merge(source, "target.id = source.id and b < 40").with_schema_evolution()
    merge.when_matched_update({"a": "b + 1"}, condition="b = 10").when_matched_update_all()
    merge.when_not_matched_insert({"id": "id", "b": "b"}, condition="b > 20")
    merge.when_not_matched_by_source_update({"a": "a + 1"}).execute()


def _set(name: str, value: object) -> dict:
    return {"when_matched_update": {"set": {name: value}}}


SAME = "target.id = source.id"
UNKNOWN = (
    ("no column 'typo'", SAME, _set("typo", "source.b")),
    ("no column 'm'.*not to source.b", SAME, _set("m", "source.b")),
    ("no column 'b'.*not to b . 1", SAME, _set("b", "b + 1")),
    ("no column 's.typo'", SAME, _set("s.typo", "source.s.z")),
    ("no column 's.z'", SAME, _set("s.z", "source.s.x")),
    ("'y'", SAME, _set("s", "named_struct('x', 1, 'y', b)")),
    ("`z`", SAME, _set("a", "target.s.z")),
    ("no column 'b'", SAME, {"when_not_matched_by_source_update": {"set": {"b": "1"}}}),
    ("`b`", SAME, {"when_not_matched_by_source_delete": {"condition": "b is null"}}),
    ("`target`.`b`", SAME, {"when_matched_delete": {"condition": "target.b is null"}}),
    ("`target`.`b`", f"{SAME} and target.b is null", {}),
)
"""Of each merge what the refusal says, its condition, and a clause with a name not to be had."""


def _unknown(bench: Bench) -> None:
    """Nothing is added either, nor left behind in a transaction."""
    source = bench.frame("id int, b int, s struct<x: int, z: int>", (1, 10, (5, 6)), (3, 30, None))
    before = bench.table.metadata_location
    with bench.table.transaction() as together:
        for says, on, clauses in UNKNOWN:
            for table in (together, bench.table):
                merge = table.merge(source, on).with_schema_evolution()
                for name, arguments in clauses.items():
                    getattr(merge, name)(**arguments)
                merge.when_not_matched_insert_all()
                with pytest.raises(FrazilError, match=says):
                    merge.execute()
        assert together.metadata is bench.table.metadata
    assert bench.table.refresh().metadata_location == before


def _switched_off(bench: Bench) -> None:
    """As in the Java runtime: new columns of the source are left out."""
    bench.table.set_properties({"write.spark.auto-schema-evolution.enabled": "false"})
    _evolving(bench, "id bigint, v int, w int", (1, 10, 100), (2, 20, 200))
    assert [str(field) for field in bench.table.schema.fields] == [
        "1: id: optional int",
        "2: v: optional int",
    ]


def _defaults(bench: Bench) -> None:
    table = bench.table
    with table.update_schema() as change:
        change.add_column("n", "timestamp_ns", default="2024-01-01T00:00:00.123456789")
        change.add_column("t", "string", default="it's")
    source = bench.frame(KV, (1, 10), (2, 20))
    merge = table.merge(source, ["id"]).when_matched_update({"v": "source.v", "t": "upper(t)"})
    merge.when_not_matched_insert({"id": "source.id"}).execute()


def _upgraded(bench: Bench) -> None:
    """Rows deleted in version 1's and 2's ways stay deleted in version 3."""
    table = bench.table
    table.delete("id = 1")
    table.upgrade(2)
    table.delete("id = 2")
    table.upgrade(3)
    table.delete("id = 3")
    table.update({"v": "v + 1"}, "id = 4")
    with table.update_spec() as spec:
        spec.add_field("truncate(2, id)")
    table.upsert(bench.frame(KV, (5, 50), (7, 70)), "id")


CASES = (
    Case(
        name="keys by names that get wider",
        ddl="id int, v int",
        rows=[[(1, 1), (2, 2)]],
        do=lambda b: (
            b.table.merge(b.frame("id bigint, v int", (1, 10), (3_000_000_000, 30)), ["id"])
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .with_schema_evolution()
            .execute()
        ),
        after=[(1, 10), (2, 2), (3_000_000_000, 30)],
    ),
    Case(
        name="schema evolution that the table switches off",
        ddl=KV,
        rows=[[(1, 1), (3, 3)]],
        do=_switched_off,
        after=[(1, 10), (2, 20), (3, 3)],
    ),
    Case(
        name="a merge adds columns of the source",
        ddl=KV,
        rows=[[(1, 1), (2, 2)]],
        do=lambda b: _evolving(b, "id int, w int", (1, 10), (3, 30)),
        after=[(1, 1, 10), (2, 2, None), (3, None, 30)],
    ),
    Case(
        name="a merge adds fields inside of structs, arrays and maps",
        ddl="id int, a array<struct<x: int>>, m map<string, struct<x: int>>",
        rows=[[(1, [(1,)], {"k": (1,)}), (4, [(4,)], None)]],
        do=lambda b: _evolving(
            b,
            "id int, a array<struct<x: int, y: int>>, m map<string, struct<x: int, y: int>>",
            (1, [(5, 6)], {"k": (1, 2)}),
            (2, None, None),
        ),
        after=[(1, [(5, 6)], {"k": (1, 2)}), (2, None, None), (4, [(4, None)], None)],
    ),
    Case(
        name="fields that the source's structs lack stay, new rows have none",
        ddl="id int, s struct<a: int, b: string, c: int>",
        rows=[[(1, (100, "aa", 1000)), (2, (200, "bb", 2000)), (4, None)]],
        do=lambda b: _evolving(
            b, "id int, s struct<a: int, b: string>", (1, (10, "a")), (3, (30, "c")), (4, (4, "d"))
        ),
        after=[
            (1, (10, "a", 1000)),
            (2, (200, "bb", 2000)),
            (3, (30, "c", None)),
            (4, (4, "d", None)),
        ],
        both=True,
    ),
    refused(
        "without evolution a struct that lacks a field is refused",
        SchemaMismatchError,
        "has no field 'b'",
        lambda b: b.table.upsert(b.frame("id int, s struct<a: int>", (1, (10,))), "id"),
        ddl="id int, s struct<a: int, b: string>",
        rows=[[(1, (1, "a"))]],
    ),
    Case(
        name="a merge widens types",
        ddl="id int, v int, d decimal(4, 1), s struct<f: float>",
        rows=["select 1 id, 1 v, 1.5BD d, named_struct('f', 0.5F) s"],
        do=lambda b: (
            b.table.merge(
                b.spark.sql(
                    "select 1 id, 1000000000000L v, cast(12345.5 as decimal(9, 1)) d, "
                    "named_struct('f', 0.1D) s union all select 2, -1L, null, null"
                ),
                ["id"],
            )
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .with_schema_evolution()
            .execute()
        ),
        select=("id", "v", "string(d)", "s"),
        after=[(1, 10**12, "12345.5", (0.1,)), (2, -1, None, None)],
    ),
    Case(
        name="a merge that evolves leaves required what is required",
        ddl="id int not null, s struct<x: int not null> not null",
        rows=[[(1, (1,))]],
        do=_keeps_required,
        after=[(1, (5, 6)), (2, (7, 8))],
    ),
    Case(
        name="only columns and fields that a clause names are added",
        ddl="id int, s struct<x: int>",
        rows=[[(1, (1,)), (2, None)]],
        do=_only_named,
        after=[(1, (5, 7), 9), (2, None, None)],
    ),
    Case(
        name="names are read as if the table had not what the merge adds",
        ddl="id int, a int",
        rows=[[(1, 1), (2, 2)], [(4, 4), (5, 5)]],
        do=_as_if_before,
        after=[(1, 11, None), (2, 2, 20), (3, None, 30), (4, 5, None), (4, None, 40), (5, 6, None)],
        both=True,
    ),
    Case(
        name="names that neither the table has nor come from the source's column of that name",
        ddl="id int, a int, s struct<x: int>",
        rows=[[(1, 1, (1,)), (2, 2, None)]],
        do=_unknown,
        after=[(1, 1, (1,)), (2, 2, None)],
    ),
    refused(
        "a column that the source lacks, without evolution",
        ValidationError,
        "no column 'v'",
        lambda b: b.table.upsert(b.frame("id int", (1,)), "id"),
    ),
    Case(
        name="defaults of columns that are left out",
        ddl=KV,
        rows=[[(1, 1)]],
        do=_defaults,
        after=[
            (1, 10, 1_704_067_200_123_456_789, "IT'S"),
            (2, None, 1_704_067_200_123_456_789, "it's"),
        ],
        versions=(3,),
    ),
    Case(
        name="a table of version 1 that is upgraded twice",
        ddl=KV,
        rows=[[(n, n) for n in range(1, 7)]],
        do=_upgraded,
        after=[(4, 5), (5, 50), (6, 6), (7, 70)],
        versions=(1,),
        both=True,
    ),
)
