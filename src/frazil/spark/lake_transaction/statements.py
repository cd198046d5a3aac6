"""BEGIN, COMMIT and ROLLBACK: the transactions that statements of a lake are in."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, SparkSession

from frazil.errors import SqlSyntaxError, ValidationError
from frazil.later import later
from frazil.spark.session.facts import is_connect
from frazil.spark.session.marks import mark_of, marked

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
    """The open transaction of each thread, or the one of a session.

    What has it is to a lake what a connection is to a database: statements of others are not in
    it. After a statement that failed a transaction is only rolled back, so that no half of it is
    committed.

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
        self._own: Any = threading.local()
        self._running: Any = None
        self._open: list[LakeTransaction] = []
        self._guard = threading.Lock()

    def belong_to_the_session(self) -> None:
        """Have one transaction for all threads, since statements of Spark's may run on any.

        Then one statement of it runs at a time, as at a connection of a database.
        """
        self._own = SimpleNamespace(failed=None)
        self._running = threading.RLock()

    @property
    def current(self) -> LakeTransaction | None:
        """The transaction that a statement has begun."""
        found: LakeTransaction | None = getattr(self._own, "transaction", None)
        return found

    @property
    def tables(self) -> JoinedTables | None:
        """The tables of the transaction that a statement has begun, while it is open."""
        transaction = self.current
        if transaction is None or not transaction.is_open:
            return None
        found: JoinedTables = self._own.tables
        return found

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
        transaction = self.current
        if done is not None or transaction is None:
            return done
        with self.part():
            return transaction.sql(statement, args, **frames)

    @contextmanager
    def part(self) -> Iterator[None]:
        """Have a part of the open transaction run, which is not committed after it has failed.

        Raises:
            ValidationError: an earlier part has failed, or another one runs.
        """
        with self._run_alone():
            yield from self._part()

    def _part(self) -> Iterator[None]:
        failed: str | None = None if self.current is None else self._own.failed
        if failed is not None:
            raise ValidationError(
                f"a statement of this transaction has failed ({failed}), so that nothing of it is "
                "committed: run ROLLBACK"
            )
        try:
            yield
        except BaseException as error:
            if self.current is not None:
                self._own.failed = type(error).__name__
            raise

    def close(self) -> None:
        """Roll back what is open, of every thread."""
        with self._guard:
            left, self._open = self._open, []
        for transaction in left:
            if transaction.is_open:
                transaction.rollback()
        self._own.transaction = None

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
                self._take("ROLLBACK").rollback()
            else:
                self._begin_one(_isolation(reader))
        return empty_result(self._spark)

    # -- parts -----------------------------------------------------------------------------------

    @contextmanager
    def _run_alone(self) -> Iterator[None]:
        """Have nothing else of a transaction of all threads run; wait for what does.

        What Spark calls back for, in another thread of Python, is a part of what runs already.
        """
        running = self._running
        is_connected = is_connect(self._spark)
        own = str(id(self))
        if running is None or (not is_connected and mark_of(self._spark, _PART) == own):
            yield
            return
        if not running.acquire(timeout=_LONGEST_WAIT):
            raise ValidationError(
                "another statement of this session's transaction runs: wait for it, or begin a "
                "transaction in a session of its own"
            )
        mark = nullcontext() if is_connected else marked(self._spark, _PART, own)
        try:
            with mark:
                yield
        finally:
            running.release()

    def _begin_one(self, isolation: Isolation) -> None:
        if self.current is not None:
            raise ValidationError(
                "a transaction is open already, and transactions are not nested: run COMMIT or "
                "ROLLBACK first"
            )
        tables = self.begin(isolation)
        tables.of_one_thread = self._running is None
        made = LakeTransaction(tables, self._current)
        self._own.tables, self._own.transaction, self._own.failed = tables, made, None
        with self._guard:
            self._open.append(made)

    def _commit(self) -> None:
        failed = getattr(self._own, "failed", None)
        transaction = self._take("COMMIT")
        if failed is not None:
            transaction.rollback()
            raise ValidationError(
                f"a statement of the transaction has failed ({failed}): it was rolled back, and "
                "nothing was changed"
            )
        transaction.commit()

    def _take(self, statement: str) -> LakeTransaction:
        transaction = self.current
        if transaction is None:
            raise ValidationError(
                f"{statement}: no transaction is open; BEGIN TRANSACTION begins one"
            )
        self._own.transaction = None
        with self._guard:
            if transaction in self._open:
                self._open.remove(transaction)
        return transaction


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
