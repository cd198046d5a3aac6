"""`frazil call`: results as lines and as JSON, and what is asked and refused."""

import json

import pytest
from click.testing import CliRunner

import frazil
from ci_share import in_circles
from frazil.cli import main


@pytest.fixture
def warehouse(spark, tmp_path):
    """A warehouse with db.t of two appends."""
    folder = str(tmp_path / "lake")
    with frazil.connect(spark, warehouse=folder) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", "id bigint")
        for part in range(2):
            table.append(spark.range(part * 10, part * 10 + 10, 1, 1))
    return folder


def test_results_are_shown(run, warehouse):
    text = "CALL system.ancestors_of(table => 'db.t')"
    found = json.loads(run("call", text, "--json", warehouse=warehouse))
    snapshots = json.loads(run("snapshots", "db.t", "--json", warehouse=warehouse))
    assert [row["snapshot_id"] for row in found] == [
        each["snapshot_id"] for each in reversed(snapshots)
    ]
    heading, *lines = run("call", text, warehouse=warehouse).splitlines()
    assert heading.split() == ["snapshot_id", "timestamp"]
    assert [line.split() for line in lines] == [[str(v) for v in row.values()] for row in found]
    text = "CALL system.rewrite_data_files('db.t', options => map('rewrite-all', 'true'))"
    lines = run("call", text, warehouse=warehouse).splitlines()
    facts = dict(line.split() for line in lines)
    assert (facts["rewritten_data_files_count"], facts["added_data_files_count"]) == ("2", "1")


@pytest.mark.check
def test_files_are_deleted_when_it_is_said(run, warehouse):
    text = "CALL system.expire_snapshots('db.t', older_than => '2100-01-01')"
    said = run("call", text, code=2, warehouse=warehouse)
    assert "expire_snapshots deletes files. Go on? Nobody can be asked here" in said
    run("call", "CALL system.rewrite_data_files('db.t', options => map('rewrite-all', 'true'))",
        warehouse=warehouse)  # fmt: skip
    [row] = json.loads(run("call", text, "--yes", "--json", warehouse=warehouse))
    assert (row["deleted_data_files_count"], row["deleted_manifest_lists_count"]) == (2, 2)
    assert len(json.loads(run("snapshots", "db.t", "--json", warehouse=warehouse))) == 1


REFUSED = {
    "CALL system.expire('db.t')": "there is no procedure 'expire'",
    "CALL system.ancestors_of()": "ancestors_of needs table: it is system.ancestors_of(table =>",
    "CALL system.ancestors_of('db.none')": "db.none",
    "select 1": "CALL is expected",
}


@pytest.mark.parametrize("text", in_circles(REFUSED, test=1))
def test_what_is_wrong_is_one_line(warehouse, text):
    result = CliRunner().invoke(main, ["--warehouse", warehouse, "call", text])
    assert result.exit_code == 1
    assert REFUSED[text] in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_what_would_go_is_shown_before_it_is_asked(run, warehouse, monkeypatch):
    monkeypatch.setattr("frazil.cli.app.can_ask", lambda: True)
    text = "CALL system.expire_snapshots('db.t', older_than => '2100-01-01')"
    words = ["--warehouse", warehouse, "call", text]
    result = CliRunner().invoke(main, words, input="n\n")
    assert result.exit_code == 1
    assert result.stderr.index("1 manifest lists deleted") < result.stderr.index("Go on?")
    assert len(json.loads(run("snapshots", "db.t", "--json", warehouse=warehouse))) == 2
