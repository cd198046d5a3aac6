"""Clients of Glue, made by boto3 with the keys, the profile or the role of the configuration."""

from __future__ import annotations

import importlib
import uuid
from dataclasses import dataclass, field
from typing import Any

from frazil.catalog.pointer.glue.settings import AssumedRole, GlueSettings
from frazil.errors import ConfigurationError


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
    if settings.role is None:
        return session
    return _in_role(boto3, session, settings, settings.role)


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
