"""Spark's failures to write a file as Frazil's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.errors import PySparkException

from frazil.errors import FrazilError, MissingFileError, SchemaMismatchError, StorageError
from frazil.spark.files.lost_files import lost_file
from frazil.spark.files.parquet.access import told_end
from frazil.spark.files.parquet.s3a import REFUSED, as_s3a
from frazil.spark.files.row_checks import value_problem
from frazil.spark.session.packages import packages_error
from frazil.spark.session.tasks import own_error

_JAVA: Final = re.compile(
    r"(?:java\.io|java\.nio\.file|org\.apache\.hadoop)\.[\w.$]*Exception\b[^\n]*"
    r"|ClassNotFoundException: Class org\.apache\.hadoop\.[^\n]*"
)
_OF_A_SOURCE: Final = "FAILED_READ_FILE"


def write_failure(error: BaseException, *, folder: str) -> FrazilError | None:
    """The error to raise for rows or a store that refuse; None where it is about neither.

    Args:
        folder: where the files were to go.
    """
    if not isinstance(error, Exception) or isinstance(error, FrazilError):
        return None
    text = as_s3a(str(error))
    problem = value_problem(text)
    if problem is not None:
        return SchemaMismatchError(f"{problem}; nothing was written")
    lost = lost_file(error)
    if lost is not None and not lost.path.startswith(folder):
        return MissingFileError(
            f"nothing was committed: the rows come from the file {lost.path} of the table at "
            f"{lost.table}, which does not exist. If it was removed after a DataFrame was made of "
            "it, make that anew; if the table still names it, its maintenance.check() tells what "
            "is lost"
        )
    own, java = own_error(error) or packages_error(error), _JAVA.search(text)
    if own is not None:
        kind, reason = type(own), str(own)
    elif java is not None and _OF_A_SOURCE not in text:
        ends = told_end(str(error)) if REFUSED.search(text) else ""
        by = f"; the catalog gave credentials{ends}" if ends else ""
        kind, reason = StorageError, f"{java.group()}{by}"
    else:
        return None
    return kind(f"the write to {folder} failed: {reason}; nothing was committed")


@contextmanager
def refusing_values() -> Iterator[None]:
    """Turn the stop of a value that a column cannot hold into Frazil's error.

    Raises:
        SchemaMismatchError: a check of a value stopped Spark in the block.
    """
    try:
        yield
    except PySparkException as error:
        problem = value_problem(str(error))
        if problem is None:
            raise
        raise SchemaMismatchError(f"{problem}; nothing was changed") from error
