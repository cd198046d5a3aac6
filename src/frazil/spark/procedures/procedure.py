"""A procedure: its signature, its columns, and what it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import polars as pl
from pyspark.sql import DataFrame, SparkSession

from frazil.catalog.identifiers import parse_table_identifier
from frazil.catalog.protocol import Catalog
from frazil.format import types as I
from frazil.spark.metadata_frames.shape import dataframe_of
from frazil.spark.procedures.parameters import ArgumentKind, Arguments, Parameter, Signature
from frazil.spark.session.facts import type_support
from frazil.spark.table import Table

INT: Final = I.IntegerType()
LONG: Final = I.LongType()
TEXT: Final = I.StringType()

Row: TypeAlias = tuple[Any, ...]

_DTYPES: Final[dict[type[I.IcebergType], pl.DataType]] = {
    I.IntegerType: pl.Int32(),
    I.LongType: pl.Int64(),
    I.StringType: pl.String(),
    I.BooleanType: pl.Boolean(),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: a session and a catalog.

    Attributes:
        spark: the session that does the work.
        catalog: the tables.
        on_progress: called with what a procedure is at, if it tells.
        name: what can stand before names of tables; the catalog's unless given.
    """

    spark: SparkSession
    catalog: Catalog
    on_progress: Callable[[Any], None] | None = None
    name: str | None = None

    def identifier(self, name: str) -> tuple[str, ...]:
        """Return a table's identifier; the catalog's name may stand before it."""
        parts = parse_table_identifier(name)
        names_catalog = len(parts) > 2 and parts[0] == (self.name or self.catalog.name)
        if names_catalog and not self.catalog.namespace_exists(parts[:1]):
            return parts[1:]
        return parts

    def table(self, name: str) -> Table:
        """Return a table as it is now; NoSuchTableError if there is none."""
        return Table(self.spark, self.catalog, self.catalog.load_table(self.identifier(name)))


Look: TypeAlias = Callable[[Caller, Arguments], object]
"""Tells what a run would delete, as a result that can be printed, and changes nothing."""

Run: TypeAlias = Callable[[Caller, Arguments], object]
"""Does it, and returns rows, a frame, or one result that has the columns as attributes."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """What a CALL runs.

    Attributes:
        signature: its name and parameters, as of Java's procedure.
        columns: of the result.
        run: does it, and returns the result.
        look: tells what it would delete; None for a procedure that deletes no files.
    """

    signature: Signature
    columns: I.StructType
    run: Run
    look: Look | None = None

    @property
    def deletes_files(self) -> bool:
        """Whether files may be gone afterwards."""
        return self.look is not None

    def call(self, caller: Caller, arguments: Arguments) -> DataFrame:
        """Run it, and return its result."""
        found = self.run(caller, arguments)
        dtypes = {field.name: _DTYPES[type(field.field_type)] for field in self.columns.fields}
        if isinstance(found, pl.DataFrame):
            frame = found.select(pl.col(name).cast(kind) for name, kind in dtypes.items())
        else:
            rows = found
            if not isinstance(rows, list):
                rows = [tuple(getattr(found, name) for name in dtypes)]
            frame = pl.DataFrame(rows, schema=dtypes, orient="row")
        return dataframe_of(caller.spark, frame, self.columns, type_support(caller.spark))


def procedure(
    name: str,
    parameters: Sequence[Parameter],
    columns: Sequence[tuple[str, I.IcebergType]],
    run: Run,
    *,
    optional: Sequence[str] = (),
    look: Look | None = None,
) -> Procedure:
    """Return a procedure.

    Args:
        name: in lower case.
        parameters: in order.
        columns: names and types of the result.
        run: does it.
        optional: columns that may be NULL.
        look: tells what it would delete; None for a procedure that deletes no files.
    """
    fields = tuple(
        I.NestedField(number, column, kind, required=column not in optional)
        for number, (column, kind) in enumerate(columns, 1)
    )
    signature = Signature(name, tuple(parameters))
    return Procedure(signature, I.StructType(fields), run, look)


def required_parameter(name: str, kind: ArgumentKind = ArgumentKind.TEXT) -> Parameter:
    """Return a parameter that a call has to give."""
    return Parameter(name, kind, is_required=True)


TABLE: Final = required_parameter("table")
