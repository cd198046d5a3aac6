"""`frazil catalog`: the catalogs that the environment and the user's file name."""

from __future__ import annotations

import os
import time
from typing import Any

import click

from frazil.catalog.config import (
    DEFAULT_NAME,
    CatalogConfig,
    configured_names,
    implementation_of,
    refuse_unknown,
    resolve,
    sources_of,
)
from frazil.catalog.config_edits import add_catalog, check_name, check_no_secret, remove_catalog
from frazil.catalog.config_file import ConfigFile, config_files, new_config_file, read_config_file
from frazil.cli.app import SETTING_UP, Settings, asked, command, main, pairs_of
from frazil.cli.layout import TextColumn
from frazil.cli.output import Output
from frazil.errors import ConfigurationError, UnsupportedError
from frazil.storage.paths import redact_properties


@main.group("catalog", no_args_is_help=True)
def catalog_group() -> None:
    """List, add, remove and test the configured catalogs."""


@command(SETTING_UP, "frazil catalog ls", name="ls", group=catalog_group)
def list_catalogs(settings: Settings, out: Output) -> None:
    """List the catalogs of the environment and the file."""
    rows = [_described(name) for name in configured_names()]
    if out.as_json:
        out.document(rows)
        return
    columns = {
        "name": TextColumn("name"),
        "type": TextColumn("type"),
        "uri": TextColumn("uri", "text"),
        "warehouse": TextColumn("warehouse", "path"),
        "from": TextColumn("from", "path"),
    }
    shown = [
        {**row["properties"], **{key: row[key] for key in ("name", "type")}, "from": _joined(row)}
        for row in rows
    ]
    out.rows(shown, columns, nothing="no catalog is configured")


@command(
    SETTING_UP,
    "frazil catalog add default --warehouse /data/lake",
    "frazil catalog add prod --uri postgresql://me@db/lake --warehouse s3://lake/prod",
    name="add",
    group=catalog_group,
)
@click.argument("name")
@click.option("--warehouse", metavar="PLACE", help="The folder or URI of the warehouse.")
@click.option("--uri", help="The catalog's database or server.")
@click.option("--type", "kind", metavar="TYPE", help="sql, hadoop or rest; told by the URI.")
@click.option("--property", "-p", "pairs", multiple=True, metavar="KEY=VALUE", help="Any setting.")
def add(
    settings: Settings,
    out: Output,
    *,
    name: str,
    warehouse: str | None,
    uri: str | None,
    kind: str | None,
    pairs: tuple[str, ...],
) -> None:
    """Write a catalog into the file, for you alone to read.

    The file is the one that is read: ~/.frazil.yaml where there is none yet. Secrets are not
    written: set the variable of the environment that the message names.
    """
    named = {"type": kind, "uri": uri, "warehouse": warehouse}
    given = {key: value for key, value in named.items() if value is not None}
    properties = {**settings.properties, **given, **pairs_of(pairs, "--property")}
    check_name(name)
    check_no_secret(name, properties)
    refuse_unknown(properties)
    implementation_of(CatalogConfig(name, {**resolve(name).properties, **properties}))
    file = _file() or ConfigFile(new_config_file(os.environ), "", {})
    add_catalog(file, name, properties)
    facts = {"name": name, "properties": properties, "file": str(file.path)}
    out.done(facts, f"{file.path} has the catalog {name}; try it: frazil catalog test {name}")


@command(
    SETTING_UP,
    "frazil catalog test",
    "frazil catalog test default --json",
    name="test",
    group=catalog_group,
)
@click.argument("name", required=False)
def test(settings: Settings, out: Output, *, name: str | None) -> None:
    """Connect to a catalog, list its namespaces, and tell how long that took."""
    meant = Settings(name or settings.name, settings.properties)
    started = time.perf_counter()
    catalog = meant.catalog()
    found = [".".join(each) for each in catalog.list_namespaces()]
    milliseconds = round((time.perf_counter() - started) * 1000)
    catalog.close()
    label = meant.name or DEFAULT_NAME
    facts = {"name": label, "type": catalog.kind, "namespaces": found, "ms": milliseconds}
    known = f"the namespaces {', '.join(found)}" if found else "no namespaces"
    out.done(facts, f"the catalog {label} ({catalog.kind}) answers in {milliseconds} ms: {known}")


@command(SETTING_UP, "frazil catalog remove prod --yes", name="remove", group=catalog_group)
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(settings: Settings, out: Output, *, name: str, yes: bool) -> None:
    """Take a catalog out of the file; its tables stay as they are."""
    file = _file()
    sources = sources_of(name)
    if file is None or str(file.path) not in sources:
        raise ConfigurationError(
            f"the catalog {name} is set by variables of the environment alone: unset them"
            if sources
            else f"no catalog {name} is configured: frazil catalog ls shows those that are"
        )
    asked(f"Remove the catalog {name} from {file.path}?", yes=yes)
    remove_catalog(file, name)
    out.done({"name": name, "file": str(file.path)}, f"removed the catalog {name} from {file.path}")


def _file() -> ConfigFile | None:
    return read_config_file(config_files(os.environ))


def _joined(row: dict[str, Any]) -> str:
    return " and ".join(row["from"])


def _described(name: str) -> dict[str, Any]:
    config = resolve(name)
    try:
        kind: str | None = implementation_of(config).kind
    except (ConfigurationError, UnsupportedError):
        # It may be of another engine, with which the file is shared.
        kind = config.properties.get("type")
    properties = redact_properties(config.properties)
    return {"name": name, "type": kind, "from": sources_of(name), "properties": properties}
