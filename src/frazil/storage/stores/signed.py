"""S3 whose requests somebody else signs: each is shown to a signer, and sent as it comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from frazil.errors import ConfigurationError
from frazil.storage.stores.remote import RemoteStore
from frazil.storage.stores.remote_options import storage_options

_SIGNING: Final = "before-sign.s3"
_HOOK: Final = "frazil-signer"
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

        Raises:
            AccessDeniedError: the signer refuses.
            StorageError: it does not answer.
        """


def signed_store(scheme: str, properties: Mapping[str, str], signer: RequestSigner) -> RemoteStore:
    """Return the store of S3 whose requests a signer signs; keys in the properties are not used.

    Raises:
        ConfigurationError: a property is malformed, or the driver is not installed.
    """
    try:
        import aiobotocore.session
        from s3fs import S3FileSystem
    except ImportError:
        raise ConfigurationError(
            f"no driver for {scheme}:// is installed: install frazil[s3]"
        ) from None
    options = storage_options("s3", properties)
    options |= {"anon": True, "use_listings_cache": False}
    # A signer sees no content, and so cannot sign sums of it that come behind it.
    options["config_kwargs"]["request_checksum_calculation"] = "when_required"

    async def signed(request: Any, region_name: str | None = None, **_: Any) -> None:
        asked = _asked(request, region_name or "")
        # The loop that sends requests must not wait for the signer.
        _apply(request, await asyncio.to_thread(signer.sign, asked))

    session = aiobotocore.session.AioSession()
    # On the session, since the driver makes new clients where its connections are lost.
    session.register(_SIGNING, signed, unique_id=_HOOK)
    return RemoteStore(scheme, S3FileSystem(session=session, skip_instance_cache=True, **options))


def _asked(request: Any, region: str) -> StoreRequest:
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
