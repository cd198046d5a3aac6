"""Keys of a join's small side: files of the other side that hold none of them are not read.

Spark carries a condition across a join only where it names the key itself. Where it names another
column of the small side (``d_year = 2001``), the keys of the rows that match are read first, and
are what is asked of the large side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from frazil.format import types as I
from frazil.format.predicates import AlwaysFalse, AlwaysTrue, Expression, all_of
from frazil.format.predicates.bind import bind
from frazil.format.predicates.columns import Column
from frazil.format.predicates.expressions import Reference
from frazil.format.types import IcebergType
from frazil.format.values import from_bytes, to_python
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.session import costs
from frazil.spark.sql.binding.relations import QueriedTable
from frazil.spark.sql.pruning.plan_reads import JoinedKey, PlanReads, TableRead

_KEY_TYPES: Final = (I.IntegerType, I.LongType, I.DateType, I.StringType, I.DecimalType)
"""Types whose values are equal in a join where they are equal in a predicate."""

_SAMPLES: Final = 3


def with_joined_keys(
    asked: PlanReads, own: Mapping[TableRead, Expression], tables: Mapping[int, QueriedTable]
) -> dict[TableRead, Expression]:
    """Return what is asked of each read, with what the keys of small tables say of it.

    Args:
        asked: the reads of a query and their joins.
        own: what each read's own condition implies; bound.
        tables: by their places in the query.

    Returns:
        Predicates that are TRUE for every row that can be in the query's result.

    Raises:
        MissingFileError, StorageError: files of a small side cannot be read.
    """
    sides = _Sides(own, tables)
    wanted: dict[TableRead, list[Expression]] = {read: [own[read]] for read in asked.reads}
    for key in asked.keys:
        if sides.are_worth_reading(key):
            wanted[key.read].append(sides.one_of_the_keys(key))
    return {read: all_of(parts) for read, parts in wanted.items()}


@dataclass(slots=True)
class _Sides:
    """The sides of a query's joins, with what was found out of them."""

    own: Mapping[TableRead, Expression]
    tables: Mapping[int, QueriedTable]
    plans: dict[tuple[int, str | None], ScanPlan] = field(default_factory=dict)
    keys: dict[tuple[int, str | None, str], list[Any] | None] = field(default_factory=dict)

    def are_worth_reading(self, key: JoinedKey) -> bool:
        """Whether a side is small, and its keys tell apart files of a large one."""
        if isinstance(self.own[key.source], AlwaysTrue):
            return False
        kind = self._type_of(key.read, key.column)
        kind_of_source = self._type_of(key.source, key.source_column)
        if not isinstance(kind, _KEY_TYPES) or kind != kind_of_source:
            return False
        large, small = self._plan_of(key.read), self._plan_of(key.source)
        return (
            large.file_count > 1
            and large.size_in_bytes >= costs.LARGE_SIDE_BYTES
            and small.size_in_bytes <= costs.SMALL_SIDE_BYTES
            and self._few_files_hold_a_value(key.read, key.column)
        )

    def one_of_the_keys(self, key: JoinedKey) -> Expression:
        """What the keys say of the large side; nothing where they are too many."""
        source = (key.source.place, key.source.condition, key.source_column)
        if source not in self.keys:
            self.keys[source] = self.tables[key.source.place].values_of(
                key.source_column, self.own[key.source], at_most=costs.JOINED_KEYS
            )
        values = self.keys[source]
        if values is None:
            return AlwaysTrue()
        if not values:
            return AlwaysFalse()
        schema = self.tables[key.read.place].scan.schema
        return bind(_column(key.column).is_in(values), schema)

    def _few_files_hold_a_value(self, read: TableRead, column: str) -> bool:
        """Whether most files can do without a value: tried with some that are in the table."""
        table, own = self.tables[read.place], self.own[read]
        schema = table.scan.schema
        field = next(each for each in schema.fields if each.name == column)
        whole = table.plan(own, statistics={"lower_bounds": (field.field_id,)})
        stored = whole.files[f"lower_bounds.{field.field_id}"].drop_nulls().unique()
        kind = field.field_type
        bounds = sorted(to_python(kind, from_bytes(kind, each)) for each in stored)
        places = {len(bounds) * (each + 1) // (_SAMPLES + 1) for each in range(_SAMPLES)}
        held = [
            table.plan(all_of([own, bind(_column(column) == bounds[place], schema)])).file_count
            for place in places
            if bounds
        ]
        return bool(held) and 2 * sum(held) <= len(held) * whole.file_count

    def _plan_of(self, read: TableRead) -> ScanPlan:
        known = (read.place, read.condition)
        if known not in self.plans:
            self.plans[known] = self.tables[read.place].plan(self.own[read])
        return self.plans[known]

    def _type_of(self, read: TableRead, column: str) -> IcebergType | None:
        fields = self.tables[read.place].scan.schema.fields
        return next((each.field_type for each in fields if each.name == column), None)


def _column(name: str) -> Column:
    return Column(Reference((name,)))
