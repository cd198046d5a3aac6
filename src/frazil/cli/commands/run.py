"""`frazil run`: a program of Python whose Spark sessions know the configured lakes."""

from __future__ import annotations

import os
import runpy
import shutil
import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

import click

from frazil.catalog.config import DEFAULT_NAME
from frazil.cli.app import Settings, ShownCommand, main
from frazil.errors import ConfigurationError
from frazil.later import later

if TYPE_CHECKING:
    from frazil.spark.attached.configured import configured_lakes
    from frazil.spark.words import WordReader
else:
    configured_lakes = later("frazil.spark.attached.configured", "configured_lakes")
    WordReader = later("frazil.spark.words", "WordReader")


_MACHINE_CODE: Final = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""With what programs of Linux, Windows and macOS begin."""
_PYTHON_BY_SHELL: Final = b"'''exec' "
"""The second line of pip's scripts where Python's path is too long, or has a space."""


@main.command(
    "run",
    cls=ShownCommand,
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
    if found is None:
        raise ConfigurationError(
            f"{program[0]} is no file, and no script of a package in this environment of Python"
        )
    sys.argv[0] = found
    _run_file(found)


def _run_file(path: str) -> None:
    """Run a file of Python in this process.

    Raises:
        ConfigurationError: another program runs it.
    """
    other = _other_program(path)
    if other is not None:
        raise ConfigurationError(
            f"{path} is {other}, which starts a process of its own: lakes are attached in the "
            "process of frazil run alone. Give it a program of Python: a file, -m and a module, or "
            "a script of a package"
        )
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    runpy.run_path(path, run_name="__main__")


def _other_program(path: str) -> str | None:
    """What a file is that says that another program than Python runs it."""
    with open(path, "rb") as file:
        first, second = file.readline(1000), file.readline(1000)
    if first.startswith(_MACHINE_CODE):
        return "a program of this machine"
    if not first.startswith(b"#!") or second.startswith(_PYTHON_BY_SHELL):
        return None
    words = first[2:].decode(errors="replace").split()
    runs = next((os.path.basename(word) for word in reversed(words) if word[0] != "-"), "")
    if runs.startswith(("python", "pypy")):
        return None
    return "a shell script" if runs.endswith("sh") else f"a script of {runs or 'another program'}"
