"""Rows into a table of a lake: what Spark's writers ask for, as the commands that methods make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame, SparkSession

from frazil.catalog.identifiers import Identifier, shown
from frazil.errors import NoSuchTableError, TableAlreadyExistsError, UnsupportedError
from frazil.spark.attached.dataframes.java_options import Given, write_choice
from frazil.spark.attached.names import AttachedContext, SessionNames, context_of
from frazil.spark.creation import CreateTable, ReplaceTable
from frazil.spark.row_level.merging.evolution import add_columns_of
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.writes import Append, Overwrite, OverwritePartitions
from frazil.spark.sql.statements.insert import assigned_rows, in_order, is_dynamic
from frazil.spark.sql.statements.tables import without_told
from frazil.spark.sql.statements.target import StatementTarget, target_of
from frazil.storage.files import normalize_location

Command = Append | Overwrite | OverwritePartitions
MakeCommand = Callable[[DataFrame, CommitOptions], Command]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWrite:
    """Rows that go into a table.

    Attributes:
        names: the lakes of the session.
        parts: the table's name.
        rows: a DataFrame of the session.
        given: the writer's options.
        partition_by: the terms of a new table's partitions.
        properties: of a new table; ``location`` and ``format-version`` among them.
    """

    names: SessionNames
    parts: Identifier
    rows: DataFrame
    given: Given = field(default_factory=Given)
    partition_by: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    # -- into a table that is there --------------------------------------------------------------

    def append(self) -> None:
        """Add the rows, columns by name.

        Raises:
            NoSuchTableError: there is no such table.
            SchemaMismatchError: the rows do not fit; nothing was written.
        """
        self._write(lambda rows, options: Append(rows=rows, options=options))

    def overwrite(self, where: str | Column | None = None) -> None:
        """Put the rows in place of those that match a condition, or of all.

        Raises:
            NoSuchTableError: there is no such table.
            SchemaMismatchError: the rows do not fit; nothing was written.
        """
        choice = write_choice(self.given)
        if where is None and choice.is_dynamic:
            self.overwrite_partitions()
            return
        self._write(lambda rows, options: Overwrite(rows=rows, where=where, options=options))

    def overwrite_partitions(self) -> None:
        """Put the rows in place of the partitions that they belong to.

        Raises:
            NoSuchTableError: there is no such table.
            SchemaMismatchError: the rows do not fit; nothing was written.
        """
        self._write(lambda rows, options: OverwritePartitions(rows=rows, options=options))

    def insert(self, *, overwrites: bool) -> None:
        """Add the rows, columns by their places, or put them in place of what is there.

        Args:
            overwrites: in place of all rows, or of the partitions where the session is set so.

        Raises:
            NoSuchTableError: there is no such table.
            SchemaMismatchError: the rows do not fit; nothing was written.
        """
        placed = replace(self, rows=in_order(self.rows, self.target()))
        chosen = write_choice(self.given).is_dynamic
        if not overwrites:
            placed.append()
        elif is_dynamic(self.spark) if chosen is None else chosen:
            placed.overwrite_partitions()
        else:
            placed.overwrite()

    # -- into a new table, or one of another definition --------------------------------------------

    def create(self) -> None:
        """Make a table of the rows.

        Raises:
            TableAlreadyExistsError: it is there.
            NoSuchNamespaceError: its namespace is not.
        """
        context, name = self._context_and_name()
        if self.exists():
            raise TableAlreadyExistsError(f"there is a table {shown(name)} in {context.name}")
        given = self.given.copy()
        properties = without_told(self.properties)
        location = given.take("path") or given.take("location")
        command = CreateTable(
            identifier=name,
            rows=self.rows,
            partition_by=self.partition_by,
            location=properties.pop("location", location),
            format_version=properties.pop("format-version", None),
            properties=properties,
            options=self._own_options(given),
        )
        with self.names.change():
            context.create(command)

    def replace_table(self) -> None:
        """Give a table the schema and the rows; its history stays.

        Raises:
            NoSuchTableError: there is no such table.
        """
        context, name = self._context_and_name()
        if not self.exists():
            raise NoSuchTableError(f"there is no table {shown(name)} in {context.name} to replace")
        self._refuse_dynamic()
        port = context.load_table(context.catalog, name).port
        base = port.newest()
        properties = without_told(self.properties)
        given = self.given.copy()
        location = properties.pop("location", given.take("path") or given.take("location"))
        version = properties.pop("format-version", None)
        kept = {
            "location": location is None or normalize_location(location) == base.location,
            "format-version": version is None or version == str(base.format_version),
        }
        fixed = [key for key, is_kept in kept.items() if not is_kept]
        if fixed:
            raise UnsupportedError(
                f"{shown(name)} exists: replacing keeps its {' and '.join(fixed)}"
            )
        command = ReplaceTable(
            rows=self.rows,
            partition_by=self.partition_by,
            properties=properties,
            options=self._own_options(given),
        )
        with self.names.change():
            command.run(port)

    def create_or_replace(self) -> None:
        """Call `replace_table` where the table is there, else `create`."""
        if self.exists():
            self.replace_table()
        else:
            self.create()

    # -- parts -----------------------------------------------------------------------------------

    @property
    def spark(self) -> SparkSession:
        """The session of the rows."""
        return self.rows.sparkSession

    def exists(self) -> bool:
        """Return whether the table is there."""
        context, name = self._context_and_name()
        return context.catalog.table_exists(name)

    def is_there(self) -> bool:
        """Return whether the table is there, or the one whose branch the name says."""
        try:
            return self._context().find(self.parts) is not None
        except NoSuchTableError:
            return False

    def target(self) -> StatementTarget:
        """Return the table, and the branch that its name says.

        Raises:
            NoSuchTableError: there is no such table.
        """
        return target_of(self._context(), self.parts)

    def _context(self) -> AttachedContext:
        meant = self.names.lake_and_name(self.parts)
        if meant is None:
            raise NoSuchTableError(f"there is no lake with a table {shown(self.parts)}: detached")
        return context_of(self.names, self.spark, meant[0].name)

    def _context_and_name(self) -> tuple[AttachedContext, Identifier]:
        context = self._context()
        return context, context.identifier(self.parts)

    def _own_options(self, given: Given) -> CommitOptions:
        given.take("path")
        choice = write_choice(given)
        if choice.options.branch is not None:
            raise UnsupportedError("a table is made and replaced on its main branch")
        return choice.options

    def _refuse_dynamic(self) -> None:
        """Check that nobody means partitions where all rows would go.

        Raises:
            UnsupportedError: an option says so.
        """
        if write_choice(self.given).is_dynamic:
            raise UnsupportedError(
                f"{shown(self.parts)} would be replaced as a whole, and an option says that only "
                "the partitions of the rows are: use insertInto() or "
                "writeTo(…).overwritePartitions() for these"
            )

    def _write(self, make: MakeCommand) -> None:
        with self.names.change():
            target = self.target()
            given = self.given.copy()
            given.take("path")
            choice = write_choice(given, branch=target.branch)
            port = target.table.port
            if not choice.merges_schema:
                rows = assigned_rows(self.rows, target.schema, self.spark)
                make(rows, choice.options).run(port)
                return
            with port.in_one_commit() as together:
                add_columns_of(self.rows, together)
                rows = assigned_rows(self.rows, together.metadata.schema, self.spark)
                make(rows, choice.options).run(together)
