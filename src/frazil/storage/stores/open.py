"""Which store serves a path, and the driver behind it."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from frazil.errors import ConfigurationError, StorageError, UnsupportedError
from frazil.later import later
from frazil.storage.paths import scheme_of
from frazil.storage.stores.remote_options import (
    ADLS_SCHEMES,
    EXTRA_OF,
    GCS_SCHEMES,
    S3_SCHEMES,
    storage_options,
)
from frazil.storage.stores.store import HADOOP, IO_PROPERTY, Store, Stores

if TYPE_CHECKING:
    import fsspec

    from frazil.storage.stores.azure import AzureStore
    from frazil.storage.stores.gcs import GcsStore, gcs_file_system
    from frazil.storage.stores.remote import RemoteStore
    from frazil.storage.stores.s3 import S3Store
    from frazil.storage.stores.s3_client import S3Client
else:
    fsspec = later("fsspec")
    AzureStore = later("frazil.storage.stores.azure", "AzureStore")
    GcsStore, gcs_file_system = later("frazil.storage.stores.gcs", "GcsStore", "gcs_file_system")
    RemoteStore = later("frazil.storage.stores.remote", "RemoteStore")
    S3Store = later("frazil.storage.stores.s3", "S3Store")
    S3Client = later("frazil.storage.stores.s3_client", "S3Client")


# What libraries write into their logs at the level DEBUG is without the secrets in it. The driver
# of S3 notes each request with its headers, a session token among them. The bridge to Spark's JVM
# notes each call with its arguments: what executors are sent, and files of a table with their
# credentials.
_LOGGERS: Final = (
    *("botocore.auth", "botocore.endpoint", "botocore.hooks", "botocore.httpsession"),
    *("botocore.credentials", "botocore.utils", "botocore.regions", "botocore.retryhandler"),
    *("py4j.clientserver", "py4j.java_gateway"),
)
_TOKEN: Final = re.compile(r"(?i)(security-token['\"]?\s*[:=]\s*b?['\"]?)[^\s'\",;&]+")
_PACKED: Final = re.compile(r"[A-Za-z0-9+/=]{200,}")


class _WithoutSecrets(logging.Filter):
    """Leaves tokens and packed arguments out of a message."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        shown = _TOKEN.sub(r"\1***", text)
        if record.name.startswith("py4j"):
            shown = _PACKED.sub("***", shown)
        if shown != text:
            record.msg, record.args = shown, None
        return True


def hide_secrets() -> None:
    """Let no library write a secret that it was given into its log; asked again it does nothing."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(each, _WithoutSecrets) for each in logger.filters):
            logger.addFilter(_WithoutSecrets())


_VERSION: Final = "?versionid="
_OF_HADOOP = frozenset({"hdfs", "viewfs"})
_BY_HADOOP = f"give {IO_PROPERTY}={HADOOP} to reach it through Spark's own file systems"

# Also for what is sent to executors before this process opens a store itself.
hide_secrets()


def authority_of(path: str) -> str:
    """The bucket, container or host of a URI."""
    return path.partition("://")[2].partition("/")[0]


def store_key(path: str) -> tuple[str, str]:
    """What decides which file system serves a path: (scheme, account or host where it matters)."""
    scheme = scheme_of(path)
    if scheme in ADLS_SCHEMES and _VERSION in path:
        raise UnsupportedError(
            f"{path} cannot be used: the driver of {scheme}:// takes {_VERSION!r} for the version "
            f"of another object"
        )
    if scheme in ADLS_SCHEMES:
        container, at, account = authority_of(path).rpartition("@")
        return scheme, account.lower() if at and container else ""
    if scheme in EXTRA_OF or scheme == "memory":
        return scheme, ""
    return scheme, authority_of(path)


def are_of_one_store(left: str, right: str) -> bool:
    """Whether one driver can reach both paths."""
    (scheme, account), (other, other_account) = store_key(left), store_key(right)
    kinds = EXTRA_OF.get(scheme, scheme), EXTRA_OF.get(other, other)
    return kinds[0] == kinds[1] and account.partition(".")[0] == other_account.partition(".")[0]


def is_same_place(left: str, right: str) -> bool:
    """Whether two URIs name one place, by any of the store's schemes: ``s3://`` and ``s3a://``."""
    return left.rstrip("/") == right.rstrip("/") or (
        are_of_one_store(left, right) and _within_store(left) == _within_store(right)
    )


def _within_store(path: str) -> tuple[str, str]:
    """The bucket or container, and the name in it."""
    _, _, name = path.partition("://")[2].partition("/")
    return authority_of(path).partition("@")[0], name.rstrip("/")


def open_store(
    scheme: str, authority: str, properties: Mapping[str, str], stores: Stores | None = None
) -> Store:
    """The store of a ``store_key``.

    `stores`: opens it in place of fsspec.
    """
    if stores is not None:
        return stores.open(scheme)
    if properties.get(IO_PROPERTY):
        raise ConfigurationError(
            f"{IO_PROPERTY}={properties[IO_PROPERTY]} reaches {scheme}:// through a Spark session: "
            f"open the catalog by frazil.connect(spark, …), or leave {IO_PROPERTY} out"
        )
    if scheme in S3_SCHEMES:
        return S3Store(S3Client(properties, scheme=scheme))
    file_system = _file_system(scheme, authority, properties)
    if scheme in ADLS_SCHEMES:
        # The driver knows the schemes of the older one by none of their names.
        return AzureStore("abfs", file_system)
    if scheme in GCS_SCHEMES:
        return GcsStore(scheme, file_system)
    return RemoteStore(scheme, file_system)


def _file_system(scheme: str, authority: str, properties: Mapping[str, str]) -> Any:
    import_fsspec()
    options = storage_options(scheme, properties, authority)
    if scheme in EXTRA_OF:
        # Other processes change the store: an answer from an earlier listing may be wrong.
        options["use_listings_cache"] = False
    try:
        if scheme in GCS_SCHEMES:
            return gcs_file_system(options)
        # A fresh instance keeps one catalog's credentials out of another's file system.
        return fsspec.filesystem(EXTRA_OF.get(scheme, scheme), skip_instance_cache=True, **options)
    except ImportError:
        extra = EXTRA_OF.get(scheme)
        advice = (
            f"install frazil[{extra}]" if extra else f"install the fsspec driver of {scheme}://"
        )
        raise ConfigurationError(f"no driver for {scheme}:// is installed: {advice}") from None
    except ValueError as error:
        if "Protocol not known" in str(error):
            advice = f": {_BY_HADOOP}" if scheme in _OF_HADOOP else ""
            raise UnsupportedError(f"no driver knows the scheme {scheme}://{advice}") from None
        raise
    except OSError as error:
        if scheme not in _OF_HADOOP:
            raise
        reason = str(error).partition("\n")[0].partition(";")[0]
        raise StorageError(f"cannot open {scheme}://{authority}: {reason}; {_BY_HADOOP}") from None


def import_fsspec() -> None:
    """Import fsspec, whose import asks all of the path for plug-ins.

    Spark puts every jar of ``spark.jars.packages`` on the path of executors' Python, and it takes
    seconds of each process to list the names in Amazon's; no jar has plug-ins of Python's.
    """
    if "fsspec" in sys.modules:
        return
    whole = list(sys.path)
    sys.path[:] = [place for place in whole if not place.endswith(".jar")]
    try:
        import_module("fsspec")
    finally:
        sys.path[:] = whole
