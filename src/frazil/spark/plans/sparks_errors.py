"""Errors of a lake as those of Spark that programs wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pyspark.errors import AnalysisException, PySparkException

from frazil.errors import (
    FrazilError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from frazil.format.predicates.sql.quoting import quote_name_always

SYNTAX_ERROR: Final = "PARSE_SYNTAX_ERROR"
"""Spark's condition for words that cannot be read."""

UNRESOLVED_COLUMN: Final = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
"""Spark's condition for a column that is not there."""

_CONDITIONS: Final[tuple[tuple[type[FrazilError], str], ...]] = (
    (NoSuchTableError, "TABLE_OR_VIEW_NOT_FOUND"),
    (TableAlreadyExistsError, "TABLE_OR_VIEW_ALREADY_EXISTS"),
    (NoSuchNamespaceError, "SCHEMA_NOT_FOUND"),
    (NamespaceAlreadyExistsError, "SCHEMA_ALREADY_EXISTS"),
    (NamespaceNotEmptyError, "SCHEMA_NOT_EMPTY"),
    (NoSuchViewError, "VIEW_NOT_FOUND"),
    (ViewAlreadyExistsError, "VIEW_ALREADY_EXISTS"),
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
        if condition is None or isinstance(error, SparksToo):
            raise
        raise AnalysisException(
            message=str(error), errorClass=condition, messageParameters={}
        ) from error


def condition_of(error: BaseException) -> str | None:
    """Return Spark's condition for an error of what is there and what is not; None for others."""
    return next((name for kind, name in _CONDITIONS if isinstance(error, kind)), None)


class SparksToo(PySparkException):
    """An error of a lake that is one of Spark's as well, with Spark's condition.

    Each has the class of the lake's error and that of Spark's; see `sparks_too`.
    """

    def __init__(
        self,
        error: FrazilError,
        kind: type[PySparkException],
        condition: str,
        parameters: Mapping[str, str],
    ) -> None:
        PySparkException.__init__(
            self, message=str(error), errorClass=condition, messageParameters=dict(parameters)
        )
        self.args = error.args
        self._made_of = (error, kind, condition, dict(parameters))

    def __reduce__(self) -> Any:
        return sparks_too, self._made_of


def sparks_too(
    error: FrazilError,
    kind: type[PySparkException],
    condition: str,
    parameters: Mapping[str, str],
) -> FrazilError:
    """Return an error of a lake as one that is Spark's too.

    Args:
        kind: Spark's class.
        condition: Spark's condition.
        parameters: all that Spark's text of the condition names; or none, then it is not used.
    """
    made = _CLASSES.get((type(error), kind))
    if made is None:
        bases = (SparksToo, type(error), kind)
        made = type(type(error).__name__, bases, {"__module__": type(error).__module__})
        _CLASSES[type(error), kind] = made
    both: FrazilError = made(error, kind, condition, parameters)
    return both


def unresolved_column(error: FrazilError, name: str, known: Sequence[str]) -> FrazilError:
    """Return an error of a column that is not there as one that is Spark's too.

    Args:
        known: the names of the columns that are there.
    """
    quoted = [quote_name_always([each]) for each in (name, *known)]
    said = {"objectName": quoted[0], "proposal": ", ".join(quoted[1:])}
    return sparks_too(error, AnalysisException, UNRESOLVED_COLUMN, said)


_CLASSES: Final[dict[tuple[type[FrazilError], type[PySparkException]], Any]] = {}
"""The classes of errors of both kinds, each of which is called as the lake's."""
