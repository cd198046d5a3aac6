"""ManifestFilter: which files of existing manifests an operation removes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import polars as pl

from frazil.errors import ConflictError, ValidationError
from frazil.format.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    DataFile,
    ManifestContent,
    ManifestFile,
)
from frazil.format.metadata import TableMetadata
from frazil.planning.removal import PlannedFile
from frazil.storage.avro.manifest_copy import CarriedEntries, Carry
from frazil.table.commit.kept import KeptBetweenTries
from frazil.table.manifests.entry_columns import (
    ABOUT,
    is_live,
    partition_tuples,
    read_many_entry_columns,
)
from frazil.table.manifests.file_keys import FileKey, PartitionSet, file_key
from frazil.table.manifests.files import ManifestFiles
from frazil.table.manifests.row_filter import RowFilter

_MANIFESTS_AT_ONCE = 256
_KEY_DTYPES = {"file_path": pl.String(), "content_offset": pl.Int64()}


@dataclass(frozen=True, slots=True)
class _Filtered:
    """One manifest after filtering; the manifest itself where nothing was removed."""

    manifest: ManifestFile
    removed: tuple[DataFile, ...]


class ManifestFilter:
    """Marks files of existing manifests as deleted (rules 109, 134).

    Files are chosen by identity, by partition, by a predicate that all of their rows match, and,
    in delete manifests, by the data file that they are about or by age. A manifest in which
    nothing is chosen is kept as it is, and one that cannot hold what is chosen is not opened: of
    files of a plan it is known which manifest lists them. Results are kept between the tries of a
    commit.
    """

    def __init__(self, files: ManifestFiles, content: ManifestContent) -> None:
        self._files = files
        self._content = content
        self._keys: dict[FileKey, DataFile] = {}
        self._key_partitions = PartitionSet()
        self._listed_in: dict[FileKey, set[str]] = {}
        self._holding: frozenset[str] = frozenset()
        self._paths: set[str] = set()
        self._partitions = PartitionSet()
        self._row_filter: RowFilter | None = None
        self._referenced: frozenset[str] = frozenset()
        self._referenced_partitions = PartitionSet()
        self._older_than = 0
        self._results = KeptBetweenTries[_Filtered]()
        self.removed: tuple[DataFile, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was chosen by identity, partition or predicate."""
        return not (self._keys or self._paths or self._partitions or self._row_filter)

    @property
    def chosen_files(self) -> tuple[DataFile, ...]:
        """The files chosen by identity."""
        return tuple(self._keys.values())

    def choose_file(self, file: DataFile) -> None:
        """Remove this file; it must be there (rules 211, 212)."""
        key = file_key(file)
        self._keys[key] = file
        if isinstance(file, PlannedFile):
            self._listed_in.setdefault(key, set()).add(file.manifest_path)
        else:
            self._key_partitions.add(file.spec_id, file.partition)

    def choose_only_files(self, files: Iterable[DataFile]) -> None:
        """Remove these files in place of those that were chosen by identity so far."""
        chosen = {file_key(file): file for file in files}
        if chosen.keys() == self._keys.keys():
            return
        self._keys.clear()
        self._listed_in.clear()
        self._key_partitions = PartitionSet()
        self._results.clear()
        for file in chosen.values():
            self.choose_file(file)

    def choose_path(self, path: str) -> None:
        """Remove the file of this path; it must be there (rules 211, 212)."""
        self._paths.add(path)

    def choose_partition(self, spec_id: int, partition: tuple[object, ...]) -> None:
        """Remove every file of a partition."""
        self._partitions.add(spec_id, partition)

    def choose_rows(self, row_filter: RowFilter) -> None:
        """Remove every file whose rows all match; a partial match is an error."""
        self._row_filter = row_filter

    def choose_deletes_of(self, data_files: Iterable[DataFile]) -> None:
        """Remove the deletes that are about one of these data files alone (rule 219)."""
        files = tuple(data_files)
        referenced = frozenset(file.file_path for file in files)
        if referenced != self._referenced:
            self._referenced = referenced
            self._referenced_partitions = PartitionSet(
                (file.spec_id, file.partition) for file in files
            )
            self._results.clear()

    def choose_older_than(self, sequence_number: int) -> None:
        """Remove deletes of a smaller data sequence number: they apply to nothing any more."""
        if sequence_number != self._older_than:
            self._older_than = sequence_number
            self._results.clear()

    def apply(
        self, metadata: TableMetadata, manifests: Sequence[ManifestFile], snapshot_id: int
    ) -> list[ManifestFile]:
        """The manifests without the chosen files; `removed` then tells which those were.

        Raises ConflictError: a file chosen by identity is not in the manifests; ValidationError: a
        data file holds rows that match the predicate and others.
        """
        self._locate(manifests)
        live = [manifest for manifest in manifests if manifest.has_live_files]
        may_match = (
            [False] * len(live)
            if self._row_filter is None
            else self._row_filter.may_match(metadata, live)
        )
        chosen = [
            manifest
            for manifest, may in zip(live, may_match, strict=True)
            if may or self._may_hold(metadata, manifest)
        ]
        rewritten: dict[str, _Filtered] = {}
        for start in range(0, len(chosen), _MANIFESTS_AT_ONCE):
            some = chosen[start : start + _MANIFESTS_AT_ONCE]
            rewritten |= self._filter_manifests(metadata, some, snapshot_id)
        results = [
            rewritten.get(manifest.manifest_path) or _Filtered(manifest, ())
            for manifest in manifests
        ]
        self.removed = tuple(file for result in results for file in result.removed)
        self._check_found()
        return [result.manifest for result in results]

    def _check_found(self) -> None:
        found = {file_key(file) for file in self.removed}
        found_paths = {file.file_path for file in self.removed}
        missing = [path for path, _ in self._keys.keys() - found]
        missing.extend(self._paths - found_paths)
        if missing:
            shown = ", ".join(sorted(missing)[:5])
            raise ConflictError(
                f"{len(missing)} of the files to remove are not in the table (any more): {shown}; "
                "another commit removed them, plan the operation again on the current snapshot"
            )

    def _locate(self, manifests: Sequence[ManifestFile]) -> None:
        """Tell the manifests of planned files; one that another commit rewrote is looked for."""
        here = {manifest.manifest_path for manifest in manifests}
        holding: set[str] = set()
        for key, listed in self._listed_in.items():
            holding |= listed & here
            if not listed <= here:
                self._key_partitions.add(self._keys[key].spec_id, self._keys[key].partition)
        self._holding = frozenset(holding)

    def _filter_manifests(
        self, metadata: TableMetadata, manifests: Sequence[ManifestFile], snapshot_id: int
    ) -> dict[str, _Filtered]:
        """The results of manifests that may hold what is chosen, by path."""
        found = {each: self._results.find(metadata, each) for each in manifests}
        left = [manifest for manifest, known in found.items() if known is None]
        # What is going to be rewritten is read as a whole at once, the others by their columns.
        whole = [manifest for manifest in left if self._is_rewritten(manifest)]
        for source in self._files.open_manifests(metadata, whole):
            manifest, frame = source.manifest, source.entries
            rewrite = partial(self._filter_manifest, metadata, manifest, frame, snapshot_id, source)
            found[manifest] = self._results.get_or_make(metadata, manifest, rewrite)
        row_filter = self._row_filter
        others = [manifest for manifest in left if not self._is_rewritten(manifest)]
        frames = read_many_entry_columns(
            self._files.io,
            metadata,
            others,
            values=None if row_filter is None else row_filter.statistics(metadata),
        )
        for manifest, frame in zip(others, frames, strict=True):
            look = partial(self._filter_manifest, metadata, manifest, frame, snapshot_id)
            found[manifest] = self._results.get_or_make(metadata, manifest, look)
        return {each.manifest_path: known for each, known in found.items() if known is not None}

    def _is_rewritten(self, manifest: ManifestFile) -> bool:
        """Whether a file that goes is known to be listed there, and its columns alone tell it."""
        return (
            manifest.content is ManifestContent.DATA
            and manifest.manifest_path in self._holding
            and self._row_filter is None
        )

    def _may_hold(self, metadata: TableMetadata, manifest: ManifestFile) -> bool:
        return (
            bool(self._paths)
            or manifest.manifest_path in self._holding
            or self._key_partitions.may_be_in(metadata, manifest)
            or self._partitions.may_be_in(metadata, manifest)
            or self._referenced_partitions.may_be_in(metadata, manifest)
            or (0 <= manifest.min_sequence_number < self._older_than)
        )

    def _filter_manifest(
        self,
        metadata: TableMetadata,
        manifest: ManifestFile,
        frame: pl.DataFrame,
        snapshot_id: int,
        opened: CarriedEntries | None = None,
    ) -> _Filtered:
        """Write the manifest anew where something is chosen, and open it only there."""
        chosen = self._chosen_rows(metadata, manifest, frame)
        if not chosen.any():
            return _Filtered(manifest, ())
        carry = pl.select(
            pl.when(~is_live(frame))
            .then(int(Carry.DROPPED))
            .when(chosen)
            .then(int(Carry.DELETED))
            .otherwise(int(Carry.EXISTING))
            .cast(pl.Int8)
        ).to_series()
        source = (
            CarriedEntries(manifest, self._files.container_of(manifest), frame, carry)
            if opened is None
            else replace(opened, carry=carry)
        )
        written = self._files.carry(
            metadata,
            [source],
            spec_id=manifest.partition_spec_id,
            content=manifest.content,
            snapshot_id=snapshot_id,
        )
        # Of entries only those that go are decoded one by one.
        return _Filtered(written, self._files.files_at(metadata, source, chosen.arg_true()))

    def _chosen_rows(
        self, metadata: TableMetadata, manifest: ManifestFile, frame: pl.DataFrame
    ) -> pl.Series:
        row_filter = self._row_filter
        named = self._is_named(metadata, manifest, frame)
        if self._content is ManifestContent.DELETES:
            named |= self._is_dangling(frame)
        live = is_live(frame)
        if row_filter is None:
            return named & live
        every_row = row_filter.all_match(metadata, manifest, frame)
        if self._content is ManifestContent.DATA:
            some_rows = row_filter.any_match(metadata, manifest, frame)
            partly = frame.filter(some_rows & ~every_row & ~named & live)
            if len(partly):
                raise ValidationError(
                    f"cannot remove {partly['file_path'][0]}: some of its "
                    f"{partly['record_count'][0]} rows match {row_filter} and others may not; "
                    "rewrite the file instead"
                )
        return (named | every_row) & live

    def _is_named(
        self, metadata: TableMetadata, manifest: ManifestFile, frame: pl.DataFrame
    ) -> pl.Series:
        """Chosen by path and offset, by path, or by partition."""
        named = pl.repeat(False, len(frame), dtype=pl.Boolean, eager=True)
        if self._paths:
            named |= frame["file_path"].is_in(list(self._paths))
        if self._keys:
            keys = pl.DataFrame(list(self._keys), schema=_KEY_DTYPES, orient="row").with_columns(
                pl.lit(True).alias("named")
            )
            joined = frame.select("file_path", "content_offset").join(
                keys,
                on=["file_path", "content_offset"],
                how="left",
                nulls_equal=True,
                maintain_order="left",
            )
            named |= joined["named"].fill_null(False)
        if self._partitions and manifest.partition_spec_id in self._partitions.spec_ids:
            spec_id = manifest.partition_spec_id
            named |= pl.Series(
                [
                    (spec_id, partition) in self._partitions
                    for partition in partition_tuples(metadata, spec_id, frame)
                ],
                dtype=pl.Boolean,
            )
        return named

    def _is_dangling(self, frame: pl.DataFrame) -> pl.Series:
        """About a removed data file alone (rule 219), or older than every data file."""
        number = frame["sequence_number"]
        dangling = ((number > 0) & (number < self._older_than)).fill_null(False)
        if self._referenced:
            dangling |= frame[ABOUT].is_in(list(self._referenced)).fill_null(False)
        return dangling


def smallest_live_sequence_number(manifests: Iterable[ManifestFile], default: int) -> int:
    """The smallest data sequence number of live files, as far as the manifests tell (rule 166)."""
    known = (
        manifest.min_sequence_number
        for manifest in manifests
        if manifest.has_live_files and manifest.min_sequence_number != UNASSIGNED_SEQUENCE_NUMBER
    )
    return min(known, default=default)
