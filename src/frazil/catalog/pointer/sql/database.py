"""Transactions of a database: tried again when the database asks for it, with typed errors."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar
from urllib.parse import quote_plus

from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from frazil.catalog.outcome import Sending, find_outcome
from frazil.catalog.pointer.sql.engine import WRITES, TimeLimits, is_in_memory, make_engine
from frazil.errors import CommitFailedError, FrazilError, StorageError
from frazil.storage.paths import redact

_LOG = logging.getLogger(__name__)
_TRIES = 10
_LONGEST_PAUSE_SECONDS = 0.5
_LIGHT = frozenset({"postgresql"})
# Serialization failure and deadlock, as SQLSTATE and as MySQL's own numbers.
_LOST_RACES = frozenset({"40001", "40P01", 1213, 1205})

T = TypeVar("T")


class Database:
    """The connections to a database; a forked child makes its own.

    Attributes:
        engine: SQLAlchemy's.
        writer: the same for transactions that write.
        shown_url: the URL without its password.
    """

    def __init__(self, url: URL, *, limits: TimeLimits, echo: bool = False) -> None:
        self.shown_url = url.render_as_string(hide_password=True)
        self._secrets = {
            "password": url.password or "",
            "encoded password": quote_plus(url.password or ""),
        }
        self.engine = make_engine(url, echo=echo, limits=limits)
        # A query needs no transaction; without one it is one message, not three.
        by_itself = {"isolation_level": "AUTOCOMMIT"} if url.get_backend_name() in _LIGHT else {}
        self._reader = self.engine.execution_options(**by_itself)
        self.writer = self.engine.execution_options(**{WRITES: True})
        # An in-memory database has one connection for all threads.
        self._is_in_memory = is_in_memory(url)
        self._guard = threading.RLock() if self._is_in_memory else contextlib.nullcontext()
        self._first = _FirstStatement()
        _OPEN.add(self)

    def close(self) -> None:
        """Give back the connections."""
        self.engine.dispose()

    def forget_connections(self) -> None:
        """Leave the parent's connections to the parent, in a forked child."""
        if self._is_in_memory:
            # The child has a copy of the database; a thread that held the guard is not in it.
            self._guard = threading.RLock()
        else:
            self.engine.dispose(close=False)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run queries.

        Raises CommitFailedError: the database undid every try for other writers' sake;
        StorageError: the database failed.
        """
        return self._run_with_retries(lambda: self._query(work), None)

    def change(
        self,
        what: str,
        work: Callable[[Connection], None],
        *,
        took_place: Callable[[], bool | None],
        properties: Mapping[str, str],
        taken: FrazilError | None = None,
        sending: Sending | None = None,
    ) -> None:
        """Run a transaction and learn what became of it; again if the database has undone it.

        `work` is run once a try; `took_place` tells, when no answer came to the COMMIT (None if it
        cannot); `taken` is raised when a row of the same key is there, which unless given is a race
        that a new try sees the end of; `sending` learns when the COMMIT is sent, and that the
        database has refused it.
        Raises CommitFailedError: every try lost a race, or no answer came and the change did not
        take place, and nothing was changed; CommitStateUnknownError: no answer came, and none could
        be had; StorageError: the database failed before the COMMIT was sent, and nothing was
        changed.
        """
        sent = sending if sending is not None else Sending()
        try:
            self._run_with_retries(lambda: self._commit(work, sent), taken)
        except _LostAnswerError as error:
            reason = str(error)
            if not find_outcome(took_place, properties, change=what, reason=reason):
                sent.refute()
                raise CommitFailedError(f"{what} did not take place: {reason}") from None

    @contextlib.contextmanager
    def beginning_changes_with(self, statement: Callable[[Connection], None]) -> Iterator[None]:
        """Run a statement at the begin of each change that this thread makes in the block."""
        self._first.of_this_thread = statement
        try:
            yield
        finally:
            self._first.of_this_thread = None

    def look(self, work: Callable[[Connection], T]) -> T:
        """Run statements that take locks, and so wait for who is at work, and undo them.

        Raises CommitFailedError: others were at work on the same rows in every try; StorageError:
        the database failed.
        """
        return self._run_with_retries(lambda: self._roll_back(work), None)

    def failure(self, error: SQLAlchemyError) -> StorageError:
        """A typed error for one of the driver's, without secrets."""
        return StorageError(f"the catalog {self.shown_url} failed: {self.reason(error)}")

    def reason(self, error: Exception) -> str:
        """What the driver says, on one line, without secrets."""
        cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
        return redact(" ".join(str(cause).split()), self._secrets) or type(cause).__name__

    def _run_with_retries(self, transaction: Callable[[], T], taken: FrazilError | None) -> T:
        """What a transaction returns, tried again while it loses races."""
        for attempt in range(1, _TRIES + 1):
            try:
                with self._guard:
                    return transaction()
            except IntegrityError as error:
                if taken is not None:
                    raise taken from None
                lost: DBAPIError = error
            except DBAPIError as error:
                if attempt == 1 and _was_stale(error):
                    continue
                if not _is_lost_race(error):
                    raise self.failure(error) from None
                lost = error
            except SQLAlchemyError as error:
                raise self.failure(error) from None
            if attempt < _TRIES:
                longest = _LONGEST_PAUSE_SECONDS * attempt / _TRIES
                time.sleep(random.uniform(0, longest))  # noqa: S311
        raise CommitFailedError(
            f"the catalog {self.shown_url} undid each of {_TRIES} tries, since other writers were "
            f"at work on the same rows: {self.reason(lost)}"
        )

    def _query(self, work: Callable[[Connection], T]) -> T:
        with _open_connection(self._reader) as connection:
            return work(connection)

    def _commit(self, work: Callable[[Connection], None], sending: Sending) -> None:
        with _open_connection(self.writer) as connection:
            transaction = connection.begin()
            if self._first.of_this_thread is not None:
                self._first.of_this_thread(connection)
            work(connection)
            # From here on the database may have made the change, whatever is raised.
            sending.begin()
            try:
                transaction.commit()
            except BaseException as error:
                # After a COMMIT that failed SQLAlchemy gives back the connection as it is.
                with contextlib.suppress(Exception):
                    connection.invalidate()
                if isinstance(error, DBAPIError) and _is_refusal(error):
                    sending.refute()
                elif isinstance(error, SQLAlchemyError):
                    raise _LostAnswerError(self.reason(error)) from None
                raise

    def _roll_back(self, work: Callable[[Connection], T]) -> T:
        with _open_connection(self.writer) as connection:
            connection.begin()
            return work(connection)


class _FirstStatement(threading.local):
    """What a thread's changes begin with."""

    of_this_thread: Callable[[Connection], None] | None = None


class _LostAnswerError(Exception):
    """A COMMIT was sent and no answer came."""


_OPEN: weakref.WeakSet[Database] = weakref.WeakSet()


def _forget_connections() -> None:
    for database in list(_OPEN):
        database.forget_connections()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_connections)


@contextlib.contextmanager
def _open_connection(engine: Engine) -> Iterator[Connection]:
    """A connection; what was not committed at the end of the block is undone."""
    connection = engine.connect()
    try:
        yield connection
    except (FrazilError, SQLAlchemyError, _LostAnswerError):
        raise
    except BaseException as error:
        # An interrupted driver may be in the middle of an answer: the connection ends with it, and
        # no traceback may keep a cursor and its locks.
        with contextlib.suppress(Exception):
            connection.invalidate()
        traceback.clear_frames(error.__traceback__)
        raise
    finally:
        try:
            connection.close()
        except BaseException as error:
            # What is not given back would keep its locks; the change is decided already.
            with contextlib.suppress(Exception):
                connection.invalidate()
            _LOG.debug("a connection could not be given back: %s", type(error).__name__)
            if not isinstance(error, Exception):
                raise


def _is_refusal(error: DBAPIError) -> bool:
    """Whether a failed COMMIT is the database's own word that it has undone the transaction."""
    return isinstance(error, IntegrityError) or _is_lost_race(error)


def _was_stale(error: DBAPIError) -> bool:
    """Whether a kept connection was closed by the database meanwhile: the next one is new."""
    return bool(error.connection_invalidated) and not getattr(error.orig, "is_late", False)


def _is_lost_race(error: DBAPIError) -> bool:
    cause = error.orig
    codes = (getattr(cause, "sqlstate", None), getattr(cause, "pgcode", None))
    numbers = [code for code in getattr(cause, "args", ()) if isinstance(code, int)]
    return not _LOST_RACES.isdisjoint([*codes, *numbers[:1]])
