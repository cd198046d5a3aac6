"""Credentials of a bucket as options of Hadoop's connector s3a.

Hadoop keeps an open file system for each scheme and bucket, whatever its options were. So each set
of credentials has a scheme of its own, which this process alone knows: a file system that was
opened with some credentials is never found with others, and one whose credentials have ended is
never found again. To open one for each file instead (``fs.s3a.impl.disable.cache``) would leave a
pool of connections and threads behind for each, since Spark closes none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from frazil.errors import ConfigurationError

FILE_SYSTEM: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_PROVIDERS: Final = "org.apache.hadoop.fs.s3a"
_COMMITTERS: Final = "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory"
_CREATES_AT_ONCE: Final = "fs.s3a.create.performance"
"""Whether a file is made without a look whether its name is free: those of writes are unique."""

_WHOLE: Final = {
    "input.stream.type": "analytics",
    "analytics.accelerator.physicalio.max.memory.limit": str(128 << 20),
}
"""What reads a small file by one request, and not by one each for its last eight bytes, its footer
and its pages; it would keep 2 GB of them for seconds, twice the memory of Spark's usual executor.
Hadoop's ``prefetch`` would read them so too, but it puts what it asks for again behind what came of
an answer that was cut off."""

CLASSES_OF_WHOLE_READS: Final = (
    "org.apache.hadoop.fs.s3a.impl.streams.AnalyticsStream",
    "software.amazon.s3.analyticsaccelerator.S3SeekableInputStreamFactory",
)
"""Hadoop has the first from 3.4.2 on; the second comes as a jar of its own beside hadoop-aws."""

_KEY: Final = ("s3.access-key-id", "client.access-key-id")
_SECRET: Final = ("s3.secret-access-key", "client.secret-access-key")
_TOKEN: Final = ("s3.session-token", "client.session-token")
_REGION: Final = ("s3.region", "client.region")
SECRETS: Final = ("access.key", "secret.key", "session.token")
"""Ends of the options that hold secrets."""


def scheme_of_tag(tag: str, *, whole: bool = False) -> str:
    """Return the scheme of some credentials, and for files that are read whole."""
    return f"s3a-{tag}-whole" if whole else f"s3a-{tag}"


_WRITES: Final = "s3a-writes"
"""The scheme of writes by the session's own credentials."""

_READS: Final = "s3a-whole"
"""The scheme by which small files are read by them."""

_OWN_SCHEME: Final = re.compile(rf"\b(?:s3a-[0-9a-f]{{16}}(?:-whole)?|{_WRITES}|{_READS})://")

REFUSED: Final = re.compile(r"AccessDenied|ExpiredToken|InvalidAccessKeyId|Status Code: 40[03]")
"""What the connector says where the store does not take the credentials."""

OWN_PATH: Final = re.compile(r"\b(s3a-[0-9a-f]{16}(?:-whole)?)://([^/\s]+)")
"""The scheme of some credentials, and a bucket."""


def as_s3a(text: str) -> str:
    """Return text with the scheme s3a in place of those of credentials."""
    return _OWN_SCHEME.sub("s3a://", text)


def scheme_of_writes(path: str, setting: Callable[[str], str | None]) -> tuple[str, dict[str, str]]:
    """Return the path by which files that nobody else makes are written, and options for it.

    A file system of their own makes them by one request each. Paths of other schemes stay, and
    those that another class serves or whose credentials go by the scheme.

    Args:
        path: as Spark reaches it.
        setting: says what Hadoop's settings have.
    """
    scheme, _, rest = path.partition("://")
    if scheme != "s3a" or not _may_rename(setting):
        return path, {}
    return f"{_WRITES}://{rest}", {f"fs.{_WRITES}.impl": FILE_SYSTEM, _CREATES_AT_ONCE: "true"}


def scheme_of_whole_reads(setting: Callable[[str], str | None]) -> tuple[str, dict[str, str]]:
    """Return the scheme by which small files of s3a are read, and options for it.

    A file system of their own reads each by one request. It is s3a itself where another class
    serves that, where credentials go by the scheme, or where the session says how to read.

    Args:
        setting: says what Hadoop's settings have.
    """
    if not _may_rename(setting) or any(setting(f"fs.s3a.{name}") for name in _WHOLE):
        return "s3a", {}
    return _READS, {
        f"fs.{_READS}.impl": FILE_SYSTEM,
        **{f"fs.s3a.{name}": value for name, value in _WHOLE.items()},
    }


def _may_rename(setting: Callable[[str], str | None]) -> bool:
    """Whether another scheme reaches what s3a does."""
    its_own = setting("fs.s3a.impl") or FILE_SYSTEM
    return its_own == FILE_SYSTEM and not setting("fs.s3a.delegation.token.binding")


def s3a_options(
    scheme: str, bucket: str, config: Mapping[str, str], *, whole: bool = False
) -> dict[str, str]:
    """Return the options for a bucket under a scheme.

    Args:
        config: storage properties, of which the keys are there.
        whole: whether files are read whole by it.

    Raises:
        ConfigurationError: a key has no secret, or the bucket's name has capital letters, which
            options of Spark's readers lose.
    """
    if bucket != bucket.lower():
        raise ConfigurationError(
            f"the bucket {bucket} has capital letters in its name: Spark's files cannot be given "
            f"the catalog's credentials for it"
        )
    key, secret, token = (_first_property(config, names) for names in (_KEY, _SECRET, _TOKEN))
    if not key or not secret:
        raise ConfigurationError(
            f"the catalog gave credentials of the bucket {bucket} that are not whole: "
            f"{_KEY[0]} or {_SECRET[0]} is missing"
        )
    provider = "TemporaryAWSCredentialsProvider" if token else "SimpleAWSCredentialsProvider"
    own = {
        "access.key": key,
        "secret.key": secret,
        **({"session.token": token} if token else {}),
        "aws.credentials.provider": f"{_PROVIDERS}.{provider}",
        **_address(config),
        _CREATES_AT_ONCE.removeprefix("fs.s3a."): "true",
        **(_WHOLE if whole else {}),
    }
    return {
        f"fs.{scheme}.impl": FILE_SYSTEM,
        f"mapreduce.outputcommitter.factory.scheme.{scheme}": _COMMITTERS,
        **{f"fs.s3a.bucket.{bucket}.{name}": value for name, value in own.items()},
    }


def _address(config: Mapping[str, str]) -> dict[str, str]:
    """Where the bucket is, as Frazil's own files are reached."""
    endpoint, region = config.get("s3.endpoint"), _first_property(config, _REGION)
    is_virtual = config.get("s3.force-virtual-addressing", "false").lower() == "true"
    found = {}
    if endpoint:
        found["endpoint"] = endpoint
        found["path.style.access"] = "false" if is_virtual else "true"
        found["connection.ssl.enabled"] = str(not endpoint.startswith("http://")).lower()
    elif "s3.path-style-access" in config:
        found["path.style.access"] = config["s3.path-style-access"].lower()
    if region:
        found["endpoint.region"] = region
    return found


def _first_property(config: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((config[name] for name in names if config.get(name)), None)
