"""The table properties of each row-level command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from frazil.format.properties import table as P
from frazil.format.properties.kinds import Property


@dataclass(frozen=True, slots=True)
class CommandProperties:
    """The properties of one command."""

    mode: Property[str]
    isolation: Property[str]


COMMANDS: Final[Mapping[str, CommandProperties]] = {
    "delete": CommandProperties(P.DELETE_MODE, P.DELETE_ISOLATION),
    "update": CommandProperties(P.UPDATE_MODE, P.UPDATE_ISOLATION),
    "merge": CommandProperties(P.MERGE_MODE, P.MERGE_ISOLATION),
}
