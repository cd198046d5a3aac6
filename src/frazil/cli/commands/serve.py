"""`frazil serve`: the catalog for every engine that speaks the REST protocol."""

from __future__ import annotations

import logging
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from frazil.catalog.config import CatalogConfig, open_catalog
from frazil.cli.app import Settings, command
from frazil.cli.output import Output
from frazil.errors import UnsupportedError
from frazil.serve.running.workers import WorkerProcesses, when_parent_ends

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@command(
    "frazil --warehouse /data/lake serve",
    "frazil --warehouse /data/lake serve --port 8282 --read-only",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8181,
    show_default=True,
    help="0 takes a free one.",
)
@click.option("--read-only", is_flag=True, help="Refuse every change.")
@click.option("--token-file", type=_FILE, help="Who may read and write what, as YAML or TOML.")
@click.option("--tls-certificate", type=_FILE, help="A chain of certificates, in PEM.")
@click.option("--tls-key", type=_FILE, help="The key of the certificate, in PEM.")
@click.option(
    "--any-location", is_flag=True, help="Let clients name places outside of the warehouse."
)
@click.option(
    "--vend-credentials",
    is_flag=True,
    help="Give the store's credentials to clients that may write everything.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes that serve, about one for each processor.",
)
@click.option("--without-tokens", is_flag=True, help="Let other machines in without a token file.")
def serve(
    settings: Settings,
    out: Output,
    *,
    host: str,
    port: int,
    read_only: bool,
    token_file: Path | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    any_location: bool,
    vend_credentials: bool,
    workers: int,
    without_tokens: bool,
) -> None:
    """Serve the catalog to engines by Iceberg's REST protocol, until it is interrupted.

    Trino, DuckDB, ClickHouse, PyIceberg, Java's library and others then read and write its tables.
    A browser that opens the address sees the lake: an index, and a page for each table.
    Without a token file only programs of this machine are answered.
    """
    if token_file is not None and without_tokens:
        raise click.UsageError("--token-file and --without-tokens contradict each other")
    serving = _server_module()
    tokens = None if token_file is None else serving.read_tokens(token_file)
    how = serving.ServeSettings(
        read_only=read_only,
        any_location=any_location,
        vend_credentials=vend_credentials,
        is_open=without_tokens,
    )
    where = serving.Listening(host=host, port=port, certificate=tls_certificate, key=tls_key)
    where.check(has_tokens=tokens is not None, is_open=without_tokens)
    catalog = settings.catalog() if read_only else settings.new_or_old_catalog()
    name, properties = catalog.name, catalog.properties
    listener = serving.listen(where)
    server = serving.CatalogServer(catalog, how, listening=where, tokens=tokens, shared=listener)
    _log_to_standard_error()
    if tokens is not None and tls_certificate is None and not where.is_loopback:
        click.echo("tokens travel readable: give --tls-certificate and --tls-key", err=True)
    out.print_done(
        {"uri": server.uri, "catalog": name, "read_only": read_only},
        f"the catalog {name} is served on {server.uri}",
    )
    sys.stdout.flush()
    if workers == 1:
        server.run()
        return
    catalog.close()
    config = CatalogConfig(name, properties)
    # Any of the processes answers a browser that another one logged in.
    arguments = (config, how, where, tokens, listener, serving.new_session_key())
    WorkerProcesses(workers, _serve_in_process, arguments).run()


def _serve_in_process(
    config: CatalogConfig,
    how: Any,
    where: Any,
    tokens: Any,
    listener: socket.socket,
    session_key: bytes,
) -> None:
    """Serve beside other processes; the arguments are those of the server."""
    _log_to_standard_error()
    serving = _server_module()
    server = serving.CatalogServer(
        open_catalog(config),
        how,
        listening=where,
        tokens=tokens,
        shared=listener,
        session_key=session_key,
    )
    when_parent_ends(server.stop)
    server.run()


def _server_module() -> ModuleType:
    """The module that needs a web server, which is not installed everywhere."""
    try:
        from frazil.serve import server
    except ImportError as error:
        raise UnsupportedError(
            "serving a catalog needs a web server: pip install 'frazil[serve]'"
        ) from error
    return server


def _log_to_standard_error() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name, level in (("frazil", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(level)
