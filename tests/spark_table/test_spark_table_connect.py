"""The whole public face over Spark Connect, in a process of its own."""

import json
from pathlib import Path

from programs import run_program

PROGRAM = Path(__file__).with_name("connect_program.py")


def test_reads_and_writes_work_over_spark_connect(connect_url, tmp_path):
    said = run_program(PROGRAM, connect_url, tmp_path / "lake")
    (line,) = [line for line in said.splitlines() if line.startswith("RESULT ")]
    found = json.loads(line.removeprefix("RESULT "))
    refused = found.pop("refused")
    assert found == {
        "session": "pyspark.sql.connect.session",
        "rows": [[2, ["x", "y"]], [4, ["x", "y"]], [100, ["n"]]],
        "count": 7,
        "history": [True, True],
        "operations": ["append", "overwrite"],
        "formats": ["PARQUET"],
        "partitions": [["a", 4], ["b", 3]],
        "made": [7],
        "compacted": 2,
    }
    assert refused.startswith("SchemaMismatchError: the column 'id' is required")
