"""Changes in one form: the columns of the table, whether the row is gone, and their order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.errors import ValidationError
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.format.types import IcebergType
from frazil.spark.files.row_checks import stop_with_value
from frazil.spark.session.free_names import free_names
from frazil.spark.upserts.keys import Keys


@dataclass(frozen=True, slots=True)
class Arrival:
    """An order of changes: that in which they stand in the partitions of their rows."""


ARRIVAL: Final = Arrival()
"""For `order_by`: the changes of a key all stand in one partition of the rows, in their order.

    table.apply_changes(df, keys="id", op="kind", order_by=frazil.changes.ARRIVAL)
"""

Order = str | Column | Arrival


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedChanges:
    """What changes are wanted for.

    Attributes:
        schema: of the table.
        keys: the columns that tell its rows apart.
        order_by: columns that order the changes of a key, the later ones with greater values; or
            `ARRIVAL` alone.
        case_sensitive: how names are matched.
    """

    schema: Schema
    keys: Keys
    order_by: tuple[Order, ...] = ()
    case_sensitive: bool = False

    @property
    def is_by_arrival(self) -> bool:
        """Whether the changes of a key are in the order of their rows."""
        return any(isinstance(each, Arrival) for each in self.order_by)

    def is_column(self, name: str) -> bool:
        """Whether the table has a column of this name."""
        return self.name_key(name) in {self.name_key(field.name) for field in self.schema.fields}

    @property
    def name_key(self) -> Callable[[str], str]:
        """A function that makes names alike which mean the same column."""
        return str if self.case_sensitive else str.lower


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRows:
    """Changes, a row each.

    Attributes:
        rows: columns by the table's names, those that the table lacks too, and the columns below.
            Of rows that are gone only the keys count.
        gone: the column that is true for deletes.
        order: the columns that order the changes of a key; later ones have greater values.
    """

    rows: DataFrame
    gone: str
    order: tuple[str, ...]

    @property
    def other_columns(self) -> tuple[str, ...]:
        """The columns that are none of the table's."""
        return (self.gone, *self.order)


class ChangeFormat(ABC):
    """How a source writes changes down."""

    @abstractmethod
    def read(self, df: DataFrame, wanted: WantedChanges) -> ChangeRows:
        """Return the changes of a DataFrame; it is not evaluated.

        Raises:
            ValidationError: it has not the columns of the format.
        """

    def stated_columns(self, df: DataFrame) -> Mapping[str, tuple[IcebergType, ...]]:
        """Return the columns that the changes themselves state, for a table that may lack them.

        It reads the changes. A format whose rows are columns already states none.

        Returns:
            The types of each column, in the order of the changes that state them first; the columns
            in that order too.
        """
        return {}


def change_rows(
    df: DataFrame,
    wanted: WantedChanges,
    *,
    gone: Column,
    own: Collection[str] = (),
    order: Sequence[Order] = (),
    last: Sequence[Column] = (),
) -> ChangeRows:
    """Return changes of which every row has the table's columns.

    Args:
        gone: whether the row is deleted.
        own: columns that are the format's, not the row's, unless the table has such.
        order: what orders the changes where the user does not say it.
        last: what orders changes for which that is the same.

    Raises:
        ValidationError: a column of the order is not there.
    """
    by = [each for each in wanted.order_by or order if not isinstance(each, Arrival)]
    if wanted.is_by_arrival:
        last = ()
    names = free_names(
        ["_frazil_gone", *(f"_frazil_order_{n}" for n in range(len(by) + len(last)))],
        [*df.columns, *(field.name for field in wanted.schema.fields)],
    )
    values = [gone, *(F.col(each) if isinstance(each, str) else each for each in by), *last]
    try:
        added = df.withColumns(dict(zip(names, values, strict=True)))
    except PySparkException as error:
        raise ValidationError(
            f"the changes have no column to order them by as {', '.join(map(str, by))}: "
            f"{str(error).splitlines()[0]}; they have {', '.join(map(repr, df.columns))}"
        ) from error
    folded = wanted.name_key
    not_rows = {folded(name) for name in own}
    # A column that only orders changes is no part of the row.
    not_rows |= {folded(each) for each in by if isinstance(each, str)}
    kept = [c for c in df.columns if wanted.is_column(c) or folded(c) not in not_rows]
    columns = [F.col(quote_name_always([name])) for name in [*kept, *names]]
    return ChangeRows(rows=added.select(*columns), gone=names[0], order=tuple(names[1:]))


def is_delete(word: Column, *, deletes: Collection[str], upserts: Collection[str]) -> Column:
    """Return whether an operation's name says that the row is deleted; other names stop.

    Names are matched whatever their case.
    """
    text = F.lower(F.trim(word.cast("string")))
    known = ", ".join(sorted({*deletes, *upserts}))
    problem = F.concat(
        F.lit("a change has the operation "),
        F.coalesce(F.concat(F.lit("'"), word.cast("string"), F.lit("'")), F.lit("NULL")),
        F.lit(f"; known ones are {known}"),
    )
    return (
        F.when(text.isin([each.lower() for each in deletes]), F.lit(True))
        .when(text.isin([each.lower() for each in upserts]), F.lit(False))
        .otherwise(stop_with_value(problem).cast("boolean"))
    )


def column_named(df: DataFrame, name: str) -> str | None:
    """Return the name that a DataFrame gives a column, whatever its case; None without it."""
    return next((each for each in df.columns if each.lower() == name.lower()), None)


def required_column(df: DataFrame, name: str, what: str) -> Column:
    """Return a column of a format.

    Raises:
        ValidationError: it is not there.
    """
    found = column_named(df, name)
    if found is None:
        raise ValidationError(
            f"{what} have a column {name!r}, and these have {', '.join(map(repr, df.columns))}"
        )
    return F.col(quote_name_always([found]))
