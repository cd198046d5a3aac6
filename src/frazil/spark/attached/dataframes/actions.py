"""Actions of DataFrames: one that has outlived the files of a table says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from frazil.errors import MissingFileError
from frazil.spark.attached.names import SessionNames
from frazil.spark.attached.statements import Plain
from frazil.spark.files.lost_files import lost_file

ACTIONS: Final = (
    "checkpoint",
    "collect",
    "count",
    "foreach",
    "foreachPartition",
    "isEmpty",
    "localCheckpoint",
    "show",
    "tail",
    "toArrow",
    "toPandas",
)
"""What runs a DataFrame at once, by itself; the others call these."""


def run_action(_: SessionNames, plain: Plain, frame: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an action as Spark does.

    Raises:
        MissingFileError: a file of a table is gone.
    """
    with _naming_lost_files():
        return plain(frame, *args, **kwargs)


def iterate_rows(
    _: SessionNames, plain: Plain, frame: Any, *args: Any, **kwargs: Any
) -> Iterator[Any]:
    """Return the rows as Spark's `toLocalIterator`, which runs while they are taken.

    Raises:
        MissingFileError: a file of a table is gone.
    """
    with _naming_lost_files():
        rows = plain(frame, *args, **kwargs)
    return _rows_naming_lost_files(rows)


def _rows_naming_lost_files(rows: Iterator[Any]) -> Iterator[Any]:
    with _naming_lost_files():
        yield from rows


@contextmanager
def _naming_lost_files() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # Spark raises several kinds that share no base.
        lost = lost_file(error)
        if lost is None:
            raise
        raise MissingFileError(
            f"the file {lost.path} of the table at {lost.table} does not exist: it was removed "
            "after this DataFrame was made, as an expiry of snapshots, a rollback with a removal "
            "of orphan files, or DROP TABLE … PURGE does. Make the DataFrame anew; a tag keeps a "
            "snapshot's files"
        ) from error
