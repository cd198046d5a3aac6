"""`delete`, `update`, `merge` and `upsert` of a table, on a handle or within a transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from pyspark.sql import Column

from frazil.errors import ValidationError
from frazil.format.arguments import one_or_several
from frazil.format.predicates.expressions import Expression
from frazil.format.properties.table import SCHEMA_EVOLUTION
from frazil.spark.conditions import condition_of
from frazil.spark.row_level.command import (
    Command,
    OnProgress,
    Options,
    repeated,
    tries_of_delete,
)
from frazil.spark.row_level.delete import Delete
from frazil.spark.row_level.figures import Changed
from frazil.spark.row_level.merging.builder import MergeBuilder
from frazil.spark.row_level.merging.clauses.clause import Clause
from frazil.spark.row_level.merging.evolution import new_columns
from frazil.spark.row_level.merging.merge import Merge
from frazil.spark.row_level.merging.named_keys import NamedKeys
from frazil.spark.row_level.names import check_aliases, check_has_keys, key_path
from frazil.spark.row_level.update import Update
from frazil.spark.row_level.writes import Rows, Writes
from frazil.spark.write.rows import rows_of
from frazil.table.conflicts.validation import Isolation
from frazil.table.operations import TableOperations

TARGET, SOURCE = "target", "source"

NullKeys = Literal["distinct", "equal"]


class RowCommands(Writes):
    """Commands that change single rows.

    How they write is the table's to say: ``write.delete.mode``, ``write.update.mode`` and
    ``write.merge.mode`` are ``copy-on-write`` (files with changed rows are written anew) or
    ``merge-on-read`` (deleted rows are marked in delete files, in version 3 in deletion vectors).
    """

    def delete(
        self,
        where: str | Column | Expression,
        *,
        branch: str | None = None,
        isolation: Isolation | None = None,
        retry: int = 0,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> Changed:
        """Delete the rows for which a condition is true, in one commit.

        Files of which every row matches go by metadata alone. Rows for which the condition is NULL
        stay.

            table.delete("ts < '2023-01-01' or city is null")

        Args:
            where: any condition on a row that Spark can evaluate, sub-queries too, as SQL text, a
                Column or an expression; ``"true"`` deletes every row.
            branch: the branch to change; `main` unless given.
            isolation: ``serializable`` refuses rows that others added meanwhile and that match,
                ``snapshot`` only what they did to the same files; the table's property
                ``write.delete.isolation-level`` unless given.
            retry: how often the command is run again where another commit contradicts it. Under
                ``snapshot`` it is run again ``commit.retry.num-retries`` times at least.
            snapshot_properties: entries for the snapshot's summary.
            options: write options by the Java runtime's names.
            on_progress: called as files are written.

        Returns:
            The figures of the command.

        Raises:
            PredicateError: the condition cannot be used.
            ConflictError: a concurrent commit contradicts it; nothing was changed.
        """
        chosen = Options(
            branch=branch,
            isolation=isolation,
            retry=retry,
            snapshot_properties=snapshot_properties,
            write_options=options,
            on_progress=on_progress,
        )

        def once() -> Changed:
            command = Command.begin(self.port, "delete", chosen)
            condition = condition_of(
                _given(where, "delete"),
                command.base.schema,
                spark=self.spark,
                case_sensitive=self.port.case_sensitive,
                time_zone=self.port.text_zone,
            )
            return Delete(condition).run(command)

        return repeated(once, *tries_of_delete(self.metadata, chosen))

    def update(
        self,
        set: Mapping[str, Any],
        where: str | Column | Expression | None = None,
        *,
        branch: str | None = None,
        isolation: Isolation | None = None,
        retry: int = 0,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> Changed:
        """Change the rows for which a condition is true, in one commit.

            table.update(set={"fare": "fare * 1.1", "s.note": "lower(s.note)"}, where="id = 7")

        Args:
            set: the new values by column, or by field of a struct as ``"s.x"``: SQL text over the
                row as it was, a Column, or a Python value that is no text.
            where: which rows, as of `delete`; all of them unless given.

        Returns:
            The figures of the command.

        Raises:
            PredicateError: the condition cannot be used.
            ValidationError: a value cannot be computed, or names no column of the table.
            SchemaMismatchError: a value's type does not fit its column.
            ConflictError: a concurrent commit contradicts it; nothing was changed.
        """
        chosen = Options(
            branch=branch,
            isolation=isolation,
            retry=retry,
            snapshot_properties=snapshot_properties,
            write_options=options,
            on_progress=on_progress,
        )

        def once() -> Changed:
            command = Command.begin(self.port, "update", chosen)
            condition = condition_of(
                where,
                command.base.schema,
                spark=self.spark,
                case_sensitive=self.port.case_sensitive,
                time_zone=self.port.text_zone,
                alias=TARGET,
            )
            return Update(set, condition, TARGET).run(command)

        return repeated(once, retry)

    def merge(
        self,
        source: Rows,
        on: str | Column | Sequence[str],
        *,
        target_alias: str = TARGET,
        source_alias: str = SOURCE,
        branch: str | None = None,
        isolation: Isolation | None = None,
        retry: int = 0,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> MergeBuilder:
        """Begin a merge of a source's rows into the table; its clauses and `execute` follow.

            trips.merge(corrections, on="target.id = source.id").when_matched_update_all().execute()

        The source is evaluated once, also where it is random or reads the table itself.

        Args:
            source: the rows, as of `append`.
            on: when a row of the source matches a row of the table: SQL text, a Column, or the
                names of columns that are equal. Of columns by names the source's values are
                compared as the table would store them, as a timestamp as the date of a column of
                dates; NULL equals nothing. Conditions and values have them as given.
            target_alias, source_alias: what the table and the source are called in `on`, in
                conditions and in values.

        Returns:
            What the clauses are added to.
        """
        chosen = Options(
            branch=branch,
            isolation=isolation,
            retry=retry,
            snapshot_properties=snapshot_properties,
            write_options=options,
            on_progress=on_progress,
        )
        strict = self.port.case_sensitive
        check_aliases(target_alias, source_alias, case_sensitive=strict)
        keys: NamedKeys | None = None
        condition: str | Column = ""
        if isinstance(on, str | Column):
            condition = on
        else:
            keys = NamedKeys(self._key_paths(one_or_several(on, argument="on")))

        def run(clauses: tuple[Clause, ...], evolves: bool) -> Changed:
            rows = rows_of(self.spark, source)
            if keys is not None:
                check_has_keys(rows.columns, keys.paths, case_sensitive=strict)
            merge = Merge(
                source=rows,
                on=condition,
                keys=keys,
                clauses=clauses,
                target_name=target_alias,
                source_name=source_alias,
                evolves=evolves,
            )
            if not evolves:
                return repeated(lambda: self._merged(merge, chosen), retry)
            return repeated(lambda: self._evolved(merge, chosen), retry)

        return MergeBuilder(run)

    def upsert(
        self,
        df: Rows,
        keys: str | Sequence[str] | None = None,
        *,
        null_keys: NullKeys = "distinct",
        branch: str | None = None,
        isolation: Isolation | None = None,
        retry: int = 0,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
    ) -> Changed:
        """Replace the rows of the same keys by a DataFrame's, and add those that are new.

        Args:
            df: the rows, as of `append`; no two have the same keys.
            keys: the columns that tell rows apart; the schema's identifier fields unless given.
                They are compared as the table stores them.
            null_keys: ``distinct``: a row with NULL in a key is another one than all others, and is
                added each time. ``equal``: NULL equals NULL, as it does for `apply_changes`.

        Raises:
            ValidationError: there are no keys, or two rows have the same; nothing was changed.
            SchemaMismatchError: a column cannot hold a value; nothing was changed.
        """
        if null_keys not in get_args(NullKeys):
            raise ValidationError(f"null_keys is 'distinct' or 'equal', not {null_keys!r}")
        names = self._identifiers() if keys is None else one_or_several(keys, argument="keys")
        if not names:
            raise ValidationError(
                "upsert needs keys: name the columns that tell rows apart, as keys=['id'], or set "
                "the schema's identifier fields"
            )
        chosen = Options(
            branch=branch,
            isolation=isolation,
            retry=retry,
            snapshot_properties=snapshot_properties,
            write_options=options,
            on_progress=on_progress,
        )
        named = NamedKeys(
            self._key_paths(names), nulls_are_equal=null_keys == "equal", are_distinct=True
        )
        rows = rows_of(self.spark, df)
        check_has_keys(rows.columns, named.paths, case_sensitive=self.port.case_sensitive)
        builder = MergeBuilder(
            lambda clauses, _: repeated(
                lambda: self._merged(
                    Merge(
                        source=rows,
                        keys=named,
                        clauses=clauses,
                        target_name=TARGET,
                        source_name=SOURCE,
                    ),
                    chosen,
                ),
                retry,
            )
        )
        return builder.when_matched_update_all().when_not_matched_insert_all().execute()

    # -- parts -----------------------------------------------------------------------------------

    def _merged(self, merge: Merge, options: Options) -> Changed:
        return merge.run(Command.begin(self.port, "merge", options))

    def _evolved(self, merge: Merge, options: Options) -> Changed:
        """Run a merge whose new columns are added in the same commit."""
        base, strict = self.port.newest(), self.port.case_sensitive
        if not SCHEMA_EVOLUTION.of(base.properties):
            return self._merged(replace(merge, evolves=False), options)
        added = new_columns(merge, base.schema, case_sensitive=strict)
        if not added.fields:
            return self._merged(merge, options)
        with self.port.together() as together:
            with TableOperations(together).update_schema(case_sensitive=strict) as change:
                change.union_by_name(added)
            return merge.run(Command.begin(together, "merge", options))

    def _identifiers(self) -> list[str]:
        schema = self.metadata.schema
        return [str(schema.find_column_name(i)) for i in schema.identifier_field_ids]

    def _key_paths(self, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        schema, strict = self.metadata.schema, self.port.case_sensitive
        return tuple(key_path(name, schema, case_sensitive=strict) for name in names)


def _given(where: Any, command: str) -> Any:
    if where is None:
        raise ValidationError(
            f'{command} needs a condition; "true" is one that every row of the table meets'
        )
    return where
