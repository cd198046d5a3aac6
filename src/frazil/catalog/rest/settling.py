"""A change that was sent and whose answer is lost: asked for until it is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from frazil.catalog.outcome import find_outcome
from frazil.catalog.rest.client import RestRequest
from frazil.catalog.rest.connection import Connection
from frazil.catalog.rest.exchange.answers import Answer, LostAnswerError
from frazil.errors import CommitFailedError


def settle(
    connection: Connection,
    request: RestRequest,
    took_place: Callable[[], bool | None],
    *,
    properties: Mapping[str, str] | None = None,
) -> Answer | None:
    """Send a change and return its answer; None where only the catalog shows that it took place.

    `took_place` tells what the catalog shows now; None where that cannot be told. Raises
    CommitFailedError: it was not sent, or no answer came and it did not take place;
    CommitStateUnknownError: no answer came, and none could be had; AccessDeniedError,
    NotFoundError, …: the server refuses.
    """
    try:
        return connection.client.change(request)
    except LostAnswerError as lost:
        refusal = lost.refusal

        def ask() -> bool | None:
            seen = took_place()
            return False if seen is None and refusal is not None else seen

        checks = {**connection.properties, **(properties or {})}
        if find_outcome(ask, checks, change=f"the request to {request.what}", reason=str(lost)):
            return None
        if refusal is not None:
            raise refusal from None
        raise CommitFailedError(f"cannot {request.what}: it did not take place: {lost}") from None
