"""What every row-level command shares: where it starts, how it writes and how it commits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Final

from pyspark.sql import DataFrame

from frazil.format.manifests import DataFile
from frazil.format.predicates.expressions import Expression
from frazil.format.properties.commands import COMMANDS
from frazil.format.properties.table import ROW_LEVEL_CONFLICTS
from frazil.planning.removal import data_files
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.delete_files.write import WrittenDeletes, write_deletes, write_deletes_at
from frazil.spark.deletes.bitmap import Words
from frazil.spark.port import SparkPort
from frazil.spark.row_level.figures import (
    ChangeResult,
    figures_beside_others,
    files_skipped,
    summary_entries,
)
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.rivals.compared_rows import ComparedRows, RowTest
from frazil.spark.row_level.start import Start
from frazil.spark.row_level.target import Target
from frazil.spark.write.distribute import Placement
from frazil.table.conflicts.validation import Isolation, Validation, isolation_named
from frazil.table.file_changes import FileChanges
from frazil.table.snapshots.producer import SnapshotSettings, snapshot_options
from frazil.table.snapshots.read_rows import ReadRows

MERGE_ON_READ: Final = "merge-on-read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(Start):
    """One try of a command, from the metadata it starts with to its commit.

    Attributes:
        name: ``delete``, ``update`` or ``merge``.
        mode: ``copy-on-write`` or ``merge-on-read``.
        written: files that go if the command fails before its commit begins.
        decisive: files that stay, of which rows decided what the command does.
    """

    name: str
    mode: str
    isolation: Isolation
    notes: dict[str, str] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    decisive: list[DataFile] = field(default_factory=list)

    @classmethod
    def begin(
        cls, port: SparkPort, name: str, options: CommitOptions, *, mode: str | None = None
    ) -> Command:
        """Start from the newest metadata.

        Args:
            mode: in place of what the table's properties say.

        Raises:
            NoSuchRefError: there is no such branch.
            ConfigurationError: a property of the table is malformed.
        """
        start, properties = Start.of(port, options), COMMANDS[name]
        stated = start.base.properties
        mode = mode or properties.mode.of(stated)
        return cls(
            name=name,
            # Version 1 has no delete files.
            mode=mode if start.base.format_version > 1 else "copy-on-write",
            isolation=isolation_named(options.isolation or properties.isolation.of(stated)),
            **{each.name: getattr(start, each.name) for each in fields(start)},
        )

    @property
    def merges_on_read(self) -> bool:
        """Whether deleted rows are marked in delete files."""
        return self.mode == MERGE_ON_READ

    # -- files -----------------------------------------------------------------------------------

    def write(
        self,
        rows: DataFrame,
        target: Target,
        *,
        placement: Placement | None = None,
        most_rows: int | None = None,
    ) -> list[DataFile]:
        """Write rows in the columns of the target's written schema.

        Args:
            target: about the partitions of whose files the rows go to.
            most_rows: how many rows there are at most, where that is known.
        """
        files = self.write_files(
            rows,
            schema=target.written_schema,
            placement=placement,
            expected=None if most_rows is None else target.expected_rows(most_rows),
        )
        self.written.extend(file.file_path for file in files)
        return files

    def write_deletes(
        self, places: DataFrame, plan: ScanPlan, *, most_rows: int, tasks: int | None = None
    ) -> WrittenDeletes:
        """Write deletes of rows: the file's ordinal and the position of each.

        Args:
            tasks: how many find the rows, about, where a second look gives the same; else None.
        """
        written = write_deletes(
            places,
            plan=plan,
            metadata=self.base,
            io=self.port.io,
            most_rows=most_rows,
            tasks=tasks,
            on_progress=self.options.on_progress,
        )
        self.written.extend(written.paths)
        return written

    def write_deletes_at(self, places: Words, plan: ScanPlan) -> WrittenDeletes:
        """Write deletes of rows by their places, as of `frazil.spark.deletes.bitmap`."""
        written = write_deletes_at(
            self.spark,
            places,
            plan=plan,
            metadata=self.base,
            io=self.port.io,
            on_progress=self.options.on_progress,
        )
        self.written.extend(written.paths)
        return written

    @contextmanager
    def discard_on_failure(self) -> Iterator[None]:
        """Remove what was written where the block fails before its commit begins.

        From then on the commit itself knows which files go.
        """
        with self.port.io.remove_on_failure(self.written):
            yield

    def decided_by(self, target: Target, ordinals: Collection[int]) -> None:
        """Note files of which rows decide what the command does, though they stay.

        Under serializable isolation others must not remove rows of them meanwhile.
        """
        if self.isolation == "serializable":
            self.decisive.extend(data_files(self.base, target.plan, ordinals))

    # -- commits ---------------------------------------------------------------------------------

    def commit_nothing(
        self, target: Target, where: Expression, *, tested: RowTest | None = None
    ) -> ChangeResult:
        """Change no row; a transaction checks at its commit that there is none to change."""
        if self.isolation == "serializable":
            rows = self._rows_to_compare(target, (), where, tested)
            validation = self._validation(where, rows, check_deletes=False)
            options = snapshot_options(**self.settings)
            self.port.check_at_commit(ReadRows(self.port.io, validation, options))
        return self._figures(target.plan, "metadata")

    def commit_rewrite(
        self,
        added: Sequence[DataFile],
        removed: Collection[int],
        target: Target,
        where: Expression,
        figures: Mapping[str, int],
        mode: str | None = None,
        *,
        tested: RowTest | None = None,
    ) -> ChangeResult:
        """Commit files in place of others, or new rows alone.

        Rows that others added meanwhile and that match conflict.

        Args:
            removed: the ordinals of files that go.
            where: which rows the command is about.
            tested: how rows that others add are tested.
        """
        gone = data_files(self.base, target.plan, removed)
        rows = self._rows_to_compare(target, (), where, tested)
        validation = self._validation(where, rows, check_deletes=bool(gone))
        beside = self._commit(
            added,
            (),
            lambda settings: FileChanges(self.port).overwrite(
                added, removed=gone, validation=validation, **settings
            ),
            figures,
        )
        return self._figures(
            target.plan,
            mode or self.mode,
            {**figures, **beside},
            files_added=len(added),
            files_removed=len(gone),
        )

    def commit_deltas(
        self,
        added: Sequence[DataFile],
        deletes: WrittenDeletes,
        target: Target,
        where: Expression,
        figures: Mapping[str, int],
        removed: Collection[int] = (),
        changed: Collection[int] = (),
        *,
        tested: RowTest | None = None,
    ) -> ChangeResult:
        """Commit new rows and deletes of rows.

        Args:
            changed: the ordinals of files whose rows were read to make new ones: where others
                delete the same rows meanwhile, that conflicts.
            removed: the ordinals of files that go as a whole.
            tested: how rows that others add are tested.
        """
        gone = data_files(self.base, target.plan, removed)
        read = set(changed)
        if self.isolation == "snapshot":
            # Who changed a row first has changed it: a delete of its old form would miss the new.
            read |= set(target.with_paths(deletes.referenced_paths).ordinals)
        whose_rows = data_files(self.base, target.plan, read)
        rows = self._rows_to_compare(target, deletes.added, where, tested, removed=gone)
        validation = self._validation(where, rows, check_deletes=bool(read))
        beside = self._commit(
            added,
            deletes.paths,
            lambda settings: FileChanges(self.port).row_delta(
                added=added,
                added_deletes=deletes.added,
                removed=gone,
                removed_deletes=deletes.removed,
                referenced_data_files=deletes.referenced_paths,
                changed=whose_rows,
                validation=validation,
                **settings,
            ),
            figures,
        )
        return self._figures(
            target.plan,
            self.mode,
            {**figures, **beside},
            files_added=len(added),
            files_removed=len(gone),
            deletes_added=len(deletes.added),
            deletes_removed=len(deletes.removed),
        )

    def _commit(
        self,
        added: Sequence[DataFile],
        delete_paths: Sequence[str],
        commit: Callable[[SnapshotSettings], int],
        figures: Mapping[str, int],
    ) -> Mapping[str, int]:
        """Commit, and return what was done beside the commits of others."""
        own = (*(file.file_path for file in added), *delete_paths)
        self.written.clear()
        given = self.settings.get("snapshot_properties") or {}
        summary = {**given, **summary_entries(self.name, figures)}
        made = commit({**self.settings, "own_files": own, "snapshot_properties": summary})
        snapshot = self.port.metadata.snapshots_by_id.get(made)
        return {} if snapshot is None else figures_beside_others(snapshot.summary or {})

    def _rows_to_compare(
        self,
        target: Target,
        deletes: Sequence[DataFile],
        where: Expression,
        tested: RowTest | None,
        removed: Sequence[DataFile] = (),
    ) -> ComparedRows | None:
        """What is read where others changed the same files; None where files alone decide."""
        if tested is None or not ROW_LEVEL_CONFLICTS.of(self.base.properties):
            return None
        return ComparedRows(
            target=target,
            deletes=deletes,
            removed=removed,
            where=where,
            tested=tested,
        )

    def _validation(
        self, where: Expression, rows: ComparedRows | None, *, check_deletes: bool
    ) -> Validation:
        return Validation(
            self.snapshot_id,
            self.isolation,
            conflict_filter=where,
            check_deletes=check_deletes,
            case_sensitive=self.case_sensitive,
            read_files=tuple(self.decisive),
            operation=self.name,
            rows=rows,
        )

    def _figures(
        self, plan: ScanPlan, mode: str, rows: Mapping[str, int] | None = None, **files: int
    ) -> ChangeResult:
        of_plan = {"rows_read": plan.record_count}
        return ChangeResult(
            command=self.name,
            mode=mode,
            snapshot_id=self.snapshot_id,
            files_read=plan.file_count,
            files_skipped=files_skipped(plan),
            skipped=plan.skipped,
            notes=dict(self.notes),
            **{**of_plan, **(rows or {}), **files},
        )
