"""What the text of a table property may be, and what it means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from frazil.errors import ConfigurationError, FrazilError
from frazil.format.properties.metrics_mode import MetricsMode, metrics_mode_of
from frazil.format.schema.name_mapping import NameMapping

Value = TypeVar("Value")

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_LONGEST_SHOWN = 80
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Kind(Generic[Value]):
    """The values that a property can have.

    Attributes:
        expected: what the text must be, as a message goes on after "it must be".
        parse: the value of a text; ValueError where it has none.
    """

    expected: str
    parse: Callable[[str], Value]


@dataclass(frozen=True, slots=True)
class Property(Generic[Value]):
    """A table property: its name, what it may be, and what holds where it is not set."""

    name: str
    kind: Kind[Value]
    default: Value

    def of(self, properties: Mapping[str, str]) -> Value:
        """Return the value that a table's properties give."""
        text = properties.get(self.name)
        return self.default if text is None else value_of(self.kind, self.name, text)

    def of_or_default(self, properties: Mapping[str, str]) -> Value:
        """Return the value, the default where the text is not of this kind.

        For what must go on: reading, and what follows a swap that was sent.
        """
        try:
            return self.of(properties)
        except ConfigurationError:
            return self.default


@dataclass(frozen=True, slots=True)
class ColumnProperty(Generic[Value]):
    """A property of one column: its name is the prefix and the column's."""

    prefix: str
    kind: Kind[Value]

    def by_column(self, properties: Mapping[str, str]) -> dict[str, Value]:
        """Return the value of each column that the properties name."""
        return {
            name.removeprefix(self.prefix): value_of(self.kind, name, text)
            for name, text in properties.items()
            if name.startswith(self.prefix)
        }


def value_of(kind: Kind[Value], name: str, text: str) -> Value:
    """Return the value of a property's text."""
    try:
        return kind.parse(text)
    except ValueError as error:
        shown = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
        why = f" ({error})" if isinstance(error, FrazilError) else ""
        raise ConfigurationError(f"{name} is {shown!r}: it must be {kind.expected}{why}") from None


def whole_number(unit: str = "", *, smallest: int = 0, largest: int = INT_MAX) -> Kind[int]:
    """Return the kind of whole numbers between bounds; the largest is what Java's type holds."""

    def parse(text: str) -> int:
        if not _WHOLE_NUMBER.fullmatch(text) or not smallest <= int(text) <= largest:
            raise ValueError(text)
        return int(text)

    what = f"a whole number{f' of {unit}' if unit else ''}"
    return Kind(f"{what} from {smallest} to {largest}", parse)


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[_word(("true", "false"), text)]


def _word(words: tuple[str, ...], text: str) -> str:
    lowered = text.lower()
    if lowered not in words:
        raise ValueError(text)
    return lowered


def one_of(*words: str) -> Kind[str]:
    """Return the kind of some words, in any case."""
    return Kind(f"one of {', '.join(words)}", lambda text: _word(words, text))


def optional(kind: Kind[Value]) -> Kind[Value | None]:
    """Return the kind whose property has no value where it is not set."""
    return Kind(kind.expected, kind.parse)


def _share(text: str) -> float:
    share = float(text)
    if not 0 < share < 1:
        raise ValueError(text)
    return share


def _level(text: str) -> int | None:
    return None if text.lower() == "null" else whole_number().parse(text)


FLAG: Final = Kind("true or false", _flag)
SHARE: Final = Kind("a number between 0 and 1", _share)
TEXT: Final = Kind("text", str)
LEVEL: Final = Kind("a whole number from 0 on", _level)
METRICS_MODE: Final[Kind[MetricsMode]] = Kind(
    "none, counts, truncate(length) or full", metrics_mode_of
)
MAPPING: Final[Kind[NameMapping]] = Kind("a name mapping as JSON", NameMapping.from_json)
