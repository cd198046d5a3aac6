"""PyIceberg's and Java's storage properties as options of fsspec file systems."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from frazil.errors import ConfigurationError

S3_SCHEMES = frozenset({"s3", "s3a"})
GCS_SCHEMES = frozenset({"gs", "gcs"})
ADLS_SCHEMES = frozenset({"abfs", "abfss", "az"})
EXTRA_OF = {
    **dict.fromkeys(S3_SCHEMES, "s3"),
    **dict.fromkeys(GCS_SCHEMES, "gcs"),
    **dict.fromkeys(ADLS_SCHEMES, "abfs"),
}


def storage_options(scheme: str, properties: Mapping[str, str]) -> dict[str, Any]:
    """The keyword arguments for ``fsspec.filesystem(scheme, ...)``.

    Raises:
        ConfigurationError: a value is malformed.
    """
    if scheme in S3_SCHEMES:
        return _s3(properties)
    if scheme in GCS_SCHEMES:
        return _gcs(properties)
    if scheme in ADLS_SCHEMES:
        return _adls(properties)
    if scheme == "hdfs":
        return _renamed(
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
    client = _renamed(
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
    config: dict[str, Any] = {}
    for name, option in (
        ("s3.connect-timeout", "connect_timeout"),
        ("s3.request-timeout", "read_timeout"),
    ):
        if name in properties:
            config[option] = _number(properties, name)
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
        **_renamed(properties, {"client.profile-name": "profile", "s3.profile-name": "profile"}),
    }
    upload = _renamed(
        properties,
        {"s3.server-side-encryption": "ServerSideEncryption", "s3.sse-kms-key-id": "SSEKMSKeyId"},
    )
    if upload:
        options["s3_additional_kwargs"] = upload
    return options


def _gcs(properties: Mapping[str, str]) -> dict[str, Any]:
    options = _renamed(
        properties,
        {
            "gcs.project-id": "project",
            "gcs.oauth2.token": "token",
            "gcs.access": "access",
            "gcs.consistency": "consistency",
            "gcs.service.host": "endpoint_url",
            "gcs.default-bucket-location": "default_location",
        },
    )
    if "gcs.cache-timeout" in properties:
        options["cache_timeout"] = _number(properties, "gcs.cache-timeout")
    if "gcs.requester-pays" in properties:
        options["requester_pays"] = _flag(properties, "gcs.requester-pays")
    if "gcs.session-kwargs" in properties:
        try:
            options["session_kwargs"] = json.loads(properties["gcs.session-kwargs"])
        except ValueError:
            raise ConfigurationError("gcs.session-kwargs is not a JSON object") from None
    return options


def _adls(properties: Mapping[str, str]) -> dict[str, Any]:
    options = _renamed(
        properties,
        {
            "adls.connection-string": "connection_string",
            "adls.credential": "credential",
            "adls.account-name": "account_name",
            "adls.account-key": "account_key",
            "adls.sas-token": "sas_token",
            "adls.tenant-id": "tenant_id",
            "adls.client-id": "client_id",
            "adls.client-secret": "client_secret",
            "adls.account-host": "account_host",
        },
    )
    prefix = "adls.sas-token."
    for name, value in properties.items():
        if name.startswith(prefix):
            options.setdefault("account_name", name[len(prefix) :].split(".")[0])
            options.setdefault("sas_token", value)
    if "adls.anon" in properties:
        options["anon"] = _flag(properties, "adls.anon")
    return options


def _renamed(properties: Mapping[str, str], names: Mapping[str, str]) -> dict[str, Any]:
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
