"""The commands of `frazil`; all but `scan` work without Spark."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
import polars as pl

from frazil.catalog.base import Catalog
from frazil.catalog.config import load_catalog
from frazil.catalog.identifiers import Identifier
from frazil.catalog.static import StaticCatalog
from frazil.cli.output import readable_bytes, show_json, show_pairs, show_rows
from frazil.errors import FrazilError
from frazil.format.metadata import TableMetadata
from frazil.table.handle import TableHandle

DEFAULT_SCAN_ROWS = 20


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the tables are."""

    name: str | None
    properties: dict[str, str]

    def catalog(self) -> Catalog:
        """The configured catalog."""
        return load_catalog(self.name, **self.properties)

    def table(self, name: str) -> TableHandle:
        """A table by its name in the catalog, or by the path of its folder or metadata file."""
        if "/" in name:
            static = StaticCatalog(name, self.properties)
            return TableHandle(static, static.load_table(static.identifier))
        catalog = self.catalog()
        return TableHandle(catalog, catalog.load_table(name))


class _Commands(click.Group):
    """Commands whose typed errors are one line, not a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except FrazilError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--catalog", "name", help="The name of a configured catalog.")
@click.option("--warehouse", help="The folder or URI of the warehouse.")
@click.option("--uri", help="The catalog's URI, for example sqlite:////data/lake/catalog.db.")
@click.option("--type", "kind", help="sql or filesystem.")
@click.option("--property", "-p", "pairs", multiple=True, metavar="KEY=VALUE", help="Any setting.")
@click.version_option(package_name="frazil")
@click.pass_context
def main(
    context: click.Context,
    name: str | None,
    warehouse: str | None,
    uri: str | None,
    kind: str | None,
    pairs: tuple[str, ...],
) -> None:
    """Look at Iceberg tables: by name in a catalog, or by the path of a table's folder."""
    properties: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.BadParameter("use KEY=VALUE", param_hint="--property")
        properties[key] = value
    named = {"warehouse": warehouse, "uri": uri, "type": kind}
    properties.update({key: value for key, value in named.items() if value is not None})
    context.obj = Settings(name, properties)


as_json = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


@main.command()
@click.argument("namespace", required=False)
@as_json
@click.pass_obj
def tables(settings: Settings, namespace: str | None, as_json: bool) -> None:
    """List the tables, of one namespace or of all."""
    catalog = settings.catalog()
    found = [
        {"namespace": ".".join(identifier[:-1]), "table": identifier[-1]}
        for identifier in _all_tables(catalog, namespace)
    ]
    if as_json:
        show_json(found)
    else:
        show_rows(found, columns=["namespace", "table"], nothing="no tables")


@main.command()
@click.argument("table")
@as_json
@click.pass_obj
def describe(settings: Settings, table: str, as_json: bool) -> None:
    """Show a table's columns, partitions, order, newest snapshot and place."""
    handle = settings.table(table)
    facts = _facts(handle)
    if as_json:
        show_json(facts)
        return
    columns = facts.pop("columns")
    snapshot = facts.pop("snapshot")
    show_pairs(facts.items())
    click.echo()
    show_rows(columns, columns=["id", "column", "type", "required", "doc"], nothing="no columns")
    click.echo()
    if snapshot is None:
        click.echo("no snapshot: the table is empty")
    else:
        show_pairs((f"snapshot {key}" if key == "id" else key, snapshot[key]) for key in snapshot)


@main.command()
@click.argument("table")
@as_json
@click.pass_obj
def history(settings: Settings, table: str, as_json: bool) -> None:
    """Show which snapshot was current when."""
    _show(settings.table(table).inspect.history(), as_json, nothing="no snapshot yet")


@main.command()
@click.argument("table")
@as_json
@click.pass_obj
def snapshots(settings: Settings, table: str, as_json: bool) -> None:
    """Show every snapshot that is kept, with what it changed."""
    frame = settings.table(table).inspect.snapshots()
    if as_json:
        _show(frame, as_json, nothing="")
        return
    shown = []
    for row in frame.iter_rows(named=True):
        summary = _as_dict(row["summary"])
        shown.append(
            {
                "committed_at": row["committed_at"],
                "snapshot_id": row["snapshot_id"],
                "operation": row["operation"],
                "added rows": summary.get("added-records", "0"),
                "deleted rows": summary.get("deleted-records", "0"),
                "rows": summary.get("total-records"),
                "files": summary.get("total-data-files"),
            }
        )
    columns = list(shown[0]) if shown else []
    show_rows(shown, columns=columns, nothing="no snapshot yet")


@main.command()
@click.argument("table")
@as_json
@click.pass_obj
def files(settings: Settings, table: str, as_json: bool) -> None:
    """Show the files of the current snapshot."""
    frame = settings.table(table).inspect.files()
    if as_json:
        _show(frame.drop("readable_metrics", strict=False), as_json, nothing="")
        return
    kinds = {0: "data", 1: "position deletes", 2: "equality deletes"}
    shown = [
        {
            "content": kinds.get(row["content"], row["content"]),
            "partition": row.get("partition"),
            "records": row["record_count"],
            "size": readable_bytes(row["file_size_in_bytes"]),
            "file": row["file_path"],
        }
        for row in frame.iter_rows(named=True)
    ]
    show_rows(
        shown, columns=["content", "partition", "records", "size", "file"], nothing="no files"
    )


@main.command()
@click.argument("table")
@as_json
@click.pass_obj
def partitions(settings: Settings, table: str, as_json: bool) -> None:
    """Show the partitions with their rows, files and sizes."""
    _show(settings.table(table).inspect.partitions(), as_json, nothing="no partitions")


@main.command()
@click.argument("table")
@as_json
@click.pass_obj
def refs(settings: Settings, table: str, as_json: bool) -> None:
    """Show branches and tags."""
    _show(settings.table(table).inspect.refs(), as_json, nothing="no branches or tags yet")


@main.command()
@click.argument("table")
@as_json
@click.pass_obj
def properties(settings: Settings, table: str, as_json: bool) -> None:
    """Show the table's properties."""
    found = dict(sorted(settings.table(table).properties.items()))
    if as_json:
        show_json(found)
    elif found:
        show_pairs(found.items())
    else:
        click.echo("no properties")


@main.command()
@click.argument("table")
@click.option("--where", help="A predicate, for example \"ts >= '2024-01-01'\".")
@click.option("--columns", help="Columns to show, separated by commas.")
@click.option("--limit", type=click.IntRange(min=1), default=DEFAULT_SCAN_ROWS, show_default=True)
@click.option("--snapshot-id", type=int, help="Read this snapshot.")
@click.option("--as-of", help="Read the snapshot that was current at this time (UTC).")
@click.option("--ref", help="Read a branch or a tag.")
@click.option("--plan", "only_plan", is_flag=True, help="Show what would be read, and read nothing.")
@as_json
@click.pass_obj
def scan(
    settings: Settings,
    table: str,
    where: str | None,
    columns: str | None,
    limit: int,
    snapshot_id: int | None,
    as_of: str | None,
    ref: str | None,
    only_plan: bool,
    as_json: bool,
) -> None:
    """Show rows; starts a local Spark."""
    # Spark takes seconds to load, and the other commands do without.
    from frazil.cli.local_spark import open_with_spark

    chosen = [name.strip() for name in columns.split(",")] if columns else None
    with open_with_spark(settings.table(table)) as opened:
        query = opened.scan(
            where=where, columns=chosen, snapshot_id=snapshot_id, as_of=as_of, ref=ref
        )
        if only_plan:
            click.echo(str(query.plan()))
            return
        rows = [row.asDict(recursive=True) for row in query.to_df().limit(limit).collect()]
        names = query.to_df().columns
    if as_json:
        show_json(rows)
    else:
        show_rows(rows, columns=names, nothing="no rows")


def _all_tables(catalog: Catalog, namespace: str | None) -> list[Identifier]:
    waiting: list[Identifier] = (
        [tuple(namespace.split("."))] if namespace else catalog.list_namespaces()
    )
    found: list[Identifier] = []
    while waiting:
        current = waiting.pop(0)
        found.extend(catalog.list_tables(current))
        waiting.extend(catalog.list_namespaces(current))
    return sorted(found)


def _facts(handle: TableHandle) -> dict[str, Any]:
    metadata = handle.metadata
    schema = metadata.schema
    snapshot = metadata.current_snapshot
    return {
        "table": handle.name,
        "format version": metadata.format_version,
        "uuid": metadata.table_uuid,
        "location": metadata.location,
        "metadata": handle.metadata_location,
        "partitioned by": _spec_text(metadata) or "nothing",
        "sorted by": _order_text(metadata) or "nothing",
        "snapshots": len(metadata.snapshots),
        "columns": [
            {
                "id": field.field_id,
                "column": field.name,
                "type": str(field.field_type),
                "required": field.required,
                "doc": field.doc or "",
            }
            for field in schema.fields
        ],
        "snapshot": None
        if snapshot is None
        else {
            "id": snapshot.snapshot_id,
            "operation": (snapshot.summary or {}).get("operation"),
            **{
                key.removeprefix("total-"): value
                for key, value in (snapshot.summary or {}).items()
                if key.startswith("total-")
            },
        },
    }


def _spec_text(metadata: TableMetadata) -> str:
    return ", ".join(
        f"{field.name} = {field.transform}({metadata.schema.find_column_name(field.source_id)})"
        for field in metadata.spec.fields
    )


def _order_text(metadata: TableMetadata) -> str:
    return ", ".join(
        f"{field.transform}({metadata.schema.find_column_name(field.source_id)}) "
        f"{field.direction} {field.null_order}"
        for field in metadata.sort_order.fields
    )


def _as_dict(value: Any) -> dict[str, Any]:
    """A map, which a polars frame holds as a list of pairs."""
    if isinstance(value, dict):
        return value
    return {entry["key"]: entry["value"] for entry in value or ()}


def _show(frame: pl.DataFrame, as_json: bool, *, nothing: str) -> None:
    rows: Sequence[dict[str, Any]] = frame.to_dicts()
    if as_json:
        show_json(rows)
    else:
        show_rows(rows, columns=frame.columns, nothing=nothing)


if __name__ == "__main__":
    sys.exit(main())
