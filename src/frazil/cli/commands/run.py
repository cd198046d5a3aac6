"""`frazil run`: a program of Python whose Spark sessions know the configured lakes."""

from __future__ import annotations

import os
import runpy
import shutil
import sys
from importlib.metadata import entry_points

import click

from frazil.catalog.config import DEFAULT_NAME
from frazil.cli.app import CHANGING, Settings, ShownCommand, main
from frazil.errors import ConfigurationError
from frazil.spark.attached.configured import configured_lakes
from frazil.spark.words import WordReader


@main.command(
    "run",
    cls=ShownCommand,
    section=CHANGING,
    examples=(
        "frazil run -- job.py --day 2024-03-01",
        "frazil --catalog prod run --use prod.db -- dbt run",
        "frazil run -- -m my.module",
    ),
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "--use",
    "current",
    metavar="NAME[.NAMESPACE]",
    help="Where names without a lake before them are looked for, as USE does.",
)
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def run(settings: Settings, *, current: str | None, program: tuple[str, ...]) -> None:
    """Run a program of Python whose Spark sessions know the configured lakes.

    PROGRAM is a file, -m and a module, or a script of an installed package such as dbt; its
    arguments follow. Every Spark session that it makes takes names as lake.namespace.table: those
    of the catalogs of the environment and the file, or of the one that --catalog or --warehouse
    says.
    """
    is_one = settings.name is not None or bool(settings.properties)
    lakes = configured_lakes(
        [settings.name or DEFAULT_NAME] if is_one else (),
        properties=settings.properties,
        current=() if current is None else WordReader(current).names("the name of a lake"),
    )
    lakes.attach_each()
    if program[0] == "-m" and len(program) > 1:
        sys.argv[:] = program[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
        return
    sys.argv[:] = program
    if os.path.isfile(program[0]):
        _run_file(program[0])
        return
    scripts = entry_points(group="console_scripts", name=program[0])
    if scripts:
        sys.exit(next(iter(scripts)).load()())
    found = shutil.which(program[0])
    if found is None or not _is_python(found):
        raise ConfigurationError(
            f"{program[0]} is no file, and no script of a package in this environment of Python"
        )
    sys.argv[0] = found
    _run_file(found)


def _run_file(path: str) -> None:
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    runpy.run_path(path, run_name="__main__")


def _is_python(path: str) -> bool:
    """Whether a script says that Python runs it."""
    with open(path, "rb") as file:
        first = file.readline(200)
    return first.startswith(b"#!") and b"python" in first
