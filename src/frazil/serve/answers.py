"""Answers of the protocol: JSON, and errors with the names that Java's client knows."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from frazil.errors import (
    AlreadyExistsError,
    CommitFailedError,
    CommitStateUnknownError,
    ConfigurationError,
    ConflictError,
    FrazilError,
    InvalidFormatError,
    MissingFileError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchRefError,
    NoSuchSnapshotError,
    NoSuchTableError,
    NoSuchViewError,
    StorageError,
    UnsupportedError,
    ValidationError,
)
from frazil.storage.paths import redact

_LOG = logging.getLogger("frazil.serve")
_LONGEST_MESSAGE: Final = 2000
_RETRY_LATER: Final = {"Retry-After": "1"}
_OUTCOME_UNKNOWN: Final = (
    "the outcome of the change is unknown: load the table to see whether it took place"
)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What is sent back.

    Attributes:
        status: of HTTP.
        body: None sends none.
        headers: beside those that every answer has.
        error: the type of the error, for the log.
        content_type: of the body.
    """

    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    content_type: str = "application/json"


NOTHING: Final = HttpAnswer(204)


class HttpError(Exception):
    """A request that is answered by an error of the protocol.

    Attributes:
        answer: what is sent back.
    """

    def __init__(
        self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.answer = error_answer(status, kind, message, headers)


def ok(value: Any, headers: Mapping[str, str] | None = None) -> HttpAnswer:
    """Return the answer that sends a value as JSON."""
    return HttpAnswer(200, json.dumps(value).encode(), headers or {})


def error_answer(
    status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
) -> HttpAnswer:
    """Return the answer of an error.

    Args:
        status: of HTTP.
        kind: the name of the exception that Java raises.
        message: for people; it is cut where it is long.
        headers: more of them.
    """
    line = " ".join(message.split())
    shown = line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]}…"
    content = {"error": {"message": shown, "type": kind, "code": status}}
    answer = HttpAnswer(status, json.dumps(content).encode(), headers or {}, kind)
    return with_bare_model(answer) if status == 406 else answer


def message_of(answer: HttpAnswer) -> str:
    """Return what the answer of an error says to people."""
    return str(json.loads(answer.body or b"{}").get("error", {}).get("message", ""))


def with_bare_model(answer: HttpAnswer) -> HttpAnswer:
    """Return the answer of an error with what it says outside of its wrapper too.

    The specification has some errors without the wrapper in which clients look for them.
    """
    content = json.loads(answer.body or b"{}")
    return replace(answer, body=json.dumps({**content, **content.get("error", {})}).encode())


def forbidden(message: str) -> HttpError:
    """Return the error of somebody who may not do what they ask for."""
    return HttpError(403, "ForbiddenException", message)


def bad_request(message: str, headers: Mapping[str, str] | None = None) -> HttpError:
    """Return the error of a request that cannot be understood or is refused."""
    return HttpError(400, "BadRequestException", message, headers)


def answer_of_error(
    error: Exception,
    *,
    secrets: Mapping[str, str],
    documented: frozenset[int],
    may_have_taken_place: bool,
) -> HttpAnswer:
    """Return the answer of an error that a catalog, a table or a plan raised.

    The log has the text of one that is the server's.

    Args:
        error: what was raised.
        secrets: properties whose secret values no message may hold.
        documented: statuses that the endpoint has beside those of all endpoints.
        may_have_taken_place: whether an error that says nothing of the outcome, raised by this
            endpoint, leaves a change that may have taken place.
    """
    message = redact(str(error), secrets)
    answer = _answer_by_kind(error, message, documented, may_have_taken_place=may_have_taken_place)
    if answer.status >= 500:
        _LOG.error("%s %s: %s", answer.status, type(error).__name__, json.dumps(message))
    return answer


def _answer_by_kind(
    error: Exception, message: str, documented: frozenset[int], *, may_have_taken_place: bool
) -> HttpAnswer:
    if isinstance(error, HttpError):
        return error.answer
    if isinstance(error, CommitFailedError | ConflictError):
        if 409 in documented:
            return error_answer(409, "CommitFailedException", message)
        return error_answer(503, "ServiceUnavailableException", message, _RETRY_LATER)
    if isinstance(error, UnsupportedError):
        status = 406 if 406 in documented else 400
        return error_answer(status, "UnsupportedOperationException", message)
    if not isinstance(error, MissingFileError | CommitStateUnknownError):
        for kind, (status, name) in _REFUSALS.items():
            if isinstance(error, kind):
                return error_answer(status, name, message)
    return _failure(error, message, may_have_taken_place=may_have_taken_place)


def _failure(error: Exception, message: str, *, may_have_taken_place: bool) -> HttpAnswer:
    """An error that is the server's: its text may name hosts and folders, so the log has it."""
    if may_have_taken_place or isinstance(error, CommitStateUnknownError):
        return error_answer(500, "CommitStateUnknownException", _OUTCOME_UNKNOWN)
    if isinstance(error, MissingFileError | InvalidFormatError):
        return error_answer(500, "ServiceFailureException", message)
    if isinstance(error, StorageError):
        text = "the catalog's database or store does not answer"
        return error_answer(503, "ServiceUnavailableException", text, _RETRY_LATER)
    return error_answer(500, "InternalServerError", "the server failed; its log says why")


_REFUSALS: Final[Mapping[type[FrazilError], tuple[int, str]]] = {
    NoSuchNamespaceError: (404, "NoSuchNamespaceException"),
    NoSuchTableError: (404, "NoSuchTableException"),
    NoSuchViewError: (404, "NoSuchViewException"),
    NoSuchSnapshotError: (400, "BadRequestException"),
    NoSuchRefError: (400, "BadRequestException"),
    AlreadyExistsError: (409, "AlreadyExistsException"),
    NamespaceNotEmptyError: (409, "NamespaceNotEmptyException"),
    ValidationError: (400, "BadRequestException"),
    ConfigurationError: (400, "BadRequestException"),
}
"""Errors that say what is wrong with the request, with nothing changed."""
