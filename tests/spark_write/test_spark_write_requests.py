"""How many requests an append sends to an object store."""

from __future__ import annotations

import json
from pathlib import Path

import pyspark
import pytest

from programs import run_program

pytestmark = pytest.mark.check


def test_an_append_sends_one_or_three_requests_a_file_and_three_or_four(tmp_path):
    """A file is sent; of one by Spark's writer the size is looked up and the footer read as well.

    The rest is metadata: a manifest, a list and the metadata file.
    """
    jars = Path(pyspark.__file__).parent / "jars"
    version = next(jars.glob("hadoop-client-api-*.jar")).stem.rpartition("-")[2]
    settings = {"spark.jars.packages": f"org.apache.hadoop:hadoop-aws:{version}"}
    program = Path(__file__).with_name("written_requests.py")
    printed = run_program(program, tmp_path, json.dumps(settings))
    found = [json.loads(line) for line in printed.splitlines() if line.startswith("[")]
    assert [each[:2] for each in found] == [
        [writer, files] for files in (1, 8) for writer in ("Spark", "Arrow")
    ]
    for writer, files, seen in found:
        data = {what: count for what, count in seen.items() if what.endswith(" data")}
        if writer == "Spark":
            assert data == {"PUT data": files, "HEAD data": files, "GET data": files}
        else:
            assert data == {"PUT data": files}
        rest = {what: count for what, count in seen.items() if what not in data}
        looks = rest.pop("LIST other", 0)
        assert rest == {"PUT manifest": 1, "PUT list": 1, "PUT metadata": 1}
        assert looks <= 1
