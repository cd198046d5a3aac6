"""Names for the rows of DataFrames, while a text is analysed that has them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.gateway_errors import Py4JError
from frazil.spark.session.by_session import BySession
from frazil.spark.session.facts import is_connect
from frazil.storage.caches import BoundedCache

OWN: Final = "frazil_"
"""What names that no user has written begin with."""
_NAMES: Final = 1_000
"""So many names of views are known in a session; others are made by the public way."""


@dataclass(frozen=True, slots=True)
class _Model:
    """A view of a session as Spark's own catalog holds it, and what makes others of it.

    Attributes:
        catalog: of the session.
        view: was made by the public way.
        about: what it says beside its rows.
        option: Scala's class.
        abouts: what views of other names say, by these.
    """

    catalog: Any
    view: Any
    about: Any
    option: Any
    abouts: BoundedCache[Any] = field(default_factory=lambda: BoundedCache(_NAMES))


_MODELS: Final = BySession[_Model]()


def make_temporary_view(frame: DataFrame, name: str) -> Callable[[], object]:
    """Give the rows of a DataFrame a name in its session, which no view has.

    Returns:
        What takes the name away again.
    """
    spark = frame.sparkSession
    if is_connect(spark):
        frame.createOrReplaceTempView(quote_name_always([name]))
        return lambda: spark.catalog.dropTempView(name)
    try:
        return _put_into_the_catalog(spark, frame, name)
    except Py4JError:  # This Spark keeps its views in another form.
        frame.createOrReplaceTempView(quote_name_always([name]))
        return lambda: spark.catalog.dropTempView(name)


def _put_into_the_catalog(spark: SparkSession, frame: DataFrame, name: str) -> Callable[[], object]:
    """Put the view into Spark's catalog, and return what takes it out.

    Spark's public way is a command, which takes ten times as long: milliseconds a table of a query.
    To drop a view by it also forgets cached rows of another one that had the name.
    """
    rows: Any = frame
    model = _MODELS.get_or_make(spark, _make_model)
    about = model.about if name.startswith(OWN) else model.abouts.get(name)
    if about is None:
        frame.createOrReplaceTempView(quote_name_always([name]))
        model.abouts.put(name, model.catalog.getRawTempView(name).get().tableMeta(), 1)
    else:
        plan = model.option.apply(rows._jdf.queryExecution().commandExecuted())
        model.catalog.createTempView(name, model.view.copy(about, plan), True)
    return lambda: model.catalog.dropTempView(name)


def _make_model(spark: SparkSession) -> _Model:
    """The model of a session, from a view that is made and dropped."""
    session: Any = spark
    name = f"{OWN}{uuid.uuid4().hex}"
    spark.range(0).createOrReplaceTempView(name)
    try:
        catalog = session._jsparkSession.sessionState().catalog()
        view = catalog.getRawTempView(name).get()
        return _Model(catalog, view, view.tableMeta(), session._jvm.scala.Option)
    finally:
        spark.catalog.dropTempView(name)
