"""Sessions of Spark that get a parser and catalogs of ours, and get their own back."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from frazil.spark.attached.names import SessionNames
from frazil.spark.attached.sessions import be_new, forget, names_of
from frazil.spark.catalog.lake_catalog import LakeCatalog
from frazil.spark.catalog.parser import LakeParser
from frazil.spark.catalog.place import SessionPlace
from frazil.spark.plans.machine import (
    JavaObject,
    Machine,
    answers,
    field_of,
    machine_of,
    value_of,
)
from frazil.spark.session.by_session import forget_session
from frazil.spark.session.facts import is_stopped
from frazil.spark.sql.parsers.spark_parser import OWN_PARSERS

Attach = Callable[[SparkSession], None]
"""Attaches lakes to a session that has none yet."""


@dataclass(slots=True)
class _Served:
    """A session of a server, of which nothing is kept once it is closed.

    Attributes:
        session: of the virtual machine; None after it.
        place: where its tables are, from its first statement on.
    """

    session: Any
    place: SessionPlace | None = None


class _Places:
    """The sessions of this process that parse by us, by their ids in the virtual machine."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.served: dict[str, _Served] = {}
        self.own: dict[str, _Installed] = {}


_PLACES: Final = _Places()


class SessionParsers(JavaObject):
    """Makes the parser of each new session of a Spark."""

    def __init__(self, spark: SparkSession, attach: Attach) -> None:
        self.machine = machine_of(spark)
        self._context = spark.sparkContext
        self._attach = attach

    @answers()
    def apply(self, session: Any, theirs: Any) -> Any:
        """Return the parser of a session, whose state is not yet made."""
        served = _Served(session)
        return LakeParser(self.machine, theirs, lambda: self._place(served, theirs))

    def _place(self, served: _Served, theirs: Any) -> SessionPlace | None:
        if served.place is None:
            with _PLACES.lock:
                if served.place is None and served.session is not None:
                    served.place = self._make_place(served.session, theirs)
                    _PLACES.served[str(served.session.sessionUUID())] = served
        return served.place

    def _make_place(self, session: Any, theirs: Any) -> SessionPlace:
        spark = SparkSession(self._context, session)
        be_new(spark)
        self._attach(spark)
        names = names_of(spark)
        assert names is not None
        OWN_PARSERS.put(spark, theirs)
        place = place_of(self.machine, spark, names, follows_spark=True)
        add_catalogs(place)
        return place

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = ["scala.Function2"]


def serve_sessions(spark: SparkSession, attach: Attach) -> None:
    """Let every session that is made after this one have lakes.

    Args:
        attach: gives a session its lakes.
    """
    session: Any = spark
    session._jsparkSession.extensions().injectParser(SessionParsers(spark, attach))


def served_place(session: Any) -> SessionPlace:
    """Return a server's session as parser and catalogs see it, with its lakes."""
    # They come with the first look of its parser.
    session.sessionState().sqlParser().parseMultipartIdentifier("lakes")
    place = _PLACES.served[str(session.sessionUUID())].place
    assert place is not None
    return place


def served_sessions() -> frozenset[str]:
    """Return the sessions of servers that are kept, by their ids in the virtual machine."""
    return frozenset(_PLACES.served)


def forget_served(key: str) -> None:
    """Keep nothing of a server's session that is closed, and roll back what it has begun."""
    with _PLACES.lock:
        served = _PLACES.served.pop(key, None)
        if served is None or served.place is None:
            return
        place, served.place, served.session = served.place, None, None
    catalogs = value_of(place.manager, "catalogs")
    for name in place.names.attached:
        catalogs.remove(name)
    forget(place.spark)
    forget_session(place.spark)


def install(spark: SparkSession) -> None:
    """Let a session that has lakes parse by us, and have them among its catalogs.

    Where the virtual machine refuses, its methods alone know them.
    """
    names = names_of(spark)
    if names is None or not is_pinned():
        return
    try:
        add_catalogs(_install(spark, names))
    except (Py4JError, PySparkException):
        return
    names.in_spark = True


def uninstall(spark: SparkSession) -> None:
    """Give a session its own parser and catalogs back, less those of lakes that are still there."""
    session: Any = spark
    if is_stopped(spark):
        return
    key = str(session._jsparkSession.sessionUUID())
    found = _PLACES.own.get(key)
    if found is None:
        return
    names, catalogs = found.place.names, value_of(found.place.manager, "catalogs")
    for name in found.added - set(names.attached):
        catalogs.remove(name)
    found.added &= set(names.attached)
    if not names.attached:
        for owner, each in found.fields:
            each.set(owner, found.theirs)
        names.in_spark = False
        del _PLACES.own[key]


@dataclass(slots=True)
class _Installed:
    """What was replaced in a session.

    Attributes:
        theirs: its own parser.
        fields: where that was.
        added: the names of lakes among its catalogs.
    """

    place: SessionPlace
    theirs: Any
    fields: list[tuple[Any, Any]] = field(default_factory=list)
    added: set[str] = field(default_factory=set)


def _install(spark: SparkSession, names: SessionNames) -> SessionPlace:
    session: Any = spark
    key = str(session._jsparkSession.sessionUUID())
    with _PLACES.lock:
        found = _PLACES.own.get(key)
        if found is None:
            machine = machine_of(spark)
            place = place_of(machine, spark, names, follows_spark=False)
            state = session._jsparkSession.sessionState()
            theirs = state.sqlParser()
            found = _Installed(place, theirs)
            parser = LakeParser(machine, theirs, lambda: place)
            for owner, name in ((state, "sqlParser"), (state.catalog(), "parser")):
                each = field_of(owner, name)
                each.set(owner, parser)
                found.fields.append((owner, each))
            OWN_PARSERS.put(spark, theirs)
            _PLACES.own[key] = found
        found.added.update(names.attached)
        return found.place


def is_pinned() -> bool:
    """Whether each thread of Python has one of the virtual machine, which calls back in it."""
    return os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "true"


def place_of(
    machine: Machine, spark: SparkSession, names: SessionNames, *, follows_spark: bool
) -> SessionPlace:
    """Return a session as parser and catalogs see it."""
    session: Any = spark
    theirs = session._jsparkSession
    manager = theirs.sessionState().catalogManager()
    current = theirs.catalog() if follows_spark else None
    return SessionPlace(machine, spark, theirs, names, manager, current)


def add_catalogs(place: SessionPlace) -> None:
    """Put the lakes of a session into its map of catalogs.

    Raises:
        Py4JError: the virtual machine does not let us.
    """
    known = value_of(place.manager, "catalogs")
    for name in place.names.attached:
        known.put(name, LakeCatalog(place, name))
