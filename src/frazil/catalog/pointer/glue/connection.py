"""Calls of Glue: tried again by botocore, with typed errors, and settled where no answer came."""

from __future__ import annotations

import importlib
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from frazil.catalog.outcome import Sending, find_outcome
from frazil.catalog.pointer.glue.settings import AssumedRole, GlueSettings
from frazil.errors import (
    AccessDeniedError,
    CommitFailedError,
    ConfigurationError,
    FrazilError,
    StorageError,
    ValidationError,
)
from frazil.storage.paths import redact

NOT_FOUND: Final = "EntityNotFoundException"
ALREADY_EXISTS: Final = "AlreadyExistsException"
CHANGED_MEANWHILE: Final = "ConcurrentModificationException"
_THROTTLED: Final = frozenset({"ThrottlingException", "ProvisionedThroughputExceededException"})
_DENIED: Final = frozenset({"AccessDeniedException", "AccessDenied", "NotAuthorizedException"})
_NOT_KNOWN: Final = frozenset(
    {
        *("UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException"),
        *("ExpiredTokenException", "ExpiredToken", "IncompleteSignatureException"),
        *("SignatureDoesNotMatch", "MissingAuthenticationTokenException", "InvalidAccessKeyId"),
    }
)
_INVALID: Final = frozenset({"InvalidInputException", "ValidationException"})
_UNSURE: Final = frozenset({"OperationTimeoutException", "InternalServiceException"})
# Errors of botocore that come before anything is sent.
_NOT_SENT: Final = ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError")


class RefusalError(Exception):
    """The service has said no.

    Attributes:
        code: the service's name of the reason.
        reason: what it says, without secrets.
        is_certain: false where an earlier try of the same call may have been carried out.
    """

    def __init__(self, code: str, reason: str, *, is_certain: bool) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason
        self.is_certain = is_certain


class NoAnswerError(Exception):
    """A call was sent, and no answer says whether it was carried out."""


class GlueConnection:
    """The service, as one catalog reaches it; a forked child has a client of its own.

    Args:
        name: the catalog's, for messages.
        settings: how the service is reached.
        secrets: properties whose secret values no message may hold.
    """

    def __init__(self, name: str, settings: GlueSettings, secrets: Mapping[str, str]) -> None:
        self.name = name
        self.settings = settings
        self._secrets = secrets
        self._clients: dict[int, Any] = {}
        self._making = threading.Lock()
        self._tries = _Tries()
        self._failures = aws_module("botocore.exceptions")

    def close(self) -> None:
        """Give back the connections of this process."""
        with self._making:
            client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    def find(self, operation: str, **arguments: Any) -> dict[str, Any] | None:
        """Return the answer of a call that reads; None where what it names is not there.

        Raises StorageError: the service does not answer, or fails.
        """
        try:
            return self.call(operation, **arguments)
        except RefusalError as refusal:
            if refusal.code == NOT_FOUND:
                return None
            raise self.error(refusal) from None
        except NoAnswerError as error:
            raise StorageError(f"the glue catalog {self.name} gave no answer: {error}") from None

    def pages(self, operation: str, key: str, **arguments: Any) -> Iterator[dict[str, Any] | None]:
        """Return the entries of all pages of a listing; one None where its place is not there."""
        token: dict[str, str] = {}
        while True:
            answer = self.find(operation, **arguments, **token)
            if answer is None:
                yield None
                return
            yield from answer.get(key, ())
            if not answer.get("NextToken"):
                return
            token = {"NextToken": answer["NextToken"]}

    def change(
        self,
        what: str,
        operation: str,
        arguments: Mapping[str, Any],
        *,
        took_place: Callable[[], bool | None],
        properties: Mapping[str, str],
        refusals: Mapping[str, FrazilError],
        sending: Sending | None = None,
    ) -> None:
        """Make a call that changes something, and learn what became of it.

        `took_place` tells, where no answer says it; None if it cannot. `refusals`: what to raise
        for the service's names of reasons. `sending` learns when the call is sent, and that it was
        refused.
        Raises CommitFailedError: no answer came, and the change did not take place;
        CommitStateUnknownError: no answer came, and none could be had; AccessDeniedError,
        ValidationError, StorageError: the service has refused it.
        """
        sent = sending if sending is not None else Sending()
        sent.begin()
        try:
            self.call(operation, **arguments)
        except RefusalError as refusal:
            refused = refusals.get(refusal.code) or self.error(refusal)
            is_certain, reason = refusal.is_certain, str(refusal)
        except NoAnswerError as error:
            refused = CommitFailedError(f"{what} did not take place: {error}")
            is_certain, reason = False, str(error)
        else:
            return
        if is_certain or not find_outcome(took_place, properties, change=what, reason=reason):
            sent.refute()
            raise refused from None

    def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Make one call; botocore tries it again where that may help.

        Raises RefusalError: the service has said no; NoAnswerError: no answer came, or none that
        says what was done; AccessDeniedError, ValidationError: nothing was sent.
        """
        if self.settings.catalog_id is not None:
            arguments["CatalogId"] = self.settings.catalog_id
        client = self._client()
        self._tries.begin()
        try:
            answer: dict[str, Any] = getattr(client, operation)(**arguments)
            return answer
        except self._failures.ClientError as error:
            raise self._error_of_answer(error) from None
        except self._failures.ParamValidationError as error:
            raise ValidationError(f"Glue cannot take that: {self._redacted_text(error)}") from None
        except self._failures.BotoCoreError as error:
            if type(error).__name__ in _NOT_SENT:
                raise AccessDeniedError(
                    f"the glue catalog {self.name} has no keys for AWS ({type(error).__name__}): "
                    f"give glue.access-key-id and glue.secret-access-key, or a profile"
                ) from None
            raise NoAnswerError(f"{type(error).__name__}: {self._redacted_text(error)}") from None

    def error(self, refusal: RefusalError) -> FrazilError:
        """Return the typed error of what the service has refused."""
        code, where = refusal.code, f"the glue catalog {self.name}"
        if code in _DENIED:
            return AccessDeniedError(f"{where} does not permit it: {refusal.reason}")
        if code in _NOT_KNOWN:
            # What the service says of a signature holds what was signed.
            return AccessDeniedError(f"{where} does not accept the keys ({code})")
        if code in _INVALID:
            return ValidationError(f"{where} refuses it: {refusal.reason}")
        if code in _THROTTLED:
            return StorageError(
                f"{where} still throttles calls after {self.settings.max_retries} more tries "
                f"({code}): try again later, or set glue.max-retries"
            )
        return StorageError(f"{where} failed: {refusal}")

    def _error_of_answer(self, error: Any) -> RefusalError | NoAnswerError:
        found = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        code, reason = str(found.get("Code", "")), self._redacted_text(found.get("Message", ""))
        if status >= 500 or code in _UNSURE:
            return NoAnswerError(f"{code or status}: {reason}")
        return RefusalError(code, reason, is_certain=not self._tries.may_have_changed)

    def _redacted_text(self, said: object) -> str:
        return redact(" ".join(str(said).split()), self._secrets)

    def _client(self) -> Any:
        # A forked child must not use the connections of its parent.
        process = os.getpid()
        found = self._clients.get(process)
        if found is not None:
            return found
        with self._making:
            if process not in self._clients:
                client = new_client(self.settings)
                client.meta.events.register("needs-retry.glue", self._tries.note)
                self._clients[process] = client
            return self._clients[process]


class _Tries(threading.local):
    """What this thread knows of the tries of its call.

    Attributes:
        may_have_changed: whether a try had no answer that says what was done.
    """

    may_have_changed = False

    def begin(self) -> None:
        """Forget the call before."""
        self.may_have_changed = False

    def note(self, response: Any = None, caught_exception: Any = None, **_: Any) -> None:
        """Look at the end of a try, which botocore tells."""
        if caught_exception is not None or response is None or response[0].status_code >= 500:
            self.may_have_changed = True


# -- the client ------------------------------------------------------------------------------------


def new_client(settings: GlueSettings) -> Any:
    """Return a client of boto3 that tries again what was throttled, with growing random pauses."""
    boto3 = aws_module("boto3")
    failures = aws_module("botocore.exceptions")
    try:
        session = _session(boto3, settings)
        return session.client("glue", endpoint_url=settings.endpoint, config=_config(settings))
    except failures.NoRegionError:
        raise ConfigurationError(
            "the glue catalog needs a region: give glue.region or client.region, or set AWS_REGION"
        ) from None
    except failures.BotoCoreError as error:
        raise ConfigurationError(f"the client of Glue cannot be made: {error}") from None
    except ValueError as error:
        raise ConfigurationError(f"glue.endpoint cannot be used: {error}") from None


def _session(boto3: Any, settings: GlueSettings) -> Any:
    keys = settings.keys
    session = boto3.Session(
        profile_name=settings.profile,
        region_name=settings.region,
        aws_access_key_id=None if keys is None else keys.access_key_id,
        aws_secret_access_key=None if keys is None else keys.secret_access_key,
        aws_session_token=None if keys is None else keys.session_token,
    )
    return session if settings.role is None else _in_role(boto3, session, settings, settings.role)


def _in_role(boto3: Any, session: Any, settings: GlueSettings, role: AssumedRole) -> Any:
    """A session whose credentials are those of the role, asked for anew before they end."""
    credentials = aws_module("botocore.credentials")
    core = aws_module("botocore.session").get_session()
    wanted = {
        "RoleArn": role.arn,
        "RoleSessionName": role.session_name or f"iceberg-aws-{uuid.uuid4()}",
        "DurationSeconds": role.seconds,
        "Tags": [{"Key": key, "Value": value} for key, value in role.tags],
        "ExternalId": role.external_id,
    }
    given = {name: value for name, value in wanted.items() if value}
    sts = session.client("sts", endpoint_url=role.endpoint, config=_config(settings))
    renewed = credentials.DeferredRefreshableCredentials(
        credentials.create_assume_role_refresher(sts, given), "assume-role"
    )
    core.register_component("credential_provider", _Renewed(renewed))
    return boto3.Session(botocore_session=core, region_name=session.region_name)


@dataclass(frozen=True, slots=True)
class _Renewed:
    """What botocore's session asks for its credentials: those that are renewed by themselves."""

    credentials: Any = field(repr=False)

    def load_credentials(self) -> Any:
        """Return them."""
        return self.credentials


def _config(settings: GlueSettings) -> Any:
    return aws_module("botocore.config").Config(
        connect_timeout=settings.connect_seconds,
        read_timeout=settings.read_seconds,
        retries={"max_attempts": settings.max_retries, "mode": settings.retry_mode},
        user_agent_extra="frazil",
    )


def aws_module(name: str) -> Any:
    """Return a module of boto3 or botocore; ConfigurationError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ConfigurationError(
            "the glue catalog needs boto3: pip install 'frazil[glue]'"
        ) from None
