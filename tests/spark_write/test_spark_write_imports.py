"""What a Python worker of Spark imports for a task, and what users import."""

import pytest

import frazil
from programs import run_program

TASKS = ["frazil.spark.files.arrow.files", "frazil.spark.write.arrow", "frazil.spark.write.finish"]
"""Where the functions are that executors call to read and to write files."""
HEAVY = ["polars", "sqlalchemy", "sqlglot", "frazil.catalog", "frazil.planning"]


def test_workers_import_what_a_task_needs():
    program = (
        "import importlib, sys\n"
        f"for name in {TASKS}: importlib.import_module(name)\n"
        f"print(*(name for name in {HEAVY} if name in sys.modules))"
    )
    assert run_program(program).strip() == ""


@pytest.mark.parametrize(
    ("kind", "others"),
    [("sql", ["httpx", "frazil.catalog.pointer.hive"]), ("filesystem", ["httpx"])],
)
def test_a_catalog_imports_no_libraries_of_another(tmp_path, kind, others):
    """The first read of a new process waits for whatever is imported."""
    program = (
        "import sys, frazil.spark.lake.lake\n"
        "from frazil.catalog.config import CatalogConfig, open_catalog\n"
        f"config = CatalogConfig('c', {{'type': {kind!r}, 'warehouse': {str(tmp_path)!r}}})\n"
        "print(type(open_catalog(config)).kind)\n"
        f"print(*(name for name in {others} if name in sys.modules))"
    )
    assert run_program(program).split() == [kind]


def test_each_public_name_is_there():
    for name in frazil.__all__:
        assert getattr(frazil, name) is getattr(frazil, name)
        assert name in dir(frazil)


def test_another_name_is_not_there():
    with pytest.raises(AttributeError, match="'frazil' has no attribute 'connects'"):
        frazil.connects
