"""What a terminal shows while a command works: a bar on standard error, and nothing elsewhere."""

import json
import os
import sys

import pytest
from click.testing import CliRunner
from told_terminal import told_terminal

from frazil.cli import main

ORPHANS = 3


@pytest.fixture
def orphans(told):
    """A warehouse with db.trips, in whose folder lie three old files that nothing names."""
    for number in range(ORPHANS):
        file = told[0] / "db" / "trips" / "data" / f"lost-{number}.parquet"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"lost")
        os.utime(file, (1e9, 1e9))
    return told[0]


def on_terminal(words, *, of):
    """What the terminal gets to which some of the standard streams lead, and what the rest get."""

    def work(stream):
        before = {name: getattr(sys, name) for name in of}
        try:
            for name in of:
                setattr(sys, name, stream)
            main(words, prog_name="frazil", standalone_mode=False)
        finally:
            for name, value in before.items():
                setattr(sys, name, value)

    return told_terminal(work)


def removal(folder, *more):
    return ["--warehouse", str(folder), "remove-orphan-files", "db.trips", "--yes", *more]


def test_a_bar_goes_with_the_work(orphans, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    seen = on_terminal(removal(orphans), of=("stdout", "stderr"))
    assert f"{ORPHANS} of {ORPHANS} files deleted" in seen
    assert f"removed {ORPHANS} files" in seen
    assert "\x1b[?25h" in seen.rsplit(f"{ORPHANS} of {ORPHANS} files deleted")[-1]
    assert not list((orphans / "db/trips/data").glob("lost-*"))


@pytest.mark.parametrize(
    ("more", "of"), [(["--json"], ("stdout", "stderr")), ([], ("stderr",)), ([], ("stdout",))]
)
def test_no_bar_but_on_a_terminal(orphans, monkeypatch, capsys, more, of):
    monkeypatch.setenv("TERM", "xterm")
    seen = on_terminal(removal(orphans, *more), of=of)
    assert "files deleted" not in seen + "".join(capsys.readouterr())
    assert "\x1b[?25l" not in seen
    if more:
        assert json.loads(seen)["deleted_files_count"] == ORPHANS


def test_a_purge_says_first_what_goes(orphans):
    words = ["--warehouse", str(orphans), "drop", "db.trips", "--purge"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    facts = dict(line.split(maxsplit=1) for line in result.stdout.splitlines() if "  " in line)
    assert facts["location"].endswith("/db/trips")
    assert facts["snapshots"] == "3"
