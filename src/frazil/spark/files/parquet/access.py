"""How Spark reaches files: by its own configuration, or by what the catalog gave for them.

Credentials that came with a table are options of the one reader or writer that they are for. They
are in no setting of the session, and so in no other query.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import polars as pl
from pyspark.sql import DataFrameReader, DataFrameWriter, SparkSession

from frazil.errors import ConfigurationError, UnsupportedError
from frazil.spark.abilities import has_class
from frazil.spark.files.parquet.locations import spark_paths
from frazil.spark.files.parquet.s3a import (
    CLASSES_OF_WHOLE_READS,
    FILE_SYSTEM,
    OWN_PATH,
    SECRETS,
    s3a_options,
    scheme_of_tag,
    scheme_of_whole_reads,
)
from frazil.spark.session.by_session import BySession
from frazil.spark.session.facts import is_connect, word_of_setting
from frazil.spark.session.hidden_options import (
    check_redaction,
    give_to_reader,
    give_to_writer,
)
from frazil.storage.files import FileIO
from frazil.storage.paths import scheme_of
from frazil.storage.stores.open import authority_of
from frazil.storage.stores.remote_options import (
    ADLS_SCHEMES,
    GCS_SCHEMES,
    S3_SCHEMES,
    StorageCredential,
    credential_of,
)

CREDENTIALS_SETTING: Final = "frazil.files.credentials"
"""Session setting: whose credentials Spark's files are reached with, ``catalog`` or ``session``."""

WHOLE_SETTING: Final = "frazil.read.whole-files"
"""Session setting: files of S3 of up to so many bytes are read whole; 0 for none."""

_WHOLE_BYTES: Final = 4 << 20
"""So many bytes arrive while two more requests would wait for their answers."""

_GRACE_MS: Final = 60_000
_REMEMBERED: Final = 1_000
"""Of so many credentials that have ended it is known when."""


@dataclass(frozen=True, slots=True)
class SparkAccess:
    """How Spark reaches some files.

    Attributes:
        paths: as Spark shall open them.
        options: of the reader or writer; secrets are in them.
        shown: more of them, without secrets.
    """

    paths: pl.Series
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    shown: Mapping[str, str] = field(default_factory=dict)

    def reader(self, spark: SparkSession) -> DataFrameReader:
        """Return a reader that reaches the files."""
        reader = spark.read.options(**self.shown) if self.shown else spark.read
        return give_to_reader(spark, reader, self.options) if self.options else reader

    def writer(self, spark: SparkSession, writer: DataFrameWriter) -> DataFrameWriter:
        """Return the writer, which then reaches the files."""
        return give_to_writer(spark, writer, self.options) if self.options else writer


def reading_access(
    paths: pl.Series, spark: SparkSession, io: FileIO, *, largest: int
) -> SparkAccess:
    """Return how Spark reaches files that it reads; errors as of `spark_access`.

    Args:
        largest: the size of the largest of them in bytes.
    """
    if (
        not paths.str.contains("^s3[an]?://").any()
        or largest > _most_of_whole(spark)
        or is_connect(spark)
        or not _READS_WHOLE.get_or_make(spark, _reads_whole)
    ):
        return spark_access(paths, spark, io)
    found = spark_access(paths, spark, io, whole=True)
    if found.options or not found.paths.str.starts_with("s3a://").all():
        return found
    session: Any = spark
    scheme, shown = scheme_of_whole_reads(session._jsparkSession.sessionState().newHadoopConf().get)
    return SparkAccess(found.paths.str.replace("^s3a://", f"{scheme}://"), shown=shown)


def _reads_whole(spark: SparkSession) -> bool:
    """Whether Spark has what reads a small file of S3 by one request."""
    return all(has_class(spark._jvm, name) for name in CLASSES_OF_WHOLE_READS)


_READS_WHOLE: Final = BySession[bool]()


def _most_of_whole(spark: SparkSession) -> int:
    text = str(spark.conf.get(WHOLE_SETTING, None) or _WHOLE_BYTES)
    if not text.isdecimal():
        raise ConfigurationError(f"{WHOLE_SETTING} is {text!r}: it must be a number of bytes")
    return int(text)


def spark_access(
    paths: pl.Series, spark: SparkSession, io: FileIO, *, whole: bool = False
) -> SparkAccess:
    """Return how Spark reaches files, in the order of their paths as manifests have them.

    Args:
        whole: whether files that the catalog gave credentials for are read whole.

    Raises:
        UnsupportedError: the catalog gave credentials for them that Spark cannot be handed.
        ConfigurationError: a setting is malformed, or would show the credentials.
    """
    given = _credentials_for(paths, spark, io)
    if not given:
        return SparkAccess(spark_paths(paths, spark, io))
    if is_connect(spark):
        raise _refusal(given, "over Spark Connect the plan itself would hold them")
    options: dict[str, str] = {}
    buckets: set[str] = set()
    found = paths
    for credential, folders in given:
        scheme = scheme_of_tag(credential.tag, whole=whole)
        for bucket in sorted({authority_of(folder) for folder in folders}):
            if bucket in buckets:
                raise _refusal(given, f"one query needs several of them for the bucket {bucket}")
            buckets.add(bucket)
            options |= s3a_options(scheme, bucket, credential.config, whole=whole)
            _Opened.note(scheme, bucket, credential.ends_ms)
        rest = paths.str.replace("^.*?://", f"{scheme}://")
        found = rest.zip_with(_folders(paths).is_in(list(folders)), found)
    check_redaction(spark, [name for name in options if name.endswith(SECRETS)])
    _Opened.close_ended(spark)
    return SparkAccess(spark_paths(found, spark, io), options)


def access_tag(spark: SparkSession, io: FileIO) -> str | None:
    """Return text that is another one where `spark_access` may differ; no secret is in it."""
    return f"{_credentials_choice(spark)} {io.tag}" if io.has_credentials else None


def check_lasting_access(paths: Iterable[str], spark: SparkSession, io: FileIO) -> None:
    """Raise UnsupportedError if Spark cannot reach files for as long as a stream runs."""
    given = _credentials_for(pl.Series("path", list(paths), pl.String), spark, io)
    if given:
        raise _refusal(given, "a stream reads for longer than they live")


def _credentials_for(
    paths: pl.Series, spark: SparkSession, io: FileIO
) -> list[tuple[StorageCredential, list[str]]]:
    """The catalog's credentials that are for some of the paths, and the folders of these."""
    if io.signed_schemes and _credentials_choice(spark) == "catalog":
        _refuse_signed(paths, io)
    if not io.has_credentials or _credentials_choice(spark) == "session":
        return []
    known = io.credentials()
    found: dict[str, tuple[StorageCredential, list[str]]] = {}
    for folder, path in _first_in_folders(paths):
        credential = _of_store(credential_of(known, path), path)
        if credential is not None:
            found.setdefault(credential.tag, (credential, []))[1].append(folder)
    return list(found.values())


def _first_in_folders(paths: pl.Series) -> list[tuple[str, str]]:
    """Each folder of some paths with its first path."""
    found = pl.DataFrame({"folder": _folders(paths), "path": paths})
    return found.unique("folder", keep="first", maintain_order=True).rows()


def _folders(paths: pl.Series) -> pl.Series:
    """The folder of each path, with a slash at its end."""
    return paths.str.replace("[^/]*$", "")


def _refuse_signed(paths: pl.Series, io: FileIO) -> None:
    first = (path for _, path in _first_in_folders(paths))
    path = next((path for path in first if scheme_of(path) in io.signed_schemes), None)
    if path is not None:
        raise UnsupportedError(
            f"Spark cannot read or write {path}: the catalog's server signs each request for the "
            "table's files, which Spark's own connector cannot ask it to. Let the server give "
            "credentials (X-Iceberg-Access-Delegation: vended-credentials), or give the session "
            f"credentials of its own (spark.hadoop.fs.…) and set {CREDENTIALS_SETTING} to session"
        )


def _of_store(credential: StorageCredential | None, path: str) -> StorageCredential | None:
    """A credential if it holds keys of the path's store; refused where Spark cannot take them."""
    if credential is None:
        return None
    scheme, names = scheme_of(path), credential.config
    if scheme in S3_SCHEMES:
        keys = ("s3.access-key-id", "client.access-key-id")
        return credential if any(name in names for name in keys) else None
    is_gcs = scheme in GCS_SCHEMES and "gcs.oauth2.token" in names
    is_adls = scheme in ADLS_SCHEMES and any(name.startswith("adls.sas-token") for name in names)
    if is_gcs or is_adls or (scheme in ADLS_SCHEMES and "adls.account-key" in names):
        raise _refusal([(credential, [])], f"of {scheme}:// files this release cannot do it")
    return None


def _credentials_choice(spark: SparkSession) -> str:
    return word_of_setting(spark, CREDENTIALS_SETTING, "catalog", "session")


def _refusal(given: list[tuple[StorageCredential, list[str]]], why: str) -> UnsupportedError:
    prefixes = ", ".join(sorted({each.prefix or "all files" for each, _ in given}))
    return UnsupportedError(
        f"the catalog gave credentials for Spark's files ({prefixes}) which Spark cannot be "
        f"handed: {why}. Give the session credentials of its own (spark.hadoop.fs.…) and set "
        f"{CREDENTIALS_SETTING} to session"
    )


def told_end(text: str) -> str:
    """What to say of the end of the credentials by which Spark was to reach a path in some text.

    Nothing where no such path is in it, or they have no end. The text is Spark's own, with the
    scheme that belongs to the credentials.
    """
    ends = (_Opened.end(*found.groups()) for found in OWN_PATH.finditer(text))
    known = next((each for each in ends if each is not None), None)
    if known is None:
        return ""
    tense = "ended" if known < time.time() * 1000 else "end"
    return f", which {tense} at {datetime.fromtimestamp(known / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


class _Opened:
    """File systems that the JVM beside this process may keep open, by the end of their keys."""

    _lock: Final = threading.Lock()
    _ends: Final[dict[tuple[str, str], int]] = {}
    _ended: Final[dict[tuple[str, str], int]] = {}

    @classmethod
    def note(cls, scheme: str, bucket: str, ends_ms: int | None) -> None:
        """Remember one whose credentials end."""
        if ends_ms is not None:
            with cls._lock:
                cls._ends[scheme, bucket] = ends_ms

    @classmethod
    def end(cls, scheme: str, bucket: str) -> int | None:
        """When those of a scheme and bucket end, milliseconds since the epoch."""
        with cls._lock:
            place = scheme, bucket
            return cls._ends.get(place, cls._ended.get(place))

    @classmethod
    def close_ended(cls, spark: SparkSession) -> None:
        """Close those whose credentials have ended; what goes wrong with that leaves them open."""
        now = time.time() * 1000
        with cls._lock:
            gone = [each for each, ends in cls._ends.items() if ends + _GRACE_MS < now]
            for each in gone:
                cls._ended[each] = cls._ends.pop(each)
            for each in list(cls._ended)[:-_REMEMBERED]:
                del cls._ended[each]
        for scheme, bucket in gone:
            _close(spark, scheme, bucket)


def _close(spark: SparkSession, scheme: str, bucket: str) -> None:
    session: Any = spark
    try:
        settings = session._jsparkSession.sessionState().newHadoopConf()
        settings.set(f"fs.{scheme}.impl", FILE_SYSTEM)
        place = session._jvm.java.net.URI(f"{scheme}://{bucket}/")
        session._jvm.org.apache.hadoop.fs.FileSystem.get(place, settings).close()
    except Exception:
        # Nobody can use it any more either way.
        return
