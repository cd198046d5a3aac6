"""Where an attached session differs from another one: few methods of PySpark's own classes.

What begins a read, a write or a statement is replaced once for a kind of session: `sql`, `table`,
`read` and `readStream` of sessions, `write`, `writeTo`, `mergeInto` and `writeStream` of
DataFrames, and the catalog's methods; and actions of DataFrames, for what an error of theirs says.
Readers and writers live for one expression, so they come as subclasses of Spark's own; a catalog is
kept, so its methods are replaced. Nothing is replaced before a lake is attached, and all is put
back with the last one. A session without a lake pays one look-up. What Frazil's own modules call is
Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import currentframe
from types import FrameType
from typing import Any, Final

from frazil.spark.attached.names import SessionNames

Find = Callable[[Any], SessionNames | None]
"""Returns the lakes of a session."""

Ours = Callable[..., Any]
"""Takes the lakes of the session, Spark's own method, and what that takes."""


@dataclass(frozen=True, slots=True)
class Hook:
    """What stands in place of a method.

    Attributes:
        name: the method's.
        ours: what runs in its place in an attached session.
        session: the session of the object whose method it is.
    """

    name: str
    ours: Ours
    session: Callable[[Any], Any]


Hooks = Sequence[tuple[type, Hook]]


_REPLACED: Final[dict[bool, list[tuple[type, str, Any, Any]]]] = {}
"""What was replaced, in classic sessions and over Connect: of which class, Spark's own and ours."""


def install(hooks: Callable[[], Hooks], *, connect: bool, find: Find) -> None:
    """Replace the methods of a kind of session, unless that is done.

    Args:
        hooks: what is replaced, and in which class.
        connect: which kind of session it is.
        find: returns the lakes of a session.

    Raises:
        ImportError: the packages of Spark Connect are not there.
    """
    if connect in _REPLACED:
        return
    done: list[tuple[type, str, Any, Any]] = []
    for owner, hook in hooks():
        theirs = owner.__dict__.get(hook.name)
        if theirs is None:
            continue
        if isinstance(theirs, property):
            ours: Any = property(
                _method(theirs.fget, hook, find), theirs.fset, theirs.fdel, theirs.__doc__
            )
        else:
            ours = _method(theirs, hook, find)
        setattr(owner, hook.name, ours)
        done.append((owner, hook.name, theirs, ours))
    _REPLACED[connect] = done


def remove(*, connect: bool) -> None:
    """Put back what was replaced; what others have put in its place since stays."""
    for owner, name, theirs, ours in reversed(_REPLACED.pop(connect, [])):
        if owner.__dict__.get(name) is ours:
            setattr(owner, name, theirs)


def _is_ours(method: FrameType | None) -> bool:
    """Whether a module of ours calls a method."""
    caller = None if method is None else method.f_back
    return caller is not None and str(caller.f_globals.get("__name__")).startswith("frazil.")


def _method(theirs: Any, hook: Hook, find: Find) -> Any:
    @wraps(theirs)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        names = None if _is_ours(currentframe()) else find(hook.session(self))
        if names is None or not names.lakes:
            return theirs(self, *args, **kwargs)
        return hook.ours(names, theirs, self, *args, **kwargs)

    return method
