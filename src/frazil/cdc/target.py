"""The table of Iceberg that follows one of PostgreSQL: what it remembers, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.cdc.batches import GONE, ORDER, Key, TransactionBatch
from frazil.cdc.catalog import TypeCatalog
from frazil.cdc.columns import ColumnPlan, evolved_fields
from frazil.cdc.connections import Dsn
from frazil.cdc.initial import GAVE_WAY
from frazil.cdc.positions import lsn_text
from frazil.cdc.source.known import KnownSource
from frazil.cdc.values import ValueColumn, arrays_of
from frazil.errors import ConflictError, ValidationError
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.properties.table import SCHEMA_EVOLUTION
from frazil.format.schema import Schema
from frazil.spark.port import SparkPort
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.writes import Overwrite
from frazil.spark.scan import Scan
from frazil.spark.table import Table
from frazil.spark.transaction.table import TableTransaction
from frazil.spark.upserts.apply import ApplyChanges
from frazil.spark.upserts.once import Batch, BatchAppliedError, ReplaceRows, mark
from frazil.table.operations import TableOperations
from frazil.table.updates.properties import set_properties
from frazil.table.updates.schema import UpdateSchema

LSN: Final = "frazil.cdc.lsn"
"""In the summaries of snapshots: the position in the log that the snapshot is of."""

SOURCE: Final = "frazil.cdc.source."
"""The property that remembers the source begins so; the query's name follows."""


@dataclass(frozen=True, slots=True)
class FollowedTable:
    """A table, and what its commits say of the table that it follows.

    Attributes:
        query: names the slot, for `Batch`.
        dsn: whose password is in no error.
    """

    table: Table
    query: str
    dsn: Dsn

    @property
    def applied_lsn(self) -> int:
        """The position of the log that the table is at by now; 0 before it was loaded."""
        name = Batch(self.query, 0).property_name
        text = self.table.refresh().metadata.properties.get(name, "0")
        if not text.isdigit():
            raise ValidationError(f"the table's property {name} is {text!r}, no position")
        return int(text)

    @property
    def known_source(self) -> KnownSource:
        """The source at that position.

        Raises:
            ValidationError: the table does not say it.
        """
        name = SOURCE + self.query
        text = self.table.metadata.properties.get(name)
        if text is None:
            raise ValidationError(
                f"the table has not the property {name}, which says what was loaded, as after an "
                "earlier version of frazil: load it again, with --load-again"
            )
        return KnownSource.of_json(name, text)

    def forget(self) -> None:
        """Remove what the table remembers of the slot and of the source."""
        self.table.remove_properties(Batch(self.query, 0).property_name, SOURCE + self.query)

    def plan(self, types: TypeCatalog) -> ColumnPlan:
        """Where columns are kept from here on."""
        metadata = self.table.metadata
        return ColumnPlan(
            schema=metadata.schema,
            fields=self.known_source.fields,
            types=types,
            adds_columns=SCHEMA_EVOLUTION.of(metadata.properties),
        )

    # -- all rows --------------------------------------------------------------------------------

    def load(
        self,
        columns: Sequence[ValueColumn],
        lsn: int,
        known: Callable[[Mapping[int, int]], KnownSource],
        rows: Callable[[], DataFrame],
    ) -> None:
        """Put the source's rows in place of the table's.

        Args:
            lsn: the position that the rows are of.
            known: what to remember, by the ids of fields by the columns' numbers.

        Raises:
            ConflictError: the load gave way to a command that moves the source's rows.
            ValidationError: the rows do not fit.
        """
        with self.table.update_schema(case_sensitive=False) as change:
            change.union_by_name(evolved_fields(columns, self.table.metadata.schema))
        fields = _field_ids({each.number: each.name for each in columns}, self.table.schema)
        with self._explaining_errors():
            ReplaceRows(
                rows=rows(), batch=self._batch(lsn, known(fields)), options=_commit_options(lsn)
            ).run(self.table.port)

    def check_rows(
        self,
        within: TableTransaction,
        columns: Sequence[ValueColumn],
        theirs: DataFrame,
        reasons: Sequence[str],
    ) -> None:
        """Check that a table has the rows of its source.

        Args:
            columns: that are compared.
            theirs: the source's rows.
            reasons: why the table may have others.

        Raises:
            ValidationError: it has others.
        """
        spark = self.table.spark
        names = [quote_name_always([column.name]) for column in columns]
        ours = Scan(spark, within.metadata, within.io).to_df().select(*names)
        kinds = {each.name: each.dataType for each in ours.schema.fields}
        cast = [
            theirs[name].cast(kinds[column.name]).alias(column.name)
            for name, column in zip(names, columns, strict=True)
        ]
        theirs = theirs.select(*cast)
        with self._explaining_errors():
            for left, right in ((theirs, ours), (ours, theirs)):
                if left.exceptAll(right).limit(1).count():
                    raise ValidationError(
                        f"{'; '.join(reasons)}: the log does not tell which rows that changed, and "
                        "the table has others than the source. Nothing was taken over; load the "
                        "table again, with --load-again"
                    )

    # -- changes ---------------------------------------------------------------------------------

    def apply(self, batch: TransactionBatch, plan: ColumnPlan, known: KnownSource) -> None:
        """Take over a batch.

        Args:
            plan: with which its relations were read.
            known: the source at its end.
        """
        rows = batch.table(self._lookup(batch.columns))
        fields: Mapping[int, int] = plan.fields
        if _is_evolved(self.table, batch.columns, plan):
            with self.table.transaction() as together:
                # A commit of its own, which says as well which column is which.
                fields = _evolve(together, batch.columns, plan)
                self._remember(together, replace(self.known_source, fields=fields))
        mine = self._batch(batch.end_lsn, replace(known, fields=fields))
        with suppress(BatchAppliedError):
            if batch.is_truncated:
                ReplaceRows(
                    rows=self._remaining_rows(rows, plan),
                    batch=mine,
                    options=_commit_options(batch.end_lsn),
                ).run(self.table.port)
            elif rows is None:
                self.table.port.run(mark(mine))
            else:
                self._change(self.table.port, rows, plan, mine, batch.end_lsn)

    def apply_within(
        self,
        together: TableTransaction,
        batch: TransactionBatch,
        columns: Sequence[ValueColumn],
        plan: ColumnPlan,
        lsn: int,
    ) -> Mapping[int, int]:
        """Take over a batch within a transaction, and return the ids of fields by numbers.

        Args:
            columns: those that the source has at the end.
            lsn: the position that the transaction leads to.
        """
        rows = batch.table(self._lookup(batch.columns))
        seen = {column.number: column for column in (*batch.columns, *columns)}
        fields = _evolve(together, tuple(seen.values()), plan)
        if batch.is_truncated:
            Overwrite(rows=self._remaining_rows(rows, plan), options=_commit_options(lsn)).run(
                together.port
            )
        elif rows is not None:
            self._change(together.port, rows, plan, None, lsn)
        return fields

    def finish(self, together: TableTransaction, known: KnownSource, lsn: int) -> None:
        """Let a transaction lead to a position, at which the source is known."""
        if lsn > self.applied_lsn:
            together.port.run(mark(self._batch(lsn, known)))
        else:
            self._remember(together, known)

    def settle(
        self, columns: Sequence[ValueColumn], plan: ColumnPlan, known: KnownSource, lsn: int
    ) -> None:
        """Give the table the columns that the source has at a position, without rows."""
        with self.table.transaction() as together:
            fields = _evolve(together, columns, plan)
            self.finish(together, replace(known, fields=fields), lsn)

    def mark(self, lsn: int) -> None:
        """Take note of a position up to which nothing is to be taken over."""
        with suppress(BatchAppliedError):
            self.table.port.run(mark(Batch(self.query, lsn)))

    # -- parts -----------------------------------------------------------------------------------

    def _batch(self, lsn: int, known: KnownSource) -> Batch:
        return Batch(self.query, lsn, properties={SOURCE + self.query: known.to_json()})

    def _remember(self, together: TableTransaction, known: KnownSource) -> None:
        together.port.run(set_properties({SOURCE + self.query: known.to_json()}))

    def _change(
        self, port: SparkPort, rows: pa.Table, plan: ColumnPlan, batch: Batch | None, lsn: int
    ) -> None:
        ApplyChanges(
            rows=_with_names(rows, plan),
            keys=[plan.names[key] for key in self.known_source.keys],
            op=GONE,
            order_by=ORDER,
            batch=batch,
            options=_commit_options(lsn),
        ).run(port)

    def _remaining_rows(self, rows: pa.Table | None, plan: ColumnPlan) -> Any:
        """What is left of changes of an empty table."""
        if rows is None:
            return self.table.to_df().limit(0)
        frame = pl.DataFrame(pl.from_arrow(_with_names(rows, plan)))
        keys = [plan.names[key] for key in self.known_source.keys]
        last = frame.sort(ORDER).unique(subset=keys, keep="last")
        return last.filter(pl.col(GONE) == "u").drop(GONE, ORDER)

    def _lookup(
        self, columns: Sequence[ValueColumn]
    ) -> Callable[[Sequence[Key]], Mapping[Key, Mapping[int, Any]]]:
        """What gives the rows that the table has for keys."""

        def rows_by_key(keys: Sequence[Key]) -> Mapping[Key, Mapping[int, Any]]:
            known, schema = self.known_source, self.table.metadata.schema
            kinds = {column.number: column for column in columns}
            names = {
                number: name
                for number, field_id in known.fields.items()
                if (name := schema.find_column_name(field_id)) is not None
            }
            sought = [f"_frazil_key_{number}" for number in known.keys]
            wanted = [kinds[number] for number in known.keys]
            asked = self.table.spark.createDataFrame(
                pa.Table.from_arrays(arrays_of(keys, wanted), names=sought)
            )
            rows = self.table.to_df()
            same = [
                rows[quote_name_always([names[number]])] == asked[each]
                for number, each in zip(known.keys, sought, strict=True)
            ]
            found = rows.join(F.broadcast(asked), on=same, how="left_semi").toArrow().to_pylist()
            return {
                tuple(row[names[number]] for number in known.keys): {
                    number: row[name] for number, name in names.items()
                }
                for row in found
            }

        return rows_by_key

    @contextmanager
    def _explaining_errors(self) -> Iterator[None]:
        """Errors of tasks that read the source's rows, as their own."""
        try:
            yield
        except PySparkException as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            told = [line for line in lines if line.startswith("frazil.errors.")] or lines[:1]
            reason = self.dsn.without_password(told[-1].partition(": ")[2] or told[-1])
            if GAVE_WAY in reason:
                raise ConflictError(reason) from None
            raise ValidationError(f"the rows could not be loaded: {reason}") from None


def _commit_options(lsn: int) -> CommitOptions:
    """A snapshot that leads to a position."""
    return CommitOptions(snapshot_properties={LSN: lsn_text(lsn)})


def _is_evolved(table: Table, columns: Sequence[ValueColumn], plan: ColumnPlan) -> bool:
    """Whether a table lacks columns, names or types, or does not know whose a column is."""
    if any(column.number not in plan.fields for column in columns):
        return True
    return not _evolution(table, columns, plan).apply().is_same_as(table.schema)


def _evolve(
    together: TableTransaction, columns: Sequence[ValueColumn], plan: ColumnPlan
) -> dict[int, int]:
    """Give a table the columns, names and types that it lacks; return the fields' ids."""
    _evolution(together, columns, plan).commit()
    added = {
        column.number: plan.names[column.number]
        for column in columns
        if column.number not in plan.fields
    }
    return {**plan.fields, **_field_ids(added, together.metadata.schema)}


def _evolution(
    target: TableOperations, columns: Sequence[ValueColumn], plan: ColumnPlan
) -> UpdateSchema:
    change = target.update_schema(case_sensitive=False)
    for name, new in plan.renamed_columns().items():
        change.rename_column((name,), new)
    last = [replace(column, name=plan.names[column.number]) for column in columns]
    change.union_by_name(evolved_fields(last, plan.renamed_schema()))
    return change


def _field_ids(names: Mapping[int, str], schema: Schema) -> dict[int, int]:
    ids = {field.name.lower(): field.field_id for field in schema.fields}
    return {number: ids[name.lower()] for number, name in names.items()}


def _with_names(rows: pa.Table, plan: ColumnPlan) -> pa.Table:
    """Rows whose columns have the table's names in place of their numbers."""
    beside = (GONE, ORDER)
    names = [name if name in beside else plan.names[int(name)] for name in rows.column_names]
    return rows.rename_columns(names)
