"""BEGIN, COMMIT and ROLLBACK: the transactions that statements of a lake are in."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, SparkSession

from frazil.errors import SqlSyntaxError, ValidationError
from frazil.later import later
from frazil.spark.session.facts import is_connect
from frazil.spark.session.marks import mark_of, mark_thread

if TYPE_CHECKING:
    from frazil.spark.lake_transaction.tables import JoinedTables
    from frazil.spark.lake_transaction.transaction import LakeTransaction, is_control
    from frazil.spark.sql.context import CurrentNamespace
    from frazil.spark.sql.results import empty_result
    from frazil.spark.words import WordReader
    from frazil.table.conflicts.validation import Isolation
else:
    LakeTransaction, is_control = later(
        "frazil.spark.lake_transaction.transaction", "LakeTransaction", "is_control"
    )
    empty_result = later("frazil.spark.sql.results", "empty_result")
    WordReader = later("frazil.spark.words", "WordReader")


_CONTROL: Final = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:BEGIN|START|COMMIT|ROLLBACK)\b", re.IGNORECASE | re.DOTALL
)
_PART: Final = "frazil.transaction.part"
_LONGEST_WAIT: Final = 3600.0
"""For so many seconds a statement waits for another one of its transaction."""


def controls(statement: object) -> bool:
    """Return whether a statement is a BEGIN, COMMIT or ROLLBACK."""
    # Most statements are others: their words are read once.
    if not isinstance(statement, str) or _CONTROL.match(statement) is None:
        return False
    try:
        words = WordReader(statement).words
    except SqlSyntaxError:
        return False
    return is_control(tuple(word.keyword for word in words[:2]))


class StatementTransactions:
    """The open transaction of a session's statements on a lake.

    It is to a lake what a connection is to a database: all threads of the session are in it, one
    statement at a time, and statements of other sessions are not. After a statement that failed a
    transaction is only rolled back, so that no half of it is committed.

    Attributes:
        begin: begins a transaction of an isolation that is none of these.
    """

    def __init__(
        self,
        spark: SparkSession,
        begin: Callable[[Isolation], JoinedTables],
        current: CurrentNamespace,
    ) -> None:
        self._spark = spark
        self.begin = begin
        self._current = current
        self._open: _Open | None = None
        self._running = threading.RLock()

    @property
    def current(self) -> LakeTransaction | None:
        """The transaction that a statement has begun."""
        found = self._open
        return None if found is None else found.transaction

    @property
    def tables(self) -> JoinedTables | None:
        """The tables of the transaction that a statement has begun, while it is open."""
        found = self._open
        return found.tables if found is not None and found.transaction.is_open else None

    def run(
        self,
        statement: str,
        args: Mapping[str, Any] | Sequence[Any] | None,
        frames: Mapping[str, Any],
    ) -> DataFrame | None:
        """Run a statement of a transaction, or of its begin or end; None where it is in none.

        Raises:
            ValidationError: an earlier statement of the transaction has failed, there is one
                already, or there is none to end.
        """
        done = self.control(statement)
        if done is not None or self.current is None:
            return done
        with self.part():
            transaction = self.current  # Another thread may have ended it meanwhile.
            return None if transaction is None else transaction.sql(statement, args, **frames)

    @contextmanager
    def part(self) -> Iterator[None]:
        """Have a part of the open transaction run, which is not committed after it has failed.

        Raises:
            ValidationError: an earlier part has failed, or another one runs.
        """
        with self._run_alone():
            found = self._open
            if found is not None and found.failed is not None:
                raise ValidationError(
                    f"a statement of this transaction has failed ({found.failed}), so that "
                    "nothing of it is committed: run ROLLBACK"
                )
            try:
                yield
            except BaseException as error:
                if self._open is not None:
                    self._open.failed = type(error).__name__
                raise

    def close(self) -> None:
        """Roll back what is open."""
        left, self._open = self._open, None
        if left is not None and left.transaction.is_open:
            left.transaction.rollback()

    def control(self, statement: str) -> DataFrame | None:
        """Run a BEGIN, COMMIT or ROLLBACK; None where the statement is another one.

        Raises:
            ValidationError: there is a transaction already, or none to end.
        """
        if not controls(statement):
            return None
        reader = WordReader(statement)
        with self._run_alone():
            if reader.takes("COMMIT"):
                _end_words(reader)
                self._commit()
            elif reader.takes("ROLLBACK"):
                _end_words(reader)
                self._take("ROLLBACK").transaction.rollback()
            else:
                self._begin_one(_isolation(reader))
        return empty_result(self._spark)

    # -- parts -----------------------------------------------------------------------------------

    @contextmanager
    def _run_alone(self) -> Iterator[None]:
        """Have nothing else of the transaction run; wait for what does.

        What Spark calls back for, in another thread of Python, is a part of what runs already.
        """
        is_connected = is_connect(self._spark)
        own = str(id(self))
        if not is_connected and mark_of(self._spark, _PART) == own:
            yield
            return
        if not self._running.acquire(timeout=_LONGEST_WAIT):
            raise ValidationError(
                "another statement of this session's transaction runs: wait for it, or begin a "
                "transaction in a session of its own"
            )
        mark = nullcontext() if is_connected else mark_thread(self._spark, _PART, own)
        try:
            with mark:
                yield
        finally:
            self._running.release()

    def _begin_one(self, isolation: Isolation) -> None:
        if self.current is not None:
            raise ValidationError(
                "a transaction is open already, and transactions are not nested: run COMMIT or "
                "ROLLBACK first"
            )
        tables = self.begin(isolation)
        tables.of_one_thread = False
        self._open = _Open(LakeTransaction(tables, self._current), tables)

    def _commit(self) -> None:
        ended = self._take("COMMIT")
        if ended.failed is not None:
            ended.transaction.rollback()
            raise ValidationError(
                f"a statement of the transaction has failed ({ended.failed}): it was rolled back, "
                "and nothing was changed"
            )
        ended.transaction.commit()

    def _take(self, statement: str) -> _Open:
        found, self._open = self._open, None
        if found is None:
            raise ValidationError(
                f"{statement}: no transaction is open; BEGIN TRANSACTION begins one"
            )
        return found


@dataclass(slots=True)
class _Open:
    """An open transaction, its tables, and the error of its part that has failed."""

    transaction: LakeTransaction
    tables: JoinedTables
    failed: str | None = None


def _end_words(reader: WordReader) -> None:
    if not reader.takes("TRANSACTION"):
        reader.takes("WORK")
    reader.finish()


def _isolation(reader: WordReader) -> Isolation:
    """What a BEGIN says of isolation."""
    if not reader.takes("BEGIN"):
        reader.expect("START")
    if not reader.takes("TRANSACTION"):
        reader.takes("WORK")
    found: Isolation = "serializable"
    if reader.takes("ISOLATION", "LEVEL"):
        if reader.takes("SNAPSHOT"):
            found = "snapshot"
        else:
            reader.expect("SERIALIZABLE")
    reader.finish()
    return found
