"""The commands of `outcome_rules` by name, and tables for them that are made once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from frazil.changes import ARRIVAL
from frazil.errors import ConflictError
from outcome_rules import ADDED_BESIDE, BY_ROWS, COPIED, FILES, MARKED, Pair, partition_of
from rival_commits import before_the_commit

DDL = "id bigint not null, p string, v string"
MODES = [f"write.{name}.mode" for name in ("delete", "update", "merge")]
NO_WAITS = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "2"}


def frame(lake: Any, rows: list[tuple[Any, ...]], ddl: str = DDL) -> Any:
    """Rows as a DataFrame of one partition."""
    return lake.spark.createDataFrame(rows, ddl).coalesce(1)


def delete_by_key(lake: Any, table: Any, ids: Any) -> None:
    """Write an equality delete of keys, within their partition."""
    gone = frame(lake, [(n, partition_of(n), None, "d") for n in ids], f"{DDL}, op string")
    table.apply_changes(gone, keys=["id", "p"], op="op", mode="equality-deletes")


def run(
    lake: Any, table: Any, kind: str, about: tuple[int, ...], writer: str, level: str | None = None
) -> Any:
    """Run a command about some rows, or about the files of the first of them."""
    rows = [(n, partition_of(n), writer) for n in about]
    where = f"id in ({', '.join(map(str, about))})"
    given = {} if level is None else {"isolation": level}
    match kind:
        case "delete":
            return table.delete(where, **given)
        case "update":
            return table.update({"v": f"concat(v, '+{writer}')"}, where, **given)
        case "merge":
            merge = table.merge(frame(lake, rows), on="target.id = source.id", **given)
            clauses = merge.when_matched_update({"v": "source.v"}).when_not_matched_insert_all()
            return clauses.execute()
        case "upsert":
            return table.upsert(frame(lake, rows), keys="id", **given)
        case "changes":
            return table.apply_changes(frame(lake, rows), keys=["id"], mode="equality-deletes")
        case "arrival":
            twice = [(n, p, word) for n, p, _ in rows for word in ("superseded", writer)]
            return table.apply_changes(
                frame(lake, twice), keys=["id"], order_by=ARRIVAL, mode="equality-deletes"
            )
        case "overwrite":
            where = f"p = '{partition_of(about[0])}' and {where}"
            return table.overwrite(frame(lake, rows), where=where, **given)
        case "conversion":
            return table.convert_equality_deletes()
        case "positions":
            return table.maintenance.rewrite_position_deletes(rewrite_all=True)
    strategy = {
        "binpack": {},
        "sort": {"strategy": "sort", "sort_order": "id desc"},
        "zorder": {"strategy": "zorder", "columns": ["id", "v"]},
    }[kind]
    return table.compact(f"id = {about[0]}", rewrite_all=True, **strategy)


def run_rival(lake: Any, table: Any, pair: Pair) -> None:
    """Run what the other writer does."""
    row = pair.rival_row
    if pair.rival_adds:
        beside = [ADDED_BESIDE] if pair.rival in ("conversion", "positions") else []
        table.append(frame(lake, [(n, partition_of(n), "old") for n in (row, *beside)]))
        if pair.rival == "conversion":
            delete_by_key(lake, table, beside)
        if pair.rival == "positions":
            delete_by_position(table, beside[0])
    with mode_of(table, pair.rival_mode):
        run(lake, table, pair.rival, (row,), "rival")


def run_both(lake: Any, table: Any, pair: Pair) -> tuple[Any, ConflictError | None]:
    """Run a command, with its rival before its commit.

    Returns:
        what the command returned, or with what it was refused.
    """
    happened: list[None] = []

    def rival() -> None:
        run_rival(lake, lake.load_table(table.identifier), pair)
        happened.append(None)

    before_the_commit(table, rival)
    try:
        done = run(lake, table, pair.first, pair.own_rows, "first", pair.level)
    except ConflictError as refused:
        return None, refused
    finally:
        assert happened
    return done, None


def delete_by_position(table: Any, row: int) -> None:
    """Write a position delete, or a deletion vector."""
    with mode_of(table, MARKED):
        table.delete(f"id = {row}")


@contextmanager
def mode_of(table: Any, mode: str | None) -> Iterator[None]:
    """Let commands write in a mode for a while; None leaves the table's."""
    before = table.properties.get(MODES[0], COPIED)
    if mode in (None, before):
        yield
        return
    # The property alone: no snapshot comes of it.
    table.set_properties(dict.fromkeys(MODES, mode))
    try:
        yield
    finally:
        table.set_properties(dict.fromkeys(MODES, before))


class Tables:
    """Tables as pairs find them; each is made once for many, and taken back for the next."""

    MOST_CASES = 40
    """A table's history grows with each: another one takes over."""

    def __init__(self, lake: Any, prefix: str = "db.t") -> None:
        self.lake = lake
        self._prefix = prefix
        self._made: dict[Any, tuple[str, int, int]] = {}
        self._count = 0

    def fresh(self, pair: Pair) -> Any:
        """A handle of a table as the pair needs it."""
        kind = (pair.version, pair.deleted_by_key, pair.deleted_by_position)
        name, snapshot, uses = self._made.get(kind) or self._new(pair)
        if uses >= self.MOST_CASES:
            self.lake.drop_table(name)
            name, snapshot, uses = self._new(pair)
        self._made[kind] = name, snapshot, uses + 1
        table = self.lake.load_table(name)
        if table.current_snapshot.snapshot_id != snapshot:
            table.rollback_to_snapshot(snapshot)
        mode = pair.mode if pair.first in BY_ROWS else MARKED
        if table.properties.get(MODES[0]) != mode:
            table.set_properties(dict.fromkeys(MODES, mode))
        return self.lake.load_table(name)

    def _new(self, pair: Pair) -> tuple[str, int, int]:
        self._count += 1
        name = f"{self._prefix}{self._count}"
        table = self.lake.create_table(
            name, DDL, partition_by=["p"], format_version=pair.version, properties=NO_WAITS
        )
        for ids in FILES:
            table.append(frame(self.lake, [(n, partition_of(n), "old") for n in ids]))
        for row in sorted(pair.deleted_by_position):
            delete_by_position(table, row)
        for row in sorted(pair.deleted_by_key):
            delete_by_key(self.lake, table, [row])
        return name, table.refresh().current_snapshot.snapshot_id, 0
