"""How many requests statements send to an object store: no change adds one unseen."""

from __future__ import annotations

import json
from pathlib import Path

import pyspark
import pytest

from programs import run_program
from s3_spark import connector

pytestmark = pytest.mark.check

# Spark's connector asks more for some files than for others, by the order of its threads: what its
# tasks read has a few more than they were seen to send.
AT_MOST = {
    "read again": 55,
    "first read": 57,
    "first read of a partition": 13,
    "count": 0,
    "files": 5,
    "append of 1 file": 5,
    "append into 8 partitions": 12,
    # Spark's writer leaves out ids, so each of 8 files is sent once more.
    "first nested append": 35,
    "nested append": 12,
    "nested append of many rows": 37,
    "delete": 82,
    "merge": 195,
    "delete of a partition": 29,
    "manifests": 11,
    "compaction": 55,
    "orphans": 9,
    "expiry": 4,
    "purge": 10,
}


@pytest.mark.skipif(
    pyspark.__version__ < "4.1", reason="the Hadoop of Spark 4.0 asks twice for a small file"
)
def test_a_statement_sends_no_request_more(tmp_path):
    settings = {"spark.jars.packages": connector()}
    program = Path(__file__).with_name("store_requests.py")
    # Nobody says which Python workers run.
    variables = {"PYSPARK_PYTHON": None}
    printed = run_program(program, tmp_path, json.dumps(settings), variables=variables)
    found = {
        name: (count, kinds)
        for name, count, kinds in (
            json.loads(line) for line in printed.splitlines() if line.startswith("[")
        )
    }
    assert found.keys() == AT_MOST.keys()
    more = {name: each for name, each in found.items() if each[0] > AT_MOST[name]}
    assert more == {}
