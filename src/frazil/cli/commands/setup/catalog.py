"""`frazil catalog`: the catalogs that the environment and the user's file name."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

import click

from frazil.catalog.config import (
    DEFAULT_NAME,
    CatalogConfig,
    configured_catalog,
    configured_names,
    implementation_of,
    refuse_unknown,
    sources_of,
)
from frazil.catalog.config_edits import (
    add_catalog,
    check_absent,
    check_name,
    check_no_secret,
    remove_catalog,
)
from frazil.catalog.config_file import ConfigFile, config_files, new_config_file, read_config_file
from frazil.catalog.keyring_secrets import (
    forget_secret,
    keep_secret,
    names_in_keyring,
    with_names,
)
from frazil.catalog.kinds import IMPLEMENTATION
from frazil.cli.app import Settings, can_ask, command, confirm, main, pairs_of, yes_option
from frazil.cli.layout import TextColumn
from frazil.cli.output import Output
from frazil.errors import ConfigurationError, UnsupportedError
from frazil.storage.paths import redact_properties


@main.group("catalog", no_args_is_help=True)
def catalog_group() -> None:
    """List, add, remove and test the configured catalogs."""


@command("frazil catalog ls", name="ls", group=catalog_group)
def list_catalogs(settings: Settings, out: Output) -> None:
    """List the catalogs of the environment and the file."""
    rows = [_description(name) for name in configured_names()]
    columns = {
        "name": TextColumn("name"),
        "type": TextColumn("type"),
        "uri": TextColumn("uri", "text"),
        "warehouse": TextColumn("warehouse", "path"),
        "from": TextColumn("from", "path"),
    }

    def shown_row(row: dict[str, Any]) -> dict[str, Any]:
        own = {"name": row["name"], "type": row["type"], "from": " and ".join(row["from"])}
        return {**row["properties"], **own}

    out.listing(rows, columns, nothing="no catalog is configured", shown=shown_row)


@command(
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
@click.option(
    "--secret-in-keyring", "secret_names", multiple=True, metavar="KEY",
    help="A setting that the system's keyring holds; it is asked for.",
)  # fmt: skip
def add(
    settings: Settings,
    out: Output,
    *,
    name: str,
    warehouse: str | None,
    uri: str | None,
    kind: str | None,
    pairs: tuple[str, ...],
    secret_names: tuple[str, ...],
) -> None:
    """Write a catalog into the file, for you alone to read.

    The file is the one that is read: ~/.frazil.yaml where there is none yet. Secrets are not
    written: keep them in the keyring, or set the variable of the environment that the message
    names. Standard input gives the secrets, a line each, where nobody can be asked.
    """
    named = {"type": kind, "uri": uri, "warehouse": warehouse}
    given = {key: value for key, value in named.items() if value is not None}
    properties = {**settings.properties, **given, **pairs_of(pairs, "--property")}
    open_here = {key: value for key, value in properties.items() if key not in secret_names}
    check_name(name)
    check_no_secret(name, open_here)
    refuse_unknown({**properties, **dict.fromkeys(secret_names)})
    file = _file() or ConfigFile(new_config_file(os.environ), "", {})
    check_absent(file, name)
    secrets = {key: properties.get(key) or _asked_secret(key) for key in secret_names}
    full = CatalogConfig(name, {**configured_catalog(name).properties, **properties, **secrets})
    implementation = implementation_of(full)
    if "uri" in secrets and not {"type", IMPLEMENTATION} & full.properties.keys():
        # Its URI would have told it.
        open_here["type"] = implementation.kind
    written = with_names(open_here, secret_names)
    _keep(name, secrets)
    try:
        add_catalog(file, name, written)
    except BaseException:
        _forget(name, secrets)
        raise
    facts = {"name": name, "properties": written, "file": str(file.path)}
    out.print_done(facts, f"{file.path} has the catalog {name}; try it: frazil catalog test {name}")


@command(
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
    out.print_done(
        facts, f"the catalog {label} ({catalog.kind}) answers in {milliseconds} ms: {known}"
    )


@command("frazil catalog remove prod --yes", name="remove", group=catalog_group)
@click.argument("name")
@yes_option
def remove(settings: Settings, out: Output, *, name: str, yes: bool) -> None:
    """Take a catalog out of the file and the keyring; its tables stay as they are."""
    file = _file()
    sources = sources_of(name)
    if file is None or str(file.path) not in sources:
        raise ConfigurationError(
            f"the catalog {name} is set by variables of the environment alone: unset them"
            if sources
            else f"no catalog {name} is configured: frazil catalog ls shows those that are"
        )
    confirm(f"Remove the catalog {name} from {file.path}?", yes=yes)
    kept = names_in_keyring(configured_catalog(name, environment={}).properties)
    remove_catalog(file, name)
    _forget(name, kept)
    out.print_done(
        {"name": name, "file": str(file.path)}, f"removed the catalog {name} from {file.path}"
    )


def _asked_secret(key: str) -> str:
    """A secret that somebody types without its being shown, or a line of standard input."""
    typed = click.prompt(key, hide_input=True, err=True) if can_ask() else sys.stdin.readline()
    secret = str(typed).rstrip("\r\n")
    if not secret:
        raise ConfigurationError(f"{key} was not given: type it, or write it to standard input")
    return secret


def _keep(name: str, secrets: Mapping[str, str]) -> None:
    done: list[str] = []
    try:
        for key, value in secrets.items():
            keep_secret(name, key, value)
            done.append(key)
    except BaseException:
        _forget(name, done)
        raise


def _forget(name: str, keys: Iterable[str]) -> None:
    """Take secrets out of the keyring; what stays there is told, and nothing else fails by it."""
    for key in keys:
        try:
            forget_secret(name, key)
        except ConfigurationError as error:
            click.echo(f"{key} may still be in the keyring: {error}", err=True)


def _file() -> ConfigFile | None:
    return read_config_file(config_files(os.environ))


def _description(name: str) -> dict[str, Any]:
    config = configured_catalog(name)
    try:
        kind: str | None = implementation_of(config).kind
    except (ConfigurationError, UnsupportedError):
        # It may be of another engine, with which the file is shared.
        kind = config.properties.get("type")
    properties = redact_properties(config.properties)
    return {"name": name, "type": kind, "from": sources_of(name), "properties": properties}
