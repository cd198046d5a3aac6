"""Hidden columns of `spark.table`, such as ``_file``: found by name, and never in a star.

A DataFrame of a table has none, and costs what it costs without. Where Spark does not find one's
name, the plan that it has analysed so far, in which a table that is there twice has columns of its
own at each place, is given the hidden columns.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, GroupedData, SparkSession

from frazil.catalog.identifiers import Identifier, shown
from frazil.errors import FrazilError
from frazil.spark.attached.dataframes.batch_reads import found_name, table_at
from frazil.spark.attached.dataframes.table_mark import TableMark
from frazil.spark.attached.names import SessionNames
from frazil.spark.attached.statements import Plain
from frazil.spark.files.projection import DELETED, METADATA_COLUMNS
from frazil.spark.gateway_errors import Py4JError
from frazil.spark.plans.hidden import whole_text
from frazil.spark.plans.machine import Machine, machine_of
from frazil.spark.plans.table_marks import (
    MarkedRows,
    forget_hidden,
    marks_in,
    with_hidden_columns,
)
from frazil.spark.plans.traces import errors_unlogged, log_as_pyspark
from frazil.spark.scan import Scan
from frazil.spark.sql.context import LakeTable, NamedTable

OPERATIONS: Final = (
    "agg",
    "filter",
    "join",
    "lateralJoin",
    "orderBy",
    "repartition",
    "repartitionByRange",
    "select",
    "selectExpr",
    "sort",
    "sortWithinPartitions",
    "withColumn",
    "withColumns",
)
"""What makes a DataFrame of another one by columns that Spark looks for; others call these."""

OF_GROUPS: Final = ("agg", "avg", "count", "max", "mean", "min", "sum")
"""What makes a DataFrame of groups."""

_NAMES: Final = tuple(each.name for each in METADATA_COLUMNS if each.name != DELETED)
_NOT_FOUND: Final = ("UNRESOLVED_COLUMN", "CANNOT_RESOLVE_DATAFRAME_COLUMN")
_LARGE: Final = 1 << 40
"""A number that py4j takes for a long one."""


def session_of(owner: Any) -> Any:
    """Return the session of a DataFrame, or of groups of one."""
    return owner.session if isinstance(owner, GroupedData) else owner.sparkSession


def with_hidden(
    names: SessionNames, plain: Callable[..., DataFrame], owner: Any, *args: Any, **kwargs: Any
) -> DataFrame:
    """Return what a method of Spark makes of a DataFrame or of groups.

    Raises:
        AnalysisException: of Spark.
    """
    try:
        with errors_unlogged():
            return plain(owner, *args, **kwargs)
    except AnalysisException as error:
        with errors_unlogged():
            found = _with_hidden_columns(names, session_of(owner), error)
        if found is None:
            log_as_pyspark(error)
            raise
        return found


def column_of(names: SessionNames, plain: Plain, frame: Any, item: Any) -> Any:
    """Return a column of a DataFrame by its name, or what else stands in its brackets.

    Raises:
        AnalysisException: of Spark.
    """
    try:
        with errors_unlogged():
            return plain(frame, item)
    except AnalysisException as error:
        if not isinstance(item, str) or not _is_of_hidden(error):
            log_as_pyspark(error)
            raise
        column = _column(machine_of(frame.sparkSession), frame, item)
        try:
            # It is one of these rows', or none.
            with_hidden(names, type(frame).select, frame, column)
        except AnalysisException:
            raise error from None
        return column


def _column(machine: Machine, frame: Any, name: str) -> Column:
    """A column that Spark looks for in the plan of a DataFrame, wherever that stands."""
    plan = frame._jdf.logicalPlan()
    known = plan.getTagValue(machine.root.plan_id)
    if known.isDefined():
        number = int(known.get())
    else:
        number = _LARGE + secrets.randbits(60)
        plan.setTagValue(machine.root.plan_id, number)
    unresolved = machine.catalyst.analysis.UnresolvedAttribute
    column = unresolved(unresolved.parseAttributeName(name))
    column.setTagValue(machine.root.plan_id, number)
    return Column(machine.sql.classic.ExpressionUtils.column(column))


def _with_hidden_columns(
    names: SessionNames, spark: Any, error: AnalysisException
) -> DataFrame | None:
    """The DataFrame that Spark did not make, with hidden columns; None where it needs others.

    Raises:
        AnalysisException: of Spark, where it finds them, and something else is wrong.
    """
    if not _is_of_hidden(error):
        return None
    machine = machine_of(spark)
    plan = _analysed_so_far(error)
    if plan is None:
        return None
    text = whole_text(plan).lower()
    hidden = [name for name in _NAMES if name in text]
    try:
        rows = _rows_of_marks(names, spark, list(marks_in(machine, plan)), hidden)
    except FrazilError as failure:
        error.add_note(f"hidden columns cannot be read: {failure}")
        return None
    if not rows:
        return None
    made = with_hidden_columns(machine, plan, rows)
    try:
        found = machine.frame(spark, made)
    except AnalysisException as failure:
        if _is_of_hidden(failure):
            return None
        raise
    frame: Any = found
    forget_hidden(machine, frame._jdf.logicalPlan())
    return found


def _analysed_so_far(error: AnalysisException) -> Any:
    """The plan in which Spark does not find a name; None where it tells none."""
    origin: Any = getattr(error, "_origin", None)
    try:
        found = origin.plan()
    except (AttributeError, Py4JError):
        return None
    return found.get() if found.isDefined() else None


def _is_of_hidden(error: AnalysisException) -> bool:
    """Whether Spark says of a name of a hidden column that it does not find it."""
    if not (error.getCondition() or "").startswith(_NOT_FOUND):
        return False
    said = error.getMessageParameters() or {}
    told = str(said.get("objectName", said.get("name", ""))).lower()
    return any(name in told for name in _NAMES)


def _rows_of_marks(
    names: SessionNames, spark: SparkSession, marks: Sequence[str], hidden: Sequence[str]
) -> list[MarkedRows]:
    """The rows of marks, but of those whose table is another one by now.

    Raises:
        FrazilError: a table, or its snapshot, is gone.
    """
    found: list[MarkedRows] = []
    for text in marks:
        mark = TableMark.read(text)
        table = _table_of(names, spark, mark.place)
        metadata = None if table is None else mark.metadata_then(table.metadata)
        if table is None or metadata is None:
            continue
        own = [field.name for field in metadata.schema.fields]
        columns = [*own, *(name for name in hidden if name not in own)]
        scan = Scan(
            spark,
            metadata,
            table.io,
            columns=columns,
            case_sensitive=True,
            name=shown(mark.place) if isinstance(mark.place, tuple) else mark.place,
        )
        rows: Any = scan.to_df()
        found.append((text, rows._jdf.logicalPlan(), len(own)))
    return found


def _table_of(
    names: SessionNames, spark: SparkSession, place: Identifier | str
) -> LakeTable | None:
    if isinstance(place, str):
        return table_at(spark, place)
    found = found_name(names, spark, place)
    return found.table if isinstance(found, NamedTable) else None
