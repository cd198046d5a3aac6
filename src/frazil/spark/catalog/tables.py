"""Tables of a lake as Spark's catalogs have them: columns, and writes that get a DataFrame."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from py4j.java_collections import JavaArray
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame
from pyspark.sql import types as S

from frazil.catalog.identifiers import Identifier
from frazil.errors import UnsupportedError
from frazil.spark.attached.dataframes.java_options import Given
from frazil.spark.attached.dataframes.table_writes import TableWrite
from frazil.spark.catalog.place import SessionPlace
from frazil.spark.plans.machine import JavaObject, Machine, answers

_CONNECTOR: Final = "org.apache.spark.sql.connector"
_CAPABILITIES: Final = (
    "V1_BATCH_WRITE",
    "TRUNCATE",
    "OVERWRITE_BY_FILTER",
)
"""Spark has no way for a write of its first kind to replace partitions."""

_TERM: Final = re.compile(r"(\w+)\((?:(\d+), )?(.+)\)")

_VIEW_TEXT: Final = 14
"""At which place a table of Spark's first kind has the text of its query."""

Insert = Callable[[TableWrite], None]
"""What is done with rows."""


@dataclass(frozen=True, slots=True)
class StagedDefinition:
    """A table that a writer makes.

    Attributes:
        partition_by: its terms.
        properties: its properties.
    """

    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


class LakeTable(JavaObject):
    """A table that takes rows.

    Attributes:
        parts: its name, the lake's first.
    """

    def __init__(
        self,
        place: SessionPlace,
        parts: Identifier,
        columns: S.StructType,
        terms: Sequence[str] = (),
    ) -> None:
        self.machine = place.machine
        self.place = place
        self.parts = parts
        self._columns = columns
        self._terms = terms
        self.definition = StagedDefinition()

    def name(self) -> str:
        """Its name."""
        return ".".join(self.parts)

    def toString(self) -> str:
        """What plans show."""
        return self.name()

    def id(self) -> None:
        """None: its name says which one it is."""

    def version(self) -> None:
        """None: the newest."""

    def schema(self) -> Any:
        """Its columns as a type."""
        return java_type(self.machine, self._columns)

    def columns(self) -> Any:
        """Its columns."""
        return java_columns(self.machine, self._columns)

    def partitioning(self) -> Any:
        """What it is partitioned by: Spark asks whether partitions or all rows are replaced."""
        kind = self.machine.connector.expressions.Transform
        return self.machine.array(kind, [_transform(self.machine, term) for term in self._terms])

    def properties(self) -> Any:
        """Its properties."""
        return self.machine.map(dict(self.definition.properties))

    def constraints(self) -> Any:
        """None."""
        return self.machine.array(self.machine.connector.catalog.constraints.Constraint, ())

    def capabilities(self) -> Any:
        """What writers may ask for."""
        kinds = self.machine.connector.catalog.TableCapability
        found = self.machine.jvm.java.util.HashSet()
        for name in _CAPABILITIES:
            found.add(getattr(kinds, name))
        return found

    @answers()
    def newWriteBuilder(self, info: Any) -> Any:
        """Return what begins a write."""
        entries = info.options().asCaseSensitiveMap()
        given = Given.of({str(key): entries[key] for key in entries})
        return _WriteBuilder(self, given, TableWrite.append)

    def insert(self, frame: DataFrame, given: Given, then: Insert) -> None:
        """Write rows."""
        then(
            TableWrite(
                names=self.place.names_now(),
                parts=self.parts,
                rows=frame,
                given=given,
                partition_by=self.definition.partition_by,
                properties=self.definition.properties,
            )
        )

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = [f"{_CONNECTOR}.catalog.SupportsWrite"]


class _WithoutMetrics(JavaObject):
    """What Spark asks for figures of its own, and has none."""

    def supportedCustomMetrics(self) -> Any:
        """None."""
        return self.machine.array(self.machine.connector.metric.CustomMetric, ())

    def reportDriverMetrics(self) -> Any:
        """None."""
        return self.machine.array(self.machine.connector.metric.CustomTaskMetric, ())


class StagedLakeTable(_WithoutMetrics, LakeTable):
    """A table that is made, or replaced, together with its rows."""

    def __init__(
        self,
        place: SessionPlace,
        parts: Identifier,
        columns: S.StructType,
        definition: StagedDefinition,
        make: Insert,
    ) -> None:
        super().__init__(place, parts, columns)
        self.definition = definition
        self._make: Insert | None = make

    def insert(self, frame: DataFrame, given: Given, then: Insert) -> None:
        """Make the table of the rows, in one commit."""
        make, self._make = self._make, None
        super().insert(frame, given, then if make is None else make)

    @answers()
    def commitStagedChanges(self) -> None:
        """Make the table without rows, unless it got some."""
        if self._make is not None:
            spark = self.place.spark
            self.insert(spark.createDataFrame([], self._columns), Given(), TableWrite.append)

    def abortStagedChanges(self) -> None:
        """Nothing: what fails has made nothing."""

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = [
            f"{_CONNECTOR}.catalog.StagedTable",
            f"{_CONNECTOR}.catalog.SupportsWrite",
        ]


class _OfAWrite(JavaObject):
    """What is told of a write: which table, the options, and what is done with the rows."""

    def __init__(self, table: LakeTable, given: Given, then: Insert) -> None:
        self.machine = table.machine
        self._table = table
        self._given = given
        self._then = then


class _WriteBuilder(_OfAWrite):
    """A write that is being described."""

    def truncate(self) -> Any:
        """Put the rows in place of all."""
        self._then = TableWrite.overwrite
        return self

    def canOverwrite(self, predicates: Any) -> bool:
        """Whether rows can be put in place of those that match."""
        del predicates
        return True

    @answers()
    def overwrite(self, predicates: Any) -> Any:
        """Put the rows in place of those that match predicates, or filters of the first kind."""
        texts = [_sql_of(self.machine, each) for each in predicates]
        where = " AND ".join(f"({text})" for text in texts if text)
        self._then = lambda write: write.overwrite(where or None)
        return self

    def build(self) -> Any:
        """Return the write."""
        return _Write(self._table, self._given, self._then)

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = [
            f"{_CONNECTOR}.write.WriteBuilder",
            f"{_CONNECTOR}.write.SupportsOverwriteV2",
        ]


class _Write(_WithoutMetrics, _OfAWrite):
    """A write, which gets its rows as a DataFrame."""

    def toInsertableRelation(self) -> Any:
        """Return what gets the rows."""
        return _Insertable(self._table, self._given, self._then)

    def description(self) -> str:
        """What plans show."""
        return f"frazil {self._table.name()}"

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = [f"{_CONNECTOR}.write.V1Write"]


class _Insertable(_OfAWrite):
    """What gets the rows of a write."""

    @answers()
    def insert(self, data: Any, overwrites: bool) -> None:
        """Write the rows; the builder said in place of which."""
        del overwrites
        frame = DataFrame(data, self._table.place.spark)
        self._table.insert(frame, self._given, self._then)

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = ["org.apache.spark.sql.sources.InsertableRelation"]


def java_type(machine: Machine, columns: S.StructType) -> Any:
    """Return columns as a type of the virtual machine."""
    return machine.jvm.org.apache.spark.sql.types.DataType.fromJson(columns.json())


def java_columns(machine: Machine, columns: S.StructType) -> Any:
    """Return columns as a catalog has them."""
    kind = machine.connector.catalog.Column
    made = []
    for each in java_type(machine, columns).fields():
        comment = each.getComment()
        made.append(
            kind.create(
                each.name(),
                each.dataType(),
                each.nullable(),
                comment.get() if comment.isDefined() else None,
                None,
            )
        )
    return machine.array(kind, made)


def python_type(machine: Machine, columns: Any) -> S.StructType:
    """Return columns as a catalog has them, or a type of the virtual machine, as PySpark's type."""
    if isinstance(columns, JavaArray):
        columns = machine.connector.catalog.CatalogV2Util.v2ColumnsToStructType(columns)
    return S.StructType.fromJson(json.loads(columns.json()))


def view_table(machine: Machine, name: Any, columns: Any, text: str) -> Any:
    """Return a view of Spark's first kind whose query is a text."""
    kind = machine.catalyst.catalog.CatalogTable
    kinds = getattr(getattr(machine.catalyst.catalog, "CatalogTableType$"), "MODULE$")
    storage = getattr(getattr(machine.catalyst.catalog, "CatalogStorageFormat$"), "MODULE$")
    others = []
    for place in range(5, 30):
        try:
            others.append(getattr(kind, f"apply$default${place}")())
        except Py4JError:
            break
    others[_VIEW_TEXT - 5] = machine.jvm.scala.Some(text)
    return kind(name, kinds.VIEW(), storage.empty(), columns, *others)


def _sql_of(machine: Machine, predicate: Any) -> str:
    """A predicate as text of SQL, whose literals Spark writes; none where it is always true."""
    if predicate.name() == "ALWAYS_TRUE":
        return ""
    found = machine.catalyst.expressions.V2ExpressionUtils.toCatalyst(predicate)
    if found.isEmpty():
        raise UnsupportedError(f"rows cannot be replaced by the condition {predicate.toString()}")
    return str(found.get().sql())


def _transform(machine: Machine, term: str) -> Any:
    """A partition term, as ``bucket(4, id)``, as a catalog has it."""
    made = machine.connector.expressions.Expressions
    said = _TERM.fullmatch(term)
    if said is None:
        return made.identity(term)
    kind, width, column = said.groups()
    if width is None:
        return getattr(made, kind)(column)
    if kind == "bucket":
        return made.bucket(int(width), machine.texts([column]))
    arguments = machine.array(
        machine.connector.expressions.Expression, [made.literal(int(width)), made.column(column)]
    )
    return made.apply(kind, arguments)
