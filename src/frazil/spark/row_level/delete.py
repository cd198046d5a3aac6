"""DELETE: rows of which a condition is true go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.errors import CommitError, ReplacedDeletesError, ValidationError
from frazil.format.predicates.expressions import Expression
from frazil.format.predicates.sql.implied import words_in_text
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.properties.commands import COMMANDS
from frazil.format.types import NestedField
from frazil.spark.conditions import Condition
from frazil.spark.delete_files.write import WrittenDeletes
from frazil.spark.port import SparkPort
from frazil.spark.row_level.command import Command
from frazil.spark.row_level.figures import ChangeResult
from frazil.spark.row_level.in_place import in_place
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.rivals.compared_rows import RowTest
from frazil.spark.row_level.target import Target, as_file_and_position, file_of, words_of_places
from frazil.spark.row_level.values.expressions import check_not_random
from frazil.spark.session.few_rows import tasks_of_scan
from frazil.table.commit.retries import run_with_retries
from frazil.table.conflicts.validation import isolation_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete the rows for which a condition is true.

    Attributes:
        where: which rows go.
        alias: what the table's columns are qualified with; None for nothing.
        options: where the snapshot goes, and what of others' commits conflicts.
    """

    where: str | Column | Expression
    alias: str | None = None
    options: CommitOptions = field(default_factory=CommitOptions)

    def run(self, port: SparkPort) -> ChangeResult:
        """Run it; see `Table.delete`."""
        if self.where is None:
            raise ValidationError(
                'delete needs a condition; "true" is one that every row of the table meets'
            )

        tries: list[_Deletion] = []

        def run_once() -> ChangeResult:
            command = Command.begin(port, "delete", self.options)
            tries.append(_Deletion(command.condition(self.where, alias=self.alias)))
            return tries[-1].run(command)

        return run_with_retries(run_once, lambda error: self._retries(port, error, tries))

    def _retries(self, port: SparkPort, error: CommitError, tries: Sequence[_Deletion]) -> int:
        """How often it is made again: on the new snapshot, as if it had come later.

        Under snapshot isolation that is as often as a commit is tried. Under serializable isolation
        it is for the user to say, but where others deleted rows of the same files there is nothing
        to ask, and no rows are read again where whole files go.
        """
        properties = port.metadata.properties
        level = self.options.isolation or COMMANDS["delete"].isolation.of(properties)
        asks = isolation_named(level) == "serializable"
        is_cheap = bool(tries) and tries[-1].is_by_metadata
        if asks and not (is_cheap or isinstance(error, ReplacedDeletesError)):
            return self.options.retry
        return max(self.options.retry, port.retries)


@dataclass(slots=True)
class _Deletion:
    """One try of a delete.

    Attributes:
        is_by_metadata: whether it came to its commit without a look at rows.
    """

    condition: Condition
    is_by_metadata: bool = False

    def run(self, command: Command) -> ChangeResult:
        """Run it, once: files of which every row matches go by metadata alone."""
        where = self.condition.implied
        every = command.target(command.spark, where)
        rest = every
        with command.discard_on_failure():
            whole: list[int] = []
            if self.condition.is_exact:
                files = every.plan.files
                whole = [int(n) for n in files.filter(pl.col("all_rows_match"))["ordinal"]]
                rest = every.where_files(~files["all_rows_match"])
            return self._delete(command, every, rest, whole)

    def _delete(
        self, command: Command, every: Target, rest: Target, whole: list[int]
    ) -> ChangeResult:
        """Delete files as a whole, and rows of the rest."""
        where = self.condition.implied
        gone = every.restricted_to(whole).live_row_count if whole else 0
        figures = {"rows_read": rest.plan.record_count, "rows_deleted": gone}
        if not rest.plan.file_count:
            self.is_by_metadata = True
            return self._whole_files(command, every, whole, figures)
        test = repeatable_test(rest, self.condition)
        if command.merges_on_read:
            deletes = deletes_of(command, rest, test)
            if not deletes.deleted_rows:
                return self._whole_files(command, every, whole, figures)
            figures["rows_deleted"] += deletes.deleted_rows
            return command.commit_deltas(
                (), deletes, every, where, figures, removed=whole, tested=tested_by(test)
            )
        counts = rows_by_file(rest, test)
        if not counts:
            return self._whole_files(command, every, whole, figures)
        rewritten = rest.restricted_to(counts)
        kept = rows_not_matching(rewritten, test)
        placement = None if isinstance(test, AtPlaces) else in_place(command, rewritten)
        added = command.write(kept, rewritten, placement=placement)
        figures["rows_deleted"] += sum(counts.values())
        figures["rows_copied"] = sum(file.record_count for file in added)
        return command.commit_rewrite(
            added, [*whole, *counts], every, where, figures, tested=tested_by(test)
        )

    def _whole_files(
        self, command: Command, every: Target, whole: list[int], figures: dict[str, int]
    ) -> ChangeResult:
        """Commit what metadata alone says."""
        where, tested = self.condition.implied, tested_by(self.condition)
        if not whole:
            return command.commit_nothing(every, where, tested=tested)
        return command.commit_rewrite(
            (), whole, every, where, figures, mode="metadata", tested=tested
        )


@dataclass(frozen=True, slots=True)
class AtPlaces:
    """Rows that were found to match, by their places: another look finds the same ones.

    Attributes:
        places: a column of places, evaluated once; each occurs once.
        place: the name of the column, here and in the rows that are tested.
    """

    places: DataFrame
    place: str

    @classmethod
    def of(cls, target: Target, condition: Condition) -> AtPlaces:
        """Find the rows that match now."""
        return cls(matching_places(target, condition).localCheckpoint(), target.place)

    def joined_rows(self, target: Target, how: str) -> DataFrame:
        """Return the rows of a target beside the places, for places that are many."""
        return target.rows(lineage=True).join(self.places, self.place, how)


Test = Condition | AtPlaces
"""What tells the rows that a command is about."""


def repeatable_test(target: Target, condition: Condition) -> Test:
    """Return a test that gives the same rows at each look.

    A condition with a sub-query or the time of day is evaluated now, once.

    Raises:
        PredicateError: the condition is random, so that nobody can say what it meant.
    """
    if condition.is_exact:
        return condition
    words = words_in_text(condition.text)
    if words is None or "(" in condition.text:
        # Without a call of a function nothing is random.
        nothing = target.no_rows()
        named = nothing if condition.alias is None else nothing.alias(condition.alias)
        check_not_random(named, condition.flag(), condition.text)
    if not (condition.has_subquery or words is None or words.name_any_of(CLOCKS)):
        return condition
    return AtPlaces.of(target, condition)


def tested_by(test: Test) -> RowTest | None:
    """Return how rows that others add are tested; None where a later look may say otherwise.

    Args:
        test: a condition that is `repeatable_test`, or the places that one has found.
    """
    if isinstance(test, AtPlaces) or test.has_subquery:
        return None
    words = words_in_text(test.text)
    if not test.is_exact and (words is None or words.name_any_of(CLOCKS)):
        return None
    return RowTest(lambda target: rows_by_file(target, test))


CLOCKS: Final = (
    "current_date",
    "current_time",
    "current_timestamp",
    "curdate",
    "now",
    "localtimestamp",
    "unix_timestamp",
    "to_unix_timestamp",
)


def rows_matching(target: Target, test: Test) -> DataFrame:
    """Return the rows of files that match, with their lineage."""
    if not isinstance(test, AtPlaces):
        return test.matching_rows(target.rows_without_places())
    words = words_of_places(target, test.places)
    rows = test.joined_rows(target, "left_semi") if words is None else target.rows_at(words)
    return rows.select(*target.written_names)


def rows_not_matching(target: Target, test: Test) -> DataFrame:
    """Return the other rows, with their lineage."""
    if not isinstance(test, AtPlaces):
        return test.other_rows(target.rows_without_places()).select(*target.written_names)
    words = words_of_places(target, test.places)
    rows = test.joined_rows(target, "left_anti") if words is None else target.rows_but(words)
    return rows.select(*target.written_names)


def rows_flagged(target: Target, test: Test, name: str) -> DataFrame:
    """Return all rows, with a column that says whether a row matches, never NULL."""
    if not isinstance(test, AtPlaces):
        return test.with_flag(target.rows_without_places(), name)
    words, flag = words_of_places(target, test.places), F.col(quote_name_always([name]))
    if words is None:
        marked = AtPlaces(test.places.withColumn(name, F.lit(True)), test.place)
        rows = marked.joined_rows(target, "left")
        return rows.select(*target.written_names, F.coalesce(flag, F.lit(False)).alias(name))
    matching = target.rows_at(words).select(*target.written_names, F.lit(True).alias(name))
    return matching.unionByName(target.rows_but(words).withColumn(name, F.lit(False)))


def matching_places(target: Target, test: Test) -> DataFrame:
    """Return the places of the rows that match; only what the test names is read."""
    if isinstance(test, AtPlaces):
        return test.places
    return test.matching_rows(target.rows(_tested_fields(target, test))).select(target.place)


def _tested_fields(target: Target, condition: Condition) -> list[NestedField]:
    """The columns that a condition may name."""
    fields = target.schema.fields
    if condition.column_names is None:
        return list(fields)
    return [field for field in fields if field.name in condition.column_names]


def places_of(target: Target, test: Test) -> DataFrame:
    """Return the file and the position of the rows that match."""
    if isinstance(test, AtPlaces):
        return as_file_and_position(test.places, F.col(target.place))
    rows = test.matching_rows(target.places(_tested_fields(target, test)))
    return rows.select(target.file, target.place)


def deletes_of(command: Command, target: Target, test: Test) -> WrittenDeletes:
    """Write deletes of the rows that match."""
    # What conditions cost is the scan of some columns.
    is_cheap = not isinstance(test, AtPlaces)
    return command.write_deletes(
        places_of(target, test),
        target.plan,
        most_rows=target.plan.record_count,
        tasks=tasks_of_scan(target.spark, target.plan) if is_cheap else None,
    )


def rows_by_file(target: Target, test: Test) -> dict[int, int]:
    """Return the number of rows that match in each file that has some."""
    if isinstance(test, AtPlaces):
        files = test.places.select(file_of(F.col(test.place)).alias("file"))
    else:
        rows = target.rows_with_files(_tested_fields(target, test))
        files = test.matching_rows(rows).select(F.col(target.file).alias("file"))
    counted = files.groupBy("file").agg(F.count("*").alias("rows")).toArrow()
    return dict(
        zip(counted.column("file").to_pylist(), counted.column("rows").to_pylist(), strict=True)
    )
