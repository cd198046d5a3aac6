"""Python functions on executors, and what a worker keeps of archives between two of them."""

from __future__ import annotations

import importlib
import sys
import zipfile
from zipimport import zipimporter

import pyarrow as pa
import pytest

from frazil.spark.session.tasks import forget_zip_importers, map_batches


@pytest.mark.spark
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
