"""How many requests an append sends to an object store."""

from __future__ import annotations

import json
from pathlib import Path

import pyspark
import pytest

from programs import run_program

pytestmark = pytest.mark.check


def test_an_append_sends_one_or_three_requests_a_file_and_ten(tmp_path):
    """A file is sent; of one by Spark's writer the size is looked up and the footer read as well.

    The rest is metadata.
    """
    jars = Path(pyspark.__file__).parent / "jars"
    version = next(jars.glob("hadoop-client-api-*.jar")).stem.rpartition("-")[2]
    settings = {
        "spark.jars.packages": f"org.apache.hadoop:hadoop-aws:{version}",
        # moto's server speaks HTTP/1.0, in which nobody answers `Expect: 100-continue`.
        "spark.hadoop.fs.s3a.connection.expect.continue": "false",
    }
    program = Path(__file__).with_name("written_requests.py")
    printed = run_program(program, tmp_path, json.dumps(settings))
    found = [json.loads(line) for line in printed.splitlines() if line.startswith("[")]
    assert [each[:2] for each in found] == [
        [writer, files] for files in (1, 8) for writer in ("Spark", "Arrow")
    ]
    for writer, files, requests, seen in found:
        data = {verb: count for verb, count in seen.items() if verb.endswith(" data")}
        if writer == "Spark":
            assert data == {"PUT data": files, "HEAD data": files, "GET data": files}
        else:
            assert data == {"PUT data": files}
        assert requests - sum(data.values()) <= 11, seen
