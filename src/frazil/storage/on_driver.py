"""Objects that belong to the process that opened them."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from frazil.errors import UnsupportedError


class OnDriver:
    """What holds connections or a session: it is not sent to other processes.

    A shallow copy shares them.
    """

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        name = type(self).__name__
        raise UnsupportedError(
            f"a {name} lives on the driver, in the process that opened it: it cannot be pickled,"
            " copied in depth, or used in a UDF, foreachPartition or on an executor. Take the plain"
            f" values that are needed out of it before, or open another {name} there"
        )
