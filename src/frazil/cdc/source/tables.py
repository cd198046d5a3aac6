"""What PostgreSQL's catalog says of a table, by numbers that renames and other tables leave alone.

A table is its OID, a column its attribute number: neither is given away again. Everything is read
by plain queries, so that a transaction of an older snapshot reads what the catalog said then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from psycopg import sql

from frazil.cdc.connections import Connection
from frazil.cdc.pgoutput import Relation, RelationColumn
from frazil.errors import NotFoundError

_OID: Final = """
select c.oid::bigint from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %s and c.relname = %s"""

_TABLE: Final = """
select n.nspname::text, c.relname::text, c.relkind::text, c.relreplident::text,
       c.relpersistence::text, c.relnamespace::bigint
from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = %s"""

_ATTRIBUTES: Final = """
select a.attnum::int, case when a.attisdropped then '' else a.attname::text end,
       a.atttypid::bigint, a.atttypmod, a.xmin::text, a.attisdropped, a.attgenerated <> '',
       a.atthasmissing, a.atthasdef
from pg_attribute a where a.attrelid = %s and a.attnum > 0 order by a.attnum"""

# Columns that an index only includes tell no rows apart.
_KEY: Final = """
select array(select u.number::int from unnest(i.indkey::int2[]) with ordinality u(number, place)
             where u.place <= i.indnkeyatts order by u.number),
       i.indisprimary, i.indisreplident, coalesce(k.oid, i.indexrelid)::bigint
from pg_index i
left join pg_constraint k on k.conindid = i.indexrelid and k.conrelid = i.indrelid
where i.indrelid = %s and (i.indisprimary or i.indisreplident)"""

# A table that was attached has rows of its own; the columns of one that was made as a partition
# are as they were written with its row type.
_PARTS: Final = """
with recursive tree(oid, joined) as (
    select c.oid, ''::text from pg_class c where c.oid = %(oid)s
    union all
    select i.inhrelid, i.xmin::text from pg_inherits i
    join tree on tree.oid = i.inhparent
    join pg_class p on p.oid = i.inhparent and p.relkind = 'p'
    where not i.inhdetachpending)
select c.oid::bigint, n.nspname::text, c.relname::text, c.relkind = 'r', c.relfilenode::bigint,
       tree.joined, exists (
           select from pg_attribute a join pg_type t on t.typrelid = a.attrelid
           where a.attrelid = c.oid and a.attnum > 0 and a.xmin = t.xmin and a.cmin = t.cmin)
from tree join pg_class c on c.oid = tree.oid join pg_namespace n on n.oid = c.relnamespace
order by c.oid"""

_PUBLICATION: Final = """
select p.oid::bigint, p.xmin::text, p.puballtables from pg_publication p where p.pubname = %s"""

_PUBLISHED: Final = """
select r.oid::text || '/' || r.xmin::text, {}
from pg_publication_rel r where r.prpubid = %s and r.prrelid = %s"""

_PUBLISHED_SCHEMA: Final = """
select r.oid::text || '/' || r.xmin::text
from pg_publication_namespace r where r.pnpubid = %s and r.pnnspid = %s"""

HAS_COLUMN_LISTS: Final = 150_000


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """A column as it was at a position of the log.

    Attributes:
        number: its own for ever.
        changed_by: the transaction that wrote its row of the catalog; empty where that is not
            known, since the log does not tell it.
    """

    number: int
    name: str
    type_oid: int
    modifier: int
    changed_by: str


@dataclass(frozen=True, slots=True)
class Attribute(KnownColumn):
    """A column as the catalog has it, also one that was dropped.

    Attributes:
        has_missing: rows of before it came have a value that is in no change.
        has_default: rows get one.
    """

    is_dropped: bool
    is_generated: bool
    has_missing: bool
    has_default: bool


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table of PostgreSQL by its names."""

    oid: int
    namespace: str
    name: str

    @property
    def identifier(self) -> sql.Identifier:
        """The name as SQL has it."""
        return sql.Identifier(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"


@dataclass(frozen=True, slots=True)
class SourcePart(PostgresTable):
    """A table of a tree of partitions: the followed one itself, or one below it.

    Attributes:
        filenode: where its rows lie; another one after they were rewritten.
        joined: the transaction that made it a partition; empty for the table itself.
        was_born_in: it was made as a partition, and so without rows.
    """

    has_rows: bool
    filenode: int
    joined: str
    was_born_in: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable(PostgresTable):
    """A table as a snapshot of the catalog has it.

    Attributes:
        kind: ``r`` or ``p`` for one that can be followed (`pg_class.relkind`).
        identity: what the log has of a row that goes: ``d``, ``f``, ``i`` or ``n``.
        attributes: all columns, in the order of their numbers.
        keys: the numbers of the columns that tell its rows apart; empty without any.
        key_id: of the constraint or index that sees to that; 0 without any.
        parts: the tables that its rows lie in, and those above them.
        published: the numbers that the publication lists; None where it lists none.
        publication: names the publication, and what it says of the table.
        is_published_by_name: and not because of its schema, or as one of all tables.
    """

    kind: str
    identity: str
    persistence: str
    attributes: tuple[Attribute, ...]
    keys: tuple[int, ...]
    key_id: int
    parts: tuple[SourcePart, ...]
    published: frozenset[int] | None
    publication: str
    is_published_by_name: bool

    @property
    def is_partitioned(self) -> bool:
        """Whether its rows lie in other tables."""
        return self.kind == "p"

    @property
    def columns(self) -> tuple[Attribute, ...]:
        """The columns that the log has: those that are published and not generated."""
        return tuple(
            each
            for each in self.attributes
            if not each.is_dropped
            and not each.is_generated
            and (self.published is None or each.number in self.published)
        )

    @property
    def leaves(self) -> tuple[SourcePart, ...]:
        """The tables that the rows lie in."""
        return tuple(part for part in self.parts if part.has_rows)

    @property
    def relation(self) -> Relation:
        """The table as the log would have it from here on."""
        columns = (
            RelationColumn(each.name, each.number in self.keys, each.type_oid, each.modifier)
            for each in self.columns
        )
        return Relation(self.oid, self.namespace, self.name, self.identity, tuple(columns))

    def attribute(self, number: int) -> Attribute | None:
        """Return the column of a number; None where there is none yet."""
        return self.attributes[number - 1] if number <= len(self.attributes) else None


def table_oid(connection: Connection, namespace: str, name: str) -> int | None:
    """Return the OID of the table that a name means now; None where it means none."""
    row = connection.execute(_OID, [namespace, name]).fetchone()
    return None if row is None else int(row[0])


def table_name(connection: Connection, oid: int) -> str | None:
    """Return what a table is called now; None where it is gone."""
    row = connection.execute(_TABLE, [oid]).fetchone()
    return None if row is None else f"{row[0]}.{row[1]}"


def table_of(connection: Connection, oid: int, publication: str) -> SourceTable:
    """Return a table as the connection's snapshot of the catalog has it.

    Raises:
        NotFoundError: it is not there.
    """
    row = connection.execute(_TABLE, [oid]).fetchone()
    if row is None:
        raise NotFoundError(f"PostgreSQL has no table of the OID {oid} any more")
    namespace, name, kind, identity, persistence, namespace_oid = row
    published, token, is_by_name = _publication_of(connection, oid, namespace_oid, publication)
    keys, key_id = _key(connection, oid, identity)
    return SourceTable(
        oid=oid,
        namespace=namespace,
        name=name,
        kind=kind,
        identity=identity,
        persistence=persistence,
        attributes=tuple(Attribute(*each) for each in connection.execute(_ATTRIBUTES, [oid])),
        keys=keys,
        key_id=key_id,
        parts=tuple(SourcePart(*each) for each in connection.execute(_PARTS, {"oid": oid})),
        published=published,
        publication=token,
        is_published_by_name=is_by_name,
    )


def _key(connection: Connection, oid: int, identity: str) -> tuple[tuple[int, ...], int]:
    for numbers, is_primary, is_identity, key_id in connection.execute(_KEY, [oid]):
        if is_identity if identity == "i" else is_primary:
            return tuple(numbers), int(key_id)
    return (), 0


def _publication_of(
    connection: Connection, oid: int, namespace_oid: int, publication: str
) -> tuple[frozenset[int] | None, str, bool]:
    row = connection.execute(_PUBLICATION, [publication]).fetchone()
    if row is None:
        return None, "", False
    publication_oid, changed_by, has_all = row
    has_lists = connection.info.server_version >= HAS_COLUMN_LISTS
    listed = "array(select unnest(r.prattrs::int2[])::int)" if has_lists else "array[]::int[]"
    query = sql.SQL(_PUBLISHED).format(sql.SQL(listed))
    token = f"{publication_oid}/{changed_by}"
    by_name = connection.execute(query, [publication_oid, oid]).fetchone()
    if by_name is not None:
        numbers = frozenset(by_name[1])
        return numbers or None, f"{token}/{by_name[0]}", not has_all
    if has_lists and not has_all:
        in_schema = connection.execute(
            _PUBLISHED_SCHEMA, [publication_oid, namespace_oid]
        ).fetchone()
        if in_schema is not None:
            return None, f"{token}/{in_schema[0]}", False
    return None, token if has_all else "", False
