"""Changes of rows folded: copies that cancel, updates, and what is left over several snapshots."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.changes.columns import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    CHANGELOG_COLUMNS,
    COMMIT_SNAPSHOT_ID,
    ChangeType,
)
from frazil.spark.comparable import comparable
from frazil.spark.session.free_names import free_names


def without_copies(changes: DataFrame) -> DataFrame:
    """The changes without rows that one snapshot deletes and inserts alike.

    A copy-on-write commit writes every row of a file anew; rows that it only copied did not
    change. Of equal rows as many are left as the one side has more than the other.
    """
    names = changes.columns
    columns = [_column_of(name) for name in _table_columns(changes)]
    keyed, row = _with_keys(changes, columns)
    deleted, all_of_them, place_of_row = free_names(
        ["_frazil_deletes", "_frazil_total", "_frazil_place"], names
    )
    same = Window.partitionBy(CHANGE_ORDINAL, *row)
    deletes = F.sum(F.when(_is_change(ChangeType.DELETE), 1).otherwise(0)).over(same)
    # "DELETE" sorts before "INSERT": the places of deletes are 1 to their number.
    place = F.row_number().over(same.orderBy(CHANGE_TYPE))
    counted = keyed.select(
        *(_column_of(name) for name in names),
        deletes.alias(deleted),
        F.count(F.lit(1)).over(same).alias(all_of_them),
        place.alias(place_of_row),
    )
    inserts = F.col(all_of_them) - F.col(deleted)
    is_left = F.when(_is_change(ChangeType.DELETE), F.col(place_of_row) > inserts).otherwise(
        F.col(place_of_row) > F.col(deleted) * 2
    )
    return counted.where(is_left).select(*(_column_of(name) for name in names))


def with_updates(changes: DataFrame, identifier: Sequence[Sequence[str]]) -> DataFrame:
    """A delete and an insert of one key in one snapshot as UPDATE_BEFORE and UPDATE_AFTER.

    Running the result fails where a snapshot deletes, or inserts, more than one row of one key.

    Args:
        identifier: the columns that are the key, each as the names that lead to it.
    """
    names = changes.columns
    columns = [F.col(quote_name_always(list(path))) for path in identifier]
    keyed, key = _with_keys(changes, columns)
    deleted, inserted = free_names(["_frazil_deletes", "_frazil_inserts"], names)
    same = Window.partitionBy(CHANGE_ORDINAL, *key)
    counted = keyed.select(
        *(_column_of(name) for name in names),
        F.sum(F.when(_is_change(ChangeType.DELETE), 1).otherwise(0)).over(same).alias(deleted),
        F.sum(F.when(_is_change(ChangeType.INSERT), 1).otherwise(0)).over(same).alias(inserted),
    )
    listed = ", ".join(".".join(path) for path in identifier)
    repeated = F.raise_error(
        F.concat(
            F.lit("frazil.errors.ValidationError: updates cannot be told: snapshot "),
            F.col(COMMIT_SNAPSHOT_ID).cast("string"),
            F.lit(
                f" deletes or inserts several rows of one key ({listed}); give identifier_columns "
                "that are unique"
            ),
        )
    ).cast("string")
    is_pair = (F.col(deleted) == 1) & (F.col(inserted) == 1)
    kind = (
        F.when((F.col(deleted) > 1) | (F.col(inserted) > 1), repeated)
        .when(is_pair & _is_change(ChangeType.DELETE), str(ChangeType.UPDATE_BEFORE))
        .when(is_pair, str(ChangeType.UPDATE_AFTER))
        .otherwise(F.col(CHANGE_TYPE))
        .alias(CHANGE_TYPE)
    )
    kept = [kind if name == CHANGE_TYPE else _column_of(name) for name in names]
    return counted.select(*kept)


def net_changes(changes: DataFrame) -> DataFrame:
    """What is left of the changes when equal rows that came and went cancel over all snapshots.

    Of equal rows those changes are left that no later one undid: the running count of inserts less
    deletes passes each level up to its last value for the last time with one of them.
    """
    names = changes.columns
    columns = [_column_of(name) for name in _table_columns(changes)]
    keyed, row = _with_keys(changes, columns)
    left, side, height, floor = free_names(
        ["_frazil_total", "_frazil_sign", "_frazil_level", "_frazil_lowest"], names
    )
    same = Window.partitionBy(*row)
    sign = F.when(_is_change(ChangeType.INSERT), 1).otherwise(-1)
    total = F.sum(sign).over(same)
    # From here on 1 is a change to the side that is left, -1 one to the other.
    turned = keyed.withColumn(left, total).where(F.col(left) != 0)
    turned = turned.withColumn(side, sign * F.signum(F.col(left)).cast("int"))
    in_time = same.orderBy(F.col(CHANGE_ORDINAL), F.col(side).desc())
    levels = turned.withColumn(height, F.sum(side).over(_running_window(in_time)))
    # The very reverse order: equal changes of one snapshot are told apart by their levels.
    back = same.orderBy(
        F.col(CHANGE_ORDINAL).desc(), F.col(side), (F.col(side) * F.col(height)).desc()
    )
    lowest = levels.withColumn(floor, F.min(height).over(_running_window(back)))
    is_left = (
        (F.col(side) == 1)
        & (F.col(height) >= 1)
        & (F.col(height) <= F.abs(F.col(left)))
        & (F.col(floor) >= F.col(height))
    )
    return lowest.where(is_left).select(*(_column_of(name) for name in names))


def _running_window(window: WindowSpec) -> WindowSpec:
    return window.rowsBetween(Window.unboundedPreceding, Window.currentRow)


def _table_columns(changes: DataFrame) -> list[str]:
    return [name for name in changes.columns if name not in CHANGELOG_COLUMNS]


def _with_keys(changes: DataFrame, columns: Sequence[Column]) -> tuple[DataFrame, list[str]]:
    """The changes with the columns in the form that they are compared in, and its names."""
    fields = changes.select(*columns).schema.fields
    names = free_names((f"_frazil_key_{n}" for n in range(len(columns))), changes.columns)
    keys = [
        comparable(column, field.dataType).alias(name)
        for name, column, field in zip(names, columns, fields, strict=True)
    ]
    # Columns of their own: then all windows of one fold need one shuffle.
    return changes.select("*", *keys), names


def _is_change(kind: ChangeType) -> Column:
    return F.col(CHANGE_TYPE) == F.lit(str(kind))


def _column_of(name: str) -> Column:
    return F.col(quote_name_always([name]))
