"""What a name in an attached session means: a lake's only with its prefix, or after USE."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.sql import SparkSession

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.protocol import Catalog
from frazil.errors import NoSuchTableError, SqlSyntaxError, UnsupportedError, ValidationError
from frazil.spark.attached.dataframes.java_options import Given, asked_version
from frazil.spark.lake_transaction.statements import StatementTransactions
from frazil.spark.lake_transaction.tables import JoinedTables
from frazil.spark.sql.context import (
    CHANGES,
    SPARK_CATALOG,
    CurrentNamespace,
    LakeTable,
    NamedTable,
    NamedView,
    OpenTransaction,
    SparksNameError,
    SqlContext,
    TableVersion,
)
from frazil.spark.words import Word, WordReader
from frazil.table.conflicts.validation import Isolation

RESERVED: Final = frozenset({SPARK_CATALOG, "global_temp", "session", "system"})
"""First parts of names that are Spark's, in small letters."""

_FILE_FORMATS: Final = frozenset(
    {"parquet", "orc", "avro", "csv", "json", "text", "xml", "binaryfile", "delta", "hudi"}
)
"""Spark reads a folder by such a name before its path, as ``parquet.`/data/t` ``."""


class AnotherLakesNameError(Exception):
    """A statement is about a name of another lake than the one that it is run on.

    Attributes:
        lake: that lake.
    """

    def __init__(self, lake: str) -> None:
        super().__init__(lake)
        self.lake = lake


@dataclass(frozen=True, slots=True)
class AttachedLake:
    """A lake in a session.

    Attributes:
        name: what stands before names of its tables.
        catalog: its tables.
        owner: who attached it, and detaches it.
        transactions: what statements have begun.
    """

    name: str
    catalog: Catalog
    owner: object
    transactions: StatementTransactions


@dataclass(slots=True)
class SessionNames:
    """The lakes of a session, and which names are looked for in one without a prefix.

    Attributes:
        attached: the lakes by their names; never changed in place.
        lake: the one that USE has set; None for Spark's own catalogs.
        namespace: what USE has set within it.
        reserved: first parts of names that are Spark's, in small letters.
        in_spark: Spark itself finds their tables in a text.
    """

    attached: Mapping[str, AttachedLake] = field(default_factory=dict)
    lake: str | None = None
    namespace: CurrentNamespace = field(default_factory=CurrentNamespace)
    reserved: Collection[str] = RESERVED
    in_spark: bool = False

    @property
    def lakes(self) -> Mapping[str, AttachedLake]:
        """The lakes by their names, one as the transaction sees it that is open."""
        begun = self.begun_transaction
        if begun is None:
            return self.attached
        return {**self.attached, begun[0].name: replace(begun[0], catalog=begun[1].catalog)}

    @property
    def begun_transaction(self) -> tuple[AttachedLake, JoinedTables] | None:
        """The lake with an open transaction, and its tables in it."""
        for lake in self.attached.values():
            tables = lake.transactions.tables
            if tables is not None:
                return lake, tables
        return None

    def lake_to_read(self, lake: str) -> str:
        """Return the lake on which names of a lake are read: that of the transaction, if any."""
        begun = self.begun_transaction
        return lake if begun is None else begun[0].name

    @contextmanager
    def change(self) -> Iterator[None]:
        """Have something changed, as a part of the transaction that is open.

        Raises:
            ValidationError: an earlier part of it has failed.
        """
        begun = self.begun_transaction
        with nullcontext() if begun is None else begun[0].transactions.part():
            yield

    def refuse_in_transaction(self, what: str) -> None:
        """Check that no transaction is open.

        Raises:
            UnsupportedError: one is.
        """
        if self.begun_transaction is not None:
            raise UnsupportedError(
                f"a transaction cannot hold {what}: run COMMIT or ROLLBACK first"
            )

    def use(self, lake: str | None, levels: Identifier = ()) -> None:
        """Set where names without a prefix are looked for."""
        self.namespace = CurrentNamespace(levels)
        self.lake = lake

    def levels_of(self, owner: object) -> Identifier:
        """Return the namespace that USE has set; none where that is in a lake of another owner."""
        lake = None if self.lake is None else self.attached.get(self.lake)
        return () if lake is None or lake.owner is not owner else self.namespace.levels

    def may_be_in(self, text: str) -> bool:
        """Return whether a text may name something of a lake; quick, and never wrongly no."""
        return self.lake is not None or any(name in text for name in self.lakes)

    def first_in(self, words: Sequence[Word]) -> str | None:
        """Return the lake of which a name stands first in a statement, else the one of USE."""
        lakes = self.lakes
        return next((w.text for w in words if not w.is_string and w.text in lakes), self.lake)

    def lake_and_name(self, parts: Identifier) -> tuple[AttachedLake, Identifier] | None:
        """Return the lake of a name and the name in it; None where the name is Spark's."""
        lakes, current = self.lakes, self.lake
        first = parts[0]
        if len(parts) > 1 and first in lakes:
            return lakes[first], parts[1:]
        if (
            current is None
            or current not in lakes
            or (len(parts) > 1 and first.lower() in self.reserved)
        ):
            return None
        if len(parts) == 2 and first.lower() in _FILE_FORMATS:
            return None
        levels = self.namespace.levels if len(parts) == 1 else ()
        return lakes[current], (*levels, *parts)

    def parts_of(self, name: object) -> Identifier | None:
        """Return the parts of a name as Spark reads it; None where no lake can be meant."""
        if not isinstance(name, str) or not self.may_be_in(name):
            return None
        try:
            reader = WordReader(name)
            parts = reader.names()
        except SqlSyntaxError:
            return None
        return parts if reader.is_done and self.lake_and_name(parts) is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedContext(SqlContext):
    """An attached session as statements and methods see it, on one of its lakes.

    Attributes:
        names: the lakes of the session.
        lake: the name of the one that a statement changes.
    """

    names: SessionNames
    lake: str

    @property
    def name(self) -> str:
        """What stands before names of the lake's tables."""
        return self.lake

    def name_of(self, catalog: Catalog) -> str:
        """Return what stands before names of a catalog's tables."""
        lakes = self.names.lakes.values()
        return next((each.name for each in lakes if each.catalog is catalog), catalog.name)

    @property
    def current_place(self) -> Identifier | None:
        """The lake and the namespace that USE has set; None where they are Spark's."""
        lake = self.names.lake
        return None if lake is None else (lake, *self.names.namespace.levels)

    def is_lake(self, name: str) -> bool:
        """Whether a name stands before names of a lake's tables."""
        return name in self.names.lakes

    def whole_name(self, parts: Identifier) -> Identifier:
        """Return a table's name in a query with all that can stand before it."""
        found = self.names.lake_and_name(parts)
        return parts if found is None else (found[0].name, *found[1])

    def identifier(self, parts: Identifier) -> Identifier:
        """Return a table's identifier in the lake.

        Raises:
            SparksNameError: the name is Spark's.
            AnotherLakesNameError: it is another lake's.
            ValidationError: the name has no namespace, or is that of a temporary view.
        """
        lake, own = self._of_a_lake(parts)
        if lake.name != self.lake:
            raise AnotherLakesNameError(lake.name)
        if len(own) == 1:
            raise ValidationError(
                f"the table name {shown(parts)} has no namespace: write "
                f"{lake.name}.namespace.table, or set one with USE {lake.name}.namespace"
            )
        return own

    def new_name(self, parts: Identifier, source: Identifier) -> Identifier:
        """Return the identifier that RENAME gives: a name in the lake, with or without its own.

        Raises:
            AnotherLakesNameError: the name is another lake's.
            ValidationError: it is one of Spark's own catalog.
        """
        if len(parts) > 1 and parts[0] in self.names.lakes and parts[0] != self.lake:
            raise AnotherLakesNameError(parts[0])
        return SqlContext.new_name(self, parts, source)

    def namespace(self, parts: Identifier) -> Identifier:
        """Return the levels of a namespace of the lake; none for the lake's own name.

        Raises:
            SparksNameError: the name is Spark's.
            AnotherLakesNameError: it is another lake's.
        """
        lake = self.names.lake
        levels = parts
        if parts[0] in self.names.lakes:
            lake, levels = parts[0], parts[1:]
        elif lake is None or parts[0].lower() in self.names.reserved:
            raise SparksNameError(shown(parts))
        if lake != self.lake:
            raise AnotherLakesNameError(lake)
        return levels

    def load(self, parts: Identifier) -> LakeTable:
        """Return a table, of any of the lakes.

        Raises:
            SparksNameError: the name is Spark's.
            NoSuchTableError: there is none of that name.
            ValidationError: the name is that of a temporary view.
        """
        lake, own = self._of_a_lake(parts)
        if len(own) == 1:
            raise NoSuchTableError(f"there is no table {shown(own)} in {lake.name}")
        return self.load_table(lake.catalog, own)

    def check_changes(self, catalog: Catalog) -> None:
        """Check that the transaction, if any, is one of the lake whose catalog it is.

        Raises:
            ValidationError: it is another lake's.
        """
        if self.transaction is not None and catalog is not self.catalog:
            raise _of_another_transaction(self.lake, self.name_of(catalog))

    def _begin_of(self, catalog: Catalog) -> Callable[[Isolation], OpenTransaction] | None:
        lake = self.names.attached.get(self.name_of(catalog))
        return None if lake is None else lake.transactions.begin

    def _in_transaction(self, catalog: Catalog, transaction: OpenTransaction) -> SqlContext:
        lake = self.names.attached[self.name_of(catalog)]
        joined = replace(lake, catalog=transaction.catalog)
        return replace(
            self,
            names=replace(self.names, attached={**self.names.attached, lake.name: joined}),
            lake=lake.name,
            current=self.names.namespace if self.names.lake == lake.name else CurrentNamespace(),
            catalog=transaction.catalog,
            transaction=transaction,
        )

    def find(self, parts: Identifier) -> NamedTable | NamedView | None:
        """Return what a name in a query means; None where it is Spark's, or a temporary view's.

        Raises:
            NoSuchTableError: the name is a lake's, and there is no such table.
        """
        meant = self.names.lake_and_name(parts)
        if meant is None or (len(parts) == 1 and self.is_view(parts[0])):
            return None
        lake, own = meant
        candidates = [own] if len(own) > 1 else []
        levels = self.names.namespace.levels
        if len(parts) == 2 and parts[0] not in self.names.lakes and levels:
            # A table of the current namespace, and what stands after its name.
            candidates.append((*levels, *own))
        for candidate in candidates:
            found = self.find_in(lake.catalog, candidate)
            if found is not None:
                return found
        raise NoSuchTableError(f"there is no table {shown(own)} in {lake.name}")

    def with_options(
        self, named: NamedTable | NamedView, options: Mapping[str, str]
    ) -> NamedTable | NamedView:
        """Return what a name with the options of a read means.

        Raises:
            ConfigurationError: an option is malformed.
            ValidationError: two of them, or one and the name, say which version.
        """
        if isinstance(named, NamedView):
            return named
        if named.metadata_table == CHANGES:
            return SqlContext.with_options(self, named, options)
        # A clause of AS OF is told of the relation's use, where a name's version is refused.
        version = asked_version(named, TableVersion(), Given.of(options))
        return replace(named, version=version)

    def _of_a_lake(self, parts: Identifier) -> tuple[AttachedLake, Identifier]:
        found = self.names.lake_and_name(parts)
        if found is None:
            raise SparksNameError(shown(parts))
        if len(parts) == 1 and self.is_view(parts[0]):
            raise ValidationError(
                f"{shown(parts)} is a temporary view, which goes before the table "
                f"{shown(found[1])}: write the namespace too"
            )
        return found


def context_of(
    names: SessionNames, spark: SparkSession, lake: str, frames: Mapping[str, Any] | None = None
) -> AttachedContext:
    """Return a session as a statement on a lake sees it.

    Args:
        spark: the session that runs it.
        lake: the one that the statement changes.
        frames: rows and values that stand in the text as ``{name}``.

    Raises:
        ValidationError: the open transaction is one of another lake.
    """
    current = names.namespace if names.lake == lake else CurrentNamespace()
    begun = names.begun_transaction
    if begun is not None and begun[0].name != lake:
        raise _of_another_transaction(begun[0].name, lake)
    return AttachedContext(
        spark=spark,
        catalog=names.lakes[lake].catalog,
        transaction=None if begun is None else begun[1],
        current=current,
        frames=dict(frames or {}),
        names=names,
        lake=lake,
    )


def context_to_read(
    names: SessionNames, spark: SparkSession, parts: Identifier
) -> AttachedContext | None:
    """Return a session as a read of a name sees it; None where the name is Spark's."""
    meant = names.lake_and_name(parts)
    return None if meant is None else context_of(names, spark, names.lake_to_read(meant[0].name))


def _of_another_transaction(begun: str, lake: str) -> ValidationError:
    return ValidationError(
        f"the transaction is one of the lake {begun}, and this is about {lake}: run COMMIT or "
        "ROLLBACK first"
    )
