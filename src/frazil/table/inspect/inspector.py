"""The metadata tables as polars frames, with the columns of Java's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any, TypedDict, Unpack

import polars as pl

from frazil.errors import ValidationError
from frazil.format.arguments import SnapshotId, optional_snapshot_id_of
from frazil.format.manifests import ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.format.snapshots.json_form import stored_id
from frazil.format.values.zones import PROCESS_ZONE
from frazil.planning.load import listed_manifests, manifests_by_path, of_data, of_deletes
from frazil.storage.files import FileIO
from frazil.storage.forks import check_threads
from frazil.table.inspect.files import EntryTables, partitions_frame, read_all
from frazil.table.inspect.manifests import ManifestTables
from frazil.table.inspect.metadata_rows import history_rows, ref_rows, snapshot_rows
from frazil.table.time_travel import Moment, find_snapshot

TIMESTAMP = pl.Datetime("ms", "UTC")
_SUMMARY = pl.List(pl.Struct({"key": pl.String(), "value": pl.String()}))


class SnapshotChoice(TypedDict, total=False):
    """Which snapshot a metadata table is about; the current one where nothing is said.

    Attributes:
        snapshot_id: this snapshot.
        as_of: what was current then: milliseconds since the epoch, ISO text, a datetime or a date.
        ref: the head of a branch, or a tag.
    """

    snapshot_id: SnapshotId | None
    as_of: Moment | None
    ref: str | None


class Inspector:
    """The metadata tables of one table as Polars frames, read in this process.

    Times are UTC, maps are lists of key and value. Tables about files show the current snapshot,
    or the one that ``snapshot_id``, ``as_of`` or ``ref`` says, or a `Snapshot` that is given; those
    named ``all_…`` are about every snapshot that is kept.

    Raises:
        NoSuchSnapshotError, NoSuchRefError: there is no such snapshot.
        ValidationError: more than one is named.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        metadata_location: str,
        io: FileIO,
        *,
        text_zone: str | tzinfo = PROCESS_ZONE,
    ) -> None:
        check_threads()
        self._metadata = metadata
        self._metadata_location = metadata_location
        self._io = io
        self._text_zone = text_zone

    def history(self) -> pl.DataFrame:
        """When which snapshot became current."""
        return pl.DataFrame(
            _values_of(history_rows(self._metadata)),
            schema={
                "made_current_at": TIMESTAMP,
                "snapshot_id": pl.Int64,
                "parent_id": pl.Int64,
                "is_current_ancestor": pl.Boolean,
            },
            orient="row",
        )

    def metadata_log_entries(self) -> pl.DataFrame:
        """Return the metadata files, and what was newest in each; the current one is last."""
        metadata = self._metadata
        files = [(entry.timestamp_ms, entry.metadata_file) for entry in metadata.metadata_log]
        files.append((metadata.last_updated_ms, self._metadata_location))
        return pl.DataFrame(
            [(*file, *self._newest_at(file[0])) for file in files],
            schema={
                "timestamp": TIMESTAMP,
                "file": pl.String,
                "latest_snapshot_id": pl.Int64,
                "latest_schema_id": pl.Int32,
                "latest_sequence_number": pl.Int64,
            },
            orient="row",
        )

    def snapshots(self) -> pl.DataFrame:
        """Every snapshot that is kept."""
        return pl.DataFrame(
            _values_of(snapshot_rows(self._metadata)),
            schema={
                "committed_at": TIMESTAMP,
                "snapshot_id": pl.Int64,
                "parent_id": pl.Int64,
                "operation": pl.String,
                "manifest_list": pl.String,
                "summary": _SUMMARY,
            },
            orient="row",
        )

    def refs(self) -> pl.DataFrame:
        """Branches and tags."""
        return pl.DataFrame(
            _values_of(ref_rows(self._metadata)),
            schema={
                "name": pl.String,
                "type": pl.String,
                "snapshot_id": pl.Int64,
                "max_reference_age_in_ms": pl.Int64,
                "min_snapshots_to_keep": pl.Int32,
                "max_snapshot_age_in_ms": pl.Int64,
            },
            orient="row",
        )

    def manifests(
        self, snapshot: Snapshot | None = None, **moment: Unpack[SnapshotChoice]
    ) -> pl.DataFrame:
        """Return the manifests of a snapshot."""
        return ManifestTables.of(self._metadata).manifests(self.manifests_of(snapshot, **moment))

    def all_manifests(self) -> pl.DataFrame:
        """Return the manifests of every snapshot, once for each."""
        found = [
            (stored_id(snapshot.snapshot_id), manifest)
            for snapshot in self._metadata.snapshots
            for manifest in listed_manifests(self._io, snapshot)
        ]
        return ManifestTables.of(self._metadata).all_manifests(found)

    def entries(
        self, snapshot: Snapshot | None = None, **moment: Unpack[SnapshotChoice]
    ) -> pl.DataFrame:
        """Return the manifest entries of a snapshot, those of removed files too."""
        return self._entries(self.manifests_of(snapshot, **moment))

    def all_entries(self) -> pl.DataFrame:
        """Return the entries of every manifest that some snapshot has."""
        return self._entries(self.all_manifests_once())

    def files(
        self, snapshot: Snapshot | None = None, **moment: Unpack[SnapshotChoice]
    ) -> pl.DataFrame:
        """Data and delete files of a snapshot."""
        return self._files(self.manifests_of(snapshot, **moment))

    def data_files(
        self, snapshot: Snapshot | None = None, **moment: Unpack[SnapshotChoice]
    ) -> pl.DataFrame:
        """Data files of a snapshot."""
        return self._files(of_data(self.manifests_of(snapshot, **moment)))

    def delete_files(
        self, snapshot: Snapshot | None = None, **moment: Unpack[SnapshotChoice]
    ) -> pl.DataFrame:
        """Delete files and deletion vectors of a snapshot."""
        return self._files(of_deletes(self.manifests_of(snapshot, **moment)))

    def all_files(self) -> pl.DataFrame:
        """Data and delete files of every snapshot, once for each manifest that holds them."""
        return self._files(self.all_manifests_once())

    def all_data_files(self) -> pl.DataFrame:
        """Data files of every snapshot, once for each manifest that holds them."""
        return self._files(of_data(self.all_manifests_once()))

    def all_delete_files(self) -> pl.DataFrame:
        """Delete files of every snapshot, once for each manifest that holds them."""
        return self._files(of_deletes(self.all_manifests_once()))

    def partitions(
        self, snapshot: Snapshot | None = None, **moment: Unpack[SnapshotChoice]
    ) -> pl.DataFrame:
        """Return what each partition of a snapshot holds."""
        tables = EntryTables.of(self._metadata)
        manifests = self.manifests_of(snapshot, **moment)
        holdings = read_all(tables.holdings, tables.no_holdings(), self._io, manifests)
        return partitions_frame(holdings, self._metadata)

    def manifests_of(
        self, snapshot: Snapshot | None = None, **moment: Unpack[SnapshotChoice]
    ) -> tuple[ManifestFile, ...]:
        """Return the manifests of a snapshot as values, by default of the current one."""
        chosen = self.snapshot_of(snapshot, **moment)
        return () if chosen is None else listed_manifests(self._io, chosen)

    def all_manifests_once(self) -> tuple[ManifestFile, ...]:
        """Return the manifests of every snapshot as values, each once."""
        return tuple(manifests_by_path(self._io, self._metadata.snapshots).values())

    def snapshot_of(
        self, snapshot: Snapshot | None = None, **moment: Unpack[SnapshotChoice]
    ) -> Snapshot | None:
        """Return a snapshot that is named in one way, by default the current one."""
        if snapshot is None:
            return find_snapshot(
                self._metadata,
                snapshot_id=optional_snapshot_id_of(moment.get("snapshot_id")),
                as_of=moment.get("as_of"),
                ref=moment.get("ref"),
                text_zone=self._text_zone,
            )
        if not isinstance(snapshot, Snapshot):
            raise ValidationError(
                f"{snapshot!r} is no snapshot: name it, as snapshot_id=…, as_of=… or ref=…"
            )
        named = [name for name, value in moment.items() if value is not None]
        if named:
            raise ValidationError(f"give a snapshot or {' and '.join(named)}, not both")
        return snapshot

    def _entries(self, manifests: Sequence[ManifestFile]) -> pl.DataFrame:
        tables = EntryTables.of(self._metadata)
        return read_all(tables.entries, tables.no_entries(), self._io, manifests)

    def _files(self, manifests: Sequence[ManifestFile]) -> pl.DataFrame:
        tables = EntryTables.of(self._metadata)
        return read_all(tables.files, tables.no_files(), self._io, manifests)

    def _newest_at(self, timestamp_ms: int) -> tuple[int | None, int | None, int | None]:
        log = [e for e in self._metadata.snapshot_log if e.timestamp_ms <= timestamp_ms]
        snapshot = self._metadata.snapshots_by_id.get(log[-1].snapshot_id) if log else None
        if snapshot is None:
            return (stored_id(log[-1].snapshot_id) if log else None, None, None)
        return stored_id(snapshot.snapshot_id), snapshot.schema_id, snapshot.sequence_number


def _values_of(rows: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows]
