"""What this Spark can do that not every Spark 4 can: all questions of that kind are asked here.

Each is asked of what is there, and not of a number, so that a later Spark, or a platform's own, is
taken for what it is. What one lacks is made in another way, or refused by `missing_ability_error`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

import mmh3
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as S
from pyspark.sql.streaming.listener import QueryStartedEvent

from frazil.errors import UnsupportedError
from frazil.spark.gateway_errors import Py4JError

_SEED: Final = 42

HAS_ARROW_FUNCTIONS: Final = hasattr(F, "arrow_udf")
"""Whether functions of columns get Arrow's arrays (Spark 4.1)."""

HAS_JOB_TAGS: Final = "jobTags" in signature(QueryStartedEvent.__init__).parameters
"""Whether the start of a query tells the tags of its thread (Spark 4.1)."""

HAS_THETA_SKETCHES: Final = hasattr(F, "theta_sketch_agg")
"""Whether Spark makes the sketches of statistics (Spark 4.1)."""

HAS_PLACEMENT: Final = hasattr(DataFrame, "repartitionById")
"""Whether rows say by a number in which task they are (Spark 4.1)."""

HAS_GEOSPATIAL_TYPES: Final = hasattr(S, "GeometryType")
"""Whether there are types of geometries (Spark 4.1); else they are bytes."""

HAS_TIME_TYPE: Final = hasattr(S, "TimeType")
"""Whether there are times of the day (Spark 4.1); else they are numbers of microseconds."""

if TYPE_CHECKING:
    from pyspark.sql.types import GeographyType as GeographyType
    from pyspark.sql.types import GeometryType as GeometryType
    from pyspark.sql.types import TimeType as TimeType


class _TypeOfOthers(S.DataType):
    """Stands for a type that only other Sparks have: no value of this Spark is of it."""

    def __init__(self, parameter: int) -> None:
        self.precision = self.srid = parameter

    def simpleString(self) -> str:
        return f"{type(self).__name__[:-4].lower()}({self.precision})"


def _of_this_spark(name: str) -> type:
    return getattr(S, name, None) or type(name, (_TypeOfOthers,), {})


if not TYPE_CHECKING:
    TimeType = _of_this_spark("TimeType")
    GeometryType = _of_this_spark("GeometryType")
    GeographyType = _of_this_spark("GeographyType")

NO_ANSWER: Final = (Py4JError, PySparkException, AttributeError, TypeError, ValueError)
"""What asking for a class or a method raises that is not there, or not for everybody."""

_REFUSALS: Final = ("Trace:", "does not exist")
"""One of these is in what the bridge says where a method is not there, or not for everybody."""

_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
_HOMES: Final = ("", "sinks.", "runtime.", "checkpointing.")

_FILE_FORMAT: Final = "org.apache.spark.sql.execution.datasources.FileFormat"
_VARIANTS: Final = "org.apache.parquet.schema.LogicalTypeAnnotation$VariantLogicalTypeAnnotation"
_PARAMETERS: Final = "org.apache.spark.sql.catalyst.parser.NamedParameterContext"


def missing_ability_error(what: str, *, since: str, instead: str) -> UnsupportedError:
    """Return the error for what this Spark lacks.

    Args:
        what: as a sentence goes on after "Spark 4.0.5 has no".
        since: the first Spark that has it.
        instead: what to do on this one, as a sentence goes on.
    """
    return UnsupportedError(
        f"Spark {pyspark.__version__} has no {what}: take Spark {since} or newer, or {instead}"
    )


def class_named(jvm: Any, name: str) -> Any:
    """Return Java's class of that name; `NO_ANSWER` without one."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return jvm.java.lang.Class.forName(name, True, loader)


def has_class(jvm: Any, name: str) -> bool:
    """Return whether there is a class of that name."""
    try:
        class_named(jvm, name)
    except NO_ANSWER:
        return False
    return True


def module_named(jvm: Any, name: str) -> Any:
    """Return Scala's object of that name; `NO_ANSWER` without one."""
    return class_named(jvm, f"{name}$").getField("MODULE$").get(None)


def streaming_class(jvm: Any, name: str) -> Any:
    """Return what makes objects of a class of Spark's file streams, which moved in 4.1.

    `NO_ANSWER` without one.
    """
    for home in _HOMES:
        full_name = f"{_STREAMING}.{home}{name}"
        if has_class(jvm, full_name):
            return getattr(jvm, full_name)
    raise ValueError(f"this Spark has no {name}")


def made_by(kind: Any, *arguments: Sequence[Any]) -> Any:
    """Return what a class makes of the first arguments that it takes.

    Args:
        kind: of the virtual machine.
        arguments: those of one Spark, then those of another.
    """
    *others, last = arguments
    for each in others:
        try:
            return kind(*each)
        except Py4JError as error:
            if not is_refusal(error):
                raise
    return kind(*last)


def is_refusal(error: Py4JError) -> bool:
    """Whether the virtual machine says that it does not call this, and so did nothing.

    What the called method raises is of another class. Of a lost connection nothing is told, and
    nobody knows what was done.
    """
    return type(error) is Py4JError and any(part in str(error) for part in _REFUSALS)


def number_of_rows_column(jvm: Any) -> str | None:
    """Return the name of the column that Spark's Parquet reader fills with the numbers of rows."""
    try:
        return str(module_named(jvm, _FILE_FORMAT).ROW_INDEX_TEMPORARY_COLUMN_NAME())
    except NO_ANSWER:
        return None


def may_have_variables(session: Any, plan: Any) -> bool:
    """Return whether a plan of a classic session may read variables of it.

    Spark 4.0 tells of no plan that it does: there it is whether the session has any.
    """
    try:
        pattern = session._jvm.org.apache.spark.sql.catalyst.trees.TreePattern.VARIABLE_REFERENCE()
    except Py4JError:
        manager = session._jsparkSession.sessionState().catalogManager()
        return not manager.tempVariableManager().isEmpty()
    return bool(plan.containsPattern(pattern))


def reads_variants(jvm: Any) -> bool:
    """Return whether Spark's Parquet reader knows files with variants (Spark 4.1)."""
    return has_class(jvm, _VARIANTS)


def substitutes_parameters(jvm: Any) -> bool:
    """Return whether Spark's parser puts the values of parameters in their places (Spark 4.1)."""
    return has_class(jvm, _PARAMETERS)


def repartition_by_id(rows: DataFrame, tasks: int, number: Column | str) -> DataFrame:
    """Return rows in tasks, each in that of its number, modulo their count."""
    if HAS_PLACEMENT:
        return rows.repartitionById(tasks, number)
    column = F.col(number) if isinstance(number, str) else number
    place = F.pmod(column.cast("int"), F.lit(tasks)) + 1
    keys = F.array(*map(F.lit, _keys(tasks)))
    return rows.repartition(tasks, F.element_at(keys, place))


def _keys(tasks: int) -> list[int]:
    """An int for each task that Spark's hash puts there."""
    found: dict[int, int] = {}
    key = 0
    while len(found) < tasks:
        found.setdefault(mmh3.hash(struct.pack("<i", key), _SEED, signed=True) % tasks, key)
        key += 1
    return [found[task] for task in range(tasks)]
