"""`frazil adopt`: tables and views of another catalog or of a folder get names in this one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from frazil.catalog.config import resolve
from frazil.catalog.identifiers import parse_named_namespace, shown
from frazil.cli.app import Settings, command
from frazil.cli.layout import TextColumn
from frazil.cli.output import Output
from frazil.later import later

if TYPE_CHECKING:
    from frazil.cli.adoption import Adopted, Adoption, AdoptionSource
else:
    Adoption, AdoptionSource = later("frazil.cli.adoption", "Adoption", "AdoptionSource")


@command(
    "frazil --warehouse /data/lake adopt /data/lake/old",
    "frazil --warehouse /data/lake adopt /data/lake/old --into archive --apply",
)
@click.argument("source")
@click.option("--into", metavar="NAMESPACE", help="Of the new names; that of the source else.")
@click.option("--apply", "is_applied", is_flag=True, help="Do it; without, it is only shown.")
def adopt(
    settings: Settings, out: Output, *, source: str, into: str | None, is_applied: bool
) -> None:
    """Register the Iceberg tables and views of another catalog in this one.

    SOURCE is hive://host:port/database, a folder that holds namespaces of tables (a Hadoop
    catalog's warehouse), or the name of a configured catalog, as prod or prod/sales. No file is
    copied or changed. Let nobody write to the tables by the source from then on. The exit code is 1
    if something could not be registered.
    """
    properties = resolve(settings.name, settings.properties).properties
    found = AdoptionSource.of(source, properties)
    names = list(found.names())
    target = settings.catalog_if_there()
    # A source that is mistyped or empty makes no catalog.
    if target is None and is_applied and names:
        target = settings.new_or_old_catalog()
    levels = None if into is None else parse_named_namespace(into)
    adoption = Adoption(found, target, levels)
    tables = list(adoption.plan_all(names))
    namespaces = [shown(each) for each in adoption.missing_namespaces(tables)]
    if is_applied:
        tables = [adoption.carry_out(each) for each in tables]
    if out.as_json:
        rows = [_facts(each) for each in tables]
        out.document({"applied": is_applied, "namespaces": namespaces, "tables": rows})
    else:
        _show(out, tables, namespaces, is_applied=is_applied)
    if any(each.action == "failed" for each in tables):
        raise click.exceptions.Exit(1)


def _facts(table: Adopted) -> dict[str, Any]:
    return {
        "source": shown(table.source),
        "table": shown(table.target),
        "kind": table.kind,
        "action": table.action,
        "format_version": table.format_version,
        "metadata": table.metadata_file,
        "reason": table.reason,
    }


def _show(
    out: Output, tables: Sequence[Adopted], namespaces: list[str], *, is_applied: bool
) -> None:
    columns = {
        "source": TextColumn("source"),
        "table": TextColumn("table"),
        "action": TextColumn("action"),
        "format_version": TextColumn("version", "number"),
        "metadata": TextColumn("metadata", "path"),
    }
    if any(each.kind == "view" for each in tables):
        columns = {"kind": TextColumn("kind"), **columns}
    out.rows([_facts(each) for each in tables], columns, nothing="no tables or views")
    if not tables:
        return
    reasons = [(shown(each.source), each.reason) for each in tables if each.reason]
    if reasons:
        click.echo()
        out.pairs(reasons)
    counts = Counter(each.action for each in tables)
    click.echo()
    click.echo(", ".join(f"{count} {action}" for action, count in sorted(counts.items())))
    if namespaces:
        click.echo(f"new namespaces: {', '.join(namespaces)}")
    if not is_applied and counts["register"]:
        click.echo("nothing was changed: --apply registers them")
