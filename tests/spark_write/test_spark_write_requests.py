"""How many requests an append and a read send to an object store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from programs import run_program
from s3_spark import connector

pytestmark = pytest.mark.soak  # `test_store_requests` counts those of statements


def test_an_append_sends_one_or_three_requests_a_file_and_three_or_four(tmp_path):
    """A file is sent; of one by Spark's writer the size is looked up and the footer read as well.

    The rest is metadata: a manifest, a list and the metadata file. A read asks twice for a small
    file: for its size and for the whole of it, and nobody else asks for its footer.
    """
    settings = {"spark.jars.packages": connector()}
    program = Path(__file__).with_name("written_requests.py")
    printed = run_program(program, tmp_path, json.dumps(settings))
    found = [json.loads(line) for line in printed.splitlines() if line.startswith("[")]
    assert [each[:2] for each in found] == [
        each
        for files in (1, 8)
        for each in (["Spark", files], ["Arrow", files], ["read", 2 * files])
    ]
    for writer, files, seen in found:
        data = {what: count for what, count in seen.items() if what.endswith(" data")}
        if writer == "Spark":
            assert data == {"PUT data": files, "HEAD data": files, "GET data": files}
        elif writer == "Arrow":
            assert data == {"PUT data": files}
        else:
            assert data == {"HEAD data": files, "GET data": files}
            continue
        rest = {what: count for what, count in seen.items() if what not in data}
        looks = rest.pop("LIST other", 0)
        assert rest == {"PUT manifest": 1, "PUT list": 1, "PUT metadata": 1}
        assert looks <= 1
