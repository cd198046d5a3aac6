"""Properties of the Glue catalog: Java's and PyIceberg's names, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from frazil.errors import ConfigurationError, UnsupportedError
from frazil.format.properties.kinds import FLAG, TEXT, Property, one_of, optional, whole_number

_MILLISECONDS: Final = whole_number("milliseconds", smallest=1)

CATALOG_ID: Final = Property("glue.id", optional(TEXT), None)
ENDPOINT: Final = Property("glue.endpoint", optional(TEXT), None)
SKIP_ARCHIVE: Final = Property("glue.skip-archive", FLAG, True)
SKIP_NAME_VALIDATION: Final = Property("glue.skip-name-validation", FLAG, False)
LAKE_FORMATION: Final = Property("glue.lakeformation-enabled", FLAG, False)
MAX_RETRIES: Final = Property("glue.max-retries", whole_number(largest=100), 10)
RETRY_MODE: Final = Property(
    "glue.retry-mode", one_of("legacy", "standard", "adaptive"), "standard"
)

ROLE_ARN: Final = "client.assume-role.arn"
ROLE_REGION: Final = "client.assume-role.region"
ROLE_EXTERNAL_ID: Final = "client.assume-role.external-id"
ROLE_SESSION_NAME: Final = "client.assume-role.session-name"
ROLE_SECONDS: Final = Property(
    "client.assume-role.timeout-sec", whole_number("seconds", smallest=900, largest=43_200), 3600
)
ROLE_TAGS: Final = "client.assume-role.tags."
STS_ENDPOINT: Final = "client.assume-role.endpoint"
FACTORY: Final = "client.factory"

_CONNECT: Final = (
    Property("http-client.apache.connection-timeout-ms", optional(_MILLISECONDS), None),
    Property("http-client.urlconnection.connection-timeout-ms", optional(_MILLISECONDS), None),
)
_READ: Final = (
    Property("http-client.apache.socket-timeout-ms", optional(_MILLISECONDS), None),
    Property("http-client.urlconnection.socket-timeout-ms", optional(_MILLISECONDS), None),
)
_CONNECT_MS: Final = 10_000
_READ_MS: Final = 30_000
_OF_CALLER: Final = ("region", "access-key-id", "secret-access-key", "session-token")
_FACTORIES: Final = frozenset(
    {
        "org.apache.iceberg.aws.AssumeRoleAwsClientFactory",
        "org.apache.iceberg.aws.AwsClientFactories.DefaultAwsClientFactory",
        "org.apache.iceberg.aws.AwsClientFactories$DefaultAwsClientFactory",
    }
)

PROPERTY_NAMES: Final = frozenset(
    {
        *(f"glue.{name}" for name in (*_OF_CALLER, "profile-name")),
        *(ROLE_ARN, ROLE_REGION, ROLE_EXTERNAL_ID, ROLE_SESSION_NAME, STS_ENDPOINT, FACTORY),
        *(
            each.name
            for each in (
                *(CATALOG_ID, ENDPOINT, SKIP_ARCHIVE, SKIP_NAME_VALIDATION, LAKE_FORMATION),
                *(MAX_RETRIES, RETRY_MODE, ROLE_SECONDS, *_CONNECT, *_READ),
            )
        ),
    }
)
PROPERTY_PREFIXES: Final = (ROLE_TAGS,)


@dataclass(frozen=True, slots=True)
class AwsKeys:
    """Keys that the configuration holds."""

    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(repr=False, default=None)


@dataclass(frozen=True, slots=True)
class AssumedRole:
    """A role that calls are made in.

    Attributes:
        arn: of the role.
        seconds: how long its credentials hold; they are renewed before.
        external_id: what the owner of the role asks for; it may be kept secret.
        session_name: what the audit log calls the session.
        tags: of the session.
        endpoint: of the service STS, where it is not AWS's own.
    """

    arn: str
    seconds: int
    external_id: str | None = field(repr=False, default=None)
    session_name: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class GlueSettings:
    """How the service is reached, and how tables are changed.

    Attributes:
        catalog_id: the account whose catalog it is; None for the caller's own.
        endpoint: of a service that is not AWS's own.
        region: where the catalog is; None if the environment says it.
        keys: None if the profile or the environment has them.
        profile: of the files of AWS's command line.
        role: None where calls are made in nobody else's name.
        max_retries: tries after the first.
        retry_mode: botocore's name for how pauses between tries grow.
        connect_seconds: until a connection stands.
        read_seconds: how long the service may be silent.
        skips_archive: whether a commit leaves no old version of the table in Glue.
        skips_name_validation: whether the service alone decides which names there can be.
    """

    catalog_id: str | None = None
    endpoint: str | None = None
    region: str | None = None
    keys: AwsKeys | None = None
    profile: str | None = None
    role: AssumedRole | None = None
    max_retries: int = MAX_RETRIES.default
    retry_mode: str = RETRY_MODE.default
    connect_seconds: float = _CONNECT_MS / 1000
    read_seconds: float = _READ_MS / 1000
    skips_archive: bool = SKIP_ARCHIVE.default
    skips_name_validation: bool = SKIP_NAME_VALIDATION.default

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> GlueSettings:
        """Return what the properties say."""
        _refuse_what_java_alone_has(properties)
        role = _role_of(properties)
        own_region = properties.get("glue.region") or properties.get("client.region")
        return cls(
            catalog_id=CATALOG_ID.of(properties),
            endpoint=ENDPOINT.of(properties),
            region=(properties.get(ROLE_REGION) if role else None) or own_region,
            keys=_keys_of("glue", properties) or _keys_of("client", properties),
            profile=properties.get("glue.profile-name") or properties.get("client.profile-name"),
            role=role,
            max_retries=MAX_RETRIES.of(properties),
            retry_mode=RETRY_MODE.of(properties),
            connect_seconds=_first_value(_CONNECT, properties, _CONNECT_MS) / 1000,
            read_seconds=_first_value(_READ, properties, _READ_MS) / 1000,
            skips_archive=SKIP_ARCHIVE.of(properties),
            skips_name_validation=SKIP_NAME_VALIDATION.of(properties),
        )


def _refuse_what_java_alone_has(properties: Mapping[str, str]) -> None:
    if LAKE_FORMATION.of(properties):
        raise UnsupportedError(
            f"{LAKE_FORMATION.name} is true: credentials of Lake Formation are not supported; give "
            f"keys or a role that may read the tables' files, and leave the property out"
        )
    factory = properties.get(FACTORY)
    if factory is not None and factory not in _FACTORIES:
        raise UnsupportedError(
            f"{FACTORY} is {factory!r}, a class of Java: give keys (glue.access-key-id), a profile "
            f"(glue.profile-name) or a role ({ROLE_ARN})"
        )


def _keys_of(prefix: str, properties: Mapping[str, str]) -> AwsKeys | None:
    """The keys below one prefix: those of two prefixes are never mixed."""
    names = [f"{prefix}.{name}" for name in _OF_CALLER[1:]]
    key, secret, token = (properties.get(name) for name in names)
    if key and secret:
        return AwsKeys(key, secret, token)
    if key or secret:
        raise ConfigurationError(f"give both {names[0]} and {names[1]}, or neither of them")
    return None


def _role_of(properties: Mapping[str, str]) -> AssumedRole | None:
    arn = properties.get(ROLE_ARN)
    if not arn:
        return None
    tags = {
        name.removeprefix(ROLE_TAGS): value
        for name, value in properties.items()
        if name.startswith(ROLE_TAGS)
    }
    return AssumedRole(
        arn,
        ROLE_SECONDS.of(properties),
        properties.get(ROLE_EXTERNAL_ID),
        properties.get(ROLE_SESSION_NAME),
        tuple(sorted(tags.items())),
        properties.get(STS_ENDPOINT),
    )


def _first_value(
    several: tuple[Property[int | None], ...], properties: Mapping[str, str], default: int
) -> int:
    """The value of the first property that is set."""
    found = (each.of(properties) for each in several)
    return next((value for value in found if value is not None), default)
