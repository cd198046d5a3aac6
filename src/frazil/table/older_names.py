"""Older names: they work as before, and are not shown beside the names that are documented."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

Place = TypeVar("Place")
Value = TypeVar("Value")
Parameters = ParamSpec("Parameters")


class OlderName(Generic[Place, Parameters, Value]):
    """A method of a namespace, also found where it was before.

    Args:
        namespace: the way from the table to the namespace, as `"inspect.dataframes"`.
        method: the method of the namespace's class.
    """

    def __init__(
        self, namespace: str, method: Callable[Concatenate[Place, Parameters], Value]
    ) -> None:
        self._find = attrgetter(f"{namespace}.{method.__name__}")
        self.__wrapped__ = method

    @overload
    def __get__(self, table: None, owner: type) -> Self: ...

    @overload
    def __get__(self, table: object, owner: type) -> Callable[Parameters, Value]: ...

    def __get__(self, table: object | None, owner: type) -> Self | Callable[Parameters, Value]:
        found: Callable[Parameters, Value] | None = None if table is None else self._find(table)
        return self if found is None else found


class OlderValue(Generic[Place, Value]):
    """A value that is found elsewhere by now."""

    def __init__(self, read: Callable[[Place], Value]) -> None:
        self._read = read

    @overload
    def __get__(self, table: None, owner: type) -> Self: ...

    @overload
    def __get__(self, table: Place, owner: type) -> Value: ...

    def __get__(self, table: Place | None, owner: type) -> Self | Value:
        return self if table is None else self._read(table)


class OlderNames:
    """What has older names: `dir()` and completion leave them out."""

    def __dir__(self) -> Iterable[str]:
        return [name for name in super().__dir__() if not self._is_older(name)]

    def _is_older(self, name: str) -> bool:
        found: Any = getattr(type(self), name, None)
        return isinstance(found, OlderName | OlderValue)
