"""Formats of changes, as values: `frazil.changes.plain()`, `change_feed()`, `debezium()`, …"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.errors import ValidationError
from frazil.format.arguments import one_or_several
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.upserts.change_rows import (
    ChangeFormat,
    ChangeRows,
    WantedChanges,
    change_rows,
    column_named,
    is_delete,
    required_column,
)
from frazil.spark.upserts.debezium_json import TimeUnit, debezium

__all__ = [
    "ChangeFormat",
    "TimeUnit",
    "change_feed",
    "debezium",
    "debezium_flattened",
    "dms",
    "plain",
]

DELETES: Final = ("d", "delete", "deleted")
UPSERTS: Final = ("i", "insert", "u", "update", "upsert", "c", "create", "r", "read", "merge")


def plain(
    op: str | Column | None = None,
    *,
    deletes: str | Sequence[str] = DELETES,
    upserts: str | Sequence[str] = UPSERTS,
) -> ChangeFormat:
    """Return the format of rows with a column that says what happened to them.

    Args:
        op: the column; without one every row is an upsert.
        deletes: its values for deleted rows, in any case.
        upserts: its values for new and changed rows; any other value stops.

    Raises:
        ValidationError: a value stands for both.
    """
    gone = one_or_several(deletes, argument="deletes")
    kept = one_or_several(upserts, argument="upserts")
    both = {each.lower() for each in gone} & {each.lower() for each in kept}
    if both:
        raise ValidationError(f"{sorted(both)} cannot stand for deletes and for upserts")
    return _Plain(op, tuple(gone), tuple(kept))


def change_feed() -> ChangeFormat:
    """Return the format of change feeds of Delta and Iceberg, with `_change_type`.

    Inserts and rows after an update are upserts; deletes and rows before an update are deletes,
    which come first among changes of one commit. Changes are ordered by `_commit_version` or
    `_change_ordinal` unless the user says how.
    """
    return _ChangeFeed()


def debezium_flattened() -> ChangeFormat:
    """Return the format of Debezium's events after its transform `ExtractNewRecordState`.

    A row is deleted where `__deleted` is true or `__op` is d. Columns that begin with two
    underscores are no columns of the table unless it has such.
    """
    return _DebeziumFlattened()


def dms() -> ChangeFormat:
    """Return the format of AWS DMS: `Op` is I, U or D; files of a full load have no `Op`."""
    return _Dms()


@dataclass(frozen=True, slots=True)
class _Plain(ChangeFormat):
    """Rows with a column that names the operation."""

    op: str | Column | None
    deletes: tuple[str, ...]
    upserts: tuple[str, ...]

    def read(self, df: DataFrame, wanted: WantedChanges) -> ChangeRows:
        if self.op is None:
            return change_rows(df, wanted, gone=F.lit(False))
        own: list[str] = []
        if isinstance(self.op, str):
            own = [self.op]
            word = required_column(df, self.op, "the changes")
        else:
            word = self.op
        gone = is_delete(word, deletes=self.deletes, upserts=self.upserts)
        return change_rows(df, wanted, gone=gone, own=own)


@dataclass(frozen=True, slots=True)
class _ChangeFeed(ChangeFormat):
    """Rows of Delta's or Iceberg's change feed."""

    def read(self, df: DataFrame, wanted: WantedChanges) -> ChangeRows:
        word = required_column(df, "_change_type", "rows of a change feed")
        gone = is_delete(
            word,
            deletes=("delete", "update_preimage", "update_before"),
            upserts=("insert", "update_postimage", "update_after"),
        )
        found = [column_named(df, name) for name in ("_commit_version", "_change_ordinal")]
        order = [quote_name_always([name]) for name in found if name is not None][:1]
        own = [name for name in df.columns if name.lower() in _OF_FEEDS]
        # Of one commit the row that is there afterwards counts.
        return change_rows(df, wanted, gone=gone, own=own, order=order, last=[(~gone).cast("int")])


_OF_FEEDS: Final = (
    "_change_type",
    "_commit_version",
    "_commit_timestamp",
    "_change_ordinal",
    "_commit_snapshot_id",
)


@dataclass(frozen=True, slots=True)
class _DebeziumFlattened(ChangeFormat):
    """Rows with `__op` or `__deleted`."""

    def read(self, df: DataFrame, wanted: WantedChanges) -> ChangeRows:
        op, deleted = column_named(df, "__op"), column_named(df, "__deleted")
        if op is None and deleted is None:
            raise ValidationError(
                "flattened events of Debezium have a column '__op' or '__deleted', and these have "
                f"{', '.join(map(repr, df.columns))}; set the transform's add.fields=op, or "
                "delete.tombstone.handling.mode=rewrite"
            )
        gone = F.lit(False)
        if deleted is not None:
            flag = F.col(quote_name_always([deleted])).cast("string")
            gone |= F.coalesce(F.lower(flag) == "true", F.lit(False))
        if op is not None:
            word = F.col(quote_name_always([op]))
            gone |= is_delete(word, deletes=("d",), upserts=("c", "u", "r"))
        own = [name for name in df.columns if name.startswith("__")]
        return change_rows(df, wanted, gone=gone, own=own)


@dataclass(frozen=True, slots=True)
class _Dms(ChangeFormat):
    """Rows with `Op`."""

    def read(self, df: DataFrame, wanted: WantedChanges) -> ChangeRows:
        found = column_named(df, "Op")
        if found is None:
            return change_rows(df, wanted, gone=F.lit(False))
        word = F.coalesce(F.col(quote_name_always([found])), F.lit("I"))
        gone = is_delete(word, deletes=("D",), upserts=("I", "U"))
        return change_rows(df, wanted, gone=gone, own=[found])
