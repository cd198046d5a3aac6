"""Columns as DDL text, ``id bigint not null, city string``, read without Spark.

The text means what it means in Spark's ``StructType.fromDDL``, and becomes what Iceberg has for it.
Types for which Spark has no word go by Iceberg's: ``uuid``, ``fixed(16)``, ``timestamp_ns``.
"""

from __future__ import annotations

import re
from itertools import count
from typing import Final

from frazil.errors import UnsupportedError, ValidationError
from frazil.format.schema.ids import assign_fresh_ids
from frazil.format.schema.schema import Schema
from frazil.format.types import (
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from frazil.format.types.forms import SQL_TYPES, form_of

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<quoted>`(?:[^`]|``)+`)
    |(?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<word>[A-Za-z0-9_]+)
    |(?P<mark>[<>()\[\],:])
    |(?P<other>\S))""",
    re.VERBOSE,
)
_DECIMALS: Final = form_of(DecimalType(1, 0)).sql
_FIXED: Final = form_of(FixedType(1)).sql
_ENDS: Final = {"(": ")", "[": "]"}
_BINARY: Final = "utf8_binary"
"""The collation that is none: it compares bytes."""


def schema_of_ddl(text: str) -> Schema:
    """Return the schema whose columns a DDL text names, with fresh ids."""
    parser = _Parser(text)
    fields = parser.fields(end="", separator="")
    if not fields:
        raise ValidationError(
            "no columns are given: write them as 'id bigint not null, city string'"
        )
    return assign_fresh_ids(Schema(tuple(fields)))


def type_of_ddl(text: str) -> IcebergType:
    """Return the type that a DDL text is, as ``struct<a: int, b: array<string>>``.

    Its fields have ids, which are to be given anew.
    """
    return _Parser(text, what="type").only_type()


class _Parser:
    """Reads from the left; `kind` and `value` are what comes next, both empty at the end."""

    def __init__(self, text: str, *, what: str = "columns") -> None:
        self._text = text
        self._what = what
        self._at = 0
        self._ids = count(1)
        self.kind, self.value = "", ""
        self._advance()

    def only_type(self) -> IcebergType:
        """The type that is the whole text."""
        found = self._type()
        if self.kind:
            raise self._syntax_error("nothing else")
        return found

    def fields(self, *, end: str, separator: str) -> list[NestedField]:
        """Columns up to a closing mark, or to the end of the text."""
        found: list[NestedField] = []
        while self.value != end:
            if found:
                self._take(",")
            found.append(self._field(separator))
        return found

    def _field(self, separator: str) -> NestedField:
        if self.kind not in ("word", "quoted"):
            raise self._syntax_error("the name of a column")
        name = self._name()
        if separator and self.value == separator:
            self._advance()
        kind = self._type()
        required, comment = False, None
        while self.kind == "word":
            word = self.value.lower()
            if word == "not":
                self._advance()
                self._take("null")
                required = True
            elif word == "comment":
                self._advance()
                comment = self._string()
            else:
                raise self._syntax_error("NOT NULL, COMMENT or a comma")
        return NestedField(next(self._ids), name, kind, required, comment)

    def _type(self) -> IcebergType:
        name = self.value.lower()
        if self.kind != "word":
            raise self._syntax_error("a type")
        if name in SQL_TYPES:
            self._advance()
            if name == "time":
                self._numbers(1)
            return self._with_byte_collation(SQL_TYPES[name])
        if name in _DECIMALS:
            self._advance()
            numbers = self._numbers(2) or [10]
            return DecimalType(numbers[0], numbers[1] if len(numbers) > 1 else 0)
        if name in _FIXED:
            self._advance()
            return FixedType(self._length("[" if self.value == "[" else "("))
        if name in ("char", "character", "varchar"):
            self._advance()
            self._length("(")
            return self._with_byte_collation(StringType())
        if name in ("struct", "array", "map"):
            self._advance()
            return self._nested_type(name)
        raise self._syntax_error("a type that Spark and Iceberg know")

    def _with_byte_collation(self, kind: IcebergType) -> IcebergType:
        """A type whose collation, if one is said, compares bytes, since Iceberg knows none."""
        if isinstance(kind, StringType) and self.kind == "word" and self.value.lower() == "collate":
            self._advance()
            if self.value.lower() != _BINARY:
                raise UnsupportedError(
                    f"the collation {self.value}: Iceberg's texts are compared byte by byte; leave "
                    "COLLATE out, and say it in queries"
                )
            self._advance()
        return kind

    def _length(self, begin: str) -> int:
        numbers = self._numbers(1, begin)
        if not numbers:
            raise self._syntax_error("a length in parentheses")
        return numbers[0]

    def _nested_type(self, name: str) -> IcebergType:
        self._take("<")
        found: IcebergType
        if name == "struct":
            found = StructType(tuple(self.fields(end=">", separator=":")))
        elif name == "array":
            found = ListType(next(self._ids), self._type())
        else:
            key = self._type()
            self._take(",")
            found = MapType(next(self._ids), key, next(self._ids), self._type())
        self._take(">")
        return found

    def _numbers(self, most: int, begin: str = "(") -> list[int]:
        found: list[int] = []
        if self.value != begin:
            return found
        self._advance()
        while True:
            if not self.value.isdigit() or len(found) == most:
                raise self._syntax_error(
                    "a number" if len(found) < most else "a closing parenthesis"
                )
            found.append(int(self.value))
            self._advance()
            if self.value == _ENDS[begin]:
                break
            self._take(",")
        self._advance()
        return found

    def _name(self) -> str:
        name = self.value[1:-1].replace("``", "`") if self.kind == "quoted" else self.value
        self._advance()
        return name

    def _string(self) -> str:
        if self.kind != "string":
            raise self._syntax_error("a text in quotation marks")
        quote, text = self.value[0], self.value[1:-1]
        self._advance()
        return re.sub(r"\\(.)", r"\1", text.replace(quote * 2, quote))

    def _take(self, expected: str) -> None:
        if self.kind == "string" or self.value.lower() != expected:
            raise self._syntax_error(expected.upper() if expected.isalpha() else repr(expected))
        self._advance()

    def _advance(self) -> None:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            self.kind, self.value = "", ""
            self._at = len(self._text)
            return
        self.kind = str(found.lastgroup)
        self.value = found[self.kind]
        self._at = found.end()

    def _syntax_error(self, expected: str) -> ValidationError:
        met = repr(self.value) if self.value else "the end"
        before = self._text[: self._at - len(self.value)].rstrip()
        after = f" after {before[-40:]!r}" if before else ""
        return ValidationError(
            f"the {self._what} {self._text!r} {'has' if self._what == 'type' else 'have'} "
            f"{met}{after}: {expected} belongs there"
        )
