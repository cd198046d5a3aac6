"""A warehouse that the commands look at, and what runs a command on it."""

import os
import shutil

import pytest
from click.testing import CliRunner
from told_table import make_told_table

import frazil
from frazil.cli import main

SCHEMA = "id bigint not null comment 'the key', city string, fare decimal(9,2), ts timestamp"


@pytest.fixture(scope="module")
def place(spark, tmp_path_factory):
    """A warehouse with db.trips of three snapshots and db.empty, and what the tests compare."""
    folder = tmp_path_factory.mktemp("cli") / "lake"
    with frazil.connect(spark, warehouse=str(folder)) as lake:
        lake.create_namespace("db")
        lake.create_table("db.empty", "id int")
        table = lake.create_table(
            "db.trips", SCHEMA, partition_by=["day(ts)"], sort_by=["id desc nulls last"],
            properties={"owner": "me", "api-token": "hush-hush"},
        )  # fmt: skip
        query = """select id, if(id = 3, null, concat('c', id % 2)) city,
            cast(id / 2 as decimal(9,2)) fare,
            timestamp'2024-01-01 10:00:00Z' + make_dt_interval(int(id % 2)) ts
            from range({0}, {1})"""
        table.append(spark.sql(query.format(0, 4)))
        table.create_tag("v1")
        table.append(spark.sql(query.format(4, 6)))
        table.overwrite(spark.sql(query.format(0, 0)), where="id = 5")
        (folder / "old").mkdir()
        yield str(folder), table


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch):
    """What the environment configures is not meant here."""
    for name in [name for name in os.environ if "CATALOG__" in name]:
        monkeypatch.delenv(name)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of nobody else that configures nothing, which is the current folder too."""
    for name in ("FRAZIL_HOME", "PYICEBERG_HOME", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def told():
    """A warehouse in whose snapshots, ids and times nothing is left to chance, and its table."""
    folder, table = make_told_table()
    yield folder, table
    table.catalog.close()
    shutil.rmtree(folder)


@pytest.fixture
def run(place):
    """Runs `frazil` on the warehouse; gives its output, after checking its exit code."""

    def command(*words, code=0, warehouse=place[0]):
        before = [] if warehouse is None else ["--warehouse", warehouse]
        result = CliRunner().invoke(main, [*before, *words])
        assert result.exit_code == code, (result.output, result.exception)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.stdout if code == 0 else result.stderr

    return command
