"""What a procedure takes, and the arguments of a call as Python values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Final, TypeAlias

from sqlglot import exp

from frazil.errors import PredicateError, ProcedureError
from frazil.format.predicates.sql.parse import sql_tree
from frazil.format.predicates.sql.quoting import TypedText
from frazil.format.predicates.sql.sql_literals import (
    NOT_A_LITERAL,
    literal_value,
    without_parentheses,
)
from frazil.spark.procedures.statement import CallStatement

Arguments: TypeAlias = Mapping[str, Any]
"""The values of all parameters by name; None where nothing is given."""

Evaluate: TypeAlias = Callable[[str], Any]
"""Gives the value of a constant SQL expression that is no literal."""


class ArgumentKind(StrEnum):
    """The type of a parameter, by Spark's name."""

    TEXT = "string"
    INT = "int"
    LONG = "bigint"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    TEXTS = "array<string>"
    LONGS = "array<bigint>"
    TEXT_MAP = "map<string,string>"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a procedure.

    Attributes:
        name: in lower case.
        kind: its type.
        is_required: whether a call has to give it.
    """

    name: str
    kind: ArgumentKind = ArgumentKind.TEXT
    is_required: bool = False

    def __str__(self) -> str:
        text = f"{self.name} => {self.kind}"
        return text if self.is_required else f"[{text}]"


@dataclass(frozen=True, slots=True)
class Signature:
    """A procedure's name and what it takes, in order."""

    name: str
    parameters: tuple[Parameter, ...]

    def __str__(self) -> str:
        return f"system.{self.name}({', '.join(map(str, self.parameters))})"


def arguments_of(signature: Signature, call: CallStatement, evaluate: Evaluate) -> Arguments:
    """Return the values that a call gives to parameters; names may be in any case.

    Args:
        signature: what the procedure takes.
        call: the call.
        evaluate: for expressions such as ``current_timestamp() - interval 7 days``.

    Raises:
        ProcedureError: too many arguments, an unknown or repeated name, a missing argument, or a
            value of another type. The message has the signature.
    """
    given: dict[str, str] = {}
    parameters = {parameter.name: parameter for parameter in signature.parameters}
    if len(call.positional) > len(parameters):
        raise ProcedureError(
            f"{len(call.positional)} arguments are too many for {signature.name}: it is {signature}"
        )
    for parameter, text in zip(signature.parameters, call.positional, strict=False):
        given[parameter.name] = text
    for written, text in call.named:
        name = written.lower()
        if name not in parameters:
            near = get_close_matches(name, parameters, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ProcedureError(
                f"{signature.name} has no argument {written!r}{hint}: it is {signature}"
            )
        if name in given:
            raise ProcedureError(f"{signature.name} is given {name} twice: it is {signature}")
        given[name] = text
    values = {
        name: _value(signature, parameters[name], text, evaluate) for name, text in given.items()
    }
    missing = [p.name for p in signature.parameters if p.is_required and values.get(p.name) is None]
    if missing:
        raise ProcedureError(f"{signature.name} needs {' and '.join(missing)}: it is {signature}")
    return {name: values.get(name) for name in parameters}


def _value(signature: Signature, parameter: Parameter, text: str, evaluate: Evaluate) -> Any:
    try:
        try:
            value = _literal_value(sql_tree(text))
        except _NoLiteralError:
            value = evaluate(text)
        return None if value is None else _READ[parameter.kind](value)
    except PredicateError as error:
        raise ProcedureError(f"{parameter.name} of {signature.name}: {error}") from error
    except _WrongTypeError as error:
        raise ProcedureError(
            f"{parameter.name} of {signature.name} is {text}, which is no {parameter.kind}: "
            f"it is {signature}"
        ) from error


class _WrongTypeError(Exception):
    """A value that a parameter cannot take."""


class _NoLiteralError(Exception):
    """An argument that Spark evaluates."""


def _literal_value(node: exp.Expression) -> Any:
    """The Python value of a literal, or of an array or map of literals."""
    node = without_parentheses(node)
    match node:
        case exp.Array():
            return [_literal_value(part) for part in node.expressions]
        case exp.VarMap():
            keys, values = (
                [_literal_value(part) for part in node.args[side].expressions]
                for side in ("keys", "values")
            )
            if len(keys) != len(values) or len(set(map(repr, keys))) != len(keys):
                raise _WrongTypeError
            return dict(zip(keys, values, strict=True))
    value = literal_value(node)
    if value is NOT_A_LITERAL:
        raise _NoLiteralError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _WrongTypeError
    return value


def _whole_number(bits: int) -> Callable[[Any], int]:
    limit = 1 << (bits - 1)

    def read(value: Any) -> int:
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not -limit <= value < limit:
            raise _WrongTypeError
        return value

    return read


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _WrongTypeError
    return value


def _moment(value: Any) -> str | date:
    """A point in time as tables take it: text without a zone is in the session's."""
    if isinstance(value, TypedText) and value.kind != "TIME":
        return value.text
    if isinstance(value, str | datetime | date):
        return value
    raise _WrongTypeError


def _list_of(read: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    def read_all(value: Any) -> list[Any]:
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise _WrongTypeError
        return [read(part) for part in value]

    return read_all


def _text_map(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise _WrongTypeError
    return {_text(name): _as_text(part) for name, part in value.items()}


def _as_text(value: Any) -> str:
    """Text, or a number or a truth value as Spark casts it to text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return _text(value)


_READ: Final[Mapping[ArgumentKind, Callable[[Any], Any]]] = {
    ArgumentKind.TEXT: _text,
    ArgumentKind.INT: _whole_number(32),
    ArgumentKind.LONG: _whole_number(64),
    ArgumentKind.BOOLEAN: _boolean,
    ArgumentKind.TIMESTAMP: _moment,
    ArgumentKind.TEXTS: _list_of(_text),
    ArgumentKind.LONGS: _list_of(_whole_number(64)),
    ArgumentKind.TEXT_MAP: _text_map,
}
