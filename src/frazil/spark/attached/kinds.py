"""Which methods of PySpark's classes are replaced, in classic sessions and over Spark Connect."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from pyspark.sql import DataFrame, GroupedData

from frazil.spark.attached.catalog_methods import CATALOG_METHODS
from frazil.spark.attached.dataframes.actions import ACTIONS, iterate_rows, run_action
from frazil.spark.attached.dataframes.batch_reads import LakeReader, read_table
from frazil.spark.attached.dataframes.hidden_columns import (
    OF_GROUPS,
    OPERATIONS,
    column_of,
    session_of,
    with_hidden,
)
from frazil.spark.attached.dataframes.merges import LakeMergeWriter
from frazil.spark.attached.dataframes.stream_reads import LakeStreamReader
from frazil.spark.attached.dataframes.stream_writes import LakeStreamWriter
from frazil.spark.attached.dataframes.writes import LakeWriter
from frazil.spark.attached.dataframes.writes_to import LakeWriterTo
from frazil.spark.attached.hooks import Hook, Hooks, Ours
from frazil.spark.attached.names import SessionNames
from frazil.spark.attached.statements import run_statement


def classic_hooks() -> Hooks:
    """Return what is replaced for sessions with a virtual machine beside them."""
    hooks = _hooks("pyspark.sql.session", "pyspark.sql.classic.dataframe", "pyspark.sql.catalog")
    frame: type = importlib.import_module("pyspark.sql.classic.dataframe").DataFrame
    return [
        *hooks,
        *((frame, Hook(name, with_hidden, session_of)) for name in OPERATIONS),
        (frame, Hook("__getitem__", column_of, session_of)),
        *((GroupedData, Hook(name, with_hidden, session_of)) for name in OF_GROUPS),
    ]


def connect_hooks() -> Hooks:
    """Return what is replaced for sessions of Spark Connect.

    Raises:
        ImportError: its packages are not there.
    """
    package = "pyspark.sql.connect"
    return _hooks(f"{package}.session", f"{package}.dataframe", f"{package}.catalog")


def stream_writer(names: SessionNames, rows: DataFrame) -> Any:
    """Return the writer of a stream that a program with Frazil gets of a DataFrame."""
    return _own_builder(LakeStreamWriter, names, lambda frame: frame.writeStream, rows)


def _hooks(sessions: str, frames: str, catalogs: str) -> Hooks:
    session: type = importlib.import_module(sessions).SparkSession
    frame: type = importlib.import_module(frames).DataFrame
    catalog: type = importlib.import_module(catalogs).Catalog
    of_session: dict[str, Ours] = {
        "sql": run_statement,
        "table": read_table,
        "stop": _stop,
        "read": partial(_own_builder, LakeReader),
        "readStream": partial(_own_builder, LakeStreamReader),
    }
    of_frame: dict[str, Ours] = {
        "write": partial(_own_builder, LakeWriter),
        "writeStream": partial(_own_builder, LakeStreamWriter),
        "writeTo": partial(_into_table, LakeWriterTo),
        "mergeInto": partial(_into_table, LakeMergeWriter),
        "toLocalIterator": iterate_rows,
        **dict.fromkeys(ACTIONS, run_action),
    }
    return [
        *((session, Hook(name, ours, _same_session)) for name, ours in of_session.items()),
        *((frame, Hook(name, ours, session_of)) for name, ours in of_frame.items()),
        *((catalog, Hook(name, ours, _session_of_catalog)) for name, ours in CATALOG_METHODS),
    ]


def _same_session(session: Any) -> Any:
    return session


def _session_of_catalog(catalog: Any) -> Any:
    return catalog._sparkSession


def _stop(names: SessionNames, plain: Callable[..., Any], spark: Any) -> None:
    """Stop a session; what its threads have begun is rolled back."""
    for lake in names.attached.values():
        lake.transactions.close()
    plain(spark)


def _own_builder(kind: type, names: SessionNames, plain: Callable[..., Any], owner: Any) -> Any:
    """Spark's reader or writer, of a class of ours that remembers what it is asked for."""
    made = plain(owner)
    theirs: Any = type(made)
    made.__class__ = _subclass(kind, theirs)
    made.begin(names, owner)
    return made


def _into_table(
    kind: type,
    names: SessionNames,
    plain: Callable[..., Any],
    frame: Any,
    table: str,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """A writer to a table of a lake, or Spark's own where the table is no lake's."""
    parts = names.parts_of(table)
    if parts is None:
        return plain(frame, table, *args, **kwargs)
    spark_kind = plain.__globals__[kind.SPARK_KIND]  # type: ignore[attr-defined]
    return _subclass(kind, spark_kind)(names, frame, parts, *args, **kwargs)


@cache
def _subclass(kind: Any, spark_kind: Any) -> Any:
    """A subclass of Spark's class that has the methods of ours first."""
    members = {"__module__": spark_kind.__module__, "__doc__": spark_kind.__doc__}
    return type(spark_kind.__name__, (kind, spark_kind), members)
