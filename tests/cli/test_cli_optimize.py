"""`frazil optimize`: what it shows, and a schedule that a signal ends."""

import json
import signal

import pytest

import frazil
from programs import Program


@pytest.fixture
def small_files(spark, tmp_path):
    """A warehouse with db.t of four small files that have waited long enough."""
    with frazil.connect(spark, warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        table = lake.create_table(
            "db.t", "id bigint", properties={"self-optimizing.minor.trigger.interval": "0"}
        )
        for part in range(4):
            table.append(spark.range(part * 10, part * 10 + 10, 1, 1))
        yield str(tmp_path / "lake"), table


def test_a_dry_run_explains_and_a_run_does_it(run, small_files):
    warehouse, table = small_files
    plan = json.loads(run("optimize", "db.t", "--dry-run", "--json", warehouse=warehouse))
    [choice] = plan["choices"]
    assert (choice["kind"], choice["work"], choice["files"]) == ("minor", "rewrite data files", 4)
    assert choice["gain_seconds"] > 0
    assert "4 fragments wait" in run("optimize", "db.t", "--dry-run", warehouse=warehouse)
    assert "4 files became 1" in run("optimize", "db.t", warehouse=warehouse)
    assert "nothing to do" in run("optimize", "db.t", warehouse=warehouse)
    table.refresh()
    assert table.count() == 40


def test_options_that_contradict_each_other(run, small_files):
    for words in (["--interval", "5"], ["--dry-run", "--watch"], ["--watch", "--interval", "0"]):
        run("optimize", "db.t", *words, code=2, warehouse=small_files[0])


@pytest.mark.soak
def test_a_schedule_ends_at_an_interrupt(spark, small_files):
    """Of a process of its own, beside a writer here."""
    warehouse, table = small_files
    words = ["--warehouse", warehouse, "optimize", "db.t", "--watch", "--interval", "0.2"]
    with Program("frazil.cli", *words) as running:
        running.wait_until(lambda: "files became" in running.printed)
        table.refresh()
        for part in range(4, 7):
            table.append(spark.range(part * 10, part * 10 + 10))
        running.wait_until(lambda: running.printed.count("files became") >= 2)
        running.process.send_signal(signal.SIGINT)
        running.end(seconds=60)
    said = "".join(running.errors)
    assert said.rstrip().endswith("stopped")
    assert "Traceback" not in said
    table.refresh()
    assert table.count() == 70
