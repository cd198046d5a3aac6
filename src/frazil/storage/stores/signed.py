"""S3 whose requests somebody else signs: each is shown to a signer, and sent as it comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from frazil.storage.stores.s3 import S3Store
from frazil.storage.stores.s3_client import S3Client

_NOT_SIGNED: Final = ("user-agent", "expect", "connection", "x-amzn-trace-id", "amz-sdk-request")
_DELETES: Final = "delete"


@dataclass(frozen=True, slots=True)
class StoreRequest:
    """A request to S3 before it is signed.

    Attributes:
        method: HTTP's.
        url: with its query.
        region: of the bucket.
        headers: that go with it, by their names in lower case; those of one's own program are out.
        body: of a request whose content decides what happens: a deletion of several objects.
    """

    method: str
    url: str
    region: str
    headers: Mapping[str, str] = field(repr=False)
    body: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request as it is to be sent.

    Attributes:
        url: with its query.
        headers: that are set, in place of those of the same name.
    """

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


class RequestSigner(Protocol):
    """Signs requests; safe under threads."""

    def sign(self, request: StoreRequest) -> SignedRequest:
        """Return what to send.

        Raises AccessDeniedError: the signer refuses; StorageError: it does not answer.
        """


def signed_store(properties: Mapping[str, str], signer: RequestSigner) -> S3Store:
    """Return the store of S3 whose requests a signer signs; keys in the properties are not used."""

    def sign_request(request: Any, region_name: str | None = None, **_: Any) -> None:
        _apply(request, signer.sign(_store_request(request, region_name or "")))

    return S3Store(S3Client(properties, before_sign=sign_request))


def _store_request(request: Any, region: str) -> StoreRequest:
    headers = {
        str(name).lower(): _text(value)
        for name, value in request.headers.items()
        if str(name).lower() not in _NOT_SIGNED and not str(name).lower().startswith("amz-sdk-")
    }
    query = request.url.partition("?")[2]
    deletes = request.method == "POST" and _DELETES in (
        p.partition("=")[0] for p in query.split("&")
    )
    body = _text(request.data) if deletes and request.data else None
    return StoreRequest(request.method, request.url, region, headers, body)


def _apply(request: Any, signed: SignedRequest) -> None:
    request.url = signed.url
    for name, value in signed.headers.items():
        del request.headers[name]
        request.headers[name] = value


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes | bytearray) else str(value)
