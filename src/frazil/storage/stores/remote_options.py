"""PyIceberg's and Java's storage properties: credentials, and options of fsspec file systems."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from frazil.errors import ConfigurationError
from frazil.storage.stores.retries import RETRY_DEFAULTS
from frazil.storage.stores.store import IO_PROPERTY

S3_SCHEMES = frozenset({"s3", "s3a"})
GCS_SCHEMES = frozenset({"gs", "gcs"})
ADLS_SCHEMES = frozenset({"abfs", "abfss", "wasb", "wasbs", "az"})
EXTRA_OF = {
    **dict.fromkeys(S3_SCHEMES, "s3"),
    **dict.fromkeys(GCS_SCHEMES, "gcs"),
    **dict.fromkeys(ADLS_SCHEMES, "abfs"),
}
_SAS_OF_ACCOUNT = "adls.sas-token."
_KNOWN = frozenset(
    {
        IO_PROPERTY,
        *(
            f"{prefix}.{name}"
            for prefix in ("s3", "client")
            for name in (
                "access-key-id",
                "secret-access-key",
                "session-token",
                "region",
                "profile-name",
            )
        ),
        "s3.endpoint",
        "s3.anonymous",
        "s3.path-style-access",
        "s3.force-virtual-addressing",
        "s3.proxy-uri",
        "s3.connect-timeout",
        "s3.request-timeout",
        "s3.server-side-encryption",
        "s3.sse-kms-key-id",
        *RETRY_DEFAULTS,
        "gcs.project-id",
        "gcs.access",
        "gcs.consistency",
        "gcs.default-bucket-location",
        "gcs.service.host",
        "gcs.oauth2.token",
        "gcs.oauth2.token-expires-at",
        "gcs.cache-timeout",
        "gcs.requester-pays",
        "gcs.session-kwargs",
        "adls.connection-string",
        "adls.account-name",
        "adls.account-key",
        "adls.account-host",
        "adls.sas-token",
        "adls.tenant-id",
        "adls.client-id",
        "adls.client-secret",
        "adls.credential",
        "adls.anon",
        "hdfs.host",
        "hdfs.port",
        "hdfs.user",
        "hdfs.kerberos_ticket",
    }
)
_ALIKE: Final = (tuple(S3_SCHEMES), tuple(GCS_SCHEMES))
_KEYS: Final = ("s3.access-key-id", "client.access-key-id", "gcs.oauth2.token", "adls.account-key")
_SAS_TOKEN: Final = "adls.sas-token"  # noqa: S105
# What is made of a secret with a key that ends with the process tells nobody anything of it.
_TAG_KEY: Final = secrets.token_bytes(32)
# By these one path names another file; all else says how a store is asked, and who asks.
_PLACES = (
    *("s3.endpoint", "s3.region", "client.region", "s3.profile-name", "client.profile-name"),
    *("gcs.service.host", "adls.account-name", "adls.account-host", "hdfs.host", "hdfs.port"),
)
_SECRETS_OF_CONNECTION = frozenset({"accountkey", "sharedaccesssignature"})
# A credential leaves only for hosts of these clouds: a path may come from a stranger's metadata.
_OTHER_CLOUDS = r"chinacloudapi\.cn|usgovcloudapi\.net|cloudapi\.de"
_OTHER_HOST = re.compile(rf"([^.]+)\.(?:dfs|blob)\.core\.({_OTHER_CLOUDS})")
_GCS_METHODS = frozenset({"google_default", "cache", "cloud", "anon"})


@dataclass(frozen=True, slots=True)
class AccessToken:
    """An OAuth2 access token as it is sent.

    Attributes:
        text: the secret.
        expires_ms: when it ends, milliseconds since the epoch; None if nobody said.
    """

    text: str = field(repr=False)
    expires_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StorageCredential:
    """What reaches the files below a prefix.

    Attributes:
        prefix: of paths; empty for all.
        config: storage properties; secrets stay in it.
        ends_ms: when they end by this machine's clock, milliseconds since the epoch; None if nobody
            said.
    """

    prefix: str
    config: Mapping[str, str] = field(repr=False)
    ends_ms: int | None = None

    @property
    def holds_keys(self) -> bool:
        """Whether there are keys or tokens in it, and not only addresses."""
        return any(name in _KEYS or name.startswith(_SAS_TOKEN) for name in self.config)

    @property
    def tag(self) -> str:
        """Text that is equal for equal credentials of this process, and says nothing of them."""
        text = repr((self.prefix, sorted(self.config.items()))).encode()
        return hmac.new(_TAG_KEY, text, hashlib.sha256).hexdigest()[:16]


def storage_property_names() -> frozenset[str]:
    """Every property that a store is reached with; those with an account's name in them aside."""
    return _KNOWN


def is_storage_property(name: str) -> bool:
    """Whether a property says how a store is reached."""
    return name in _KNOWN or name.startswith(_SAS_OF_ACCOUNT)


def places_of_stores(properties: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the properties that decide which file a path names; none of them is a secret."""
    parts = _parts_of_connection(properties.get("adls.connection-string", ""))
    return (
        *((name, properties[name]) for name in _PLACES if name in properties),
        *(("adls.sas-token", account) for account in sorted(_sas_by_account(properties))),
        *(part for part in parts if part[0].lower() not in _SECRETS_OF_CONNECTION),
    )


def storage_options(
    scheme: str, properties: Mapping[str, str], authority: str = ""
) -> dict[str, Any]:
    """The keyword arguments for the driver of a scheme."""
    if scheme in S3_SCHEMES:
        return _s3(properties)
    if scheme in GCS_SCHEMES:
        return _gcs(properties)
    if scheme in ADLS_SCHEMES:
        return _adls(properties, authority)
    if scheme == "hdfs":
        return _rename_properties(
            properties,
            {
                "hdfs.host": "host",
                "hdfs.port": "port",
                "hdfs.user": "user",
                "hdfs.kerberos_ticket": "kerb_ticket",
            },
        )
    return {}


def _s3(properties: Mapping[str, str]) -> dict[str, Any]:
    client = _rename_properties(
        properties,
        {
            "s3.endpoint": "endpoint_url",
            "client.access-key-id": "aws_access_key_id",
            "client.secret-access-key": "aws_secret_access_key",
            "client.session-token": "aws_session_token",
            "client.region": "region_name",
            "s3.access-key-id": "aws_access_key_id",
            "s3.secret-access-key": "aws_secret_access_key",
            "s3.session-token": "aws_session_token",
            "s3.region": "region_name",
        },
    )
    timeouts = {"s3.connect-timeout": "connect_timeout", "s3.request-timeout": "read_timeout"}
    config: dict[str, Any] = {
        option: _number(properties, name) for name, option in timeouts.items() if name in properties
    }
    if proxy := properties.get("s3.proxy-uri"):
        config["proxies"] = {"http": proxy, "https": proxy}
    if _flag(properties, "s3.force-virtual-addressing"):
        config["s3"] = {"addressing_style": "virtual"}
    elif _flag(properties, "s3.path-style-access"):
        config["s3"] = {"addressing_style": "path"}
    options: dict[str, Any] = {
        "anon": _flag(properties, "s3.anonymous"),
        "client_kwargs": client,
        "config_kwargs": config,
        **_rename_properties(
            properties, {"client.profile-name": "profile", "s3.profile-name": "profile"}
        ),
    }
    upload = _rename_properties(
        properties,
        {"s3.server-side-encryption": "ServerSideEncryption", "s3.sse-kms-key-id": "SSEKMSKeyId"},
    )
    if upload:
        options["s3_additional_kwargs"] = upload
    return options


def _gcs(properties: Mapping[str, str]) -> dict[str, Any]:
    options = _rename_properties(
        properties,
        {
            "gcs.project-id": "project",
            "gcs.access": "access",
            "gcs.consistency": "consistency",
            "gcs.default-bucket-location": "default_location",
        },
    )
    if host := properties.get("gcs.service.host", "").rstrip("/"):
        options["endpoint_url"] = host
    if token := properties.get("gcs.oauth2.token"):
        options["token"] = _gcs_token(token, properties)
    if "gcs.cache-timeout" in properties:
        options["cache_timeout"] = _number(properties, "gcs.cache-timeout")
    if "gcs.requester-pays" in properties:
        options["requester_pays"] = _flag(properties, "gcs.requester-pays")
    if "gcs.session-kwargs" in properties:
        options["session_kwargs"] = _json_object(properties, "gcs.session-kwargs")
    return options


def _gcs_token(token: str, properties: Mapping[str, str]) -> str | dict[str, Any] | AccessToken:
    """A way to log in, a file's name, a key in JSON, or else the token itself."""
    if token in _GCS_METHODS or os.path.exists(token):
        return token
    if token.startswith("/") or token.endswith(".json"):
        raise ConfigurationError("gcs.oauth2.token names a file that is not there")
    if token.lstrip().startswith("{"):
        return _json_object(properties, "gcs.oauth2.token")
    name = "gcs.oauth2.token-expires-at"
    if name not in properties:
        return AccessToken(token)
    try:
        return AccessToken(token, int(properties[name]))
    except ValueError:
        raise ConfigurationError(
            f"the property {name} must be a number of milliseconds since the epoch"
        ) from None


def _adls(properties: Mapping[str, str], host: str) -> dict[str, Any]:
    """The options for the account that the path names, or else for the one in the properties.

    Keys and tokens of an account that the properties name go to no other account.
    """
    of_sas = _sas_by_account(properties)
    named = properties.get("adls.account-name")
    connection = properties.get("adls.connection-string", "")
    owner = _account_in(connection)
    account = host.partition(".")[0] or owner or named
    if not account and not connection:
        account = _only_account(of_sas)
    options = _rename_properties(
        properties,
        {
            "adls.credential": "credential",
            "adls.tenant-id": "tenant_id",
            "adls.client-id": "client_id",
            "adls.client-secret": "client_secret",
        },
    )
    if account:
        options["account_name"] = account
    if named in (None, account):
        options |= _rename_properties(
            properties,
            {
                "adls.account-key": "account_key",
                "adls.sas-token": "sas_token",
                "adls.account-host": "account_host",
            },
        )
    if account in of_sas:
        options["sas_token"] = of_sas[account]
    if connection and owner in (None, account):
        options["connection_string"] = connection
    if other := _OTHER_HOST.fullmatch(host):
        options.setdefault("account_host", f"{other[1]}.blob.core.{other[2]}")
    if "adls.anon" in properties:
        options["anon"] = _flag(properties, "adls.anon")
    return options


def _sas_by_account(properties: Mapping[str, str]) -> dict[str, str]:
    """The values of ``adls.sas-token.<account>`` and ``adls.sas-token.<account>.<host>``."""
    return {
        name[len(_SAS_OF_ACCOUNT) :].partition(".")[0]: value
        for name, value in properties.items()
        if name.startswith(_SAS_OF_ACCOUNT)
    }


def _only_account(of_sas: Mapping[str, str]) -> str | None:
    """The account of a path that names none, where only SAS tokens tell it."""
    if len(of_sas) > 1:
        raise ConfigurationError(
            f"which of the accounts {', '.join(sorted(of_sas))} is meant: give adls.account-name, "
            f"or write the path as abfss://container@account.dfs.core.windows.net/..."
        )
    return next(iter(of_sas), None)


def _account_in(connection_string: str) -> str | None:
    """The account of a connection string; None where it names only an endpoint."""
    parts = _parts_of_connection(connection_string)
    return next((value for name, value in parts if name.lower() == "accountname"), None)


def _parts_of_connection(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(";"):
        name, _, value = part.strip().partition("=")
        yield name, value


def _json_object(properties: Mapping[str, str], name: str) -> dict[str, Any]:
    try:
        found = json.loads(properties[name])
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ConfigurationError(f"{name} is not a JSON object")
    return found


def _rename_properties(properties: Mapping[str, str], names: Mapping[str, str]) -> dict[str, Any]:
    return {option: properties[name] for name, option in names.items() if name in properties}


def _flag(properties: Mapping[str, str], name: str) -> bool:
    value = properties.get(name, "false").strip().lower()
    if value not in ("true", "false", "1", "0", "yes", "no", ""):
        raise ConfigurationError(f"the property {name} must be true or false, not {value!r}")
    return value in ("true", "1", "yes")


def _number(properties: Mapping[str, str], name: str) -> float:
    try:
        return float(properties[name])
    except ValueError:
        raise ConfigurationError(
            f"the property {name} must be a number of seconds, not {properties[name]!r}"
        ) from None


def credential_of(credentials: Sequence[StorageCredential], path: str) -> StorageCredential | None:
    """Return which of some credentials, those of the longest prefixes first, is for a path."""
    return next((each for each in credentials if is_below(each.prefix, path)), None)


def is_below(prefix: str, path: str) -> bool:
    """Return whether a prefix is of a path, by any scheme of the same store."""
    scheme, mark, rest = path.partition("://")
    alike = next((names for names in _ALIKE if scheme in names), (scheme,))
    return path.startswith(prefix) or (
        bool(mark) and any(f"{each}://{rest}".startswith(prefix) for each in alike)
    )
