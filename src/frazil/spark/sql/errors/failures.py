"""Errors of Spark in the user's words: the names that they wrote, and places in their text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from pyspark.errors import AnalysisException, ParseException, PySparkException

from frazil.errors import FrazilError, SqlSyntaxError
from frazil.spark.session.messages import without_plan

_CONDITION: Final = re.compile(r"^\[[A-Z0-9_.]+\] ")


@contextmanager
def in_the_users_words(
    names: Mapping[str, str], text: str = "", changes: Sequence[tuple[int, int, str]] = ()
) -> Iterator[None]:
    """Raise errors of Spark with the user's names in place of ours.

    Args:
        names: what the user wrote, by our names.
        text: the user's text.
        changes: what was replaced in it: from where to where, and by what.

    Raises:
        AnalysisException: short, with its condition and the place in the text.
        FrazilError: what was raised, with the user's names.
    """
    try:
        yield
    except AnalysisException as error:
        said = _CONDITION.sub("", _renamed_text(without_plan(error), names))
        place = place_told(error, text, changes)
        raise AnalysisException(
            message=f"{said}{place}",
            errorClass=error.getCondition(),
            messageParameters=error.getMessageParameters(),
        ) from None
    except FrazilError as error:
        error.args = tuple(_renamed_text(a, names) if isinstance(a, str) else a for a in error.args)
        raise


@contextmanager
def in_the_view(name: str) -> Iterator[None]:
    """Raise errors of Spark about a view's query with the name of the view.

    Raises:
        AnalysisException, ParseException: what was raised.
        SqlSyntaxError: the same over Connect.
    """
    try:
        yield
    except (AnalysisException, ParseException) as error:
        said = _CONDITION.sub("", without_plan(error))
        # Those of the virtual machine are classes of their own, which are made otherwise.
        kind = ParseException if isinstance(error, ParseException) else AnalysisException
        raise kind(
            message=f"{said} (in the view {name})",
            errorClass=error.getCondition(),
            messageParameters=error.getMessageParameters(),
        ) from None
    except SqlSyntaxError as error:
        raise SqlSyntaxError(f"{error} (in the view {name})") from None


def _renamed_text(said: str, names: Mapping[str, str]) -> str:
    for ours, theirs in names.items():
        said = said.replace(ours, theirs)
    return said


def place_in_the_users_text(
    error: PySparkException, changes: Sequence[tuple[int, int, str]]
) -> int:
    """Return where in the user's text an error is about; -1 where it does not tell.

    Args:
        changes: what was replaced in it: from where to where, and by what.
    """
    contexts = [each for each in error.getQueryContext() if hasattr(each, "startIndex")]
    if not contexts:
        return -1
    try:
        at = int(contexts[0].startIndex())
    except Exception:  # A context of a DataFrame has no place in a text.
        return -1
    for start, stop, new in sorted(changes):
        if at < start:
            break
        at = max(start, at - len(new) + (stop - start))
    return at


def place_told(
    error: PySparkException, text: str, changes: Sequence[tuple[int, int, str]] = ()
) -> str:
    """Return where in the user's text an error is about, as messages end; see above."""
    at = place_in_the_users_text(error, changes) if text else -1
    if at < 0:
        return ""
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return f" (line {line}, column {column})"
