"""MERGE: rows of a source change, delete and add rows of the table.

The source is evaluated once and kept. Matches are found by reading what the conditions name and
the places of rows; the other columns are read only of files that are touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.errors import ValidationError
from frazil.format.predicates.expressions import Expression, any_of
from frazil.format.predicates.sql.implied import words_of
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.types import NestedField
from frazil.spark.free_names import free_name, free_names
from frazil.spark.row_level.assignments import columns_named
from frazil.spark.row_level.command import Command
from frazil.spark.row_level.figures import Changed
from frazil.spark.row_level.merging.checked import CheckedClauses
from frazil.spark.row_level.merging.clauses import Clause, Do, When
from frazil.spark.row_level.merging.flags import first_that_holds, values_by_clause
from frazil.spark.row_level.merging.key_filter import KeyFilter
from frazil.spark.row_level.merging.pruning import (
    equal_columns,
    implied_by_matches,
    implied_by_target,
    named_fields,
)
from frazil.spark.row_level.merging.source import Source
from frazil.spark.row_level.merging.touched import CLAUSE, Touched
from frazil.spark.row_level.merging.unmatched import UnmatchedValues
from frazil.spark.row_level.target import Target, file_of, position_of
from frazil.spark.session import prepare_session, type_support

BROADCAST_BYTES: Final = 64 << 20
"""Matched rows of up to so many bytes are sent to every task; more are shuffled."""

_ROW_BYTES: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A merge as it was asked for.

    Attributes:
        on: when a row of the source matches a row of the table.
        evolves: whether columns that the source lacks keep their values in clauses for all columns.
        keys: columns and fields in which no two rows of the source may be equal.
        target_name, source_name: what the two are called in `on`, conditions and values.
    """

    source: DataFrame
    on: str | Column
    clauses: Sequence[Clause]
    target_name: str
    source_name: str
    evolves: bool = False
    keys: tuple[tuple[str, ...], ...] = ()

    def run(self, command: Command) -> Changed:
        """Run it, once.

        Raises:
            PredicateError, ValidationError: a condition or a value makes no sense for the rows.
            SchemaMismatchError: a value's type does not fit its column.
            ConflictError: a concurrent commit contradicts it; nothing was changed.
        """
        spark = self.source.sparkSession
        prepare_session(spark)
        checked = CheckedClauses.of(self, command, spark)
        source = Source.of(self.source, [f.name for f in command.base.schema.fields])
        if self.keys:
            source.check_keys(self.keys)
        with command.discarding():
            return _Merging(self, command, checked, source, spark).run()


@dataclass(frozen=True, slots=True)
class _Merging:
    """One run of a merge."""

    merge: Merge
    command: Command
    checked: CheckedClauses
    source: Source
    spark: SparkSession

    def run(self) -> Changed:
        where = self._where()
        target = self.command.target(self.spark, where, [*self.source.names, self.source.number])
        matches = self._matches(target)
        orphans = self._orphans(target, matches)
        touched = Touched.of(target, self.merge.clauses, matches, orphans)
        if touched.most_matches > 1 and not self._may_match_often:
            self._check_one_match(target, matches)
        new = self._inserted(target, matches, touched)
        if self._clauses(When.NOT_MATCHED):
            # A match is why a row of the source is not added.
            self.command.decided_by(target, touched.matched_files)
        if touched.is_empty:
            return self._only_inserted(target, where, new)
        if self.command.merges_on_read:
            return self._merged_on_read(target, where, touched, matches, orphans, new)
        return self._rewritten(target, where, touched, matches, orphans, new)

    # -- which rows ------------------------------------------------------------------------------

    def _where(self) -> Expression:
        """What holds for every row of the table that the merge may touch."""
        schema, merge = self.command.base.schema, self.merge
        of_matches = implied_by_matches(
            merge.on,
            self.source,
            schema,
            spark=self.spark,
            target_name=merge.target_name,
            source_name=merge.source_name,
            case_sensitive=self.command.case_sensitive,
        )
        others = [
            implied_by_target(
                clause.condition,
                schema,
                spark=self.spark,
                target_name=merge.target_name,
                case_sensitive=self.command.case_sensitive,
            )
            for clause in merge.clauses
            if clause.when is When.BY_SOURCE
        ]
        return any_of([of_matches, *others])

    def _clauses(self, when: When) -> list[tuple[int, Clause]]:
        return [(n, each) for n, each in enumerate(self.merge.clauses) if each.when is when]

    def _fields(self, target: Target, when: When, *conditions: str | Column) -> list[NestedField]:
        """The columns of the table that conditions need."""
        given = [c.condition for _, c in self._clauses(when) if c.condition is not None]
        return named_fields([*conditions, *given], target.schema)

    def _sent(self, rows: DataFrame, count: int) -> DataFrame:
        """Few rows go to every task, so that the table's rows need not be shuffled."""
        width = sum(field.dataType.jsonValue() != "string" for field in rows.schema.fields)
        size = count * (_ROW_BYTES + 16 * width + 40 * (len(rows.columns) - width))
        return F.broadcast(rows) if size <= BROADCAST_BYTES else rows

    def _matches(self, target: Target) -> DataFrame:
        """The pairs that match: the row's place, the source's row, and the clause, if any."""
        merge, number = self.merge, self.source.number
        clauses = self._clauses(When.MATCHED)
        fields = self._fields(target, When.MATCHED, merge.on)
        passing = self._key_filter(target)
        if not self.command.merges_on_read:
            target = self._files_that_match(target, passing)
        rows = _passed(target.rows(fields), passing).alias(merge.target_name)
        source = self._sent(self._named_of_source(merge.on), self.source.count)
        pairs = rows.join(source.alias(merge.source_name), self.checked.on)
        return first_that_holds(
            pairs,
            [(n, clause.condition) for n, clause in clauses],
            name=CLAUSE,
            key=[target.place, number],
        ).localCheckpoint(eager=False)

    def _key_filter(self, target: Target) -> KeyFilter | None:
        merge = self.merge
        keys = equal_columns(
            merge.on,
            self.source,
            target.schema,
            target_name=merge.target_name,
            source_name=merge.source_name,
            case_sensitive=self.command.case_sensitive,
        )
        return KeyFilter.of(self.source, keys, rows=target.plan.record_count)

    def _files_that_match(self, target: Target, passing: KeyFilter | None) -> Target:
        """The files with a row that matches: those that copy-on-write writes anew.

        To find them takes no places, and the places of rows of other files need not be read.
        """
        if target.plan.file_count < 2:
            return target
        on = self.merge.on
        rows = _passed(target.rows_with_files(named_fields([on], target.schema)), passing)
        source = self._sent(self._named_of_source(on), self.source.count)
        pairs = rows.alias(self.merge.target_name).join(
            source.alias(self.merge.source_name), self.checked.on
        )
        found = pairs.select(F.col(target.file).alias("file")).distinct().toArrow()
        return target.only(found.column("file").to_pylist())

    def _named_of_source(self, *conditions: str | Column) -> DataFrame:
        """The source's columns that the matching needs, and its number."""
        matched = [c.condition for _, c in self._clauses(When.MATCHED) if c.condition is not None]
        wanted: set[str] = set()
        for each in (*conditions, *matched):
            words = words_of(each) if isinstance(each, str) else None
            if words is None or words.has_star:
                return self.source.rows
            wanted.update(name for name in self.source.names if words.name_any_of([name]))
        columns = [name for name in self.source.names if name in wanted]
        return self.source.rows.select(
            *(F.col(quote_name_always([name])) for name in (*columns, self.source.number))
        )

    @property
    def _may_match_often(self) -> bool:
        """Whether several rows of the source for a row of the table are no contradiction."""
        clauses = self._clauses(When.MATCHED)
        if not clauses:
            return True
        only = clauses[0][1]
        return len(clauses) == 1 and only.do is Do.DELETE and only.condition is None

    def _check_one_match(self, target: Target, matches: DataFrame) -> None:
        twice = matches.groupBy(target.place).agg(
            F.count("*").alias("matches"), F.min(self.source.number).alias("first")
        )
        worst = twice.where("matches > 1").orderBy("first").limit(1).collect()
        if not worst:
            return
        row = (
            self.source.rows.where(F.col(self.source.number) == worst[0]["first"])
            .drop(self.source.number)
            .collect()[0]
        )
        shown = ", ".join(f"{name}={row[n]!r}" for n, name in enumerate(self.source.names[:4]))
        raise ValidationError(
            f"{worst[0]['matches']} rows of the source match one row of the table, so it is not "
            f"known which one counts; nothing was changed. One of them: {shown}. Leave one row of "
            "the source for each match, as with dropDuplicates"
        )

    def _orphans(self, target: Target, matches: DataFrame) -> DataFrame | None:
        """The rows that no row of the source matches and a clause is about: place and clause."""
        clauses = self._clauses(When.BY_SOURCE)
        if not clauses:
            return None
        rows = target.rows(self._fields(target, When.BY_SOURCE))
        unmatched = rows.join(matches.select(target.place), target.place, "left_anti")
        return (
            first_that_holds(
                unmatched.alias(self.merge.target_name),
                [(n, clause.condition) for n, clause in clauses],
                name=CLAUSE,
                key=[target.place],
            )
            .where(F.col(CLAUSE).isNotNull())
            .localCheckpoint()
        )

    def _inserted(self, target: Target, matches: DataFrame, touched: Touched) -> DataFrame | None:
        """The new rows, in the columns that are written; None without a clause for them."""
        clauses = self._clauses(When.NOT_MATCHED)
        if not clauses:
            return None
        number = self.source.number
        clause = free_name(CLAUSE, self.source.rows.columns)
        matched = self._sent(matches.select(number), touched.pairs)
        left = self.source.rows.join(matched, number, "left_anti")
        chosen = first_that_holds(
            left.alias(self.merge.source_name),
            [(n, clause.condition) for n, clause in clauses],
            name=clause,
            key=[number],
            beside=self.source.names,
        )
        rows = chosen.where(F.col(clause).isNotNull()).alias(self.merge.source_name)
        empty = [F.lit(None).cast("bigint").alias(each.name) for each in target.lineage]
        support = type_support(self.spark)
        after = {
            n: self.checked.inserts[n].columns_after(rows, support, old=None) for n, _ in clauses
        }
        columns = values_by_clause(after, target.schema.fields, which=F.col(clause))
        return rows.select(*columns, *empty)

    # -- what becomes of them --------------------------------------------------------------------

    def _only_inserted(self, target: Target, where: Expression, new: DataFrame | None) -> Changed:
        added = [] if new is None else self.command.write(new, target)
        inserted = sum(file.record_count for file in added)
        if not inserted:
            return self.command.commit_nothing(target.plan)
        return self.command.commit_added(added, target.plan, where, {"rows_inserted": inserted})

    def _merged_on_read(
        self,
        target: Target,
        where: Expression,
        touched: Touched,
        matches: DataFrame,
        orphans: DataFrame | None,
        new: DataFrame | None,
    ) -> Changed:
        parts = [] if new is None else [new]
        updated = target.only(touched.updated_files)
        if touched.updated:
            parts.append(self._changed_rows(updated, touched, matches, orphans, "inner"))
        added = self.command.write(reduce(DataFrame.unionByName, parts), target) if parts else []
        figures = touched.figures(added=sum(file.record_count for file in added), copied=None)
        if not touched.places:
            return self.command.commit_added(added, target.plan, where, figures)
        deletes = self.command.write_deletes(
            _places(touched.acted(matches, orphans), target.place),
            target.only(touched.files).plan,
        )
        changed = touched.updated_files if touched.updated else ()
        return self.command.commit_deltas(added, deletes, target, where, figures, changed=changed)

    def _rewritten(
        self,
        target: Target,
        where: Expression,
        touched: Touched,
        matches: DataFrame,
        orphans: DataFrame | None,
        new: DataFrame | None,
    ) -> Changed:
        rewritten = target.only(touched.files)
        rows = self._changed_rows(rewritten, touched, matches, orphans, "left")
        parts = [rows] if new is None else [rows, new]
        added = self.command.write(reduce(DataFrame.unionByName, parts), target)
        written = sum(file.record_count for file in added)
        copied = rewritten.live_row_count - touched.places
        figures = touched.figures(added=written, copied=copied)
        return self.command.commit_rewrite(added, touched.files, target, where, figures)

    def _changed_rows(
        self,
        target: Target,
        touched: Touched,
        matches: DataFrame,
        orphans: DataFrame | None,
        how: str,
    ) -> DataFrame:
        """Rows of files, changed by their clauses and without those that are deleted.

        Args:
            how: ``inner`` for the changed rows alone, ``left`` for the others too.
        """
        merge, number, place = self.merge, self.source.number, target.place
        by_source = {
            n: self.checked.updates[n]
            for n, _ in self._clauses(When.BY_SOURCE)
            if n in self.checked.updates
        }
        acts = touched.acted(matches, None if by_source else orphans)
        if how == "inner":
            acts = acts.where(F.col(CLAUSE).isin(list(self.checked.updates)))
        at, clause = free_names(
            ["_frazil_at", "_frazil_act"],
            [
                *(field.name for field in target.written_schema.fields),
                *self.source.names,
                number,
                CLAUSE,
                place,
            ],
        )
        acts = acts.withColumnRenamed(place, at).withColumnRenamed(CLAUSE, clause)
        source = self._sent(self.source.rows, self.source.count)
        named = self._sent(acts.join(source, number, "left"), touched.places)
        rows = target.rows(lineage=True).alias(merge.target_name)
        which = F.col(quote_name_always([merge.source_name, clause]))
        apart: Mapping[int, Mapping[str, Column]] = {}
        way = how
        if by_source and orphans is not None:
            unmatched = UnmatchedValues.of(
                target.rows(lineage=True),
                orphans.select(place, CLAUSE),
                by_source,
                target=target,
                alias=merge.target_name,
                beside=(*named.columns, *self.source.names),
            )
            rows, apart = unmatched.rows, unmatched.after
            which, way = F.coalesce(which, unmatched.clause), "left"
        joined = rows.join(
            named.alias(merge.source_name),
            F.col(quote_name_always([merge.target_name, place]))
            == F.col(quote_name_always([merge.source_name, at])),
            way,
        )
        if way != how:
            joined = joined.where(which.isin(list(self.checked.updates)))
        names = [field.name for field in target.schema.fields]
        old = columns_named(merge.target_name, names)
        support = type_support(self.spark)
        after = {
            n: made.columns_after(joined, support, old=old)
            for n, made in self.checked.updates.items()
            if n not in by_source
        }
        after.update({n: {**old, **values} for n, values in apart.items()})
        if how == "left":
            deletes = [n for n, c in enumerate(merge.clauses) if c.do is Do.DELETE]
            if deletes:
                joined = joined.where(which.isNull() | ~which.isin(deletes))
        columns = values_by_clause(after, target.schema.fields, which=which, otherwise=old)
        lineage = columns_named(merge.target_name, [each.name for each in target.lineage])
        if lineage:
            stays = F.when(which.isNull(), lineage[target.last_updated])
            columns += [
                lineage[target.row_id].alias(target.row_id),
                stays.alias(target.last_updated),
            ]
        return joined.select(*columns)


def _passed(rows: DataFrame, passing: KeyFilter | None) -> DataFrame:
    return rows if passing is None else passing.passed(rows)


def _places(acts: DataFrame, place: str) -> DataFrame:
    at = F.col(place)
    return acts.select(file_of(at).alias("file"), position_of(at).alias("position"))
