"""`frazil sql`: statements of an argument and of a file."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import frazil
from frazil.cli import main
from frazil.cli.commands.sql import statements_of

pytestmark = pytest.mark.spark


@pytest.fixture
def warehouse(spark, tmp_path):
    """A warehouse with a namespace."""
    folder = str(tmp_path / "lake")
    with frazil.connect(spark, warehouse=folder) as lake:
        lake.create_namespace("db")
    return folder


def test_a_file_and_a_statement(run, warehouse, tmp_path):
    file = tmp_path / "changes.sql"
    file.write_text(
        "-- a table; and rows\nCREATE TABLE db.t (id BIGINT, n STRING);\n"
        "INSERT INTO db.t VALUES (1, 'a;b'), (2, NULL);;\nSELECT count(*) AS c FROM db.t;\n"
    )
    assert run("sql", "--file", str(file), warehouse=warehouse).split() == ["c", "2"]
    found = json.loads(run("sql", "SELECT * FROM db.t ORDER BY id", "--json", warehouse=warehouse))
    assert found == [{"id": 1, "n": "a;b"}, {"id": 2, "n": None}]
    heading, *lines = run("sql", "SELECT * FROM db.t ORDER BY id", warehouse=warehouse).splitlines()
    assert heading.split() == ["id", "n"]
    assert len(lines) == 2


def test_mistakes(warehouse):
    def said(*arguments):
        result = CliRunner().invoke(main, ["--warehouse", warehouse, "sql", *arguments])
        assert result.exit_code != 0
        return result.output

    assert "--file" in said()
    assert "db.nope" in said("DELETE FROM db.nope WHERE true")
    assert "column" in said("ALTER TABLE db.nope")


def test_statements_of_a_text():
    assert list(statements_of("a; b ';' /* ; */ c;\n;d -- ;\n")) == ["a", "b ';' /* ; */ c", "d"]


@pytest.mark.parametrize("end", ["COMMIT", "", "SELECT nothing FROM db.t"])
def test_a_file_is_one_transaction(spark, warehouse, tmp_path, end):
    file = tmp_path / "changes.sql"
    file.write_text(
        "BEGIN TRANSACTION; CREATE TABLE db.t (id BIGINT); INSERT INTO db.t VALUES (1);\n"
        f"CREATE TABLE db.u AS SELECT * FROM db.t; {end}"
    )
    result = CliRunner().invoke(main, ["--warehouse", warehouse, "sql", "--file", str(file)])
    assert (result.exit_code == 0) == (not end.startswith("SELECT"))
    with frazil.connect(spark, warehouse=warehouse) as lake:
        assert len(lake.list_tables("db")) == (2 if end == "COMMIT" else 0)
