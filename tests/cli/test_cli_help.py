"""Help: every command has an example that runs, and what needs no Spark starts none."""

import json
import shlex

import pytest
from click.testing import CliRunner

from frazil.cli import main
from programs import ended_program


def test_every_example_of_the_help_runs(place, tmp_path, monkeypatch):
    # Examples write the file of catalogs.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("FRAZIL_HOME", raising=False)
    monkeypatch.delenv("PYICEBERG_HOME", raising=False)
    examples = {name: command.examples for name, command in main.every_command().items()}
    assert all(examples.values())
    ran = []
    for name, lines in examples.items():
        shown = " ".join(CliRunner().invoke(main, [*name.split(), "--help"]).output.split())
        for line in lines:
            assert " ".join(line.split()) in shown
            if any(word in line for word in (" cdc postgres ", " run ", " serve", " spark-server")):
                # It needs a server or a program, or is one, which tests of their own start.
                ran.append(name)
                continue
            program, *words = shlex.split(line.replace("/data/lake", place[0]))
            assert program == "frazil"
            result = CliRunner().invoke(main, words)
            assert result.exit_code == 0, (line, result.output, result.exception)
            ran.append(name)
    assert set(ran) == set(main.every_command())


def test_every_command_prints_json(place):
    for name in set(main.every_command()) - {"run"}:  # What that prints is the program's.
        assert "--json" in CliRunner().invoke(main, [*name.split(), "--help"]).output


WITHOUT_SPARK = {
    "a plan": (["scan", "db.trips", "--where", "fare > 1 and id + 1 > 2", "--plan"], 0, "ScanPlan"),
    "a count": (
        ["count", "db.trips", "--where", "ts >= '2024-01-02 00:00:00Z'", "--json"],
        0,
        "rows",
    ),
    "a column of a condition": (["scan", "db.trips", "--where", "upper(cty) = 'C1'"], 1, "'cty'"),
    "a time": (["scan", "db.trips", "--as-of", "yesterday"], 1, "yesterday"),
}


@pytest.mark.check
@pytest.mark.parametrize("case", WITHOUT_SPARK)
def test_spark_is_not_started(place, case):
    words, code, said = WITHOUT_SPARK[case]
    # Without Java no Spark can start.
    nowhere = {"JAVA_HOME": "/nowhere", "PATH": "/nowhere"}
    words = ["--warehouse", place[0], *words]
    ran = ended_program("frazil.cli", *words, code=code, variables=nowhere)
    assert said in ("".join(ran.errors) if code else ran.printed)
    if case == "a count":
        assert json.loads(ran.printed)["rows"] == 2


def test_exit_codes_are_those_of_the_help(place):
    listed = CliRunner().invoke(main, ["--help"]).output.split("Exit codes:")[1].split()
    assert [word for word in listed if word.isdigit()] == ["0", "1", "2"]
    for words, code in ((["tables"], 0), (["tables", "nowhere"], 1), (["tables", "--nope"], 2)):
        assert CliRunner().invoke(main, ["--warehouse", place[0], *words]).exit_code == code
