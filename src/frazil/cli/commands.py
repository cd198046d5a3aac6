"""The commands of `frazil`; all but `scan` work without Spark."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import Any

import click
import polars as pl

from frazil.catalog.base import Catalog
from frazil.catalog.config import DATABASE_NAME, CatalogConfig, open_catalog, resolve
from frazil.catalog.static import StaticCatalog
from frazil.cli.describe import as_number, describe_table, plan_facts
from frazil.cli.format import partition_text, rows_of
from frazil.cli.output import readable_bytes, show_json, show_pairs, show_rows
from frazil.errors import ConfigurationError, FrazilError
from frazil.storage.paths import join, local_path, normalize_location, redact, redact_properties
from frazil.table.handle import TableHandle

DEFAULT_SCAN_ROWS = 20

EXAMPLES = """\b
Examples:
  frazil --warehouse /data/lake tables
  frazil --warehouse /data/lake describe db.trips
  frazil --warehouse /data/lake scan db.trips --where "fare > 10" --limit 5
  frazil snapshots /data/lake/db/trips --json
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the tables are."""

    name: str | None = None
    properties: dict[str, str] = field(default_factory=dict)

    def catalog(self) -> Catalog:
        """The configured catalog; looking never makes one.

        Raises:
            ConfigurationError: nothing is configured, or there is no catalog at that place.
        """
        config = resolve(self.name, {"init_catalog_tables": "false", **self.properties})
        _check_embedded_catalog(config)
        return open_catalog(config)

    def table(self, name: str) -> TableHandle:
        """A table by its name in the catalog, or by the path of its folder or metadata file."""
        if os.sep in name or "/" in name:
            static = StaticCatalog(name, self.properties)
            return TableHandle(static, static.load_table(static.identifier))
        catalog = self.catalog()
        return TableHandle(catalog, catalog.load_table(name))


def _check_embedded_catalog(config: CatalogConfig) -> None:
    """Opening a SQLite file that is not there would make it."""
    properties = config.properties
    kind = properties.get("type", "sql").lower()
    if kind not in ("sql", "jdbc") or "uri" in properties or "warehouse" not in properties:
        return
    warehouse = normalize_location(properties["warehouse"])
    database = local_path(join(warehouse, DATABASE_NAME))
    if database is not None and not os.path.exists(database):
        raise ConfigurationError(
            f"there is no catalog {database}: check --warehouse, give --uri, or use --type hadoop "
            "for a folder of tables without a database"
        )


class _Commands(click.Group):
    """Commands in the order of this module; their typed errors are one line, not a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except FrazilError as error:
            secrets = ctx.obj.properties if isinstance(ctx.obj, Settings) else {}
            line = " ".join(redact(str(error), secrets).split())
            raise click.ClickException(line) from error


@click.group(
    cls=_Commands,
    epilog=EXAMPLES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--catalog", "name", metavar="NAME", help="A catalog of the environment or the file.")
@click.option("--warehouse", metavar="PLACE", help="The folder or URI of the warehouse.")
@click.option("--uri", help="The catalog's database, as sqlite:////data/lake/catalog.db.")
@click.option("--type", "kind", metavar="TYPE", help="sql (the default) or hadoop.")
@click.option("--property", "-p", "pairs", multiple=True, metavar="KEY=VALUE", help="Any setting.")
@click.version_option(package_name="frazil", prog_name="frazil")
@click.pass_context
def main(
    context: click.Context,
    name: str | None,
    warehouse: str | None,
    uri: str | None,
    kind: str | None,
    pairs: tuple[str, ...],
) -> None:
    """Look at Iceberg tables, by their name in a catalog or by the path of their folder."""
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
        for identifier in catalog.list_tables_below(namespace or ())
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
    """Show a table's columns, layout and newest snapshot."""
    facts = describe_table(settings.table(table))
    if as_json:
        show_json(facts)
        return
    columns = facts.pop("columns")
    snapshot = facts.pop("snapshot")
    for name in ("partitioned_by", "sorted_by"):
        facts[name] = ", ".join(facts[name]) or "nothing"
    show_pairs((name.replace("_", " "), value) for name, value in facts.items())
    click.echo()
    shown = ["id", "column", "type", "required"]
    if any(column["doc"] for column in columns):
        shown.append("doc")
    show_rows(columns, columns=shown, nothing="no columns")
    click.echo()
    if snapshot is None:
        click.echo("no snapshot: the table is empty")
    else:
        show_pairs((name.replace("_", " "), value) for name, value in snapshot.items())


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
    rows = rows_of(settings.table(table).inspect.snapshots())
    if as_json:
        show_json(rows)
        return
    shown = []
    for row in rows:
        summary = row["summary"] or {}
        shown.append(
            {
                "committed at": row["committed_at"],
                "snapshot": row["snapshot_id"],
                "operation": row["operation"],
                "added rows": as_number(summary.get("added-records", "0")),
                "deleted rows": as_number(summary.get("deleted-records", "0")),
                "rows": as_number(summary.get("total-records")),
                "files": as_number(summary.get("total-data-files")),
                "delete files": as_number(summary.get("total-delete-files")),
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
    handle = settings.table(table)
    rows = rows_of(handle.inspect.files().drop("readable_metrics", strict=False))
    if as_json:
        show_json(rows)
        return
    kinds = {0: "data", 1: "position deletes", 2: "equality deletes"}
    shown = [
        {
            "content": kinds.get(row["content"], row["content"]),
            "partition": partition_text(handle.metadata, row["spec_id"], row.get("partition")),
            "rows": row["record_count"],
            "size": readable_bytes(row["file_size_in_bytes"]),
            "file": row["file_path"],
        }
        for row in rows
    ]
    columns = ["content", "partition", "rows", "size", "file"]
    if not any(row["partition"] for row in shown):
        columns.remove("partition")
    show_rows(shown, columns=columns, nothing="no files")


@main.command()
@click.argument("table")
@as_json
@click.pass_obj
def partitions(settings: Settings, table: str, as_json: bool) -> None:
    """Show the partitions with their rows, files and sizes."""
    handle = settings.table(table)
    rows = rows_of(handle.inspect.partitions())
    if as_json:
        show_json(rows)
        return
    shown = [
        {
            "partition": partition_text(handle.metadata, row["spec_id"], row["partition"])
            if "partition" in row
            else "the whole table",
            "rows": row["record_count"],
            "files": row["file_count"],
            "size": readable_bytes(row["total_data_file_size_in_bytes"]),
            "delete files": row["position_delete_file_count"] + row["equality_delete_file_count"],
            "updated at": row["last_updated_at"],
        }
        for row in rows
    ]
    columns = list(shown[0]) if shown else []
    show_rows(shown, columns=columns, nothing="no partitions")


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
    found = redact_properties(dict(sorted(settings.table(table).properties.items())))
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
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=DEFAULT_SCAN_ROWS,
    show_default=True,
    help="Show so many rows at most.",
)
@click.option("--snapshot-id", type=int, help="Read this snapshot.")
@click.option("--as-of", help="Read the snapshot of this time (local unless it names a zone).")
@click.option("--ref", help="Read a branch or a tag.")
@click.option(
    "--plan", "only_plan", is_flag=True, help="Show what would be read, and read nothing."
)
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
    from frazil.cli.local_spark import first_rows, open_with_spark

    chosen = [name.strip() for name in columns.split(",")] if columns else None
    with open_with_spark(settings.table(table)) as opened:
        query = opened.scan(
            where=where, columns=chosen, snapshot_id=snapshot_id, as_of=as_of, ref=ref
        )
        if only_plan:
            plan = query.plan()
            show_json(plan_facts(plan)) if as_json else click.echo(plan.summary())
            return
        names, rows = first_rows(query, limit, table=table)
    if as_json:
        show_json(rows)
    else:
        show_rows(rows, columns=names, nothing="no rows")


def _show(frame: pl.DataFrame, as_json: bool, *, nothing: str) -> None:
    rows = rows_of(frame)
    if as_json:
        show_json(rows)
        return
    shown = [{name.replace("_", " "): value for name, value in row.items()} for row in rows]
    show_rows(shown, columns=[name.replace("_", " ") for name in frame.columns], nothing=nothing)


if __name__ == "__main__":
    sys.exit(main())
