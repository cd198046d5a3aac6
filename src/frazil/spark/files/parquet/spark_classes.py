"""Where a Spark has the classes by which it writes and lists files: some moved between releases.

All questions of that kind are asked here. What a virtual machine raises that lacks a class or
refuses a call is `NO_ANSWER`; whoever asks has another way then.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from frazil.spark.gateway_errors import Py4JError
from frazil.spark.session.by_session import BySession

NO_ANSWER: Final = (Py4JError, PySparkException, AttributeError, TypeError, ValueError)
"""What asking for a class or a method raises that is not there, or not for everybody."""

_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
_HOMES: Final = ("", "sinks.", "runtime.", "checkpointing.")

MANAGER_SETTING: Final = "spark.sql.streaming.checkpointFileManagerClass"
"""Session setting of Spark: what keeps the lists of files of its streams."""

_FOR_LOCAL_DISKS: Final = (
    "FileContextBasedCheckpointFileManager",
    "FileSystemBasedCheckpointFileManager",
)


def class_named(jvm: Any, name: str) -> Any:
    """Return Java's class of that name; `NO_ANSWER` without one."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return jvm.java.lang.Class.forName(name, True, loader)


def module_named(jvm: Any, name: str) -> Any:
    """Return Scala's object of that name; `NO_ANSWER` without one."""
    return class_named(jvm, f"{name}$").getField("MODULE$").get(None)


def streaming_class(jvm: Any, name: str) -> Any:
    """Return what makes objects of a class of Spark's file streams; `NO_ANSWER` without one."""
    for home in _HOMES:
        full_name = f"{_STREAMING}.{home}{name}"
        try:
            class_named(jvm, full_name)
        except NO_ANSWER:
            continue
        return getattr(jvm, full_name)
    raise ValueError(f"this Spark has no {name}")


def names_manager(spark: SparkSession) -> bool:
    """Whether the session keeps lists of files by something that may know no local disk."""
    manager = spark.conf.get(MANAGER_SETTING, None) or ""
    return bool(manager) and manager.rpartition(".")[2] not in _FOR_LOCAL_DISKS


def session_of_lists(spark: SparkSession) -> Any:
    """Return a session of the virtual machine that keeps lists of files on the driver's disk."""
    session: Any = spark
    return _PLAIN.get_or_make(spark, _plain) if names_manager(spark) else session._jsparkSession


def _plain(spark: SparkSession) -> Any:
    session: Any = spark
    made = session._jsparkSession.newSession()
    made.conf().unset(MANAGER_SETTING)
    return made


_PLAIN: Final = BySession[Any]()
