"""Names that Glue can hold: one level of lower-case letters, digits and underscores, as in Java."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from frazil.catalog.identifiers import Identifier, shown
from frazil.errors import ValidationError

_ALLOWED: Final = re.compile(r"[a-z0-9_]+")
_LONGEST_DATABASE: Final = 252
_LONGEST_TABLE: Final = 255


@dataclass(frozen=True, slots=True)
class GlueNames:
    """The rule for names.

    Attributes:
        skips_validation: whether the service alone decides (``glue.skip-name-validation``); a
            namespace has one level all the same.
    """

    skips_validation: bool = False

    def fault_of_namespace(self, namespace: Identifier) -> str | None:
        """Return why Glue cannot hold a namespace of that name, None if it can."""
        if len(namespace) != 1:
            return f"a namespace in Glue has one level, {shown(namespace)} has {len(namespace)}"
        return self._fault(namespace[0], "database", _LONGEST_DATABASE)

    def fault_of_table(self, name: Identifier) -> str | None:
        """Return why Glue cannot hold a table of that name, None if it can."""
        return self.fault_of_namespace(name[:-1]) or self._fault(name[-1], "table", _LONGEST_TABLE)

    def require_namespace(self, namespace: Identifier) -> None:
        """Check the name of a new namespace; ValidationError says what is wrong with it."""
        _require(self.fault_of_namespace(namespace))

    def require_table(self, name: Identifier) -> None:
        """Check the name of a new table; ValidationError says what is wrong with it."""
        _require(self.fault_of_table(name))

    def _fault(self, name: str, what: str, longest: int) -> str | None:
        if self.skips_validation or (_ALLOWED.fullmatch(name) and len(name) <= longest):
            return None
        wrong = sorted({each for each in name if not _ALLOWED.fullmatch(each)})
        reason = f"it holds {wrong}" if wrong else f"it has {len(name)} characters"
        return (
            f"Glue cannot hold a {what} named {name!r}, since {reason}: use 1 to {longest} "
            f"lower-case letters, digits and underscores"
        )


def _require(fault: str | None) -> None:
    if fault is not None:
        raise ValidationError(fault)
