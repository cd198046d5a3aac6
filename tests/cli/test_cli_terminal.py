"""What the commands show in terminals of 80 and of 200 columns: nothing is lost, no id is cut.

The whole output of every command is a golden text, `golden/80.txt` and `golden/200.txt`; with
FRAZIL_WRITE_GOLDEN=1 they are written anew.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len
from told_table import masked
from told_terminal import told_terminal

from frazil.cli import main

GOLDEN = Path(__file__).parent / "golden"
COMMANDS = [
    "tables",
    "namespaces",
    "describe db.trips",
    "schema db.trips",
    "history db.trips",
    "snapshots db.trips",
    "files db.trips",
    "files db.trips --limit 1 --ref v1",
    "files db.trips --wide",
    "partitions db.trips",
    "refs db.trips",
    "properties db.trips",
    "scan db.trips --where \"city = 'Oslo' and fare > 10\" --plan",
    "count db.trips",
    "count db.trips --ref v1",
    "create-namespace later",
    'create later.visits "id bigint not null, ts timestamp" --partition-by month(ts)',
    "rename later.visits later.calls",
    "branch db.trips fix --ref v1",
    "branch db.trips fix --remove",
    "tag db.trips end-of-march --ref audit",
    "tag db.trips end-of-march --remove",
    "rollback db.trips --ref v1",
    "expire db.trips --retain-last 1 --older-than 2100-01-01 --dry-run",
    "remove-orphan-files db.trips --dry-run",
    "check db.trips",
    "report db.trips --out PLACE/report.html",
    "repair db.trips --yes",
    "drop later.calls --yes",
    "call --help",
]


@pytest.fixture
def terminal():
    """Runs something whose output goes to a terminal of some width; gives what it printed."""

    def run(work, width):
        text = told_terminal(work, width=width).replace("\r\n", "\n")
        return re.sub(r"\x1b\[[0-9;]*m", "", text)

    return run


def words_of(line):
    return [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)]


def in_process(warehouse, line):
    def work(stream):
        before, sys.stdout = sys.stdout, stream
        try:
            words = ["--warehouse", warehouse, *words_of(line.replace("PLACE", warehouse))]
            main(words, prog_name="frazil", standalone_mode=False)
        finally:
            sys.stdout = before

    return work


@pytest.mark.parametrize("width", [80, 200])
def test_every_command_in_a_terminal(told, terminal, monkeypatch, width):
    monkeypatch.delenv("COLUMNS", raising=False)
    folder, table = told
    shown = []
    for line in COMMANDS:
        printed = terminal(in_process(str(folder), line), width)
        if "--wide" not in line and "--plan" not in line:
            long = [each for each in printed.splitlines() if cell_len(each) > width]
            # A sentence of what was done is not cut: it holds paths and ids.
            assert not long or line.split()[0] in ("create", "drop", "report"), long
        shown.append(f"$ frazil {line}\n{masked(printed, table, folder)}")
    found = "\n".join(shown)
    golden = GOLDEN / f"{width}.txt"
    if os.environ.get("FRAZIL_WRITE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(found)
    assert found == golden.read_text()


def test_ids_are_whole_and_columns_are_all_there_in_a_narrow_terminal(told, terminal, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    folder, table = told
    ids = {str(each.snapshot_id) for each in table.metadata.snapshots}
    assert ids <= set(terminal(in_process(str(folder), "history db.trips"), 20).split())
    for width in (20, 40, 60):
        for command in ("history", "snapshots", "refs"):
            narrow = terminal(in_process(str(folder), f"{command} db.trips"), width)
            wide = terminal(in_process(str(folder), f"{command} db.trips --wide"), width)
            assert set(wide.split()) <= set(narrow.split())


@pytest.mark.check
def test_a_process_of_its_own_in_a_terminal(told, terminal):
    """The program itself, with the terminal's size from the kernel."""
    folder, table = told

    def work(stream):
        subprocess.run(
            [sys.executable, "-m", "frazil.cli", "--warehouse", str(folder), "files", "db.trips"],
            stdout=stream,
            stderr=stream,
            env={key: value for key, value in os.environ.items() if key != "COLUMNS"},
            timeout=120,
            check=True,
        )

    printed = terminal(work, 80)
    section = (GOLDEN / "80.txt").read_text().split("$ frazil files db.trips\n")[1].split("\n$ ")[0]
    assert masked(printed, table, folder) == section
