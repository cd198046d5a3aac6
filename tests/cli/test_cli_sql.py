"""`frazil sql`: statements of an argument and of a file."""

import json

import pyspark
import pytest
from click.testing import CliRunner

import frazil
from frazil.cli import main


@pytest.fixture
def warehouse(spark, tmp_path):
    """A warehouse with a namespace."""
    folder = str(tmp_path / "lake")
    with frazil.connect(spark, warehouse=folder) as lake:
        lake.create_namespace("db")
    return folder


@pytest.mark.parametrize(
    ("statement", "unknown", "meant"),
    [
        ("SELECT * FROM db.trip", "or view db.trip", "db.trips"),
        ("SELECT * FROM default.db.`Trip s`", "db.Trip s in default", "db.trips"),
        ("SELECT * FROM trips", "or view trips", "db.trips"),
        ("SELECT * FROM dc.trips", "or view dc.trips", "db.trips"),
        ("SELECT * FROM db.trips.snapshot", "db.trips.snapshot in default", None),
        ("SELECT * FROM db.nothing_like_it", "or view db.nothing_like_it", None),
        ("DELETE FROM db.trip WHERE true", "db.trip in the catalog default", "db.trips"),
        ("DESCRIBE db.triips", "db.triips in the catalog default", "db.trips"),
    ],
)
def test_an_unknown_table_is_one_line(run, statement, unknown, meant):
    if statement.endswith("trips.snapshot") and pyspark.__version__ < "4.2":
        pytest.skip("Spark 4.1 says that its catalog has namespaces of one part")
    hint = "" if meant is None else f" (did you mean {meant}?)"
    assert run("sql", statement, code=1) == f"Error: there is no table {unknown}{hint}\n"


@pytest.mark.check
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


def test_rows_for_programs(run, warehouse):
    query = (
        "SELECT id AS a, if(id = 1, null, 'x,y') AS a, timestamp'2024-01-01 00:00:00Z' AS t, "
        "array(id, null) AS l FROM range(3) ORDER BY id"
    )
    t = "2024-01-01T00:00:00+00:00"
    found = json.loads(run("sql", query, "--json", warehouse=warehouse))
    assert found[0] == {"a": 0, "a_2": "x,y", "t": t, "l": [0, None]}
    assert [each["a_2"] for each in found] == ["x,y", None, "x,y"]
    assert run("sql", query, "--csv", "--limit", "2", warehouse=warehouse).splitlines() == [
        "a,a,t,l", f'0,"x,y",{t},"[0, null]"', f'1,,{t},"[1, null]"'
    ]  # fmt: skip
    none = "SELECT 1 AS a WHERE false"
    assert json.loads(run("sql", none, "--json", warehouse=warehouse)) == []
    assert run("sql", none, "--csv", warehouse=warehouse) == "a\n"
    # A table has the first rows, and says so; programs get all of them.
    assert len(run("sql", "SELECT * FROM range(60)", warehouse=warehouse).splitlines()) == 51
    assert (
        len(run("sql", "SELECT * FROM range(60)", "--csv", warehouse=warehouse).splitlines()) == 61
    )


@pytest.mark.check
def test_statements_of_standard_input(warehouse):
    def said(text, *arguments):
        arguments = ["--warehouse", warehouse, "sql", "--csv", *arguments]
        return CliRunner().invoke(main, arguments, input=text)

    assert said("SELECT 1 AS a;\nSELECT 2 AS b;").output == "a\n1\nb\n2\n"
    assert said("SELECT 1 AS a", "--file", "-").output == "a\n1\n"
    wrong = said("SELECT 1 AS a;\n\nSELECT nope AS b;\nSELECT 3 AS c")
    assert wrong.exit_code == 1
    assert wrong.stdout == "a\n1\n"
    assert wrong.stderr.startswith("Error: line 3: ")
    assert "nope" in wrong.stderr
    assert said("").exit_code == 2


@pytest.mark.check
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
