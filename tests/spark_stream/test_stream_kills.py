"""Processes killed with a running stream, and followers killed at each write of the log."""

import contextlib
import itertools
from pathlib import Path

import pytest

from ci_share import only_in_soak
from frazil.spark.stream.source.log import Position, StreamLog
from frazil.storage.files import FileIO
from programs import Program, run_program

RUNNER = Path(__file__).with_name("stream_runner.py")


def _killed_by_hand(lake, tmp_path, rows, kills):
    """Kill a running stream again and again while rows come; then drain what is left."""
    out = tmp_path / "out"
    out.mkdir()
    places = [tmp_path / "lake", tmp_path / "checkpoint", out]
    table = lake.load_table("db.t")
    added = itertools.count(100)
    expected = {row.id for row in table.to_df().collect()}
    for _ in range(kills):
        before = len(list(out.iterdir()))

        def is_at_work(before=before):
            if len(list(out.iterdir())) >= before + 2:
                return True
            number = next(added)
            table.append(rows(number))
            expected.add(number)
            return False

        with Program(RUNNER, *places, "run") as running:
            running.wait_until(is_at_work, seconds=500)
    run_program(RUNNER, *places, "drain")
    found = [int(i) for f in out.iterdir() if f.suffix != ".part" for i in f.read_text().split()]
    assert sorted(found) == sorted(expected)


@pytest.mark.soak  # `test_stream_restarts` dies between any two files of a checkpoint
@pytest.mark.parametrize("kills", [1, 6])
def test_a_killed_query_goes_on_exactly_once(lake, table, tmp_path, rows, kills):
    for i in range(4):
        table.append(rows(i))
    _killed_by_hand(lake, tmp_path, rows, kills)


class Killed(BaseException):
    """What no code catches."""


STEPS = [n if n == 7 else only_in_soak(n) for n in range(10)]


@pytest.mark.check
@pytest.mark.parametrize("step", STEPS)
def test_a_follower_that_dies_at_any_write_leaves_a_log_to_go_on_with(
    table, stream, rows, monkeypatch, step
):
    """Every write of the log, in turn, is the last thing that the process does."""
    table.append(rows(1))
    table.append(rows(2))
    writes = itertools.count()
    for name in ("create", "write"):
        original = getattr(FileIO, name)

        def dying(self, path, *args, _original=original, **options):
            if "/frazil/" in path and next(writes) == step:
                raise Killed
            return _original(self, path, *args, **options)

        monkeypatch.setattr(FileIO, name, dying)
    with contextlib.suppress(Killed):
        stream.read(max_files_per_batch=1)
        table.append(rows(3))
        stream.read(max_files_per_batch=1)
    monkeypatch.undo()
    table.append(rows(4))
    known = {row.id for row in table.to_df().collect()}
    assert {row[0] for row in stream.drain(max_files_per_batch=1)} == known
    assert [row[0] for row in stream.sink.rows] == sorted(known)


def test_two_followers_of_one_checkpoint_do_not_both_win(table, stream, rows):
    """The one that is second to write the next number is told."""
    table.append(rows(1))
    stream.read()
    log = StreamLog(table.spark, FileIO(), f"file://{stream.checkpoint}")
    state = log.latest()
    first = log.publish(state, [], Position(state.position.snapshot_id))
    assert log.publish(state, [], Position(state.position.snapshot_id)) is None
    assert first is not None
    assert log.latest().number == first.number == state.number + 1
