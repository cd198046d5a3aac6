"""Processes killed with a running stream, and followers killed at each write of the log."""

import contextlib
import itertools

import pytest

from ci_share import only_in_soak
from frazil.spark.stream.source.log import Position, StreamLog
from frazil.storage.files import FileIO


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
