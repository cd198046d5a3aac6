"""The metastore's lock on a table, held by heartbeats while a commit is made."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.outcome import after_the_change
from frazil.catalog.pointer.hive.connection import (
    AnsweredError,
    Metastores,
    UnansweredError,
    thrift_types,
)
from frazil.catalog.pointer.hive.settings import LockTimes, TableForm
from frazil.errors import (
    AccessDeniedError,
    CommitFailedError,
    ConfigurationError,
    StorageError,
)


class _Turn:
    """Whose turn it is in this process: a metastore's waiting writers ask again and again."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


def _no_check() -> None:
    return None


_TURNS: WeakValueDictionary[tuple[str, ...], _Turn] = WeakValueDictionary()
_TURNS_LOCK = threading.Lock()


@dataclass
class HeldLock:
    """A lock that was granted.

    Attributes:
        lock_id: the metastore's number.
        beat: tells the metastore that its holder lives.
        failure: why a heartbeat failed; None while the lock is ours.
    """

    lock_id: int
    beat: Callable[[], None]
    failure: Exception | None = None
    _ended: threading.Event = field(default_factory=threading.Event)

    def is_held(self) -> bool:
        """Ask the metastore whether the lock is still ours; a failure is kept."""
        if self.failure is None:
            try:
                self.beat()
            except (StorageError, AccessDeniedError) as error:
                self.failure = error
        return self.failure is None

    def keep(self, pause: float) -> None:
        """Beat until the lock is given back, or lost; the first time after half the pause.

        `pause`: in seconds.
        """
        wait = pause / 2
        while not self._ended.wait(wait) and self.is_held():
            wait = pause

    def end(self) -> None:
        """Beat no more."""
        self._ended.set()

    def require(self) -> None:
        """Ask whether the lock is still held.

        Raises CommitFailedError: a heartbeat failed, so another writer may have the lock.
        """
        if not self.is_held():
            raise CommitFailedError(
                f"the metastore's lock {self.lock_id} was lost: {self.failure}"
            ) from None


class TableLocks:
    """Locks of tables in a metastore."""

    def __init__(self, metastores: Metastores, times: LockTimes, form: TableForm) -> None:
        self._metastores = metastores
        self._times = times
        self._form = form

    @contextmanager
    def hold(
        self, name: Identifier, still_needed: Callable[[], object] = _no_check
    ) -> Iterator[HeldLock]:
        """Hold the lock on a table for the block.

        `still_needed`: is called between two looks at a lock that others hold, and raises where the
        lock is not needed any more: the metastore grants locks in their order, so whoever waits for
        nothing delays all behind.
        Raises CommitFailedError: it was not granted in time; StorageError: the metastore cannot be
        reached.
        """
        with _TURNS_LOCK:
            turn = _TURNS.setdefault(tuple(part.lower() for part in name), _Turn())
        is_free = turn.lock.acquire(blocking=False)
        if not is_free and not turn.lock.acquire(timeout=self._times.timeout):
            raise self._timeout_error(name, "another thread of this process")
        try:
            if not is_free:
                still_needed()
            lock = self._held_lock(self._wait_for_grant(name, still_needed))
            beats = threading.Thread(target=lock.keep, args=(self._times.heartbeat,), daemon=True)
            beats.start()
            try:
                yield lock
            finally:
                lock.end()
                # One that is under way tells whether the lock was ours until now.
                beats.join()
                self._unlock(lock.lock_id)
        finally:
            turn.lock.release()

    def _wait_for_grant(self, name: Identifier, still_needed: Callable[[], object]) -> int:
        types = thrift_types()
        lock_id, state = self._create_lock(name)
        asked = types.CheckLockRequest(lockid=lock_id)
        try:
            deadline, pause = time.monotonic() + self._times.timeout, self._times.check_min
            while state == types.LockState.WAITING:
                if time.monotonic() + pause > deadline:
                    raise self._timeout_error(name, self._holders(name, lock_id), lock_id)
                time.sleep(pause)
                pause = min(pause * 1.5, self._times.check_max)
                state = self._ask_metastore(lambda client: client.check_lock(asked), name).state
                if state == types.LockState.WAITING:
                    still_needed()
            if state != types.LockState.ACQUIRED:
                raise CommitFailedError(
                    f"the metastore ended the request {lock_id} for a lock on {shown(name)}: "
                    f"its state is {types.LockState._VALUES_TO_NAMES.get(state, state)}"
                )
        except BaseException:
            self._unlock(lock_id)
            raise
        return lock_id

    def _create_lock(self, name: Identifier) -> tuple[int, int]:
        """Ask for a lock; one that was made by a call without an answer is found by its mark."""
        types, mark = thrift_types(), f"Frazil-{uuid.uuid4()}"
        component = types.LockComponent(
            type=types.LockType.EXCLUSIVE,
            level=types.LockLevel.TABLE,
            dbname=name[0],
            tablename=name[1],
        )
        request = types.LockRequest(
            component=[component],
            user=self._form.owner,
            hostname=socket.gethostname(),
            agentInfo=mark,
        )
        deadline, pause = time.monotonic() + self._times.creation_timeout, self._times.creation_min
        while True:
            try:
                made = self._ask_metastore(
                    lambda client: client.lock(request), name, send=self._metastores.change
                )
                return made.lockid, made.state
            except CommitFailedError:
                # A metastore may fail to look at a lock that it has noted.
                with after_the_change(f"a lock on {shown(name)} was not given back"):
                    for lock in self._locks_with_mark(name, mark):
                        self._unlock(lock.lockid)
                raise
            except UnansweredError as error:
                failure = StorageError(str(error))
                for lock in self._locks_with_mark(name, mark):
                    return lock.lockid, lock.state
            except StorageError as error:
                failure = error
            if time.monotonic() + pause > deadline:
                raise failure
            time.sleep(pause)
            pause = min(pause * 2, self._times.creation_max)

    def _ask_metastore(
        self,
        call: Callable[[Any], Any],
        name: Identifier,
        *,
        send: Callable[[Callable[[Any], Any]], Any] | None = None,
    ) -> Any:
        try:
            return (send or self._metastores.repeat)(call)
        except AnsweredError as error:
            if "HIVE_LOCKS" in error.message:
                raise ConfigurationError(
                    "the metastore's database has no table HIVE_LOCKS, so tables cannot be locked: "
                    "make its schema whole, or set iceberg.engine.hive.lock-enabled to false"
                ) from None
            raise CommitFailedError(
                f"the metastore gave no lock on {shown(name)}: {error.message}"
            ) from None

    def _locks(self, name: Identifier) -> list[Any]:
        asked = thrift_types().ShowLocksRequest(dbname=name[0], tablename=name[1])
        return list(self._metastores.read(lambda client: client.show_locks(asked)).locks or ())

    def _locks_with_mark(self, name: Identifier, mark: str) -> list[Any]:
        return [lock for lock in self._locks(name) if lock.agentInfo == mark]

    def _holders(self, name: Identifier, own: int) -> str:
        try:
            held = [lock for lock in self._locks(name) if lock.lockid != own]
        except (StorageError, AccessDeniedError):
            return "others"
        return ", ".join(f"lock {lock.lockid} of {lock.user}@{lock.hostname}" for lock in held)

    def _timeout_error(
        self, name: Identifier, holders: str, lock_id: int | None = None
    ) -> CommitFailedError:
        request = "" if lock_id is None else f" (request {lock_id})"
        return CommitFailedError(
            f"no lock on {shown(name)} within {self._times.timeout:g} s{request}: it is held by "
            f"{holders or 'others'}. The metastore itself ends the lock of a writer that is gone, "
            f"after its metastore.txn.timeout; commit again then"
        )

    def _held_lock(self, lock_id: int) -> HeldLock:
        request = thrift_types().HeartbeatRequest(lockid=lock_id)
        return HeldLock(
            lock_id, lambda: self._metastores.read(lambda client: client.heartbeat(request))
        )

    def _unlock(self, lock_id: int) -> None:
        request = thrift_types().UnlockRequest(lockid=lock_id)
        with after_the_change(f"the metastore's lock {lock_id} was not given back"):
            self._metastores.read(lambda client: client.unlock(request))
