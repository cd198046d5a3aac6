"""Python functions on executors, and what a worker keeps of archives between two of them."""

import importlib
import json
import sys
import zipfile
from zipimport import zipimporter

import pyarrow as pa
import pytest
from pyspark import TaskContext

import frazil
from ci_share import one_of_each
from frazil.errors import StorageError
from frazil.spark.files.write_failures import write_failure
from frazil.spark.session import costs
from frazil.spark.session.costs import Cost
from frazil.spark.session.packages import packages_error
from frazil.spark.session.tasks import Wire, forget_zip_importers, map_batches, work_on
from programs import run_program


def test_a_worker_that_ran_a_task_reads_no_archive_again(spark):
    def counted(batches):
        # Spark's own archives are on the path of every worker.
        archives = sum(isinstance(each, zipimporter) for each in sys.path_importer_cache.values())
        rows = sum(batch.num_rows for batch in batches)
        yield pa.record_batch({"rows": pa.array([rows]), "archives": pa.array([archives])})

    rows = spark.range(0, 30, 1, 1)
    for _ in range(3):
        told = map_batches(rows, counted, "rows bigint, archives bigint").collect()
    assert [row["rows"] for row in told] == [30]
    # What is imported meanwhile finds at most the archives of the path itself, not their packages.
    assert told[0]["archives"] <= 3


@pytest.mark.parametrize(
    ("limits", "threads"), one_of_each([(0, 1_000), (0, 3), (23, 3)], [None, 3])
)
def test_work_on_items_gives_the_same_here_and_on_executors(spark, monkeypatch, limits, threads):
    here, in_function = limits
    monkeypatch.setattr(costs, "ITEMS_IN_FUNCTION", in_function)

    def work(number):
        if number == 99:
            raise StorageError(f"{number} is refused")
        return number, TaskContext.get() is not None

    wire = Wire(json.dumps, lambda text: tuple(json.loads(text)))

    def worked(numbers):
        cost = Cost(here=here, a_task=5, threads=4)
        return work_on(spark, numbers, work, wire, cost=cost, units=len(numbers), threads=threads)

    numbers = range(100, 124 if here == 0 else 123)
    assert worked(numbers) == [(number, here == 0) for number in numbers]
    with pytest.raises(StorageError, match=r"^99 is refused$"):
        worked([1, 99, 2, 3])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ModuleNotFoundError: No module named 'frazil'", "lacks the package frazil:"),
        ("ModuleNotFoundError: No module named 'pyarrow.parquet'", "lacks the package pyarrow:"),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than that in "
            "driver: 3.12, PySpark cannot run with different minor versions.",
            "is Python 3.10, and the driver's is Python 3.12:",
        ),
        ("Can't get attribute 'Task' on <module 'frazil.spark.x' from '/x'>", "another version"),
        ('java.io.IOException: Cannot run program "python3": error=2', "cannot be started"),
        ("ModuleNotFoundError: No module named 'frazilous'", None),
        ("ModuleNotFoundError: No module named 'of_a_function_of_the_user'", None),
        ("ValueError: some rows", None),
    ],
)
def test_errors_of_workers_that_lack_what_the_driver_has(text, said):
    error = packages_error(RuntimeError(f"Job aborted due to stage failure:\n  {text}\n\tat x"))
    assert (error is None) == (said is None)
    assert said is None or said in str(error)
    # A write of rows that needs it there says so too.
    failure = write_failure(RuntimeError(text), folder="s3://b/t")
    assert (failure is None) == (said is None)


def test_forgotten_archives_are_found_when_they_are_needed(tmp_path, monkeypatch):
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for name in ("first", "second"):
            made.writestr(f"zipped_for_a_test/{name}.py", f"NAME = {name!r}")
        made.writestr("zipped_for_a_test/__init__.py", "")
    monkeypatch.syspath_prepend(str(archive))
    assert importlib.import_module("zipped_for_a_test.first").NAME == "first"
    assert any(str(archive) in path for path in sys.path_importer_cache)
    forget_zip_importers()
    assert not any(str(archive) in path for path in sys.path_importer_cache)
    importlib.invalidate_caches()
    assert importlib.import_module("zipped_for_a_test.second").NAME == "second"


# What a Python worker of Spark imports for a task, and what users import.


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


def test_another_name_is_not_there():
    with pytest.raises(AttributeError, match="'frazil' has no attribute 'connects'"):
        frazil.connects
