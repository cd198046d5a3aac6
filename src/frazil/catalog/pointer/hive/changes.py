"""Changes of records in a metastore: sent, and settled where an answer leaves the outcome open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from frazil.catalog.outcome import Sending, find_outcome
from frazil.catalog.pointer.hive.connection import (
    AlreadyThereError,
    AnsweredError,
    NotThereError,
    RefusedError,
    UnansweredError,
)
from frazil.errors import (
    CommitFailedError,
    FrazilError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)


def _is_never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one record.

    Attributes:
        what: it is, for messages.
        send: sends it once.
        send_again: sends it where a call before had no answer; that may have taken place, and
            another writer's change after it.
        took_place: whether the record shows it now; None where that cannot be told.
        properties: say how often and how long to ask.
        is_ruled_out: whether a call without an answer, which may still be under way, can no longer
            take place.
    """

    what: str
    send: Callable[[], None]
    send_again: Callable[[], None]
    took_place: Callable[[], bool | None]
    properties: Mapping[str, str]
    is_ruled_out: Callable[[], bool] = _is_never

    def carry_out(self, sending: Sending) -> None:
        """Send it, and ask what became of it where the answer does not say so.

        `sending`: of the change; it is refuted where the change did not take place.
        Raises CommitFailedError: it did not take place; CommitStateUnknownError: the metastore
        cannot tell; StorageError: no metastore can be reached; nothing was sent.
        """
        try:
            self.send()
        except UnansweredError as error:
            reason = str(error)
            failure: FrazilError = CommitFailedError(f"{self.what} did not take place: {reason}")
            took_place = self._took_place_at_last
        except AnsweredError as error:
            reason, failure = error.message, self._refusal(error)
            took_place = self._took_place_though_refused(error)
        else:
            return
        if not find_outcome(took_place, self.properties, change=self.what, reason=reason):
            sending.refute()
            raise failure

    def _took_place_though_refused(self, error: AnsweredError) -> Callable[[], bool | None]:
        # A server that tries again by itself may answer what its second try met.
        if isinstance(error, NotThereError | RefusedError):
            return lambda: self._took_place_or_none() or False
        return self.took_place

    def _took_place_or_none(self) -> bool | None:
        try:
            return self.took_place()
        except FrazilError:
            return None

    def _took_place_at_last(self) -> bool | None:
        """Send it again until a call has an answer: the first may still be under way."""
        if self.took_place():
            return True
        try:
            self.send_again()
        except UnansweredError:
            return None
        except AnsweredError:
            answer = self.took_place()
            return answer if answer or self.is_ruled_out() else None
        return True

    def _refusal(self, error: AnsweredError) -> FrazilError:
        said = error.message
        match error:
            case AlreadyThereError():
                return TableAlreadyExistsError(said)
            case NotThereError():
                return NoSuchTableError(said)
            case RefusedError():
                advice = ": set metastore.disallow.incompatible.col.type.changes to false in it"
                return ValidationError(said + (advice if "incompatible" in said else ""))
        return CommitFailedError(f"{self.what} was refused: {said}")
