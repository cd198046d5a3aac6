"""Which session keeps lists of files on the driver's disk, whatever keeps those of its streams."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import SparkSession

from frazil.spark.session.by_session import BySession

MANAGER_SETTING: Final = "spark.sql.streaming.checkpointFileManagerClass"
"""Session setting of Spark: what keeps the lists of files of its streams."""

_FOR_LOCAL_DISKS: Final = (
    "FileContextBasedCheckpointFileManager",
    "FileSystemBasedCheckpointFileManager",
)


def names_manager(spark: SparkSession) -> bool:
    """Whether the session keeps lists of files by something that may know no local disk."""
    manager = spark.conf.get(MANAGER_SETTING, None) or ""
    return bool(manager) and manager.rpartition(".")[2] not in _FOR_LOCAL_DISKS


def session_of_lists(spark: SparkSession) -> Any:
    """Return a session of the virtual machine that keeps lists of files on the driver's disk."""
    session: Any = spark
    return (
        _PLAIN.get_or_make(spark, _plain_session)
        if names_manager(spark)
        else session._jsparkSession
    )


def _plain_session(spark: SparkSession) -> Any:
    session: Any = spark
    made = session._jsparkSession.newSession()
    made.conf().unset(MANAGER_SETTING)
    return made


_PLAIN: Final = BySession[Any]()
