"""Commands that change tables; none of them needs Spark."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from frazil.catalog.config import load_catalog
from frazil.cli import main

NEVER = ["--older-than", "2100-01-01", "--retain-last", "1"]


@pytest.fixture
def run(told):
    """Runs `frazil` on the warehouse; gives what it printed, after checking its exit code."""

    def command(*words, code=0, place=("--warehouse", str(told[0])), answer=None):
        result = CliRunner().invoke(main, [*place, *words], input=answer)
        assert result.exit_code == code, (result.output, result.exception)
        return result.stdout if code == 0 else result.stderr

    return command


def test_a_namespace_makes_the_catalog(tmp_path, run):
    place = ("--warehouse", str(tmp_path / "new"))
    assert "create-namespace" in run("tables", code=1, place=place)
    assert run("create-namespace", "a.b", place=place) == "made the namespace a.b\n"
    assert json.loads(run("namespaces", "a", "--json", place=place)) == ["a.b"]
    assert "exists" in run("create-namespace", "a.b", code=1, place=place)


def test_a_table_is_made_as_asked(run, told):
    columns = "id bigint not null comment 'the key', at timestamp, tags array<string>"
    made = json.loads(
        run(
            *("create", "db.new", columns, "--partition-by", "bucket(4, id)"),
            *("--partition-by", "day(at)", "--sort-by", "at desc", "--set", "owner=me"),
            *("--format-version", "3", "--json"),
        )
    )
    table = told[1].catalog.load_table("db.new").metadata
    assert made["table"] == "db.new"
    assert made["location"] == table.location
    assert [str(field.transform) for field in table.spec.fields] == ["bucket[4]", "day"]
    assert [str(field.direction) for field in table.sort_order.fields] == ["desc"]
    assert table.properties["owner"] == "me"
    assert table.format_version == 3
    assert table.schema.find_field("id").required
    assert "exists" in run("create", "db.new", "id int", code=1)
    assert "there is no namespace dc" in run("create", "dc.new", "id int", code=1)
    assert "'idx'" in run("create", "db.x", "id int", "--partition-by", "idx", code=1)
    assert "format version" in run("create", "db.x", "id int", "--format-version", "9", code=1)
    assert [name for *_, name in told[1].catalog.list_tables("db")] == ["new", "trips"]


def test_renames(run, told):
    catalog = told[1].catalog
    assert run("rename", "db.trips", "staging.calls") == "db.trips is now staging.calls\n"
    assert catalog.load_table("staging.calls").metadata.table_uuid == told[1].uuid
    assert "db.trips" in run("rename", "db.trips", "db.x", code=1)
    assert "nowhere" in run("rename", "staging.calls", "nowhere.x", code=1)


def test_branches_and_tags(run, told):
    table = told[1]
    first, second, last = [each.snapshot_id for each in table.metadata.snapshots]

    def refs():
        return {
            name: (ref.type, ref.snapshot_id) for name, ref in table.refresh().metadata.refs.items()
        }

    run("branch", "db.trips", "fix")
    run("branch", "db.trips", "old", "--snapshot-id", str(first))
    run("tag", "db.trips", "second", "--ref", "audit")
    assert refs()["fix"] == ("branch", last)
    assert refs()["old"] == ("branch", first)
    assert refs()["second"] == ("tag", second)
    run("branch", "db.trips", "old", "--ref", "second", "--replace")
    run("tag", "db.trips", "second", "--replace")
    assert refs()["old"] == ("branch", second)
    assert refs()["second"] == ("tag", last)
    done = json.loads(run("tag", "db.trips", "second", "--remove", "--json"))
    assert done == {"table": "db.trips", "tag": "second", "snapshot_id": None}
    assert "second" not in refs()
    assert "old" in run("branch", "db.trips", "old", code=1)
    assert "is a branch" in run("tag", "db.trips", "old", "--remove", code=1)
    assert "main" in run("branch", "db.trips", "main", "--remove", code=1)
    run("branch", "db.trips", "x", "--remove", "--replace", code=2)
    run("branch", "db.trips", "x", "--remove", "--ref", "v1", code=2)


def test_a_rollback_says_from_where(run, told):
    table = told[1]
    first, second, last = [each.snapshot_id for each in table.metadata.snapshots]
    said = run("rollback", "db.trips", "--snapshot-id", str(second))
    assert said == f"db.trips is at snapshot {second}; it was at {last}\n"
    assert table.refresh().current_snapshot.snapshot_id == second
    done = json.loads(run("rollback", "db.trips", "--ref", "v1", "--json"))
    assert done == {"table": "db.trips", "snapshot_id": first, "previous_snapshot_id": second}
    assert "not an ancestor" in run("rollback", "db.trips", "--snapshot-id", str(last), code=1)
    assert "say where to" in run("rollback", "db.trips", code=2)


def test_an_expiry_is_shown_before_it_is_done(run, told):
    table = told[1]
    table.remove_branch("audit")
    ids = [each.snapshot_id for each in table.metadata.snapshots]
    before = sorted(each for each in told[0].rglob("*") if each.is_file())
    shown = run("expire", "db.trips", *NEVER, "--dry-run")
    assert str(ids[1]) in shown
    assert str(ids[0]) not in shown
    facts = json.loads(run("expire", "db.trips", *NEVER, "--dry-run", "--json"))
    assert (facts["removed"], facts["snapshots"]) == (False, [ids[1]])
    assert facts["files"]["manifest lists"] == 1
    assert "give --yes" in run("expire", "db.trips", *NEVER, code=2)
    assert sorted(each for each in told[0].rglob("*") if each.is_file()) == before
    done = json.loads(run("expire", "db.trips", *NEVER, "--yes", "--json"))
    assert done == {**facts, "removed": True}
    assert [each.snapshot_id for each in table.refresh().metadata.snapshots] == [ids[0], ids[2]]
    gone = set(before) - set(told[0].rglob("*"))
    lists = [each for each in gone if each.name.startswith("snap-")]
    manifests = [each for each in gone if each not in lists]
    assert (len(lists), len(manifests)) == (1, facts["files"]["manifests"])
    assert "nothing to remove" in run("expire", "db.trips", *NEVER)
    assert "retain_last" in run("expire", "db.trips", "--retain-last", "0", code=1)


def test_a_drop_asks(run, told, monkeypatch):
    catalog = told[1].catalog
    assert "give --yes" in run("drop", "db.trips", code=2)
    assert catalog.table_exists("db.trips")
    said = run("drop", "db.trips", "--yes")
    assert told[1].metadata_location in said
    assert not catalog.table_exists("db.trips")
    # The files stay, so the table can come back.
    catalog.register_table("db.again", told[1].metadata_location)
    done = json.loads(run("drop", "db.again", "--purge", "--yes", "--json"))
    assert done == {"table": "db.again", "purged": True}
    assert not list((told[0] / "db" / "trips").rglob("*.avro"))
    assert "db.again" in run("drop", "db.again", "--yes", code=1)


def test_a_table_named_by_its_path_is_read_only(run, told):
    assert "cannot be changed" in run("tag", str(told[0] / "db" / "trips"), "x", place=(), code=1)


def test_a_table_that_is_not_there_names_what_is(run):
    assert "did you mean 'db.trips'?" in run("describe", "db.trip", code=1)
    assert "namespaces of the catalog are: db, staging" in run("describe", "dc.trips", code=1)
    assert "staging is empty" in run("count", "staging.trips", code=1)


def test_a_catalog_that_the_database_does_not_hold(run, told, tmp_path):
    place = ("--warehouse", str(told[0]), "--catalog", "prod")
    for words in (("tables",), ("count", "db.trips"), ("create", "db.x", "id int")):
        said = run(*words, code=1, place=place)
        assert "holds no catalog 'prod'; it holds the catalog default" in said
    uri = f"sqlite:///{told[0]}/catalog.db"
    load_catalog("other", uri=uri, warehouse=str(tmp_path)).create_namespace("x")
    assert "it holds the catalogs default, other" in run("tables", code=1, place=place)
    assert run("namespaces", place=("--catalog", "other", "--uri", uri)).split()[-1] == "x"


def test_orphan_files_are_shown_before_they_are_removed(run, told):
    folder = Path(told[1].location.removeprefix("file://")) / "data"
    folder.mkdir(exist_ok=True)
    orphan, young = folder / "left-over.parquet", folder / "young.parquet"
    for path in (orphan, young):
        path.write_bytes(b"123")
    os.utime(orphan, (0, 86_400))
    shown = run("remove-orphan-files", "db.trips", "--dry-run")
    assert orphan.name in shown
    assert young.name not in shown
    assert "give --yes" in run("remove-orphan-files", "db.trips", code=2)
    assert orphan.exists()
    facts = json.loads(run("remove-orphan-files", "db.trips", "--yes", "--json"))
    assert (facts["removed"], facts["deleted_files_count"], facts["orphan_bytes"]) == (True, 1, 3)
    assert not orphan.exists()
    assert young.exists()
    young.unlink()
    assert "nothing to remove" in run("remove-orphan-files", "db.trips")
    today = datetime.now(UTC).isoformat()
    assert "older_than" in run("remove-orphan-files", "db.trips", "--older-than", today, code=1)


def test_a_check_finds_lost_files_and_a_repair_forgets_them(run, told):
    # Its data files were never written.
    facts = json.loads(CliRunner().invoke(main, check_words(told)).stdout)
    lost = {row["file_path"] for row in facts["problems"] if row["kind"] == "data"}
    assert not facts["is_sound"]
    assert {row["problem"] for row in facts["problems"]} == {"missing"}
    assert CliRunner().invoke(main, check_words(told)).exit_code == 1
    assert "give --yes" in run("repair", "db.trips", code=2)
    done = json.loads(run("repair", "db.trips", "--yes", "--json"))
    assert done["removed_data_files_count"] == len(lost) or done["left"]
    assert len(told[1].refresh().inspect.data_files()) == 0


def check_words(told):
    return ["--warehouse", str(told[0]), "check", "db.trips", "--json"]
