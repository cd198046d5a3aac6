"""Which sessions have lakes: known by a setting of the session itself.

A setting is the session's own. All Python objects of a session see it, and so does the copy in
which Spark runs a stream's batches; a new session does not have it. So it tells sessions apart in
the same way for a classic session and over Spark Connect.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import RLock
from typing import Any, Final
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from frazil.catalog.protocol import Catalog
from frazil.errors import ValidationError
from frazil.spark.attached.hooks import install, remove
from frazil.spark.attached.kinds import classic_hooks, connect_hooks
from frazil.spark.attached.names import RESERVED, AttachedLake, SessionNames
from frazil.spark.lake_transaction.statements import StatementTransactions
from frazil.spark.lake_transaction.tables import JoinedTables
from frazil.spark.session.facts import is_connect, is_stopped
from frazil.spark.sql.context import CurrentNamespace

MARK: Final = "spark.frazil.session"
"""The setting by which an attached session is known."""

_CATALOGS: Final = "spark.sql.catalog."

EachSession = Callable[[SparkSession], None]
"""Attaches lakes to a session that has none yet."""


class _Sessions:
    """The attached sessions of this process."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.names: dict[str, tuple[SparkSession, SessionNames]] = {}
        self.keys: WeakKeyDictionary[Any, str | None] = WeakKeyDictionary()
        self.each: EachSession | None = None

    def find(self, spark: Any) -> SessionNames | None:
        """Return the lakes of a session, which may get them now; None where it has none."""
        if self.each is not None and self.key(spark) is None and not is_stopped(spark):
            with self.lock:
                if self.key(spark) is None:
                    self.each(spark)
        return self.names_of(spark)

    def names_of(self, spark: Any) -> SessionNames | None:
        """Return the lakes that a session has; None where it has none."""
        key = self.key(spark)
        found = None if key is None else self.names.get(key)
        return None if found is None else found[1]

    def key(self, spark: Any) -> str | None:
        """Return what a session is known by."""
        try:
            return self.keys[spark]
        except KeyError:
            pass
        key = None
        with suppress(Exception):  # Of a session that has ended Spark tells by itself.
            key = spark.conf.get(MARK, None)
        self.keys[spark] = key
        return key


_SESSIONS: Final = _Sessions()


def attach(spark: SparkSession, catalog: Catalog, *, name: str, owner: object) -> SessionNames:
    """Let a session's own methods understand the names of a lake.

    Args:
        name: what stands before names of the lake's tables.
        owner: what `detach` is given.

    Raises:
        ValidationError: the name is none, is Spark's, or is another lake's in this session; or the
            session was stopped.
    """
    _check_name(spark, name)
    with _SESSIONS.lock:
        names = _SESSIONS.names_of(spark) or SessionNames()
        there = names.attached.get(name)
        if there is not None and there.owner is not owner:
            raise ValidationError(
                f"another lake is attached as {name!r}: detach it, or choose another name"
            )
        if there is None:
            _register(spark, names)
            begin = partial(JoinedTables, spark, catalog)
            transactions = StatementTransactions(spark, begin, CurrentNamespace())
            made = AttachedLake(name, catalog, owner, transactions)
            names.attached = {**names.attached, name: made}
        return names


def _register(spark: SparkSession, names: SessionNames) -> None:
    """Make a session known, unless it is."""
    if _SESSIONS.key(spark) in _SESSIONS.names:
        return
    names.reserved = RESERVED | _catalogs_of_spark(spark)
    _install(connect=is_connect(spark))
    key = uuid.uuid4().hex
    spark.conf.set(MARK, key)
    _SESSIONS.names[key] = (spark, names)
    _SESSIONS.keys.clear()


def detach(owner: object) -> None:
    """Take away what was attached for an owner; the last one leaves everything as it was."""
    with _SESSIONS.lock:
        for key, (spark, names) in list(_SESSIONS.names.items()):
            left = {n: each for n, each in names.attached.items() if each.owner is not owner}
            for name in set(names.attached) - set(left):
                names.attached[name].transactions.close()
            if names.lake is not None and names.lake not in left:
                names.use(None)
            names.attached = left
            if left and not is_stopped(spark):
                continue
            del _SESSIONS.names[key]
            with suppress(Exception):  # The session may have ended.
                spark.conf.unset(MARK)
        _SESSIONS.keys.clear()
        if _SESSIONS.each is None:
            used = {is_connect(spark) for spark, _ in _SESSIONS.names.values()}
            for connect in {False, True} - used:
                remove(connect=connect)


def forget(spark: SparkSession) -> None:
    """Keep nothing of a session that has ended, and roll back what it has begun."""
    with _SESSIONS.lock:
        key = _SESSIONS.key(spark)
        found = None if key is None else _SESSIONS.names.pop(key, None)
        _SESSIONS.keys.clear()
    for each in () if found is None else found[1].attached.values():
        each.transactions.close()


def be_new(spark: SparkSession) -> None:
    """Have a session that may be the copy of another one known as one of its own."""
    with suppress(Exception):  # It was not known.
        spark.conf.unset(MARK)
    _SESSIONS.keys.pop(spark, None)


def attach_each(each: EachSession) -> None:
    """Let every session of this process get its lakes when it first asks for a table.

    Args:
        each: attaches lakes to a session.
    """
    with _SESSIONS.lock:
        _SESSIONS.each = each
        _SESSIONS.keys.clear()
        _install(connect=False)
        with suppress(ImportError):  # Spark Connect needs packages that may not be there.
            _install(connect=True)


def attach_no_more() -> None:
    """Leave sessions that have no lakes yet alone again."""
    _SESSIONS.each = None


def names_of(spark: SparkSession) -> SessionNames | None:
    """Return the lakes of a session; None where it has none."""
    return _SESSIONS.find(spark)


def _install(*, connect: bool) -> None:
    install(connect_hooks if connect else classic_hooks, connect=connect, find=_SESSIONS.find)


def _check_name(spark: SparkSession, name: str) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise ValidationError(
            f"{name!r} is no name for a lake: letters, digits and underscores, a letter first"
        )
    if is_stopped(spark):
        raise ValidationError("the session was stopped: attach the lake of a new one")
    if name.lower() in RESERVED | _catalogs_of_spark(spark):
        raise ValidationError(f"{name!r} is a catalog of Spark's own: choose another name")


def _catalogs_of_spark(spark: SparkSession) -> frozenset[str]:
    settings: Any = spark.conf.getAll
    keys = [key[len(_CATALOGS) :] for key in settings if key.startswith(_CATALOGS)]
    return frozenset(key.lower() for key in keys if "." not in key)
