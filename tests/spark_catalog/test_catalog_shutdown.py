"""SIGTERM: statements that run end with their answers, and none begins. SIGKILL: all ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from jdbc_client import Driver
from test_catalog_health import answer

from programs import Program, free_port

MARKS = "java_method('java.io.File', 'createTempFile', 'begun', '.mark')"
WAITS = "java_method('java.lang.Thread', 'sleep', 12000L)"
INSERT = "INSERT INTO lake.db.t SELECT if({marks} = {waits}, 0L, {id}L) FROM range(1)"
CREATE = ["CREATE NAMESPACE lake.db", "CREATE TABLE lake.db.t (id BIGINT)"]


@pytest.mark.soak
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


ATTACHED = """
import sys, time
import frazil
from frazil.spark.local.session import local_session
spark = local_session(config={"spark.ui.enabled": "false", "spark.master": "local[1]"})
lake = frazil.connect(spark, warehouse=sys.argv[1])
lake.create_namespace("db")
lake.attach(name="lake")
spark.sql("CREATE TABLE lake.db.t AS SELECT 1 AS id")
print("attached", spark.sql("SELECT * FROM lake.db.t").collect(), flush=True)
time.sleep(600)
"""


def family(process):
    """The ids of the processes below one that run, and are no zombies."""
    parents = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = each.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parents[int(each.parent.name)] = int(parent)
    found, grown = {process}, True
    while grown:
        below = {each for each, parent in parents.items() if parent in found} - found
        grown, found = bool(below), found | below
    return found - {process}


def is_alive(process):
    """Whether a process runs."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def killed_alone(program):
    """Kill a program and nothing else; the processes below it that are left 20 seconds later."""
    below = family(program.process.pid)
    assert [each for each in below if "java" in os.readlink(f"/proc/{each}/exe")]
    os.kill(program.process.pid, signal.SIGKILL)
    program.process.wait()
    end = time.monotonic() + 20
    while (left := [each for each in below if is_alive(each)]) and time.monotonic() < end:
        time.sleep(0.1)
    for each in left:
        os.kill(each, signal.SIGKILL)
    return left


@pytest.mark.check
def test_a_server_that_is_killed_takes_its_spark_with_it(server, tmp_path):
    """Neither the virtual machine nor a port is left."""
    ports = free_port(), free_port()
    with server(tmp_path, "--connect", ports[0], "--thrift", ports[1]) as running:
        assert killed_alone(running) == []
    for port in ports:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.check
def test_a_program_that_is_killed_takes_its_spark_with_it(tmp_path):
    """One whose session has a lake attached."""
    with Program(ATTACHED, tmp_path / "lake", cwd=tmp_path) as running:
        running.wait_until(lambda: "attached" in running.printed)
        assert killed_alone(running) == []
