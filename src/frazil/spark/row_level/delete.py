"""DELETE: rows of which a condition is true go."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.spark.conditions import Condition
from frazil.spark.row_level.command import Command
from frazil.spark.row_level.figures import Changed
from frazil.spark.row_level.target import Target, file_of, position_of


@dataclass(frozen=True, slots=True)
class Delete:
    """A delete as it was asked for."""

    condition: Condition

    def run(self, command: Command) -> Changed:
        """Run it, once: files of which every row matches go by metadata alone."""
        where = self.condition.implied
        target = command.target(command.spark, where)
        with command.discarding():
            whole: list[int] = []
            if self.condition.is_exact:
                files = target.plan.files
                whole = [int(n) for n in files.filter(pl.col("all_rows_match"))["ordinal"]]
                target = target.where(~files["all_rows_match"])
            return self._deleted(command, target, whole)

    def _deleted(self, command: Command, rest: Target, whole: list[int]) -> Changed:
        """Delete files as a whole, and rows of the others."""
        where = self.condition.implied
        every = command.target(command.spark, where)
        gone = _live_rows(every.only(whole)) if whole else 0
        counts: dict[int, int] = {}
        if rest.plan.file_count:
            found = matching_places(rest, self.condition)
            counts = rows_by_file(found, rest.place)
        if not counts and not whole:
            return command.commit_nothing(every.plan)
        deleted = gone + sum(counts.values())
        figures = {"rows_deleted": deleted}
        if not counts:
            return command.commit_rewrite((), whole, every, where, figures, mode="metadata")
        touched = rest.only(counts)
        if command.merges_on_read:
            places = matching_places(touched, self.condition)
            at = F.col(touched.place)
            deletes = command.write_deletes(
                places.select(file_of(at).alias("file"), position_of(at).alias("position")),
                touched.plan,
            )
            return command.commit_deltas((), deletes, every, where, figures, removed=whole)
        kept = self.condition.not_matching(touched.rows(lineage=True)).drop(touched.place)
        added = command.write(kept, touched)
        figures["rows_copied"] = sum(file.record_count for file in added)
        return command.commit_rewrite(added, [*whole, *counts], every, where, figures)


def matching_places(target: Target, condition: Condition) -> DataFrame:
    """Return the places of the rows that match; only what the condition names is read."""
    fields = None
    if condition.column_names is not None:
        fields = [f for f in target.schema.fields if f.name in condition.column_names]
    return condition.matching(target.rows(fields)).select(target.place)


def rows_by_file(places: DataFrame, place: str) -> dict[int, int]:
    """Return the number of places in each file that has some."""
    counted = (
        places.groupBy(file_of(F.col(place)).alias("file"))
        .agg(F.count("*").alias("rows"))
        .toArrow()
    )
    return dict(
        zip(counted.column("file").to_pylist(), counted.column("rows").to_pylist(), strict=True)
    )


def _live_rows(target: Target) -> int:
    plan = target.plan
    if plan.pairs.is_empty():
        return plan.record_count
    return int(target.rows([]).count())
