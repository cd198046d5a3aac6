"""What a server answers, and the typed error of each refusal.

The texts of a server are data: they are cut short, lose control characters, and are shown without
the secrets that the catalog knows.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Final

from frazil.errors import (
    AccessDeniedError,
    CommitFailedError,
    FrazilError,
    MissingFileError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    NotFoundError,
    OutdatedUpdateError,
    StorageError,
    UnsupportedError,
    ValidationError,
)
from frazil.storage.paths import redact

_LONGEST_TEXT: Final = 500
_LONGEST_WAY_MS: Final = 60_000
_MISSING: Final[Mapping[str, type[FrazilError]]] = {
    "NoSuchNamespaceException": NoSuchNamespaceError,
    "NoSuchTableException": NoSuchTableError,
    "NoSuchIcebergTableException": NoSuchTableError,
    "NoSuchViewException": NoSuchViewError,
    "NotFoundException": MissingFileError,
}
_CONFLICTS: Final[Mapping[str, type[FrazilError]]] = {
    "CommitFailedException": CommitFailedError,
    "NamespaceNotEmptyException": NamespaceNotEmptyError,
}
_OUTDATED: Final = re.compile(r"older than last sequence number|first-row-id is behind")


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer.

    Attributes:
        status: HTTP's.
        headers: by their names in lower case.
        content: the body; it may hold credentials.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes = field(repr=False)

    @property
    def is_success(self) -> bool:
        """Whether the server did what was asked."""
        return 200 <= self.status < 300

    @property
    def clock_ahead_ms(self) -> int:
        """How far this machine's clock is ahead of the server's; 0 for what a way may take.

        Asked for when the answer has just come.
        """
        age = self.headers.get("age", "0").strip()
        try:
            sent = parsedate_to_datetime(self.headers["date"]).timestamp()
        except (KeyError, ValueError, TypeError, OverflowError):
            return 0
        ahead = int((time.time() - sent - (int(age[:9]) if age.isdecimal() else 0)) * 1000)
        return ahead if abs(ahead) > _LONGEST_WAY_MS else 0

    def json(self) -> dict[str, Any]:
        """Return the body's JSON object.

        Raises StorageError where there is none.
        """
        try:
            found = json.loads(self.content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise StorageError(
                f"the REST catalog's server answered {self.status} without a JSON object: is uri "
                f"the address of an Iceberg REST catalog?"
            )
        return found

    def objects(self, name: str) -> list[Any]:
        """Return a list of the body; nothing where it has none.

        Raises StorageError: the body is no JSON object, or the field no list.
        """
        found = self.json().get(name)
        if found is None:
            return []
        if not isinstance(found, list):
            raise StorageError(f"the REST catalog's server answered with a {name} that is no list")
        return found


class NotSentError(StorageError):
    """The server was not reached: it knows nothing of the request."""


class LostAnswerError(StorageError):
    """A change was sent, and what became of it is unknown.

    Attributes:
        refusal: what the server answered to the same request sent again; None if nothing.
    """

    def __init__(self, message: str, refusal: FrazilError | None = None) -> None:
        super().__init__(message)
        self.refusal = refusal


class EndlessAnswerError(LostAnswerError):
    """An answer is longer or takes longer than any should: to ask again would not help."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """What the statuses of one request mean.

    Attributes:
        missing: 404, unless the server's type of the error says more.
        conflict: 409, the same.
        invalid: 400 and 422.
    """

    missing: type[FrazilError] = NotFoundError
    conflict: type[FrazilError] = CommitFailedError
    invalid: type[FrazilError] = ValidationError

    def error(self, answer: Answer, what: str, secrets: Mapping[str, str]) -> FrazilError:
        """Return the error to raise for an answer that is no success.

        `what` was asked, as in ``cannot <what>``; values of `secrets` are not shown.
        """
        kind, text = _kind_and_message(answer)
        name = self._type(answer.status, kind, text)
        said = redact(text, secrets) or kind
        return name(f"cannot {what}: {_MEANINGS.get(answer.status, '')}{said or answer.status}")

    def _type(self, status: int, kind: str, text: str) -> type[FrazilError]:
        if status == 404:
            return _MISSING.get(kind, self.missing)
        if status == 409:
            return _CONFLICTS.get(kind, self.conflict)
        if status in (401, 403, 419):
            return AccessDeniedError
        if status in (406, 405, 501):
            return UnsupportedError
        if status >= 500 or status < 400 or status in (408, 429):
            return StorageError
        if kind == "NamespaceNotEmptyException":
            return NamespaceNotEmptyError
        if issubclass(self.conflict, CommitFailedError) and _OUTDATED.search(text):
            return OutdatedUpdateError
        return self.invalid


_MEANINGS: Final = {
    401: "the server does not know who asks (401): ",
    403: "the server does not permit it (403): ",
    419: "the credentials have ended (419): ",
    429: "the server is asked too often (429): ",
    503: "the server is not available (503): ",
}


def _kind_and_message(answer: Answer) -> tuple[str, str]:
    """The type and the text of an error, on one line; empty where the server tells none."""
    try:
        body = json.loads(answer.content)
    except (ValueError, RecursionError):
        return "", ""
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, str):
        # OAuth2 has a form of its own.
        return shown_text(error), shown_text(f"{error}: {body.get('error_description') or ''}")
    if not isinstance(error, dict):
        return "", ""
    return shown_text(error.get("type")), shown_text(error.get("message"))


def shown_text(text: object) -> str:
    """Return a server's text as it may be shown: one line, without control characters, not long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text or "")).split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[:_LONGEST_TEXT]}…"
