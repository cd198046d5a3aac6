"""The metadata table ``changes``: the rows of files that snapshots added and removed, as Java's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from frazil.format.metadata import TableMetadata
from frazil.planning.changes_range import snapshot_range
from frazil.spark.changes.changelog import Changelog
from frazil.spark.changes.columns import CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT_ID
from frazil.spark.changes.view import changelog_arguments
from frazil.spark.types import COMMENT_KEY
from frazil.storage.files import FileIO

_COMMENTS: Final = {
    CHANGE_TYPE: "Record type in changelog",
    CHANGE_ORDINAL: "Change ordinal in changelog",
    COMMIT_SNAPSHOT_ID: "Commit snapshot ID",
}


def changes_table(
    spark: SparkSession, metadata: TableMetadata, io: FileIO, options: Mapping[str, str]
) -> DataFrame:
    """Return the changes of the kept ancestors of a snapshot, in the table's columns of now.

    Args:
        options: those of `TableChanges.create_changelog_view`, which leave snapshots out.

    Raises:
        ConfigurationError: an option is unknown or malformed.
        NoSuchSnapshotError: a snapshot is unknown or has expired.
        ValidationError: the start is not an ancestor of the end, or a column has the name of one
            of a changelog's.
    """
    said = changelog_arguments(
        metadata.schema, options, compute_updates=False, identifier_columns=None, net_changes=False
    )
    start, since = said.get("from_snapshot_id"), said.get("from_timestamp")
    end: int | None = said.get("to_snapshot_id", metadata.current_snapshot_id)
    kept = () if end is None else metadata.ancestors_of(end)
    if start is None and kept and (since is None or since < kept[-1].timestamp_ms):
        # What was before has expired, or there was nothing.
        start, since = kept[-1].parent_snapshot_id, None
    found = snapshot_range(
        metadata,
        from_snapshot_id=start,
        to_snapshot_id=said.get("to_snapshot_id"),
        from_timestamp_ms=since,
        to_timestamp_ms=said.get("to_timestamp"),
    )
    changelog = Changelog(spark, metadata, io, found, metadata.schema, may_begin_with_append=True)
    rows = changelog.changes_of_files()
    columns = [rows[name] for name in rows.columns[: -len(_COMMENTS)]]
    told = [rows[n].alias(n, metadata={COMMENT_KEY: said}) for n, said in _COMMENTS.items()]
    return rows.select(*columns, *told)
