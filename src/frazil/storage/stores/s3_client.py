"""A client of S3 for threads: Amazon's own for Python, with Java's way to try again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cache
from typing import Any, Final, TypeVar

from frazil.errors import ConfigurationError
from frazil.storage.stores.remote_options import storage_options
from frazil.storage.stores.retries import Retries

_CONNECTIONS: Final = 64
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 15
_ASKED_BEFORE: Final = 1 << 20
"""From this many bytes on the store is asked whether it takes a body before that is sent."""

_PASSING: Final = frozenset(
    {
        *("SlowDown", "Throttling", "ThrottlingException", "RequestThrottled"),
        *("RequestThrottledException", "RequestLimitExceeded", "TooManyRequestsException"),
        *("InternalError", "ServiceUnavailable", "RequestTimeout", "RequestTimeoutException"),
        *("BandwidthLimitExceeded", "PriorRequestNotComplete", "XAmzContentSHA256Mismatch"),
    }
)
_PASSING_STATUSES: Final = frozenset({429, 500, 502, 503, 504})

T = TypeVar("T")


class S3Client:
    """Makes requests; safe under threads, not after a fork.

    Args:
        properties: of stores.
        scheme: of the paths, for messages.
        before_sign: is shown each request in place of a signature with keys.

    Raises:
        ConfigurationError: a property is malformed, or Amazon's client is not installed.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        scheme: str = "s3",
        before_sign: Callable[..., None] | None = None,
    ) -> None:
        try:
            import botocore.session
            from botocore import UNSIGNED
            from botocore.config import Config
        except ImportError:
            raise ConfigurationError(
                f"no driver for {scheme}:// is installed: install frazil[s3]"
            ) from None
        options = storage_options("s3", properties)
        self._retries = Retries.of(properties)
        self._upload: Mapping[str, str] = options.get("s3_additional_kwargs", {})
        config = {
            "connect_timeout": _CONNECT_SECONDS,
            "read_timeout": _READ_SECONDS,
            "max_pool_connections": _CONNECTIONS,
            "retries": {"total_max_attempts": 1},
            **options["config_kwargs"],
        }
        client = dict(options["client_kwargs"])
        if options["anon"] or before_sign is not None:
            config["signature_version"] = UNSIGNED
            for name in ("aws_access_key_id", "aws_secret_access_key", "aws_session_token"):
                client.pop(name, None)
        if before_sign is not None:
            # A signer sees no content, and so cannot sign sums of it that come behind it.
            config["request_checksum_calculation"] = "when_required"
        session = botocore.session.Session(profile=options.get("profile"))
        session.register_component("data_loader", _loader())
        if before_sign is not None:
            session.register("before-sign.s3", before_sign, unique_id="frazil-signer")
        self._client = session.create_client("s3", config=Config(**config), **client)
        self._client.meta.events.register_last("before-call.s3", _send_small_bodies_at_once)

    def ask(self, method: str, **given: Any) -> Mapping[str, Any]:
        """Return the answer to a request by the name of the client's method.

        Raises FileNotFoundError: there is no such object or bucket; RetriesSpentError: the store
        did not answer, however often it was asked.
        """
        call: Callable[..., Mapping[str, Any]] = getattr(self._client, method)
        return self._retry(lambda: call(**given))

    def write(self, method: str, **given: Any) -> Mapping[str, Any]:
        """Return the answer to a request that makes an object, with what is set for all of them."""
        return self.ask(method, **self._upload, **given)

    def get(self, **asked: str) -> tuple[bytes, Mapping[str, Any]]:
        """Return the bytes of an object or of a range of it (``bytes=0-9``), and the answer."""

        def get() -> tuple[bytes, Mapping[str, Any]]:
            answer = self._client.get_object(**asked)
            # Not `with` it: that gives the stream below, which takes a part for the whole.
            with closing(answer["Body"]) as body:
                return body.read(), answer

        return self._retry(get)

    def _retry(self, request: Callable[[], T]) -> T:
        try:
            return self._retries.run(request, _is_passing)
        except Exception as error:
            if code_of(error) in ("404", "NoSuchKey", "NoSuchBucket", "NoSuchUpload"):
                raise FileNotFoundError(str(error)) from None
            raise


@cache
def _loader() -> Any:
    """What reads the description of S3, which takes ten times as long as all else of a client."""
    from botocore.loaders import create_loader

    return create_loader()


def code_of(error: BaseException) -> str:
    """What the store calls an error; nothing where it is not the store that says it."""
    answer = getattr(error, "response", None)
    said = answer.get("Error", {}) if isinstance(answer, dict) else {}
    return str(said.get("Code", ""))


def _is_passing(error: Exception) -> bool:
    """Whether the store may answer the next time: it is busy, or a connection was lost."""
    from botocore import exceptions, parsers

    answer = getattr(error, "response", None)
    if isinstance(answer, dict):
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return code_of(error) in _PASSING or status in _PASSING_STATUSES
    lost = (exceptions.HTTPClientError, exceptions.IncompleteReadError)
    unreached = (exceptions.EndpointConnectionError, exceptions.ConnectTimeoutError)
    return isinstance(error, (*lost, *unreached, parsers.ResponseParserError))


def _send_small_bodies_at_once(params: Mapping[str, Any], **_: Any) -> None:
    """Leave out the question whether the store takes a body: it costs as much time as the body."""
    body = params.get("body")
    if isinstance(body, bytes | bytearray) and len(body) < _ASKED_BEFORE:
        params["headers"].pop("Expect", None)
