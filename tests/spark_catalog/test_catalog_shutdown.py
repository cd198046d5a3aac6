"""SIGTERM: statements that run end with their answers, and none begins any more."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from jdbc_client import Driver
from test_catalog_health import answer

from programs import Program, free_port

pytestmark = pytest.mark.soak

MARKS = "java_method('java.io.File', 'createTempFile', 'begun', '.mark')"
WAITS = "java_method('java.lang.Thread', 'sleep', 12000L)"
INSERT = "INSERT INTO lake.db.t SELECT if({marks} = {waits}, 0L, {id}L) FROM range(1)"
CREATE = ["CREATE NAMESPACE lake.db", "CREATE TABLE lake.db.t (id BIGINT)"]


def test_statements_that_run_are_answered_and_others_refused(server, client, spark, tmp_path):
    """Over Connect and JDBC; what was inserted is there, and the server ends before its grace."""
    connect, thrift, health = free_port(), free_port(), free_port()
    marks = tmp_path / "marks"
    marks.mkdir()
    ports = ("--connect", connect, "--thrift", thrift, "--health", health, "--grace", "120")
    settings = {"spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={marks}"}

    def clients(*steps):
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        file.write_text(json.dumps(steps))
        return Program(client, connect, file, cwd=tmp_path)

    with server(tmp_path, *ports, **settings) as running, ThreadPoolExecutor() as threads:
        with clients(*CREATE) as first:
            first.end()
        drivers = [Driver(spark._jvm, thrift) for _ in range(2)]
        words = {"marks": MARKS, "waits": WAITS}
        with clients(INSERT.format(id=1, **words), "SELECT 1") as program:
            of_jdbc = threads.submit(drivers[0].run, INSERT.format(id=2, **words))
            running.wait_until(lambda: len(list(marks.glob("begun*.mark"))) == 2)
            running.process.send_signal(signal.SIGTERM)
            running.wait_until(lambda: "stopping" in answer(health)[1])
            with clients("SELECT 1") as late:
                late.end()
            assert "begins no new statement" in json.loads(late.printed)["text"]
            assert "begins no new statement" in drivers[1].fails("SELECT 1")
            program.end()
            ended, refused = map(json.loads, program.printed.splitlines())
            assert ended == []
            assert "begins no new statement" in refused["text"]
            of_jdbc.result()
        running.end()
    with server(tmp_path, "--connect", connect), clients("SELECT id FROM lake.db.t") as last:
        last.end()
        assert sorted(json.loads(last.printed)) == [[1], [2]]
