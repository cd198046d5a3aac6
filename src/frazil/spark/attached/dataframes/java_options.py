"""Options of readers and writers by the Java runtime's names, as arguments of our methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql.utils import to_str

from frazil.errors import ConfigurationError, UnsupportedError, ValidationError
from frazil.format.metadata import TableMetadata
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.sql.context import NamedTable, TableVersion

_READ_TUNING: Final = frozenset(
    {
        "split-size",
        "lookback",
        "file-open-cost",
        "vectorization-enabled",
        "batch-size",
        "locality",
        "aggregate-push-down-enabled",
        "streaming-max-files-per-micro-batch",
        "streaming-max-rows-per-micro-batch",
        "streaming-skip-delete-snapshots",
        "streaming-skip-overwrite-snapshots",
        "streaming-snapshot-polling-interval-ms",
        "async-micro-batch-planning-enabled",
        "async-queue-preload-file-limit",
        "async-queue-preload-row-limit",
    }
)
"""Taken for compatibility, without effect on the rows."""

_WRITE_TUNING: Final = frozenset(
    {
        "check-nullability",
        "check-ordering",
        "advisory-partition-size",
        "use-merge-append-for-streaming",
        "delete-granularity",
        "target-delete-file-size-bytes",
        "compression-strategy",
        "overwriteschema",
    }
)
"""Taken for compatibility, without effect: checks are always made, replacing takes the schema."""

READS: Final = (
    "snapshot-id",
    "as-of-timestamp",
    "branch",
    "tag",
    "versionasof",
    "timestampasof",
    "start-snapshot-id",
    "end-snapshot-id",
)
"""Options of a reader that say which rows."""

OF_CHANGES: Final = ("start-snapshot-id", "end-snapshot-id", "start-timestamp", "end-timestamp")
"""Options of a reader of ``t.changes`` that say between which snapshots."""

_OVERWRITE_MODES: Final = ("overwrite-mode", "partitionOverwriteMode")
"""The Java runtime's name, and Spark's."""
_SNAPSHOT_PROPERTY: Final = "snapshot-property."


@dataclass(slots=True)
class Given:
    """The options that a reader or writer was given; the case of their names does not count."""

    values: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Given:
        """Return options that are given all at once."""
        found = cls()
        found.note_each(options)
        return found

    def note_each(self, options: Mapping[str, Any]) -> None:
        """Note options, in place of earlier ones of their names."""
        for key, value in options.items():
            self.note(key, value)

    def note(self, key: str, value: Any) -> None:
        """Note an option, in place of an earlier one of its name."""
        if value is not None:
            name = str(key).lower()
            if name.startswith(_SNAPSHOT_PROPERTY):  # What follows is the user's own word.
                name = _SNAPSHOT_PROPERTY + str(key)[len(_SNAPSHOT_PROPERTY) :]
            self.values[name] = str(to_str(value))

    def take(self, key: str) -> str | None:
        """Return an option, and forget it."""
        return self.values.pop(key, None)

    def copy(self) -> Given:
        """Return the same options, to be taken one by one."""
        return Given(dict(self.values))

    def number(self, key: str) -> int | None:
        """Return an option that is a whole number, and forget it.

        Raises:
            ConfigurationError: it is none.
        """
        text = self.take(key)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise ConfigurationError(f"the option {key} is {text!r}, no whole number") from None

    def flag(self, *keys: str) -> bool:
        """Return whether one of some options is true, and forget them.

        Raises:
            ConfigurationError: one is neither true nor false.
        """
        found = False
        for key in keys:
            text = self.take(key)
            if text is not None and text.lower() not in ("true", "false"):
                raise ConfigurationError(f"the option {key} is {text!r}: true or false")
            found = found or (text or "").lower() == "true"
        return found

    def refuse_unknown(
        self, known: Iterable[str], *, of: str = "a lake's table", there_are: Iterable[str] = READS
    ) -> None:
        """Check that nothing is left but what has no effect.

        Raises:
            ConfigurationError: an option is unknown.
        """
        left = sorted(set(self.values) - set(known))
        if left:
            raise ConfigurationError(
                f"{', '.join(left)}: no options of a read of {of}; there are {', '.join(there_are)}"
            )


@dataclass(frozen=True, slots=True)
class ReadChoice:
    """Which rows of a table a reader asks for.

    Attributes:
        version: a snapshot, a time, a branch or a tag.
        start, end: snapshots between which appended rows are read, the first one left out.
    """

    version: TableVersion
    start: int | None = None
    end: int | None = None


def read_choice(given: Given, metadata: TableMetadata) -> ReadChoice:
    """Return what a reader's options say.

    Args:
        metadata: of the table, which knows a version's number from a reference's name.

    Raises:
        ConfigurationError: an option is unknown or malformed.
        ValidationError: two of them say which version.
    """
    given = given.copy()
    start, end = given.number("start-snapshot-id"), given.number("end-snapshot-id")
    versions: dict[str, TableVersion | None] = {
        "snapshot-id": _version(given.number("snapshot-id"), "snapshot_id"),
        "as-of-timestamp": _version(given.number("as-of-timestamp"), "as_of"),
        "branch": _version(given.take("branch"), "ref"),
        "tag": _version(given.take("tag"), "ref"),
        "versionAsOf": _version_of(given.take("versionasof"), metadata),
        "timestampAsOf": _version(given.take("timestampasof"), "as_of"),
    }
    given.take("path")
    given.refuse_unknown(_READ_TUNING)
    said = {name: each for name, each in versions.items() if each is not None}
    if len(said) > 1 or (said and (start is not None or end is not None)):
        names = [*said, *(["start-snapshot-id"] if start is not None or end is not None else [])]
        raise ValidationError(f"the options {' and '.join(names)} say which rows: give one of them")
    if end is not None and start is None:
        raise ValidationError("the option end-snapshot-id needs start-snapshot-id")
    return ReadChoice(next(iter(said.values()), TableVersion()), start, end)


def changes_choice(given: Given) -> dict[str, str]:
    """Return between which snapshots a reader of ``t.changes`` asks, by the options' names.

    Raises:
        ConfigurationError: another option is given.
    """
    given = given.copy()
    said = {name: given.take(name) for name in OF_CHANGES}
    given.take("path")
    given.refuse_unknown(_READ_TUNING, of="a table's changes", there_are=OF_CHANGES)
    return {name: text for name, text in said.items() if text is not None}


def _version(value: Any, kind: str) -> TableVersion | None:
    return None if value is None else TableVersion(**{kind: value})


def _version_of(text: str | None, metadata: TableMetadata) -> TableVersion | None:
    return None if text is None else named_version(text, metadata)


def named_version(text: str, metadata: TableMetadata) -> TableVersion:
    """Return the version that a text means: a snapshot by its id, or a reference by its name."""
    # A snapshot's id goes before a reference of that name.
    is_id = text.isascii() and text.isdigit()
    if is_id and (int(text) in metadata.snapshots_by_id or text not in metadata.refs):
        return TableVersion(snapshot_id=int(text))
    return TableVersion(ref=text)


@dataclass(frozen=True, slots=True)
class WriteChoice:
    """How a writer writes.

    Attributes:
        options: where the commit goes, and how files are written.
        merges_schema: whether columns that the table lacks are added.
        is_dynamic: what is overwritten: the partitions of the rows, all rows, or not said.
    """

    options: CommitOptions
    merges_schema: bool = False
    is_dynamic: bool | None = None


def write_choice(given: Given, *, branch: str | None = None) -> WriteChoice:
    """Return what a writer's options say.

    Args:
        branch: the one that the table's name says.

    Raises:
        ConfigurationError: an option is malformed.
        ValidationError: the name says a branch, and an option another one.
    """
    given = given.copy()
    own = given.take("branch")
    if own is not None and branch is not None and own != branch:
        raise ValidationError(f"the name says the branch {branch!r}, and the option {own!r}")
    dynamic = _overwrite_mode(given)
    merges = given.flag("merge-schema", "mergeschema")
    properties = {
        key.removeprefix(_SNAPSHOT_PROPERTY): str(given.take(key))
        for key in list(given.values)
        if key.startswith(_SNAPSHOT_PROPERTY)
    }
    isolation: Any = given.take("isolation-level")
    start = given.number("validate-from-snapshot-id")
    for key in _WRITE_TUNING:
        given.take(key)
    options = CommitOptions(
        branch=own or branch,
        isolation=isolation,
        validate_from_snapshot_id=start,
        snapshot_properties=properties or None,
        options=dict(given.values) or None,
    )
    return WriteChoice(options, merges, dynamic)


def stream_choice(
    given: Given, *, branch: str | None = None, output_mode: str = "append"
) -> WriteChoice:
    """Return what the options of a stream's writer say: those of `write_choice`.

    Args:
        branch: as there.
        output_mode: of the stream: ``append`` or ``complete``.

    Raises:
        ConfigurationError, ValidationError: as there.
        UnsupportedError: an option makes no sense for one batch after another.
    """
    choice = write_choice(given, branch=branch)
    if choice.options.validate_from_snapshot_id is not None:
        raise UnsupportedError(
            "the option validate-from-snapshot-id is of one write: each batch of a stream is "
            "checked from where it begins"
        )
    if choice.is_dynamic and output_mode == "complete":
        raise UnsupportedError(
            "the output mode complete replaces all rows with each batch, not the partitions of "
            "its rows: leave the option out, or call overwrite_partitions() in foreachBatch()"
        )
    return choice


def _overwrite_mode(given: Given) -> bool | None:
    """Whether the partitions of the rows are overwritten alone; None where no option says it."""
    found: dict[str, bool] = {}
    for name in _OVERWRITE_MODES:
        mode = given.take(name.lower())
        if mode is None:
            continue
        if mode.lower() not in ("dynamic", "static"):
            raise ConfigurationError(f"the option {name} is {mode!r}: dynamic or static")
        found[name] = mode.lower() == "dynamic"
    if len(set(found.values())) > 1:
        raise ValidationError(
            f"the options {' and '.join(found)} contradict each other: give one of them"
        )
    return next(iter(found.values()), None)


_OF_SPARK: Final = frozenset({"versionasof", "timestampasof"})
"""Options of a read that Spark itself reads too."""


def asked_version(named: NamedTable, asked: TableVersion | str, given: Given) -> TableVersion:
    """Return the version of a table that a clause or Spark itself, and a reader's options, say.

    Args:
        asked: a version; a text is a snapshot's id or a reference's name.
        given: the options; those that Spark reads itself may be among them.

    Raises:
        ConfigurationError: an option is malformed.
        UnsupportedError: they ask for what was appended between two snapshots.
        ValidationError: two of them, or one and the name, say which version.
    """
    metadata = named.table.metadata
    choice = read_choice(given, metadata)
    if choice.start is not None:
        raise UnsupportedError(
            "start-snapshot-id is not there for a client without Frazil: read the table's changes"
        )
    chosen = choice.version
    version = named_version(asked, metadata) if isinstance(asked, str) else asked
    if version.arguments and chosen.arguments and not given.values.keys() & _OF_SPARK:
        raise ValidationError("AS OF says a version, and the options another one")
    version = version if version.arguments else chosen
    if version.arguments and named.version.arguments:
        raise ValidationError("the name says a version, and the options another one")
    return version if version.arguments else named.version
