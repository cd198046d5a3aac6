"""Alterations of a record in a metastore, and what keeps them from undoing another writer's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from frazil.catalog.identifiers import Identifier
from frazil.catalog.outcome import Sending
from frazil.catalog.pointer.hive.connection import (
    AlreadyThereError,
    AnsweredError,
    Metastores,
    NotThereError,
    RefusedError,
    thrift_types,
)
from frazil.catalog.pointer.hive.locks import HeldLock
from frazil.catalog.pointer.hive.parameters import DO_NOT_UPDATE_STATS, METADATA_LOCATION

_MODIFIED: Final = "has been modified"
"""What Hive says where it has compared, and found another pointer."""


@dataclass(frozen=True, slots=True)
class Alter:
    """An alteration of the record of a table.

    Without a lock the metastore compares whether the record still points to the base. With one it
    is not asked to, as by Java: on Derby and Oracle it cannot, and finds that out for 20 seconds.

    Attributes:
        metastores: are sent it.
        name: the table's.
        record: as it is to be.
        expected: the metadata file that the record points to before.
        lock: the table's, if it is held.
        sending: of the change.
    """

    metastores: Metastores
    name: Identifier
    record: Any
    expected: str
    lock: HeldLock | None
    sending: Sending

    def send(self) -> None:
        """Send it.

        Raises AnsweredError, UnansweredError: as of `Metastores.change`; CommitFailedError: the
        lock was lost; nothing was sent.
        """
        self._send(compares=self.lock is None)

    def send_again(self) -> None:
        """Send it after a call without an answer: the metastore compares if it can.

        Raises AnsweredError, UnansweredError: as of `Metastores.change`; CommitFailedError: the
        lock was lost; nothing was sent by this call.
        """
        try:
            self._send(compares=True)
        except (NotThereError, AlreadyThereError, RefusedError):
            raise
        except AnsweredError as error:
            if self.lock is None or _MODIFIED in error.message:
                raise
            self._send(compares=False)

    def _send(self, *, compares: bool) -> None:
        if self.lock is not None:
            self.lock.require()
        conditions = {DO_NOT_UPDATE_STATS: "true"}
        if compares:
            conditions |= {
                "expected_parameter_key": METADATA_LOCATION,
                "expected_parameter_value": self.expected,
            }
        context = thrift_types().EnvironmentContext(properties=conditions)
        self.metastores.change(
            lambda client: client.alter_table_with_environment_context(
                self.name[0], self.name[1], self.record, context
            ),
            self.sending,
        )
