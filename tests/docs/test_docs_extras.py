"""What is beside the main job brings its own libraries: by an extra, not by the core."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from trees import tree_of_file

from programs import run_program

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "frazil"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]

ROOMS = {
    "catalog/rest": ("rest", "s3", "google"),
    "catalog/pointer/glue": ("glue",),
    "catalog/pointer/hive": ("hive", "hive-kerberos"),
    "cdc": ("cdc",),
    "serve": ("serve",),
    "spark/hadoop": (),
}
"""What is beside the main job, and the extras that bring its libraries."""
MODULES = {"pure-sasl": "puresasl", "pyyaml": "yaml", "google-auth": "google"}
"""Modules that are not called as what brings them."""

BY_TEXT = ("import_module", "later", "import_now", "aws_module")
"""Functions that are given the name of what is imported."""


def brought(*extras: str) -> set[str]:
    """The modules of the core's libraries, or of extras."""
    lines = [line for each in extras for line in EXTRAS[each]] or PROJECT["dependencies"]
    needed = [Requirement(line) for line in lines]
    return {MODULES.get(each.name, each.name.replace("-", "_")) for each in needed}


def imported(path: Path) -> Iterator[str]:
    """The libraries that a module imports, at its top, in a function, or by a text."""
    for node in ast.walk(tree_of_file(path)):
        if isinstance(node, ast.ImportFrom):
            yield str(node.module).partition(".")[0]
        elif isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = ast.unparse(node.func).rpartition(".")[2]
            if called in BY_TEXT:
                yield str(node.args[0].value).partition(".")[0]


def libraries(folder: Path) -> set[str]:
    found = {name for path in folder.rglob("*.py") for name in imported(path)}
    return found - sys.stdlib_module_names - {"frazil"}


@pytest.mark.parametrize("room", ROOMS)
def test_a_rooms_libraries_come_with_its_extra(room: str) -> None:
    extras = brought(*ROOMS[room]) if ROOMS[room] else set()
    of_spark = {"pyspark", "py4j"}
    assert libraries(SOURCES / room) - brought() - extras - of_spark == set()


def test_the_core_brings_no_library_that_only_such_a_room_needs() -> None:
    rooms = [SOURCES / room for room in ROOMS]
    paths = [p for p in SOURCES.rglob("*.py") if not any(p.is_relative_to(room) for room in rooms)]
    core = "\n".join(path.read_text() for path in paths)
    used = rf"^\s*(?:from|import) {{0}}\b|(?:{'|'.join(BY_TEXT)})\(\s*\"{{0}}\b"
    assert [each for each in brought() if not re.search(used.format(each), core, re.M)] == []


HIDDEN = """
import sys
sys.modules["httpx"] = sys.modules["httpcore"] = None
from frazil.catalog.config import load_catalog
from frazil.errors import ConfigurationError
catalog = load_catalog("x", type="filesystem", warehouse="here")
catalog.create_namespace("db")
print(catalog.list_namespaces())
try:
    load_catalog("x", uri="http://localhost:1")
except ConfigurationError as error:
    print(error)
"""


def test_a_catalog_without_its_library_says_what_brings_it(tmp_path: Path) -> None:
    """And it keeps no other catalog from being opened."""
    assert run_program(HIDDEN, cwd=tmp_path).splitlines() == [
        "[('db',)]",
        "a REST catalog needs httpx: pip install 'frazil[rest]'",
    ]
