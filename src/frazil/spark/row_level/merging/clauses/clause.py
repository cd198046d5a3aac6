"""The clauses of a merge, in the order given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pyspark.sql import Column

from frazil.errors import ValidationError


class When(StrEnum):
    """Which rows a clause is about."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    BY_SOURCE = "not matched by source"


class Do(StrEnum):
    """What a clause does."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One clause.

    Attributes:
        values: the assignments; None for a delete, and where every column takes the value of the
            source's column of its name.
    """

    when: When
    do: Do
    condition: str | Column | None = None
    values: Mapping[str, Any] | None = None

    @property
    def takes_all(self) -> bool:
        """Whether every column takes the source's."""
        return self.do is not Do.DELETE and self.values is None

    def __str__(self) -> str:
        condition = "" if self.condition is None else f" and {self.condition}"
        return f"when {self.when}{condition} then {self.do}"


def check_clauses(clauses: Sequence[Clause]) -> None:
    """Check that there are clauses and that each can be reached.

    Raises:
        ValidationError: there is none, or one stands behind another without a condition.
    """
    if not clauses:
        raise ValidationError(
            "the merge has no clause; say what happens to rows, as with when_matched_update_all()"
        )
    for when in When:
        of_kind = [clause for clause in clauses if clause.when is when]
        for clause in of_kind[:-1]:
            if clause.condition is None:
                raise ValidationError(
                    f"{clause!s}: a clause without a condition must be the last of its kind, since "
                    "those after it are never reached"
                )
