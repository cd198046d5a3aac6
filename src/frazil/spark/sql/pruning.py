"""Which files a query can need: by the predicates that Spark's optimizer ends up with.

The query is analysed over relations without files in place of the tables. What then stands in a
filter above such a relation is what the query asks of the table: constants are folded, and
predicates carried across joins.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as S

from frazil.format.predicates import (
    AlwaysTrue,
    And,
    Comparison,
    Expression,
    Op,
    all_of,
    any_of,
)
from frazil.format.schema import Schema
from frazil.format.types import (
    DateType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)
from frazil.spark.conditions import implied_by
from frazil.spark.session.facts import time_zone_of
from frazil.spark.sql.qualifiers import without_qualifiers
from frazil.spark.words import Word

_ASKING: Final = frozenset({"WHERE", "ON", "HAVING", "USING", "QUALIFY", "NATURAL", "FILTER"})
_TIMES_OF_DAY: Final = frozenset(
    {
        "CURRENT_TIMESTAMP",
        "CURRENT_DATE",
        "CURRENT_TIME",
        "LOCALTIMESTAMP",
        "NOW",
        "CURDATE",
        "UNIX_TIMESTAMP",
        "TO_UNIX_TIMESTAMP",
    }
)
_MOMENTS: Final = (
    DateType,
    TimestampType,
    TimestamptzType,
    TimestampNanoType,
    TimestamptzNanoType,
)


def asks_for_rows(words: Sequence[Word]) -> bool:
    """Return whether a query says anything of the rows that it wants."""
    return any(word.keyword in _ASKING for word in words)


def names_the_time(words: Sequence[Word]) -> bool:
    """Return whether a query asks what time it is."""
    return any(word.keyword in _TIMES_OF_DAY for word in words)


class EmptyRelations:
    """Relations without files, one a place in a query, that a plan can be searched for."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def relation(self, place: int, schema: S.StructType) -> DataFrame:
        """Return the relation that stands for the table at a place."""
        return self._spark.read.schema(schema).parquet(_folder(place))

    def asked(self, query: DataFrame) -> dict[int, list[str | None]]:
        """Return what a query asks of the table at each place: a text a read, or None for all."""
        # The optimizer's plan is not in PySpark's own API; only a classic session has it.
        frame: Any = query
        plan = frame._jdf.queryExecution().optimizedPlan()
        found: dict[int, list[str | None]] = {}
        for place, text in _filters(plan, None):
            found.setdefault(place, []).append(text)
        return found


def _filters(node: Any, above: Any) -> Iterator[tuple[int, str | None]]:
    kind = node.nodeName()
    if kind == "LogicalRelation":
        place = _place_of(node)
        if place is not None:
            yield place, None if above is None else _condition(above)
        return
    over = node if kind == "Filter" else None
    for below in (node.children(), node.innerChildren()):
        for number in range(below.size()):
            yield from _filters(below.apply(number), over)


def _place_of(relation: Any) -> int | None:
    source = relation.relation()
    if not hasattr(source, "location") or "HadoopFsRelation" not in source.getClass().getName():
        return None
    roots = source.location().rootPaths()
    path = str(roots.apply(0).toString()) if roots.size() == 1 else ""
    folder, _, number = path.rpartition("/")
    return int(number) if folder.endswith(_root()) and number.isdigit() else None


def _condition(node: Any) -> str | None:
    """The condition of a filter, with names of columns alone; None where that is not sure."""
    condition = node.condition()
    references = condition.references().toSeq()
    qualifiers, bare = set(), set()
    for number in range(references.size()):
        reference = references.apply(number)
        qualifier = reference.qualifier()
        if qualifier.size():
            qualifiers.add(tuple(qualifier.mkString("\x01").split("\x01")))
        else:
            bare.add(str(reference.name()))
    if any(parts[0] in bare for parts in qualifiers):
        return None
    text: str = condition.sql()
    return without_qualifiers(text, qualifiers)


def implied(
    asked: Sequence[str | None],
    schema: Schema,
    *,
    spark: SparkSession,
    lasts: bool,
) -> Expression:
    """Return a predicate that is TRUE for every row that any of some reads asks for.

    Args:
        asked: the conditions of the reads; None asks for all rows.
        schema: of the table.
        lasts: the query asks what time it is, and its rows may be read later.
    """
    parts = []
    for text in asked:
        if text is None:
            return AlwaysTrue()
        found = implied_by(text, schema, spark=spark, time_zone=time_zone_of(spark))
        parts.append(_lasting(found) if lasts else found)
    return any_of(parts) if parts else AlwaysTrue()


def _lasting(found: Expression) -> Expression:
    """What of a predicate also holds later, when the time of day is another one."""
    if isinstance(found, And):
        return all_of(_lasting(part) for part in found.children)
    if isinstance(found, Comparison) and found.op in (Op.GT, Op.GE):
        return found if isinstance(found.bound_ref.type, _MOMENTS) else AlwaysTrue()
    return AlwaysTrue()


@cache
def _root_of(process: int) -> str:
    """A folder of this process for relations without files."""
    folder = tempfile.mkdtemp(prefix=f"frazil-sql-{process}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _root() -> str:
    return _root_of(os.getpid())


def _folder(place: int) -> str:
    folder = os.path.join(_root(), str(place))
    os.makedirs(folder, exist_ok=True)
    return f"file://{folder}"
