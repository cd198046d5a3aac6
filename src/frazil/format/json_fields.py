"""Reading JSON objects field by field with type checks, so that broken input names its field."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from frazil.errors import InvalidFormatError, InvalidMetadataError

T = TypeVar("T")

FREE_TEXT = frozenset({"summary", "properties"})
"""Objects whose names and values are anybody's."""

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1
MAX_UNSIGNED_LONG = 2**64 - 1
MAX_MILLISECONDS = MAX_LONG // 1000


def load_json(
    data: bytes,
    *,
    what: str,
    file: str | None = None,
    error: type[InvalidFormatError] = InvalidMetadataError,
) -> Any:
    """The JSON value of UTF-8 bytes; `error` where they are no JSON.

    Halves of surrogate pairs are no text that can be stored or shown: only in `FREE_TEXT`, which
    decides nothing, they stay.
    """
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as cause:
        raise error(f"{what} is not UTF-8 text: {cause}", file=file) from cause
    except RecursionError as cause:
        raise error(f"{what} is nested too deeply", file=file) from cause
    except ValueError as cause:
        raise error(f"{what} is not JSON: {cause}", file=file) from cause
    if _SURROGATE.search(data):
        _check_text(value, file, error)
    return value


class JsonObject:
    """A JSON object that is read with type checks.

    Every reader raises `error` with the dotted name of the field and the file. The optional readers
    treat a null as an absent field.
    """

    __slots__ = ("error", "fields", "file", "path")

    def __init__(
        self,
        value: Any,
        *,
        path: str = "",
        file: str | None = None,
        error: type[InvalidFormatError] = InvalidMetadataError,
    ) -> None:
        self.path = path
        self.file = file
        self.error = error
        if not isinstance(value, dict):
            raise error(
                f"expected a JSON object, found {shown_value(value)}", file=file, field=path or None
            )
        self.fields: dict[str, Any] = value

    def __contains__(self, name: str) -> bool:
        return self.fields.get(name) is not None

    def field_path(self, name: str) -> str:
        """The dotted name of a field of this object."""
        return f"{self.path}.{name}" if self.path else name

    def error_of(self, name: str, message: str) -> InvalidFormatError:
        """The error that says what is wrong with a field."""
        return self.error(message, file=self.file, field=self.field_path(name))

    def check_unique(self, name: str, ids: Iterable[int]) -> None:
        """Refuse a list of objects of which two have one id."""
        seen: set[int] = set()
        for one in ids:
            if one in seen:
                raise self.error_of(name, f"the id {one} occurs twice")
            seen.add(one)

    def wrong_kind_error(self, name: str, what: str, value: Any) -> InvalidFormatError:
        """The error for a value of the wrong kind, or for an absent one."""
        if value is None:
            return self.error_of(name, f"the required field is missing; expected {what}")
        return self.error_of(name, f"expected {what}, found {shown_value(value)}")

    def _of_kind(self, name: str, kind: type[T], what: str) -> T:
        value = self.fields.get(name)
        if not isinstance(value, kind):
            raise self.wrong_kind_error(name, what, value)
        return value

    def string(self, name: str) -> str:
        """A required string."""
        return self._of_kind(name, str, "a string")

    def optional_string(self, name: str) -> str | None:
        """A string or None."""
        return self.string(name) if name in self else None

    def integer(self, name: str) -> int:
        """A required whole number of 32 bits."""
        return self._whole_number(name, MAX_INT, "a 32-bit whole number")

    def optional_integer(self, name: str) -> int | None:
        """A whole number of 32 bits or None."""
        return self.integer(name) if name in self else None

    def long(self, name: str) -> int:
        """A required whole number of 64 bits."""
        return self._whole_number(name, MAX_LONG, "a 64-bit whole number")

    def optional_long(self, name: str) -> int | None:
        """A whole number of 64 bits or None."""
        return self.long(name) if name in self else None

    def moment(self, name: str) -> int:
        """A required time in milliseconds, of which the microseconds have 64 bits too."""
        return self._whole_number(name, MAX_MILLISECONDS, "milliseconds since the epoch")

    def snapshot_id(self, name: str) -> int:
        """A required snapshot id: 64 bits; real tables hold unsigned ones too."""
        return self._whole_number(name, MAX_UNSIGNED_LONG, "a 64-bit snapshot id")

    def optional_snapshot_id(self, name: str) -> int | None:
        """A snapshot id or None."""
        return self.snapshot_id(name) if name in self else None

    def _whole_number(self, name: str, highest: int, what: str) -> int:
        return self._checked_number(name, self.fields.get(name), highest, what)

    def _checked_number(self, name: str, value: Any, highest: int, what: str) -> int:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or not max(-highest - 1, -MAX_LONG - 1) <= value <= highest:
            raise self.wrong_kind_error(name, what, value)
        return int(value)

    def array(self, name: str) -> list[Any]:
        """A required array."""
        return self._of_kind(name, list, "an array")

    def integers(self, name: str) -> tuple[int, ...]:
        """A required array of 32-bit whole numbers."""
        return self._numbers(name, MAX_INT, "an array of 32-bit whole numbers")

    def snapshot_ids(self, name: str) -> tuple[int, ...]:
        """A required array of snapshot ids."""
        return self._numbers(name, MAX_UNSIGNED_LONG, "an array of snapshot ids")

    def _numbers(self, name: str, highest: int, what: str) -> tuple[int, ...]:
        values = self.array(name)
        return tuple(self._checked_number(name, value, highest, what) for value in values)

    def strings(self, name: str) -> tuple[str, ...]:
        """A required array of strings."""
        values = self.array(name)
        for value in values:
            if not isinstance(value, str):
                raise self.wrong_kind_error(name, "an array of strings", value)
        return tuple(values)

    def string_map(self, name: str) -> dict[str, str]:
        """An object of strings; absent is empty."""
        value = self._of_kind(name, dict, "an object of strings") if name in self else {}
        for key, text in value.items():
            if not isinstance(text, str):
                raise self.error_of(
                    f"{name}.{key}", f"expected a string, found {shown_value(text)}"
                )
        return dict(value)

    def object(self, name: str) -> JsonObject:
        """A required object."""
        value = self._of_kind(name, dict, "a JSON object")
        return self._child(value, self.field_path(name))

    def objects(self, name: str) -> list[JsonObject]:
        """An array of objects; absent is empty."""
        if name not in self:
            return []
        where = self.field_path(name)
        return [
            self._child(value, f"{where}[{position}]")
            for position, value in enumerate(self.array(name))
        ]

    def object_map(self, name: str) -> dict[str, JsonObject]:
        """An object of objects; absent is empty."""
        if name not in self:
            return {}
        child = self.object(name)
        return {key: child.object(key) for key in child.fields}

    def value_of(self, name: str, parse: Callable[[Any], T]) -> T:
        """What `parse` makes of a required value; its complaints get the field and the file."""
        value = self.fields.get(name)
        if value is None:
            raise self.wrong_kind_error(name, "a value", None)
        try:
            return parse(value)
        except RecursionError as cause:
            raise self.error_of(name, "the value is nested too deeply") from cause
        except ValueError as cause:
            reason = cause.reason if isinstance(cause, InvalidFormatError) else cause
            raise self.error_of(name, str(reason)) from cause

    def parsed_list(self, name: str, parse: Callable[[Any], T]) -> tuple[T, ...]:
        """What `parse` makes of every element of a required array."""
        where = JsonObject(
            {f"[{position}]": value for position, value in enumerate(self.array(name))},
            path=self.field_path(name),
            file=self.file,
            error=self.error,
        )
        return tuple(where.value_of(position, parse) for position in where.fields)

    def _child(self, value: Any, path: str) -> JsonObject:
        return JsonObject(value, path=path, file=self.file, error=self.error)


def _check_text(value: Any, file: str | None, error: type[InvalidFormatError]) -> None:
    waiting = [("", value)]
    while waiting:
        path, one = waiting.pop()
        if isinstance(one, str) and not is_text(one):
            raise error(
                f"{shown_value(one)} is no text: it holds half of a surrogate pair",
                file=file,
                field=path,
            )
        if isinstance(one, list):
            waiting += [(f"{path}[{place}]", item) for place, item in enumerate(one)]
        elif isinstance(one, dict):
            inside = f"{path}." if path else ""
            waiting += [(path, name) for name in one]
            waiting += [
                (inside + json.dumps(name)[1:-1], item)
                for name, item in one.items()
                if name not in FREE_TEXT
            ]


def is_text(value: str) -> bool:
    """Whether a string can be stored as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown_value(value: Any) -> str:
    """A value for an error message, cut where it is long."""
    text = json.dumps(value, default=str) if not isinstance(value, dict | list) else ""
    if isinstance(value, dict):
        text = "an object"
    elif isinstance(value, list):
        text = f"an array of {len(value)}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def json_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by their names in JSON, which have dashes."""
    found = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return {name.replace("_", "-"): _json_value(each) for name, each in found.items()}


def _json_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    return value.to_json() if hasattr(value, "to_json") else value


def without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object without the fields that are None: absent is how optional is written."""
    return {name: value for name, value in fields.items() if value is not None}
