"""What PostgreSQL's catalog says of a table: columns, keys, publications."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from psycopg import sql

from frazil.cdc.connections import Connection
from frazil.cdc.types import ServerType
from frazil.errors import ConfigurationError, NotFoundError, UnsupportedError, ValidationError

_TABLE: Final = """
select c.oid::bigint, c.relkind::text, c.relreplident::text, c.relpersistence::text
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %s and c.relname = %s"""

_COLUMNS: Final = """
select a.attname::text, a.atttypid::bigint, a.atttypmod, a.attgenerated::text,
       a.atthasmissing or a.atthasdef, a.attidentity::text
from pg_attribute a where a.attrelid = %s and a.attnum > 0 and not a.attisdropped
order by a.attnum"""

_KEY: Final = """
select a.attname::text, i.indisprimary, i.indisreplident
from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
where i.indrelid = %s and (i.indisprimary or i.indisreplident) order by a.attnum"""

_LEAVES: Final = """
select n.nspname::text, c.relname::text, pg_relation_size(c.oid) / 8192
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.oid = %(oid)s and c.relkind = 'r'
   or c.oid in (select relid from pg_partition_tree(%(oid)s::oid::regclass) where isleaf)
order by 1, 2"""

_TYPE: Final = """
select t.oid::bigint, t.typname::text, t.typtype::text, t.typbasetype::bigint, t.typtypmod,
       case when t.typcategory = 'A' then t.typelem::bigint else 0 end, t.typarray::bigint
from pg_type t where t.oid = %s"""

_PUBLICATION: Final = """
select p.pubinsert and p.pubupdate and p.pubdelete and p.pubtruncate, p.pubviaroot
from pg_publication p where p.pubname = %s"""


@dataclass(frozen=True, slots=True)
class ServerColumn:
    """A column of a table as it is now.

    Attributes:
        modifier: of its type, -1 for none.
        has_default: whether rows may have got a value that is in no change.
    """

    name: str
    type: ServerType
    modifier: int
    has_default: bool


@dataclass(frozen=True, slots=True)
class LeafTable:
    """A table that rows lie in: the table itself or a partition of it.

    Attributes:
        pages: about how long it is, in pages of 8 KiB.
    """

    namespace: str
    name: str
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """A table that is followed.

    Attributes:
        columns: those that are published.
        keys: the columns that tell its rows apart.
        identity: what the log has of a row that goes: ``d``, ``f`` or ``i``.
    """

    oid: int
    namespace: str
    name: str
    columns: tuple[ServerColumn, ...]
    keys: tuple[str, ...]
    identity: str
    is_partitioned: bool

    @property
    def identifier(self) -> sql.Identifier:
        """The name as SQL has it."""
        return sql.Identifier(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"


class TypeCatalog(Protocol):
    """Types by their ids."""

    def type_of(self, oid: int) -> ServerType:
        """Return the type of an id."""


class Types:
    """Types of a server, each asked for once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[int, ServerType] = {}

    def type_of(self, oid: int) -> ServerType:
        """Return the type of an id.

        Raises:
            NotFoundError: the server has no such type by now.
        """
        if oid not in self._known:
            row = self._connection.execute(_TYPE, [oid]).fetchone()
            if row is None:
                raise NotFoundError(
                    f"PostgreSQL no longer has the type {oid} of a column that the log names; "
                    "load the table again, with --load-again"
                )
            found, name, kind, base, base_modifier, element, array = row
            self._known[oid] = ServerType(
                oid=found,
                name=name,
                kind=kind,
                base=self.type_of(base) if base else None,
                base_modifier=base_modifier,
                element=self.type_of(element) if element else None,
                array_oid=array,
            )
        return self._known[oid]


def columns_of(connection: Connection, oid: int, types: TypeCatalog) -> tuple[ServerColumn, ...]:
    """Return a table's columns, without those that are generated: the log does not hold them."""
    return tuple(
        ServerColumn(name, types.type_of(kind), modifier, bool(has_default))
        for name, kind, modifier, generated, has_default, _ in connection.execute(_COLUMNS, [oid])
        if not generated
    )


def leaves_of(connection: Connection, source: SourceTable) -> tuple[LeafTable, ...]:
    """Return the tables that a table's rows lie in."""
    return tuple(LeafTable(*row) for row in connection.execute(_LEAVES, {"oid": source.oid}))


def source_table(
    connection: Connection, name: str, publication: str, types: TypeCatalog
) -> SourceTable:
    """Return a table that can be followed; its publication is made if there is none of the name.

    Args:
        name: ``schema.table``, of the schema public without one.

    Raises:
        NotFoundError: there is no such table.
        UnsupportedError: it is a view, a temporary table, or the like.
        ValidationError: nothing tells its rows apart.
        ConfigurationError: the publication does not fit.
    """
    namespace, _, short = name.rpartition(".")
    namespace = namespace or "public"
    row = connection.execute(_TABLE, [namespace, short]).fetchone()
    if row is None:
        raise NotFoundError(
            f"PostgreSQL has no table {namespace}.{short}; name it with --source schema.table"
        )
    oid, kind, identity, persistence = row
    if kind not in ("r", "p") or persistence != "p":
        raise UnsupportedError(
            f"{namespace}.{short} is no permanent table: the log has no changes of it"
        )
    keys = _keys(connection, oid, identity, f"{namespace}.{short}")
    source = SourceTable(
        oid=oid,
        namespace=namespace,
        name=short,
        columns=columns_of(connection, oid, types),
        keys=keys,
        identity=identity,
        is_partitioned=kind == "p",
    )
    published = _published(connection, source, publication)
    columns = tuple(column for column in source.columns if column.name in published)
    missing = [key for key in keys if key not in published]
    if missing:
        raise ConfigurationError(
            f"the publication {publication} leaves out {', '.join(missing)} of the key of {source}"
        )
    return SourceTable(
        oid=oid,
        namespace=namespace,
        name=short,
        columns=columns,
        keys=keys,
        identity=identity,
        is_partitioned=kind == "p",
    )


def _keys(connection: Connection, oid: int, identity: str, name: str) -> tuple[str, ...]:
    found = connection.execute(_KEY, [oid]).fetchall()
    primary = tuple(column for column, is_primary, _ in found if is_primary)
    chosen = tuple(column for column, _, is_identity in found if is_identity)
    keys = chosen if identity == "i" else primary
    if identity == "n" or not keys:
        raise ValidationError(
            f"nothing tells the rows of {name} apart: add a primary key, or set "
            f"ALTER TABLE {name} REPLICA IDENTITY USING INDEX to a unique index of columns that "
            "are not null"
        )
    return keys


def _published(connection: Connection, source: SourceTable, publication: str) -> frozenset[str]:
    """The columns that a publication has of a table, once it is there."""
    row = connection.execute(_PUBLICATION, [publication]).fetchone()
    if row is None:
        via_root = " with (publish_via_partition_root = true)" if source.is_partitioned else ""
        connection.execute(
            sql.SQL("create publication {} for table only {}" + via_root).format(
                sql.Identifier(publication), source.identifier
            )
        )
        return frozenset(column.name for column in source.columns)
    has_all_kinds, via_root = row
    table = _publication_table(connection, source, publication)
    if table is None:
        raise ConfigurationError(
            f"the publication {publication} has not the table {source}: "
            f"ALTER PUBLICATION {publication} ADD TABLE {source}, or give another --publication"
        )
    if not has_all_kinds:
        raise ConfigurationError(
            f"the publication {publication} leaves out kinds of changes: ALTER PUBLICATION "
            f"{publication} SET (publish = 'insert, update, delete, truncate')"
        )
    if source.is_partitioned and not via_root:
        raise ConfigurationError(
            f"the publication {publication} names partitions of {source} one by one: ALTER "
            f"PUBLICATION {publication} SET (publish_via_partition_root = true)"
        )
    if table.get("rowfilter"):
        raise ConfigurationError(
            f"the publication {publication} has only some rows of {source}, and rows that leave "
            "its filter are not told; give a publication without WHERE"
        )
    names = table.get("attnames")
    if names is None:
        return frozenset(column.name for column in source.columns)
    return frozenset(names)


def _publication_table(
    connection: Connection, source: SourceTable, publication: str
) -> Mapping[str, Any] | None:
    row = connection.execute(
        "select to_jsonb(t) from pg_publication_tables t "
        "where pubname = %s and schemaname = %s and tablename = %s",
        [publication, source.namespace, source.name],
    ).fetchone()
    if row is None and source.is_partitioned:
        # Without publish_via_partition_root the view lists the partitions.
        row = connection.execute(
            "select '{}'::jsonb from pg_publication_rel r "
            "join pg_publication p on p.oid = r.prpubid "
            "where p.pubname = %s and r.prrelid = %s",
            [publication, source.oid],
        ).fetchone()
    found: Mapping[str, Any] | None = None if row is None else row[0]
    return found
