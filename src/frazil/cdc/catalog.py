"""Which tables can be followed: their kinds, keys and publications, and the types of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from psycopg import sql

from frazil.cdc.connections import Connection
from frazil.cdc.source.tables import SourceTable, table_name, table_of, table_oid
from frazil.cdc.types import ServerType
from frazil.errors import ConfigurationError, NotFoundError, UnsupportedError, ValidationError

_TYPE: Final = """
select t.oid::bigint, t.typname::text, t.typtype::text, t.typbasetype::bigint, t.typtypmod,
       case when t.typcategory = 'A' then t.typelem::bigint else 0 end, t.typarray::bigint
from pg_type t where t.oid = %s"""

_PUBLICATION: Final = """
select p.pubinsert and p.pubupdate and p.pubdelete and p.pubtruncate, p.pubviaroot
from pg_publication p where p.pubname = %s"""


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


def named_oid(connection: Connection, name: str, *, loaded: int | None = None) -> int:
    """Return the OID of the table that a name means.

    Args:
        name: ``schema.table``, of the schema public without one.
        loaded: the OID of the table that was loaded; None before that.

    Raises:
        NotFoundError: there is no such table.
        ValidationError: it is not the one that was loaded.
    """
    namespace, _, short = name.rpartition(".")
    namespace = namespace or "public"
    shown = f"{namespace}.{short}"
    oid = table_oid(connection, namespace, short)
    if loaded is None or oid == loaded:
        if oid is None:
            raise NotFoundError(
                f"PostgreSQL has no table {shown}; name it with --source schema.table"
            )
        return oid
    called = table_name(connection, loaded)
    was = "which was dropped" if called is None else f"which is {called} now"
    follow_it = "" if called is None else f"follow it on with --source {called}, or "
    if oid is None:
        raise NotFoundError(
            f"PostgreSQL has no table {shown} any more: {follow_it}load the table from another one "
            f"with --source and --load-again (the OID of the one that was loaded is {loaded}, "
            f"{was})"
        )
    raise ValidationError(
        f"{shown} is another table (of the OID {oid}) than the one that was loaded (of the OID "
        f"{loaded}, {was}): {follow_it}load this one with --load-again"
    )


def check_source(source: SourceTable, publication: str) -> None:
    """Check that the log has changes of a table, and that something tells its rows apart.

    Raises:
        UnsupportedError: it is a view, a temporary table, or the like.
        ValidationError: nothing tells its rows apart.
        ConfigurationError: the publication leaves its key out.
    """
    _check_kind(source)
    if source.identity == "n" or not source.keys:
        raise ValidationError(
            f"nothing tells the rows of {source} apart: add a primary key, or set ALTER TABLE "
            f"{source} REPLICA IDENTITY USING INDEX to a unique index of columns that are not null"
        )
    names = {column.number: column.name for column in source.attributes}
    shown = {column.number for column in source.columns}
    missing = [names[key] for key in source.keys if key not in shown]
    if missing:
        raise ConfigurationError(
            f"the publication {publication} leaves out {', '.join(missing)} of the key of {source}"
        )


def published_table(connection: Connection, oid: int, publication: str) -> SourceTable:
    """Return a table as it is now; its publication is made if there is none of the name.

    Raises:
        UnsupportedError: it cannot be followed.
        ConfigurationError: the publication does not fit.
    """
    source = table_of(connection, oid, publication)
    _check_kind(source)
    row = connection.execute(_PUBLICATION, [publication]).fetchone()
    if row is None:
        via_root = " with (publish_via_partition_root = true)" if source.is_partitioned else ""
        connection.execute(
            sql.SQL("create publication {} for table only {}" + via_root).format(
                sql.Identifier(publication), source.identifier
            )
        )
        return table_of(connection, oid, publication)
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
    return source


def _check_kind(source: SourceTable) -> None:
    if source.kind not in ("r", "p") or source.persistence != "p":
        raise UnsupportedError(f"{source} is no permanent table: the log has no changes of it")


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
