"""Every command of `frazil` on a small table, for programs; `golden` has what people see."""

import datetime as dt
import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from ci_share import in_circles
from frazil.cli import main


def lines(text):
    return [re.split(r" {2,}", line.strip()) for line in text.splitlines() if line.strip()]


def document(text):
    return json.loads(text)


def test_tables(run):
    assert lines(run("tables")) == [["namespace", "table"], ["db", "empty"], ["db", "trips"]]
    expected = [{"namespace": "db", "table": name} for name in ("empty", "trips")]
    assert document(run("tables", "db", "--json")) == expected
    assert "nowhere" in run("tables", "nowhere", code=1)


def test_describe(run, place):
    table = place[1]
    facts = document(run("describe", "db.trips", "--json"))
    assert facts["columns"][:2] == [
        {"id": 1, "column": "id", "type": "long", "required": True, "doc": "the key"},
        {"id": 2, "column": "city", "type": "string", "required": False, "doc": None},
    ]
    assert facts["partitioned_by"] == ["day(ts)"]
    assert facts["sorted_by"] == ["id desc nulls last"]
    assert (facts["format_version"], facts["snapshots"]) == (2, 3)
    assert facts["metadata"] == table.metadata_location
    assert facts["snapshot"]["snapshot"] == table.current_snapshot.snapshot_id
    assert facts["snapshot"]["records"] == 5
    assert "the table is empty" in run("describe", "db.empty")
    assert document(run("describe", "db.empty", "--json"))["snapshot"] is None


def test_history_and_snapshots(run, place):
    table = place[1]
    ids = [snapshot.snapshot_id for snapshot in table.metadata.snapshots]
    history = document(run("history", "db.trips", "--json"))
    assert [row["snapshot_id"] for row in history] == ids
    assert [row["parent_id"] for row in history] == [None, *ids[:-1]]
    when = dt.datetime.fromisoformat(history[0]["made_current_at"])
    assert when.timestamp() * 1000 == table.metadata.snapshots[0].timestamp_ms
    rows = document(run("snapshots", "db.trips", "--json"))
    assert [row["operation"] for row in rows] == ["append", "append", "delete"]
    assert rows[0]["summary"]["added-records"] == "4"
    for command in ("history", "snapshots", "refs"):
        assert len(lines(run(command, "db.empty"))) == 1
        assert document(run(command, "db.empty", "--json")) == []


def test_files(run, place):
    rows = document(run("files", "db.trips", "--json"))
    assert sum(row["record_count"] for row in rows) == 5
    assert {row["file_format"] for row in rows} == {"PARQUET"}
    assert {row["partition"]["ts_day"] for row in rows} == {"2024-01-01", "2024-01-02"}
    assert set(rows[0]["value_counts"]) == {"1", "2", "3", "4"}
    shown = run("files", "db.trips").splitlines()
    assert len(shown) == len(rows) + 1
    # Every row is one line, whole paths in it, where the output is no terminal.
    assert {line.split()[-1] for line in shown[1:]} == {row["file_path"] for row in rows}
    assert sum("ts_day=2024-01-01" in line for line in shown) >= 1
    assert not any(line != line.rstrip() for line in shown)
    assert run("files", "db.empty").strip() == "no files"


def test_partitions(run):
    rows = document(run("partitions", "db.trips", "--json"))
    counts = {row["partition"]["ts_day"]: row["record_count"] for row in rows}
    assert counts == {"2024-01-01": 3, "2024-01-02": 2}
    # As the Java runtime has it: a table without files has no partition.
    assert run("partitions", "db.empty") == "no partitions\n"


def test_refs_and_properties(run, place):
    first, *_, last = place[1].metadata.snapshots
    refs = {row["name"]: row for row in document(run("refs", "db.trips", "--json"))}
    assert (refs["main"]["type"], refs["main"]["snapshot_id"]) == ("BRANCH", last.snapshot_id)
    assert (refs["v1"]["type"], refs["v1"]["snapshot_id"]) == ("TAG", first.snapshot_id)
    properties = document(run("properties", "db.trips", "--json"))
    assert properties["owner"] == "me"
    assert "hush" not in run("properties", "db.trips") + json.dumps(properties)


SCANS = {
    "all": ([], [0, 1, 2, 3, 4]),
    "where": (["--where", "fare >= 1.5"], [3, 4]),
    "nothing": (["--where", "id > 100"], []),
    "tag": (["--ref", "v1"], [0, 1, 2, 3]),
    "limit": (["--limit", "2"], 2),
}


@pytest.mark.parametrize("case", in_circles(SCANS, test=1))
def test_scan(run, case):
    words, expected = SCANS[case]
    rows = document(run("scan", "db.trips", *words, "--json"))
    if isinstance(expected, int):
        assert len(rows) == expected
        return
    assert sorted(row["id"] for row in rows) == expected
    people = run("scan", "db.trips", *words).splitlines()
    assert len(people) == len(expected) + 1 if expected else people == ["no rows"]


def test_scan_of_columns(run):
    words = ("scan", "db.trips", "--where", "id = 3", "--columns", "ts, city,fare")
    assert document(run(*words, "--json")) == [
        {"ts": "2024-01-02T10:00:00+00:00", "city": None, "fare": "1.50"}
    ]
    assert lines(run(*words)) == [
        ["ts", "city", "fare"],
        ["2024-01-02 10:00:00.000Z", "-", "1.50"],
    ]


def test_scan_of_a_moment(run, place):
    first = place[1].metadata.snapshots[0]
    when = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC)
    # The commands print times with a space and a Z.
    printed = f"{when.replace(tzinfo=None).isoformat(' ', 'milliseconds')}Z"
    for words in (
        ("--as-of", when.isoformat()),
        ("--as-of", printed),
        ("--snapshot-id", str(first.snapshot_id)),
    ):
        rows = document(run("scan", "db.trips", *words, "--json"))
        assert sorted(row["id"] for row in rows) == [0, 1, 2, 3]


def test_plan(run):
    words = ("scan", "db.trips", "--where", "ts < '2024-01-02' and id > 0", "--plan")
    assert run(*words).startswith("ScanPlan of snapshot")
    plan = document(run(*words, "--json"))
    assert plan["files"] == len(plan["paths"]) == 2
    assert sum(skipped["files"] or 0 for skipped in plan["skipped"]) >= 1
    assert "id" in plan["residual"]


def test_a_table_by_its_path(run, place):
    table = place[1]
    for path in (table.location, table.location.removeprefix("file://"), table.metadata_location):
        facts = document(run("describe", path, "--json", warehouse=None))
        assert facts["uuid"] == table.uuid
        rows = document(run("scan", path, "--columns", "id", "--json", warehouse=None))
        assert sorted(row["id"] for row in rows) == [0, 1, 2, 3, 4]


MISTAKES = {
    "no table": ["describe", "db.nope"],
    "no namespace": ["describe", "nowhere.t"],
    "no such path": ["describe", "/nowhere/t"],
    "bad predicate": ["scan", "db.trips", "--where", "fare >"],
    "no such column": ["scan", "db.trips", "--columns", "nope"],
    "no such ref": ["scan", "db.trips", "--ref", "nope"],
    "no such snapshot": ["scan", "db.trips", "--snapshot-id", "1"],
    "no moment": ["scan", "db.trips", "--as-of", "yesterday"],
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_one_line(run, case):
    shown = run(*MISTAKES[case], code=1)
    assert shown.startswith("Error: ")
    assert len(shown.splitlines()) == 1


def test_a_missing_file_is_one_line(run, place, tmp_path):
    """The data file of a copied table is gone."""
    table = place[1]
    source = Path(table.location.removeprefix("file://"))
    data = tmp_path / "data"
    shutil.move(source / "data", data)
    try:
        shown = run("scan", "db.trips", "--limit", "1", code=1)
    finally:
        shutil.move(data, source / "data")
    assert len(shown.splitlines()) == 1
    assert re.search(r"\.parquet.*(does not exist|no such file)", shown)


def test_usage(run):
    assert "Examples:" in run("--help", warehouse=None)
    assert "KEY=VALUE" in run("-p", "x", "tables", code=2, warehouse=None)
    for setting in ("spark.x", "=1"):
        words = ("spark-server", "--thrift", "10000", "--conf", setting)
        assert f"--conf {setting}: a setting is KEY=VALUE" in run(*words, code=1)
    assert run("--version", warehouse=None).startswith("frazil, version ")
    assert "nothing is known of the catalog" in run(
        "--catalog", "never-heard-of", "tables", code=1, warehouse=None
    )


def test_looking_makes_nothing(run, tmp_path):
    """A mistyped warehouse is told, not made."""
    shown = run("tables", code=1, warehouse=str(tmp_path / "typo"))
    assert "there is no catalog" in shown
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_tables_without_a_database(run, tmp_path):
    words = ("--type", "hadoop")
    run(*words, "create-namespace", "db", warehouse=str(tmp_path))
    run(*words, "create", "db.t", "id int", warehouse=str(tmp_path))
    assert lines(run(*words, "tables", warehouse=str(tmp_path)))[1:] == [["db", "t"]]


CREDENTIALS = {
    "in the uri": ["--uri", "postgresql+psycopg://me:S3cr3tPw@127.0.0.1:1/x"],
    "in a property": [
        "--uri", "postgresql+psycopg://127.0.0.1:1/x?password=S3cr3tPw",
    ],
    "of a store": [
        "-p", "s3.secret-access-key=S3cr3tPw", "-p", "s3.endpoint=http://127.0.0.1:1",
        "--type", "hadoop", "--warehouse", "/nowhere/S3cr3tPw",
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", CREDENTIALS)
def test_credentials_are_never_shown(run, case):
    result = CliRunner().invoke(main, [*CREDENTIALS[case], "describe", "db.t"])
    assert result.exit_code == 1
    assert "S3cr3tPw" not in result.output
    assert result.output.startswith("Error: ")


def test_statistics_are_computed(run, place):
    shown = run("compute-table-stats", "db.trips", "--columns", "id, city")
    assert "id               5" in shown
    facts = json.loads(run("compute-table-stats", "db.trips", "--columns", "city", "--json"))
    assert facts["distinct_counts"] == {"city": 2}
    assert Path(facts["statistics_file"].removeprefix("file://")).exists()
    counted = json.loads(run("compute-partition-stats", "db.trips", "--json"))
    assert counted["partitions"] == 2
    assert "no snapshot" in run("compute-table-stats", "db.empty")
    assert "not partitioned" in run("compute-partition-stats", "db.empty", code=1)
