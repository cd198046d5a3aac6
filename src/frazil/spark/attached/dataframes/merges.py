"""`df.mergeInto` of a table of a lake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import Column, DataFrame

from frazil.catalog.identifiers import Identifier
from frazil.errors import SqlSyntaxError, UnsupportedError
from frazil.format.predicates.sql.quoting import quote_name
from frazil.spark.attached.dataframes.source_columns import SourceColumns
from frazil.spark.attached.dataframes.table_writes import TableWrite
from frazil.spark.attached.names import SessionNames
from frazil.spark.plans.sparks_errors import sparks_errors
from frazil.spark.row_level.merging.builder import MergeBuilder
from frazil.spark.row_level.merging.merge import Merge
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.values.names import SOURCE
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.statements.target import own_column
from frazil.spark.words import WordReader

if TYPE_CHECKING:
    from pyspark.sql.merge import MergeIntoWriter
else:
    MergeIntoWriter = object


class LakeMergeWriter(MergeIntoWriter):
    """Merges rows into one table of a lake, clause by clause."""

    SPARK_KIND: ClassVar[str] = "MergeIntoWriter"

    def __init__(
        self, names: SessionNames, rows: DataFrame, parts: Identifier, condition: Any
    ) -> None:
        self._frazil_names = names
        with sparks_errors():
            self._frazil_write = TableWrite(names=names, parts=parts, rows=rows)
            target = self._frazil_write.target()
            self._frazil_target = (target.catalog, *target.table.identifier[:-1], target.name)
            alias = alias_of_rows(rows) or _free_alias(SOURCE, target.name)
            self._frazil_columns = SourceColumns(rows, alias, self._frazil_target)
            merge = Merge(
                source=rows,
                on=self._frazil_columns.named_column(condition),
                target_alias=target.name,
                source_alias=alias,
                options=CommitOptions(branch=target.branch),
            )
            self._frazil_builder = MergeBuilder(target.table.port, merge)

    def whenMatched(self, condition: Column | None = None) -> Any:
        """Begin a clause for rows of the table that a row of the source matches."""
        return _clause(self, "WhenMatched", "when_matched", condition)

    def whenNotMatched(self, condition: Column | None = None) -> Any:
        """Begin a clause for rows of the source that match no row of the table."""
        return _clause(self, "WhenNotMatched", "when_not_matched", condition)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> Any:
        """Begin a clause for rows of the table that no row of the source matches."""
        return _clause(self, "WhenNotMatchedBySource", "when_not_matched_by_source", condition)

    def withSchemaEvolution(self) -> LakeMergeWriter:
        """Add columns of the source that the table lacks."""
        self._frazil_builder.with_schema_evolution()
        return self

    def merge(self) -> None:
        """Run the merge."""
        with sparks_errors(), self._frazil_names.change():
            # A transaction may have begun or ended since the merge was begun.
            port = self._frazil_write.target().table.port
            replace(self._frazil_builder, _port=port).execute()

    def frazil_add(
        self, method: str, condition: Column | None, values: Mapping[str, Any] | None = None
    ) -> LakeMergeWriter:
        """Add a clause, of the method of our builder of that name."""
        add: Callable[..., Any] = getattr(self._frazil_builder, method)
        named = self._frazil_columns.named_column
        condition = named(condition)
        if values is None:
            add(condition=condition)
        else:
            own = {self._frazil_column(name): named(value) for name, value in values.items()}
            add(own, condition=condition)
        return self

    def _frazil_column(self, name: str) -> str:
        """The column that is set, less the names of the table before it."""
        try:
            reader = WordReader(name)
            parts = reader.names("a column")
        except SqlSyntaxError:
            return quote_name([name])
        return quote_name(own_column(parts, self._frazil_target))


class _Clause:
    """What becomes of the rows of a clause."""

    frazil_writer: LakeMergeWriter
    frazil_kind: str
    frazil_condition: Column | None

    def updateAll(self) -> Any:
        """Give every column the value of the source's column of its name."""
        if self.frazil_kind == "when_not_matched_by_source":
            raise UnsupportedError(
                "whenNotMatchedBySource().updateAll() has no row of the source to take values "
                "from: use update({…})"
            )
        return self._add("update_all")

    def update(self, assignments: dict[str, Any]) -> Any:
        """Change columns."""
        return self._add("update", assignments)

    def delete(self) -> Any:
        """Delete the rows."""
        return self._add("delete")

    def insertAll(self) -> Any:
        """Add the rows, columns by name."""
        return self._add("insert_all")

    def insert(self, assignments: dict[str, Any]) -> Any:
        """Add rows of such columns."""
        return self._add("insert", assignments)

    def _add(self, what: str, values: Mapping[str, Any] | None = None) -> LakeMergeWriter:
        method = f"{self.frazil_kind}_{what}"
        return self.frazil_writer.frazil_add(method, self.frazil_condition, values)


def _clause(writer: Any, name: str, kind: str, condition: Column | None) -> Any:
    """A clause that is one of Spark's class of that name."""
    made = object.__new__(_clause_class(getattr(writer, name)))
    made.writer = made.frazil_writer = writer
    made.frazil_kind, made.frazil_condition = kind, condition
    return made


@cache
def _clause_class(theirs: type) -> Any:
    return type(theirs.__name__, (_Clause, theirs), {"__module__": theirs.__module__})


def alias_of_rows(rows: Any) -> str | None:
    """Return what a DataFrame is called by `DataFrame.alias`; None where it is not."""
    if is_connect(rows.sparkSession):
        plan = rows._plan
        return str(plan._alias) if type(plan).__name__ == "SubqueryAlias" else None
    plan = rows._jdf.queryExecution().logical()
    return str(plan.alias()) if plan.nodeName() == "SubqueryAlias" else None


def _free_alias(name: str, other: str) -> str:
    return name if name.lower() != other.lower() else f"{name}_rows"
