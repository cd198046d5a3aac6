"""What a run of a circle records, and what is a hole in it."""

from __future__ import annotations

import ast
import importlib
import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from trees import tree_of

from programs import run_program
from run_seams import kind_of_statement, seams

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "cells.py"

STATEMENTS = {
    "SELECT": "select * from db.t -- INSERT",
    "INSERT": "/* a word */ INSERT INTO db.t VALUES ('MERGE')",
    "INSERT OVERWRITE": "insert overwrite table db.t select 1",
    "INSERT REPLACE": "INSERT INTO db.t REPLACE WHERE id = 1 SELECT 1",
    "MERGE": "MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "DELETE": "WITH s AS (SELECT 1) DELETE FROM db.t WHERE id IN (SELECT * FROM s)",
    "CREATE TABLE": "CREATE TABLE IF NOT EXISTS db.t (id int) PARTITIONED BY (bucket(4, id))",
    "CREATE TABLE AS SELECT": "CREATE TABLE db.t USING iceberg AS SELECT 1",
    "CREATE OR REPLACE TABLE AS SELECT": "create or replace table db.t as select 1",
    "CREATE VIEW": "CREATE VIEW IF NOT EXISTS db.v AS SELECT 1",
    "CREATE NAMESPACE": "CREATE DATABASE IF NOT EXISTS db",
    "DROP TABLE": "DROP TABLE IF EXISTS db.t PURGE",
    "ALTER TABLE ADD COLUMN": "ALTER TABLE lake.db.`a.b` ADD COLUMNS (x int)",
    "ALTER TABLE ALTER COLUMN": "alter table db.t alter column x type bigint",
    "ALTER TABLE SET TBLPROPERTIES": "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')",
    "SHOW NAMESPACES": "SHOW SCHEMAS",
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_the_kind_of_a_statement(kind: str) -> None:
    assert kind_of_statement(STATEMENTS[kind]) == kind


def test_every_watched_place_is_there() -> None:
    for module, places in seams().items():
        for place, _ in places:
            owner, _, name = place.rpartition(".")
            found = importlib.import_module(module)
            holder = getattr(found, owner) if owner else found
            assert name.endswith("?") or hasattr(holder, name), f"{module}:{place}"


def test_every_command_of_a_port_is_watched() -> None:
    watched = {place for places in seams().values() for place, _ in places}
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(tree_of(text)) if "def run(" in text else ():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                runs = [
                    each
                    for each in node.body
                    if isinstance(each, ast.FunctionDef) and each.name == "run"
                ]
                takes = [arg.arg for run in runs for arg in run.args.args]
                assert "port" not in takes or f"{node.name}.run" in watched, f"{path}: {node.name}"


CASES = """
import os
from pathlib import Path
import pytest
from frazil.catalog import config
from frazil.format.schema import Schema
from frazil.format.new_table import new_table_metadata
from absent import skip_without
from programs import Program, run_program

PROGRAM = '''
import sys, time
from frazil.catalog.config import open_catalog, resolve
catalog = open_catalog(resolve("here", {"type": "filesystem", "warehouse": sys.argv[1]}))
catalog.create_namespace("db")
print("made", flush=True)
time.sleep(float(sys.argv[2]))
'''

def test_a_program(tmp_path):
    run_program(PROGRAM, tmp_path, 0)

@pytest.mark.check
def test_a_program_that_is_killed(tmp_path):
    with Program(PROGRAM, tmp_path, 60) as program:
        program.wait_until(lambda: program.has_printed(1))

def test_a_refusal(tmp_path):
    catalog = config.open_catalog(config.resolve("c", {"type": "sql", "warehouse": str(tmp_path)}))
    with pytest.raises(Exception):
        catalog.drop_namespace("nowhere")

@pytest.mark.skip
def test_that_is_skipped():
    pass

def test_without_something():
    skip_without("there is no such thing")
"""


def recorded(tmp_path: Path, of: str, **variables: str | None) -> list[list[str]]:
    """What a process of pytest records of some of `CASES`."""
    (tmp_path / "test_cases.py").write_text(CASES)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  check: of another circle\n")
    words = f"['-p', 'run_recorder', '-q', '-k', {of!r}, {str(tmp_path)!r}]"
    run_program(
        f"import pytest; assert pytest.main({words}) == 0",
        cwd=tmp_path,
        variables={"PYTEST_ADDOPTS": None, "FRAZIL_REQUIRE_ALL": None, **variables},
    )
    lines = [p.read_text().splitlines() for p in tmp_path.glob("record/*.jsonl")]
    return [json.loads(line) for each in lines for line in each]


@pytest.mark.check
def test_what_ran_is_recorded_for_its_case_and_circle(tmp_path: Path) -> None:
    found = recorded(tmp_path, "test", FRAZIL_CIRCLES=str(tmp_path / "record"))
    short = {(circle, case.rpartition("::")[2], *facts) for circle, case, *facts in found}
    folder = tmp_path.name
    made = ("catalog", "create_namespace", "", "", "", "", "", "filesystem", "")
    assert short == {
        ("test", "test_a_program", "case", folder, *[""] * 7),
        ("test", "test_a_program", *made),
        ("check", "test_a_program_that_is_killed", "case", folder, *[""] * 7),
        ("check", "test_a_program_that_is_killed", *made),
        ("check", "test_a_program_that_is_killed", "event", "kill", *[""] * 7),
        ("test", "test_a_refusal", "case", folder, *[""] * 7),
        ("test", "test_without_something", "case", folder, *[""] * 7),
        ("test", "test_without_something", "absent", "there is no such thing", *[""] * 7),
    }


@pytest.mark.soak
def test_nothing_is_recorded_of_a_run_that_is_no_circle(tmp_path: Path) -> None:
    assert recorded(tmp_path, "refusal", FRAZIL_CIRCLES=None) == []


# -- holes -----------------------------------------------------------------------------------------

RECORD = [
    ("test", "a", "command", "Merge", "merge-on-read", "2", "method", "", "local", "", "date"),
    ("test", "b", "statement", "MERGE", "", "", "lake.sql", "classic", "", "sqlite", ""),
    ("test", "c", "statement", "MERGE", "", "", "lake.sql", "classic", "", "sqlite", ""),
    ("check", "d", "statement", "MERGE", "", "", "spark.sql", "classic", "", "sqlite", ""),
    ("check", "e", "command", "Merge", "copy-on-write", "3", "CALL", "", "s3", "", "date,list"),
]
HOLES = [
    ("test", "test kind=command; name=Merge; mode=merge-on-read; types=date", []),
    (
        "test",
        "test kind=command; name=Merge|Update; version=2|3",
        ["name=Merge version=3", "name=Update version=2", "name=Update version=3"],
    ),
    ("test", "test kind=statement; name=MERGE; faces=2", ["through lake.sql alone"]),
    ("check", "check kind=statement; name=MERGE; faces=2", []),
    ("check", "check kind=command; name=Merge; mode=copy-on-write; types=list", []),
    ("check", "check kind=command; store=s3,hadoop|abfs", ["store=abfs: no case ran it"]),
    ("check", "test kind=command; store=abfs  # asked of the other circle alone", []),
]


def printed(capsys: pytest.CaptureFixture[str], code: int, *arguments: Any) -> list[str]:
    """The lines that the script prints, which ends with a code."""
    main = runpy.run_path(str(SCRIPT))["main"]
    assert main([str(each) for each in arguments]) == code
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def places(tmp_path: Path) -> list[Any]:
    """Where a record and a list are, as the script is told."""
    lines = "".join(json.dumps(each) + "\n" for each in RECORD)
    (tmp_path / "record").mkdir()
    (tmp_path / "record" / "1.jsonl").write_text(lines + '["test", "cut by a ki')
    return ["--records", tmp_path / "record", "--required", tmp_path / "required.txt"]


@pytest.mark.parametrize(("circle", "text", "missing"), HOLES)
def test_a_hole_fails_and_is_named(
    circle: str, text: str, missing: list[str], tmp_path: Path, places: Any, capsys: Any
) -> None:
    (tmp_path / "required.txt").write_text(text)
    *found, _ = printed(capsys, 1 if missing else 0, "--check", circle, *places)
    assert len(found) == len(missing)
    for hole, words in zip(found, missing, strict=True):
        assert hole.startswith(f"hole in `make {circle}`: ")
        assert words in hole


@pytest.mark.parametrize(("must_be_all", "code"), [("1", 1), ("", 0)])
def test_holes_where_something_is_not_on_the_machine(
    must_be_all: str, code: int, tmp_path: Path, places: Any, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("FRAZIL_REQUIRE_ALL", must_be_all)
    absent = ("test", "f", "absent", "no PostgreSQL server is installed", *[""] * 7)
    (tmp_path / "record" / "2.jsonl").write_text(json.dumps(absent))
    (tmp_path / "required.txt").write_text("test kind=catalog; catalog=postgres")
    found = printed(capsys, code, "--check", "test", *places)
    assert found[0].startswith("hole in `make test`")
    assert ("no PostgreSQL" in found[-1]) is not bool(code)


@pytest.mark.parametrize("text", ["tests store=s3", "test stores=s3", "test name"])
def test_a_line_of_the_list_that_cannot_be_read(
    text: str, tmp_path: Path, places: Any, capsys: Any
) -> None:
    (tmp_path / "required.txt").write_text(f"# a word\n{text}")
    with pytest.raises(ValueError, match=r"required\.txt, line 2"):
        printed(capsys, 1, "--check", "test", *places)


def test_the_tables_count_cases(places: Any, capsys: Any) -> None:
    lines = printed(capsys, 0, *places)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert ["statement", "cases", "lake.sql", "classic"] in rows
    assert ["MERGE", "2", "2", "2"] in rows
    assert ["Merge, copy-on-write", "1", "1", "1", "1"] in rows


def test_the_list_of_the_project_can_be_read(places: Any, capsys: Any) -> None:
    """Of it one case has nothing but holes."""
    *found, last = printed(capsys, 1, "--check", "test", *places[:2])
    assert len(found) > 100
    assert f" {len(found)} are missing" in last


def test_the_page_of_faces_has_every_statement_that_must_run() -> None:
    """In as many faces as the list of what is required says."""
    program = runpy.run_path(str(SCRIPT))
    lines = program["PAGE"].read_text(encoding="utf-8").splitlines()
    faces = {row.split(" | ")[0][2:]: row.count("yes") for row in lines if row.startswith("| ")}
    for cell in program["required"](program["REQUIRED"]):
        wanted = dict(cell.wanted)
        if wanted.get("kind") == frozenset({"statement"}):
            [name] = wanted["name"]
            assert faces.get(name, 0) >= cell.faces, name
