"""`frazil spark-server`: Spark Connect and JDBC with the configured lakes in every session."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from frazil.catalog.config import DEFAULT_NAME
from frazil.cli.app import Settings, command
from frazil.cli.output import Output
from frazil.errors import ConfigurationError
from frazil.later import later

if TYPE_CHECKING:
    from frazil.spark.attached.configured import configured_lakes
    from frazil.spark.catalog.health import HealthPort
    from frazil.spark.catalog.server import SparkListening, SparkServer
    from frazil.spark.local.session import local_session, silence_query_errors
else:
    configured_lakes = later("frazil.spark.attached.configured", "configured_lakes")
    HealthPort = later("frazil.spark.catalog.health", "HealthPort")
    SparkListening, SparkServer = later(
        "frazil.spark.catalog.server", "SparkListening", "SparkServer"
    )
    local_session, silence_query_errors = later(
        "frazil.spark.local.session", "local_session", "silence_query_errors"
    )

_PORT = click.IntRange(1, 65535)
_SWEEP = 5.0
"""Seconds between two looks at which sessions are closed."""

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@command(
    "frazil --catalog prod spark-server --connect 15002",
    "frazil --warehouse /data/lake spark-server --connect 15002 --thrift 10000",
)
@click.option("--connect", type=_PORT, help="The port of Spark Connect.")
@click.option("--thrift", type=_PORT, help="The port of JDBC and ODBC.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--token-file", type=_FILE, help="A token that clients of Connect have to show.")
@click.option("--health", type=_PORT, help="The port that says by HTTP whether Spark is well.")
@click.option("--conf", "conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds that statements get to end after SIGTERM.",
)
def spark_server(
    settings: Settings,
    out: Output,
    *,
    connect: int | None,
    thrift: int | None,
    host: str,
    token_file: Path | None,
    health: int | None,
    conf: tuple[str, ...],
    grace: float,
) -> None:
    """Serve Spark with the configured lakes by Spark Connect, JDBC or both, until it is ended.

    Whoever may connect may run code as the user of this process, as with every Spark server.
    Clients need nothing of Frazil: names are lake.namespace.table, and USE sets what stands before.
    """
    where = SparkListening(
        host=host,
        connect=connect,
        thrift=thrift,
        health=health,
        token=None if token_file is None else token_file.read_text().strip(),
        settings=dict(map(_setting, conf)),
    )
    where.check()
    is_one = settings.name is not None or bool(settings.properties)
    lakes = configured_lakes(
        [settings.name or DEFAULT_NAME] if is_one else (), properties=settings.properties
    )
    with HealthPort(host, health) if health is not None else nullcontext() as port:
        silence_query_errors()
        spark = local_session(config=where.spark_settings)
        server = SparkServer(spark, lakes.attach, where)
        ended = threading.Event()
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, lambda _number, _frame: ended.set())
        server.start()
        if port is not None:
            port.ask(lambda: "stopping" if ended.is_set() else server.status())
        said = {"host": host, "connect": connect, "thrift": thrift, "health": health}
        names = sorted(lakes.catalogs)
        out.print_done(
            {**said, "lakes": names}, f"Spark with {', '.join(names)} is served on {host}"
        )
        sys.stdout.flush()
        while not ended.wait(_SWEEP):
            server.forget_closed()
        server.stop(seconds=grace)


def _setting(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise ConfigurationError(f"--conf {text}: a setting is KEY=VALUE")
    return key, value
