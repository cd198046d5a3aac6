"""Changes of rows folded: copies that cancel, updates, and what is left over several snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from frazil.format.predicates.quoting import quote_name_always
from frazil.spark.changes.columns import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    CHANGELOG_COLUMNS,
    COMMIT_SNAPSHOT_ID,
    ChangeType,
)
from frazil.spark.changes.comparable import comparable

_KEY: Final = "_frazil_key_"
_SIGN: Final = "_frazil_sign"
_TOTAL: Final = "_frazil_total"
_LEVEL: Final = "_frazil_level"
_LOWEST: Final = "_frazil_lowest"
_PLACE: Final = "_frazil_place"
_INSERTS: Final = "_frazil_inserts"
_DELETES: Final = "_frazil_deletes"


def without_copies(changes: DataFrame) -> DataFrame:
    """The changes without rows that one snapshot deletes and inserts alike.

    A copy-on-write commit writes every row of a file anew; rows that it only copied did not
    change. Of equal rows as many are left as the one side has more than the other.
    """
    names = changes.columns
    keyed, row = _with_keys(changes, [_quoted(name) for name in _table_columns(changes)])
    same = Window.partitionBy(CHANGE_ORDINAL, *row)
    deletes = F.sum(F.when(_is(ChangeType.DELETE), 1).otherwise(0)).over(same)
    # "DELETE" sorts before "INSERT": the places of deletes are 1 to their number.
    place = F.row_number().over(same.orderBy(CHANGE_TYPE))
    counted = keyed.select(
        *(_quoted(name) for name in names),
        deletes.alias(_DELETES),
        F.count(F.lit(1)).over(same).alias(_TOTAL),
        place.alias(_PLACE),
    )
    inserts = F.col(_TOTAL) - F.col(_DELETES)
    is_left = F.when(_is(ChangeType.DELETE), F.col(_PLACE) > inserts).otherwise(
        F.col(_PLACE) > F.col(_DELETES) * 2
    )
    return counted.where(is_left).select(*(_quoted(name) for name in names))


def with_updates(changes: DataFrame, identifier: Sequence[Sequence[str]]) -> DataFrame:
    """A delete and an insert of one key in one snapshot as UPDATE_BEFORE and UPDATE_AFTER.

    Running the result fails where a snapshot deletes, or inserts, more than one row of one key.

    Args:
        identifier: the columns that are the key, each as the names that lead to it.
    """
    names = changes.columns
    columns = [F.col(quote_name_always(list(path))) for path in identifier]
    keyed, key = _with_keys(changes, columns)
    same = Window.partitionBy(CHANGE_ORDINAL, *key)
    counted = keyed.select(
        *(_quoted(name) for name in names),
        F.sum(F.when(_is(ChangeType.DELETE), 1).otherwise(0)).over(same).alias(_DELETES),
        F.sum(F.when(_is(ChangeType.INSERT), 1).otherwise(0)).over(same).alias(_INSERTS),
    )
    listed = ", ".join(".".join(path) for path in identifier)
    repeated = F.raise_error(
        F.concat(
            F.lit("frazil.errors.ValidationException: updates cannot be told: snapshot "),
            F.col(COMMIT_SNAPSHOT_ID).cast("string"),
            F.lit(
                f" deletes or inserts several rows of one key ({listed}); give identifier_columns "
                "that are unique"
            ),
        )
    ).cast("string")
    is_pair = (F.col(_DELETES) == 1) & (F.col(_INSERTS) == 1)
    kind = (
        F.when((F.col(_DELETES) > 1) | (F.col(_INSERTS) > 1), repeated)
        .when(is_pair & _is(ChangeType.DELETE), str(ChangeType.UPDATE_BEFORE))
        .when(is_pair, str(ChangeType.UPDATE_AFTER))
        .otherwise(F.col(CHANGE_TYPE))
        .alias(CHANGE_TYPE)
    )
    kept = [kind if name == CHANGE_TYPE else _quoted(name) for name in names]
    return counted.select(*kept)


def net(changes: DataFrame) -> DataFrame:
    """What is left of the changes when equal rows that came and went cancel over all snapshots.

    Of equal rows those changes are left that no later one undid: the running count of inserts less
    deletes passes each level up to its last value for the last time with one of them.
    """
    names = changes.columns
    keyed, row = _with_keys(changes, [_quoted(name) for name in _table_columns(changes)])
    same = Window.partitionBy(*row)
    sign = F.when(_is(ChangeType.INSERT), 1).otherwise(-1)
    total = F.sum(sign).over(same)
    # From here on 1 is a change to the side that is left, -1 one to the other.
    turned = keyed.withColumn(_TOTAL, total).where(F.col(_TOTAL) != 0)
    turned = turned.withColumn(_SIGN, sign * F.signum(F.col(_TOTAL)).cast("int"))
    in_time = same.orderBy(F.col(CHANGE_ORDINAL), F.col(_SIGN).desc())
    levels = turned.withColumn(_LEVEL, F.sum(_SIGN).over(_up_to_here(in_time)))
    # The very reverse order: equal changes of one snapshot are told apart by their levels.
    back = same.orderBy(
        F.col(CHANGE_ORDINAL).desc(), F.col(_SIGN), (F.col(_SIGN) * F.col(_LEVEL)).desc()
    )
    lowest = levels.withColumn(_LOWEST, F.min(_LEVEL).over(_up_to_here(back)))
    is_left = (
        (F.col(_SIGN) == 1)
        & (F.col(_LEVEL) >= 1)
        & (F.col(_LEVEL) <= F.abs(F.col(_TOTAL)))
        & (F.col(_LOWEST) >= F.col(_LEVEL))
    )
    return lowest.where(is_left).select(*(_quoted(name) for name in names))


def _up_to_here(window: WindowSpec) -> WindowSpec:
    return window.rowsBetween(Window.unboundedPreceding, Window.currentRow)


def _table_columns(changes: DataFrame) -> list[str]:
    return [name for name in changes.columns if name not in CHANGELOG_COLUMNS]


def _with_keys(changes: DataFrame, columns: Sequence[Column]) -> tuple[DataFrame, list[str]]:
    """The changes with the columns in the form that they are compared in, and its names."""
    fields = changes.select(*columns).schema.fields
    keys = [
        comparable(column, field.dataType).alias(f"{_KEY}{place}")
        for place, (column, field) in enumerate(zip(columns, fields, strict=True))
    ]
    # Columns of their own: then all windows of one fold need one shuffle.
    return changes.select("*", *keys), [f"{_KEY}{place}" for place in range(len(keys))]


def _is(kind: ChangeType) -> Column:
    return F.col(CHANGE_TYPE) == F.lit(str(kind))


def _quoted(name: str) -> Column:
    return F.col(quote_name_always([name]))
