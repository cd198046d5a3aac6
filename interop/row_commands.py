"""Commands on rows: Frazil's calls, Java's SQL, and in plain Python the rows that they leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from frazil.spark.lake import Lake
from frazil.spark.table import Table

Kind: TypeAlias = Literal["kept", "changed", "new"]


class Row(NamedTuple):
    """A row; `n` tells it from every other and never changes."""

    n: int
    id: int | None
    g: str | None
    v: float | None
    note: str | None


Left: TypeAlias = list[tuple[Row, Kind]]

DDL: Final = "n int, id bigint, g string, v double, note string"
NAMES: Final = Row._fields
_GROUPS = ("a", "b'c", 'd "e"', None)
_VALUES = (None, math.nan, -0.0, 0.5, 2.5)
_NOTES = ("it's", None, 'say "x"', "", "back\\slash", "ü", "NULL")
ROWS: Final = tuple(
    Row(n, None if n % 8 == 5 else n, _GROUPS[n % 4], _VALUES[n % 5], _NOTES[n % 7])
    for n in range(24)
)

# -- layouts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is partitioned, one spec after the other, and which columns it first has.

    Attributes:
        specs: each holds an equal share of the rows.
        evolves: the first share lacks `note`, has `id` as an int and `v` under another name.
    """

    specs: tuple[tuple[str, ...], ...]
    evolves: bool = False

    def rows(self) -> tuple[Row, ...]:
        """The rows of a table as they read in its last schema."""
        lacking = len(ROWS) // len(self.specs) if self.evolves else 0
        return (*(row._replace(note=None) for row in ROWS[:lacking]), *ROWS[lacking:])

    def fill(self, table: Table) -> None:
        """Append the rows, and change the spec and the schema between the shares."""
        share = len(ROWS) // len(self.specs)
        for place, spec in enumerate(self.specs):
            before = self.specs[place - 1] if place else spec
            if spec != before:
                with table.update_spec() as change:
                    for field in before:
                        change.remove_field(field)
                    for field in spec:
                        change.add_field(field)
            if self.evolves and place == 1:
                with table.update_schema() as change:
                    change.rename_column("old", "v").update_column("id", "long")
                    change.add_column("note", "string")
            rows = ROWS[place * share : (place + 1) * share]
            if self.evolves and not place:
                old = [row[:4] for row in rows]
                df = table.spark.createDataFrame(old, "n int, id int, g string, old double")
            else:
                df = table.spark.createDataFrame(rows, DDL)
            table.append(df.coalesce(1))

    def create(self, lake: Lake, name: str, mode: str, version: int) -> Table:
        """A table with the rows, whose commands work in a mode."""
        table = lake.create_table(
            name,
            "n int, id int, g string, old double" if self.evolves else DDL,
            partition_by=list(self.specs[0]),
            format_version=version,
            properties={f"write.{each}.mode": mode for each in ("delete", "update", "merge")},
        )
        self.fill(table)
        return table


LAYOUTS: Final = {
    "unpartitioned": Layout(((), ())),
    "identity": Layout((("g",), ("g",))),
    "bucket": Layout((("bucket(3, id)",),) * 2),
    "evolved spec": Layout(((), ("g",), ("bucket(2, id)", "truncate(1, note)"))),
    "evolved schema": Layout((("truncate(1, g)",),) * 2, evolves=True),
}

# -- commands --------------------------------------------------------------------------------------


class Change(NamedTuple):
    """A row of a merge's source, and what the clauses are to do with it."""

    row: Row
    op: str


SOURCE: Final = (
    Change(Row(0, 0, "a", 1.0, "gone"), "delete"),
    Change(Row(2, 2, "b'c", math.nan, 'it\'s "new"'), "change"),
    Change(Row(7, 7, None, None, None), "change"),
    Change(Row(12, 12, "left", 9.0, "left"), "leave"),
    Change(Row(19, 19, "a new group", 0.25, ""), "change"),
    Change(Row(22, 22, 'd "e"', -0.0, "gone"), "delete"),
    Change(Row(30, 30, "a", math.nan, "it's"), "change"),
    Change(Row(31, 31, "left", None, "left"), "leave"),
    Change(Row(32, 32, None, 0.5, None), "delete"),
    # No key is equal to NULL.
    Change(Row(33, None, "b'c", None, 'say "x"'), "change"),
)
VIEW: Final = "row_commands_source"


def make_view(spark: Any) -> None:
    """Make the source of merges known by its name."""
    rows = [(*change.row, change.op) for change in SOURCE]
    spark.createDataFrame(rows, f"{DDL}, op string").createOrReplaceTempView(VIEW)


@dataclass(frozen=True, slots=True)
class Command:
    """One command in three forms.

    Attributes:
        by_frazil: runs it.
        by_java: its SQL, with a place for the table's name.
        leaves: the rows after it and what became of each, from those before it.
    """

    by_frazil: Callable[[Table], Any]
    by_java: str
    leaves: Callable[[Sequence[Row]], Iterator[tuple[Row, Kind]]]


def _is_nan(value: float | None) -> bool:
    return value is not None and math.isnan(value)


def _add(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left + right


_DELETED = "isnan(v) and g <> 'a' or note = 'it''s' or g = 'd \"e\"' or id is null and v is null"


def _deleted(rows: Sequence[Row]) -> Iterator[tuple[Row, Kind]]:
    for row in rows:
        gone = (
            (_is_nan(row.v) and row.g not in (None, "a"))
            or row.note == "it's"
            or row.g == 'd "e"'
            or (row.id is None and row.v is None)
        )
        if not gone:
            yield row, "kept"


_SET = {"g": "note", "v": "v * 2", "id": "id + 100", "note": "concat(note, '''\"')"}
# NaN is greater than every number.
_UPDATED = "v > 1 or g is null"


def _updated(rows: Sequence[Row]) -> Iterator[tuple[Row, Kind]]:
    for row in rows:
        if not (_is_nan(row.v) or (row.v is not None and row.v > 1) or row.g is None):
            yield row, "kept"
            continue
        yield (
            row._replace(
                g=row.note,
                v=_add(row.v, row.v),
                id=None if row.id is None else row.id + 100,
                note=None if row.note is None else row.note + "'\"",
            ),
            "changed",
        )


def _merge(table: Table) -> None:
    (
        table.merge(table.spark.table(VIEW), "target.id = source.id")
        .when_matched_delete(condition="source.op = 'delete'")
        .when_matched_update(
            {"g": "source.g", "v": "target.v + source.v", "note": "source.note"},
            condition="source.op = 'change'",
        )
        .when_not_matched_insert(
            {name: f"source.{name}" for name in NAMES}, condition="source.op = 'change'"
        )
        .when_not_matched_by_source_update(
            {"v": "0", "note": "concat(target.note, '?')"}, condition="isnan(target.v)"
        )
        .when_not_matched_by_source_delete(condition="target.g is null")
        .execute()
    )


_MERGE = f"""
merge into {{}} as target using {VIEW} as source on target.id = source.id
when matched and source.op = 'delete' then delete
when matched and source.op = 'change' then update
    set g = source.g, v = target.v + source.v, note = source.note
when not matched and source.op = 'change' then insert ({", ".join(NAMES)})
    values ({", ".join(f"source.{name}" for name in NAMES)})
when not matched by source and isnan(target.v) then update
    set v = 0, note = concat(target.note, '?')
when not matched by source and target.g is null then delete
"""


def _merged(rows: Sequence[Row]) -> Iterator[tuple[Row, Kind]]:
    source = {change.row.id: change for change in SOURCE if change.row.id is not None}
    for row in rows:
        change = None if row.id is None else source.pop(row.id, None)
        if change is None and _is_nan(row.v):
            yield (
                row._replace(v=0.0, note=None if row.note is None else row.note + "?"),
                "changed",
            )
        elif change is not None and change.op == "change":
            new = change.row
            yield row._replace(g=new.g, v=_add(row.v, new.v), note=new.note), "changed"
        elif (change is None and row.g is not None) or (
            change is not None and change.op == "leave"
        ):
            yield row, "kept"
    for change in (*source.values(), *(each for each in SOURCE if each.row.id is None)):
        if change.op == "change":
            yield change.row, "new"


def _upserted(rows: Sequence[Row]) -> Iterator[tuple[Row, Kind]]:
    source = {change.row.n: change.row for change in SOURCE}
    for row in rows:
        new = source.pop(row.n, None)
        yield (row, "kept") if new is None else (new, "changed")
    for new in source.values():
        yield new, "new"


COMMANDS: Final = {
    "delete": Command(
        lambda table: table.delete(_DELETED), f"delete from {{}} where {_DELETED}", _deleted
    ),
    "update": Command(
        lambda table: table.update(_SET, _UPDATED),
        f"update {{}} set {', '.join(f'{k} = {v}' for k, v in _SET.items())} where {_UPDATED}",
        _updated,
    ),
    "merge": Command(_merge, _MERGE, _merged),
    "upsert": Command(
        lambda table: table.upsert(table.spark.table(VIEW).drop("op"), keys="id"),
        f"merge into {{}} as t using (select {', '.join(NAMES)} from {VIEW}) as s on t.id = s.id "
        "when matched then update set * when not matched then insert *",
        _upserted,
    ),
}
