"""One batch of changes becomes one commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import or_
from typing import Final, Literal

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from frazil.errors import ConflictError, ValidationError
from frazil.format.changes import AddSpec, Update
from frazil.format.evolution.promotion import can_promote, widest
from frazil.format.manifests import Content, DataFile, ManifestContent
from frazil.format.metadata import TableMetadata
from frazil.format.partitions.partitioning import UNPARTITIONED, PartitionSpec
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.properties.table import SCHEMA_EVOLUTION
from frazil.format.schema import Schema
from frazil.format.snapshots import MAIN_BRANCH, Snapshot
from frazil.format.types import IcebergType
from frazil.planning.load import listed_manifests
from frazil.spark.comparable import comparable
from frazil.spark.files.row_checks import stop_with_value, value_problem
from frazil.spark.port import SparkPort
from frazil.spark.row_level.command import MERGE_ON_READ
from frazil.spark.row_level.merging.clauses.clause import Clause, Do, When
from frazil.spark.row_level.merging.evolution import add_columns_of
from frazil.spark.row_level.merging.keys.named_keys import NamedKeys
from frazil.spark.row_level.merging.merge import Merge
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.start import Start
from frazil.spark.row_level.values.names import SOURCE
from frazil.spark.row_level.writes import Rows
from frazil.spark.session import costs
from frazil.spark.session.facts import is_case_sensitive, prepare_session
from frazil.spark.session.free_names import free_names
from frazil.spark.upserts.arrival_order import ArrivalOrder, KeyFigures
from frazil.spark.upserts.change_rows import Arrival, ChangeFormat, ChangeRows, Order, WantedChanges
from frazil.spark.upserts.choice import EQUALITY, Choice, Mode, check_mode, choice_of
from frazil.spark.upserts.formats import plain
from frazil.spark.upserts.keys import Keys, names_of_keys
from frazil.spark.upserts.once import Batch, BatchAppliedError, as_batch
from frazil.spark.upserts.result import ApplyChangesResult
from frazil.spark.write.columns.align import align
from frazil.spark.write.files import write_data_files
from frazil.spark.write.row_count import ExpectedRows
from frazil.spark.write.rows import rows_of
from frazil.storage.file_kinds import equality_delete_files
from frazil.storage.files import FileIO
from frazil.storage.side_by_side import in_threads
from frazil.table.commit.operation import MetadataOperation
from frazil.table.commit.retries import run_with_retries
from frazil.table.conflicts.validation import Validation
from frazil.table.file_changes import FileChanges
from frazil.table.operations import TableOperations
from frazil.table.snapshots.producer import SnapshotSettings, branch_head

NewColumns = Literal["fail", "add"]

MODE: Final = "frazil.changes.mode"
REASON: Final = "frazil.changes.mode-reason"
"""In the summaries of snapshots of changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyChanges:
    """Insert, change and delete rows by their keys, in one commit.

    Attributes:
        rows: the changes.
        keys: the columns that tell rows apart; the schema's identifier fields unless given.
        op: the column that says what happened; all rows are upserts unless given.
        order_by: columns that order the changes of a key, or `ARRIVAL`.
        mode: how they are written.
        format: how they are written down, in place of `op`.
        on_new_columns: whether to ``add`` columns that the table lacks or to ``fail``; as the
            table's property says unless given.
        batch: what tells them from others.
        options: where the snapshot goes, and how files are written.
    """

    rows: Rows
    keys: str | Sequence[str] | None = None
    op: str | Column | None = None
    order_by: Order | Sequence[Order] = ()
    mode: Mode = "auto"
    format: ChangeFormat | None = None
    on_new_columns: NewColumns | None = None
    batch: Batch | None = None
    options: CommitOptions = field(default_factory=CommitOptions)

    def __post_init__(self) -> None:
        format, new = self.format, self.on_new_columns
        # An iterable is gone through once.
        object.__setattr__(self, "keys", names_of_keys(self.keys))
        object.__setattr__(self, "order_by", self.order)
        if format is not None and self.op is not None:
            raise ValidationError(
                "give either op or a format of frazil.changes, which says its own op"
            )
        if format is not None and not isinstance(format, ChangeFormat):
            raise ValidationError(
                f"format is one of frazil.changes, as frazil.changes.change_feed(), not {format!r}"
            )
        if new not in (None, "fail", "add"):
            raise ValidationError(f"on_new_columns is 'fail' or 'add', not {new!r}")
        if not all(isinstance(each, Order) for each in self.order):
            raise ValidationError(f"order_by is columns or their names, not {self.order_by!r}")
        if len(self.order) > 1 and any(isinstance(each, Arrival) for each in self.order):
            raise ValidationError(
                "ARRIVAL is the whole order of the changes of a key; give either it or columns"
            )
        check_mode(self.mode)

    @property
    def order(self) -> tuple[Order, ...]:
        """What orders the changes of a key."""
        return (self.order_by,) if isinstance(self.order_by, Order) else tuple(self.order_by)

    def run(self, port: SparkPort) -> ApplyChangesResult:
        """Run it, again on the new snapshot after a conflict; see `Table.apply_changes`."""
        df = rows_of(port.spark, self.rows)

        def run_once() -> ApplyChangesResult:
            try:
                with as_batch(port, self.batch) as together:
                    return _Application(together, self).run(df)
            except BatchAppliedError:
                return ApplyChangesResult(was_applied=True)
            except PySparkException as error:
                problem = value_problem(str(error))
                if problem is None:
                    raise
                raise ValidationError(f"{problem}; nothing was changed") from error

        return run_with_retries(run_once, lambda _: port.retries)


@dataclass(frozen=True, slots=True)
class _Application:
    """One try of one batch, within a transaction."""

    port: SparkPort
    command: ApplyChanges

    def run(self, df: DataFrame) -> ApplyChangesResult:
        spark = df.sparkSession
        prepare_session(spark)
        strict = is_case_sensitive(spark)
        schema = self.port.metadata.schema
        keys = Keys.of(names_of_keys(self.command.keys), schema, case_sensitive=strict)
        if adds_columns := self._adds_columns():
            self._add_stated_columns(df, strict)
        wanted = WantedChanges(
            schema=self.port.metadata.schema,
            keys=keys,
            order_by=self.command.order,
            case_sensitive=strict,
        )
        changes = self._format.read(df, wanted)
        if adds_columns:
            # In the same commit.
            add_columns_of(changes.rows.drop(*changes.other_columns), self.port)
        base = self.port.metadata
        changes = aligned_changes(changes, base.schema, keys)
        with ExitStack() as kept:
            arrived: ArrivalOrder | None = None
            if wanted.is_by_arrival:
                arrived = ArrivalOrder.of(changes, keys)
                kept.callback(arrived.forget)
                figures = arrived.figures()
            else:
                last = _persist(last_changes(changes, keys), kept)
                figures = _figures(last, changes.gone)
            if not figures.keys:
                return ApplyChangesResult()
            head = Start.of(self.port, self.command.options).head
            choice = choice_of(self.command.mode, base, head, figures.keys)
            if choice.mode == EQUALITY:
                if arrived is None:
                    data, named = self._last_rows_writer(last, changes.gone, figures), last
                else:
                    # Rows as they come, and positions of those that others supersede.
                    data = partial(
                        arrived.write,
                        figures,
                        metadata=self.port.metadata,
                        io=self.port.io,
                        options=self.command.options.options,
                        on_progress=self.command.options.on_progress,
                    )
                    named = arrived.by_key
                self._with_equality_deletes(data, named, keys, head, choice, figures)
            else:
                if arrived is not None:
                    last = _persist(last_changes(arrived.changes, keys), kept)
                self._merge_in_place(last, changes.gone, keys, choice)
        return ApplyChangesResult(
            mode=choice.mode,
            reason=choice.reason,
            upserted=figures.keys - figures.deleted,
            deleted=figures.deleted,
        )

    def _adds_columns(self) -> bool:
        """Whether the table may get new columns: the table's word counts, and the caller's."""
        properties = self.port.metadata.properties
        stated = SCHEMA_EVOLUTION.name in properties
        allowed = SCHEMA_EVOLUTION.of(properties)
        wished = self.command.on_new_columns
        return allowed and (stated if wished is None else wished == "add")

    def _add_stated_columns(self, df: DataFrame, strict: bool) -> None:
        """Add the columns of events that state their types, and widen numbers."""
        fold = str if strict else str.lower
        known = {fold(field.name): field for field in self.port.metadata.schema.fields}
        added: dict[str, IcebergType] = {}
        wider: dict[str, IcebergType] = {}
        for name, kinds in self._format.stated_columns(df).items():
            if fold(name) not in known:
                added[name] = _holding_type(name, kinds)
                continue
            field = known[fold(name)]
            kind = widest(each for each in kinds if can_promote(field.field_type, each, 1))
            if kind is not None:
                wider[field.name] = kind
        if added or wider:
            with TableOperations(self.port).update_schema(case_sensitive=strict) as change:
                for name, kind in added.items():
                    change.add_column((name,), kind)
                for name, kind in wider.items():
                    change.update_column((name,), kind)

    # -- equality deletes ------------------------------------------------------------------------

    def _with_equality_deletes(
        self,
        data: Callable[[], list[DataFile]],
        named: DataFrame,
        keys: Keys,
        head: Snapshot | None,
        choice: Choice,
        figures: KeyFigures,
    ) -> None:
        """Write and commit.

        Args:
            data: writes the changed rows.
            named: a row a key.
        """
        live = live_specs(self.port.io, head)
        spec = self._spec_of_deletes(keys, live) if live else None
        settings = Start.of(self.port, self._options(choice)).settings
        if spec is not None:
            branch = settings.get("branch") or MAIN_BRANCH
            self.port.run(reaching_all(self.port.io, branch, spec, head))
        works: list[Callable[[], list[DataFile]]] = []
        if figures.keys > figures.deleted:
            works.append(data)
        if spec is not None:
            few = named.coalesce(1 + figures.keys // costs.KEYS_A_TASK)
            works.append(lambda: self._deletes(few, keys, spec, figures))
        written: list[DataFile] = []

        def work(one: Callable[[], list[DataFile]]) -> None:
            written.extend(one())

        with self.port.io.remove_on_failure(file.file_path for file in written):
            in_threads(work, works, threads=2, name="frazil-changes")
        if not written:
            return
        self._commit(written, spec, head, settings)

    def _spec_of_deletes(self, keys: Keys, live: frozenset[int]) -> PartitionSpec:
        spec = spec_of_deletes(self.port.metadata, keys, live)
        if spec is not None:
            return spec
        self.port.run(with_unpartitioned_spec(self.port.metadata))
        spec = spec_of_deletes(self.port.metadata, keys, live)
        assert spec is not None
        return spec

    def _last_rows_writer(
        self, last: DataFrame, gone: str, figures: KeyFigures
    ) -> Callable[[], list[DataFile]]:
        """Return what writes the last rows of keys."""
        # Few rows make few files, into however many parts Spark has shuffled them.
        rows = last.coalesce(1 + (figures.keys - figures.deleted) // costs.CHANGED_ROWS_A_TASK)
        kept = rows.where(~F.col(quote_name_always([gone]))).drop(gone)
        return lambda: write_data_files(
            self.port.spark,
            kept,
            metadata=self.port.metadata,
            io=self.port.io,
            options=self.command.options.options,
            expected=ExpectedRows(rows=figures.keys - figures.deleted),
            on_progress=self.command.options.on_progress,
        )

    def _deletes(
        self, last: DataFrame, keys: Keys, spec: PartitionSpec, figures: KeyFigures
    ) -> list[DataFile]:
        metadata = self.port.metadata
        schema: Schema = keys.schema
        mode = "none" if spec.is_unpartitioned else "hash"
        return write_data_files(
            self.port.spark,
            last.select(*keys.columns),
            metadata=metadata,
            io=self.port.io,
            options={
                "output-spec-id": str(spec.spec_id),
                "output-sort-order-id": "0",
                "distribution-mode": mode,
            },
            schema=schema,
            kind=equality_delete_files(keys.ids),
            expected=ExpectedRows(rows=figures.keys),
        )

    def _commit(
        self,
        written: list[DataFile],
        spec: PartitionSpec | None,
        head: Snapshot | None,
        settings: SnapshotSettings,
    ) -> None:
        added = [file for file in written if file.content is Content.DATA]
        deletes = [file for file in written if file.content is not Content.DATA]
        own: SnapshotSettings = {
            **settings,
            # Several vectors may be in one file.
            "own_files": tuple(dict.fromkeys(file.file_path for file in written)),
        }
        files = FileChanges(self.port)
        if spec is None:
            # Nothing was there to delete: rows that others add meanwhile would stay.
            empty = Validation(None if head is None else head.snapshot_id, check_deletes=False)
            files.row_delta(added=added, added_deletes=deletes, validation=empty, **own)
            return
        files.row_delta(added=added, added_deletes=deletes, **own)

    # -- positions -------------------------------------------------------------------------------

    def _merge_in_place(self, last: DataFrame, gone: str, keys: Keys, choice: Choice) -> None:
        """Delete and change rows where they are; keys alone are joined."""
        flag = quote_name_always([SOURCE, gone])
        values: dict[str, Column] = {
            quote_name_always([name]): F.col(quote_name_always([SOURCE, name]))
            for name in last.columns
            if name != gone
        }
        Merge(
            source=last,
            on=NamedKeys(tuple((name,) for name in keys.names), nulls_are_equal=True),
            clauses=[
                Clause(when=When.MATCHED, do=Do.DELETE, condition=flag),
                Clause(when=When.MATCHED, do=Do.UPDATE, values=values),
                Clause(when=When.NOT_MATCHED, do=Do.INSERT, condition=f"not {flag}", values=values),
            ],
            mode=MERGE_ON_READ,
            options=self._options(choice),
        ).run(self.port)

    @property
    def _format(self) -> ChangeFormat:
        return self.command.format or plain(self.command.op)

    def _options(self, choice: Choice) -> CommitOptions:
        """The command's options, with what the snapshot says of the changes."""
        batch = self.command.batch
        summary = {} if batch is None else batch.summary
        return self.command.options.with_summary(
            {**summary, MODE: choice.mode, REASON: choice.reason}
        )


def _holding_type(name: str, kinds: Sequence[IcebergType]) -> IcebergType:
    """The type of a new column, of the types that changes state for it in their order."""
    kind = widest(kinds)
    if kind is None:
        stated = ", then ".join(map(str, kinds))
        raise ValidationError(
            f"the changes state for the column {name!r}, which the table lacks, the type {stated}, "
            "and none holds the values of all: add the column first, with update_schema(); nothing "
            "was changed"
        )
    return kind


def _persist(frame: DataFrame, kept: ExitStack) -> DataFrame:
    """Let Spark keep rows while a block runs."""

    def forget() -> None:
        with suppress(PySparkException):
            frame.unpersist()

    kept.callback(forget)
    return frame.persist()


def _figures(last: DataFrame, gone: str) -> KeyFigures:
    counted = last.agg(F.count("*"), F.count_if(F.col(gone))).collect()[0]
    return KeyFigures(keys=int(counted[0]), deleted=int(counted[1]), changes=int(counted[0]))


def live_specs(io: FileIO, snapshot: Snapshot | None) -> frozenset[int]:
    """Return the ids of the partition specs that a snapshot's data files have."""
    if snapshot is None:
        return frozenset()
    return frozenset(
        manifest.partition_spec_id
        for manifest in listed_manifests(io, snapshot)
        if manifest.content is ManifestContent.DATA and manifest.has_live_files
    )


def spec_of_deletes(
    metadata: TableMetadata, keys: Keys, live: Collection[int]
) -> PartitionSpec | None:
    """Return the spec to write deletes of keys with.

    A delete of an unpartitioned spec is global; one of another spec reaches the files of its own
    spec and partition alone. Where the keys do not tell a row's partition, or files of several
    specs are live, only global deletes reach every earlier row of a key.

    Args:
        live: the specs of data files.

    Returns:
        None where they must be global and the table has no unpartitioned spec.
    """
    if set(live) <= {metadata.spec.spec_id} and keys.tell_partition(metadata.spec):
        return metadata.spec
    unpartitioned = [spec for spec in metadata.partition_specs if spec.is_unpartitioned]
    return max(unpartitioned, key=lambda spec: spec.spec_id, default=None)


def with_unpartitioned_spec(metadata: TableMetadata) -> MetadataOperation:
    """Add an unpartitioned spec beside the table's, for global deletes; the default one stays.

    Raises:
        ConflictError: when run, if another commit gave the spec's id away.
    """
    spec = replace(UNPARTITIONED, spec_id=max(metadata.specs_by_id, default=-1) + 1)

    def updates(base: TableMetadata) -> list[Update]:
        if spec.spec_id in base.specs_by_id:
            raise ConflictError(
                f"another commit added partition spec {spec.spec_id}; write the deletes again"
            )
        return [AddSpec(spec)]

    return MetadataOperation(updates)


def reaching_all(
    io: FileIO, branch: str, spec: PartitionSpec, planned: Snapshot | None
) -> MetadataOperation:
    """Check that deletes of a spec reach all earlier rows, whatever others committed meanwhile.

    Args:
        branch: that they are committed to.
        spec: of the deletes.
        planned: the snapshot that the spec was chosen for.

    Raises:
        ConflictError: when run, if the branch has data files that they do not reach.
    """

    def updates(base: TableMetadata) -> list[Update]:
        head = branch_head(base, branch) if branch in base.refs else base.current_snapshot
        same = head is None or (planned is not None and head.snapshot_id == planned.snapshot_id)
        if same or spec.is_unpartitioned:
            return []
        others = live_specs(io, head) - {spec.spec_id}
        if others:
            raise ConflictError(
                f"another commit added files of partition specs {sorted(others)}, which deletes of "
                f"spec {spec.spec_id} do not reach; write the deletes again"
            )
        return []

    return MetadataOperation(updates)


def aligned_changes(changes: ChangeRows, schema: Schema, keys: Keys) -> ChangeRows:
    """Return changes with the table's columns; nothing is evaluated, and no row moves.

    Raises:
        SchemaMismatchError: the rows do not fit the table.
    """
    # Keys alone are known of deleted rows.
    optional = Schema(
        tuple(
            replace(field, required=field.required and field.field_id in keys.ids)
            for field in schema.fields
        ),
        schema.schema_id,
    )
    spark = changes.rows.sparkSession
    aligned = align(
        changes.rows,
        optional,
        case_sensitive=is_case_sensitive(spark),
        beside=changes.other_columns,
    )
    return replace(changes, rows=aligned)


def last_changes(changes: ChangeRows, keys: Keys) -> DataFrame:
    """Return the last change of each key: the table's columns and `gone`; nothing is evaluated.

    Changes of a key that nothing orders must be equal, and count as one.

    Args:
        changes: as of `aligned_changes`.
    """
    aligned = changes.rows
    order = [F.col(quote_name_always([name])) for name in changes.order]
    if order:
        missing = reduce(or_, (column.isNull() for column in order))
        problem = F.concat(
            F.lit("a change has no place in the order, since a column of order_by is NULL, for "),
            keys.shown_text,
        )
        stop = stop_with_value(problem).cast("boolean")
        gone = F.col(changes.gone)
        aligned = aligned.withColumn(changes.gone, F.when(missing, stop).otherwise(gone))
    rank, alike, first = free_names(
        ["_frazil_rank", "_frazil_alike", "_frazil_first"], aligned.columns
    )
    by_key = Window.partitionBy(*keys.columns)
    last = aligned
    if order:
        latest = F.rank().over(by_key.orderBy(*(column.desc() for column in order)))
        last = aligned.withColumn(rank, latest).where(F.col(rank) == 1).drop(rank)
    fields = last.drop(*changes.order).schema.fields
    content = F.xxhash64(
        *(comparable(F.col(quote_name_always([f.name])), f.dataType) for f in fields)
    )
    last = last.drop(*changes.order).withColumn(alike, content)
    one = last.withColumns(
        {
            first: F.row_number().over(by_key.orderBy(F.col(alike))),
            rank: F.max(alike).over(by_key),
        }
    ).where(F.col(first) == 1)
    what = "order_by orders them alike" if order else "there is no order_by"
    problem = F.concat(
        F.lit("there are several changes of one key, and which one is the last cannot be told, "),
        F.lit(f"since {what}: "),
        keys.shown_text,
    )
    stop = stop_with_value(problem).cast("boolean")
    decided = F.when(F.col(alike) != F.col(rank), stop).otherwise(F.col(changes.gone))
    return one.withColumn(changes.gone, decided).drop(first, rank, alike)
