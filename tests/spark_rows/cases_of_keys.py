"""Which rows match: NULL, NaN, nested and odd keys, names, evolved tables, empty sides."""

from __future__ import annotations

from pyspark.sql import functions as F
from row_case import Bench, Case, refused

from frazil.errors import PredicateError, ValidationError

KV = "id int, v int"
ODD = "`a.b` int, `x y` int, `q``t` string, `it's` int, source int, target int, `ünï` int"


def _upsert(ddl: str, *rows: tuple, keys: list[str]):
    return lambda bench: bench.table.upsert(bench.frame(ddl, *rows), keys)


def _odd_names(bench: Bench) -> None:
    table = bench.table
    source = bench.frame(ODD, (1, 10, "A", 10, 10, 10, 10), (3, 30, "C", 30, 30, 30, 30))
    (
        table.merge(source, ["a.b", "target"])
        .when_matched_update_all()
        .when_not_matched_insert_all(condition="source.`q``t` = 'C' and source.source = 30")
        .when_not_matched_by_source_update(
            {"`x y`": "`x y` + target.`a.b`", "it's": 5, "target.source": "target.target + 1"}
        )
        .execute()
    )
    table.delete("`it's` = 30 or `ünï` = 99")


def _by_source(bench: Bench) -> None:
    """Names in clauses by source are the table's, whatever the source has."""
    (
        bench.table.merge(bench.frame(KV, (1, 10), (9, 90)), "target.id = source.id")
        .when_matched_update({"v": "source.v + target.v"})
        .when_not_matched_insert({"id": "source.id", "v": "v"})
        .when_not_matched_by_source_update({"v": "source.v + v"}, condition="v = 2")
        .when_not_matched_by_source_delete(condition="v = 3")
        .when_not_matched_by_source_update({"id": "target.id + 100"}, condition="target.v = 4")
        .execute()
    )


def _empty_sides(bench: Bench) -> None:
    table = bench.table
    nothing = bench.frame(KV).where("false")
    table.update({"v": 1}, "id > 0")
    table.delete("true")
    assert table.merge(nothing, ["id"]).when_matched_delete().execute().changes_nothing
    assert table.current_snapshot is None
    table.upsert(bench.frame(KV, (1, 1), (2, 2)), ["id"])
    table.upsert(nothing, ["id"])
    merge = table.merge(nothing, ["id"]).when_matched_update_all()
    merge.when_not_matched_by_source_delete(condition="id = 1").execute()


def _evolved(bench: Bench) -> None:
    """The column of a dropped partition field is dropped, one of its name is another column."""
    table = bench.table
    with table.update_spec() as spec:
        spec.remove_field("p")
    with table.update_schema() as schema:
        schema.delete_column("p")
    with table.update_schema() as schema:
        schema.add_column("p", "int")
        schema.rename_column("v", "w")
        schema.add_column("n", "string")
    now = "id int, w int, p int, n string"
    table.append(bench.frame(now, (4, 4, 5, "q")))
    table.update({"p": "id", "n": "'m'"}, "w in (1, 9)")
    table.upsert(bench.frame(now, (3, 30, 31, "u"), (6, 6, 6, "z")), "id")
    table.delete("p is null")


def _self_merge(bench: Bench) -> None:
    table = bench.table
    shifted = table.to_df().selectExpr("id + 1 as id", "v * 10 as v")
    table.merge(shifted, ["id"]).when_matched_update_all().when_not_matched_insert_all().execute()


def _metadata_names(bench: Bench) -> None:
    table = bench.table
    ddl = "_pos int, _file string, _row_id bigint, place int, _frazil_place int, _frazil_clause int"
    source = bench.frame(ddl, (1, "f", 9, 9, 9, 9), (3, "g", 8, 8, 8, 8))
    (
        table.merge(source, ["_pos"])
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .when_not_matched_by_source_update({"_row_id": "_row_id + 1", "_frazil_clause": "place"})
        .execute()
    )
    table.update({"_frazil_place": "_pos * 2"}, "_file = 'b'")
    table.delete("_frazil_place = 9 and _row_id = 9")


def _far_years(bench: Bench) -> None:
    source = bench.spark.sql(
        "select 7 id, date'+12000-01-01' d, timestamp_ntz'-0100-01-01 00:00:00' t"
    )
    bench.table.merge(source, ["d", "t"]).when_matched_update({"id": "source.id"}).execute()


def _both_delta_names(bench: Bench) -> None:
    merge = bench.table.merge(bench.frame(KV, (1, 5), (7, 7)), F.col("s.id") == F.col("t.id"),
                              target_alias="t", source_alias="s")  # fmt: skip
    merge.whenMatchedDelete(condition="s.v = t.v").whenMatchedUpdate(set={"v": F.col("s.v")})
    merge.whenNotMatchedInsert(values={"id": "s.id"}).execute()


CASES = (
    Case(
        name="NULL keys never match, <=> does",
        ddl=KV,
        rows=[[(1, 1), (None, 2)], [(3, 3)]],
        do=lambda b: [
            b.table.upsert(b.frame(KV, (1, 10), (None, 20)), ["id"]),
            b.table.merge(b.frame(KV, (None, 0)), "target.id <=> source.id")
            .when_matched_update({"v": "target.v + 1"})
            .execute(),
        ],
        after=[(1, 10), (None, 3), (None, 21), (3, 3)],
    ),
    Case(
        name="keys of structs and of fields, NULL inside and outside",
        ddl="s struct<x: int>, v int",
        rows=[[((1,), 1), ((None,), 2), (None, 3)]],
        do=lambda b: [
            b.table.upsert(b.frame("s struct<x: int>, v int", ((None,), 7), (None, 6)), ["s"]),
            b.table.upsert(b.frame("s struct<x: int>, v int", ((1,), 9), ((2,), 8)), ["s.x"]),
        ],
        after=[((1,), 9), ((None,), 7), (None, 3), (None, 6), ((2,), 8)],
    ),
    Case(
        name="a nested identifier field",
        ddl="s struct<x: int not null> not null, v int",
        rows=[[((1,), 1)]],
        do=lambda b: [
            _identified_by(b, "s.x"),
            b.table.upsert(b.frame("s struct<x: int>, v int", ((1,), 9), ((2,), 8))),
        ],
        after=[((1,), 9), ((2,), 8)],
    ),
    Case(
        name="names with dots, blanks, quotes, and the aliases as names",
        ddl=ODD,
        rows=[[(1, 1, "a", 1, 1, 10, 1), (2, 2, "b", 2, 2, 2, 2)]],
        do=_odd_names,
        after=[(1, 10, "A", 10, 10, 10, 10), (2, 4, "b", 5, 3, 2, 2)],
    ),
    Case(
        name="columns named like those that commands add",
        ddl="_pos int, _file string, _row_id bigint, place int, _frazil_place int, "
        "_frazil_clause int",
        rows=[[(1, "a", 1, 1, 1, 1), (2, "b", 2, 2, 2, 5)]],
        do=_metadata_names,
        after=[(2, "b", 3, 2, 4, 2), (3, "g", 8, 8, 8, 8)],
        both=True,
    ),
    Case(
        name="clauses by source know the table's names alone",
        ddl="id int, v int, source struct<v: int>",
        rows=[[(1, 1, (7,)), (2, 2, (8,)), (3, 3, (9,))], [(4, 4, (9,)), (5, 5, (1,))]],
        do=_by_source,
        after=[(1, 11, (7,)), (2, 10, (8,)), (104, 4, (9,)), (5, 5, (1,)), (9, 90, None)],
        both=True,
    ),
    Case(
        name="empty tables and empty sources",
        ddl=KV,
        do=_empty_sides,
        after=[(2, 2)],
    ),
    Case(
        name="a partition field and its column dropped, columns renamed and added",
        ddl="id int, v int, p string",
        partition_by=["p"],
        rows=[[(1, 1, "a"), (2, 2, "a"), (3, 3, "b"), (9, 9, None)]],
        do=_evolved,
        after=[(1, 1, 1, "m"), (3, 30, 31, "u"), (4, 4, 5, "q"), (6, 6, 6, "z"), (9, 9, 9, "m")],
    ),
    Case(
        name="a source that reads the table",
        ddl=KV,
        rows=[[(1, 1), (2, 2)], [(3, 3)]],
        do=_self_merge,
        after=[(1, 1), (2, 10), (3, 20), (4, 30)],
    ),
    Case(
        name="years that Python does not know",
        ddl="id int, d date, t timestamp_ntz",
        rows=[
            "select 1 id, date'+12000-01-01' d, timestamp_ntz'-0100-01-01 00:00:00' t "
            "union all select 2, date'2020-01-01', timestamp_ntz'2020-01-01 00:00:00'"
        ],
        do=_far_years,
        select=("id",),
        after=[(7,), (2,)],
    ),
    Case(
        name="names of one case only, in a case-sensitive session",
        ddl="id int, ID int, v int",
        settings={"spark.sql.caseSensitive": "true"},
        rows=[[(1, 10, 1), (2, 20, 2)]],
        do=lambda b: [
            b.table.update({"ID": "id + ID"}, "ID = 10"),
            b.table.upsert(b.frame("id int, ID int, v int", (2, 21, 9)), ["id"]),
            b.table.merge(b.frame("id int, ID int, v int", (1, 11, 0)), ["id", "ID"])
            .when_matched_update({"v": "source.ID + source.id"})
            .execute(),
        ],
        after=[(1, 11, 12), (2, 21, 9)],
    ),
    Case(
        name="delta-spark's names, Columns, and other aliases",
        in_ci=False,
        ddl=KV,
        rows=[[(1, 1), (2, 2)]],
        do=_both_delta_names,
        after=[(1, 5), (2, 2), (7, None)],
    ),
    refused("a key that is not there", ValidationError, "nope", _upsert(KV, (1, 2), keys=["nope"])),
    refused(
        "a key that the source does not have",
        ValidationError,
        "the source has no column 'id'",
        _upsert("v int", (2,), keys=["id"]),
    ),
    refused(
        "a stream as the source",
        ValidationError,
        "foreachBatch",
        lambda b: b.table.upsert(
            b.spark.readStream.format("rate").load().selectExpr("1 as id", "2 as v"), "id"
        ),
    ),
    refused(
        "one alias for both sides",
        ValidationError,
        "'t' and 'T'",
        lambda b: b.table.merge(
            b.frame(KV, (1, 2)), "t.id = T.id", target_alias="t", source_alias="T"
        ),
    ),
    refused(
        "an alias that is no name",
        ValidationError,
        "None",
        lambda b: b.table.merge(b.frame(KV, (1, 2)), ["id"], target_alias=None),
        in_ci=False,
    ),
    refused(
        "a match that names a column of neither side",
        PredicateError,
        "nope",
        lambda b: (
            b.table.merge(b.frame(KV, (1, 2)), "target.id = source.nope")
            .when_matched_delete()
            .execute()
        ),
    ),
)


def _identified_by(bench: Bench, name: str) -> None:
    with bench.table.update_schema() as change:
        change.set_identifier_fields(name)
