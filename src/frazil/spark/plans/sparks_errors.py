"""Errors of a lake as those of Spark that programs wait for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.errors import AnalysisException

from frazil.errors import (
    FrazilError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)

_CONDITIONS: Final[tuple[tuple[type[FrazilError], str], ...]] = (
    (NoSuchTableError, "TABLE_OR_VIEW_NOT_FOUND"),
    (TableAlreadyExistsError, "TABLE_OR_VIEW_ALREADY_EXISTS"),
    (NoSuchNamespaceError, "SCHEMA_NOT_FOUND"),
    (NamespaceAlreadyExistsError, "SCHEMA_ALREADY_EXISTS"),
    (NamespaceNotEmptyError, "SCHEMA_NOT_EMPTY"),
)


@contextmanager
def sparks_errors() -> Iterator[None]:
    """Raise errors about what is there and what is not as Spark does.

    Programs look for a table by catching an AnalysisException. Other errors stay as they are.

    Raises:
        AnalysisException: with Spark's condition; its cause is the error of the lake.
    """
    try:
        yield
    except FrazilError as error:
        condition = condition_of(error)
        if condition is None:
            raise
        raise AnalysisException(
            message=str(error), errorClass=condition, messageParameters={}
        ) from error


def condition_of(error: BaseException) -> str | None:
    """Return Spark's condition for an error of what is there and what is not; None for others."""
    return next((name for kind, name in _CONDITIONS if isinstance(error, kind)), None)
