"""Several followers of one log: a DataFrame made again, or the same program twice."""

from __future__ import annotations

import contextlib
import itertools

import pytest

from ci_share import only_in_soak
from frazil.errors import AlreadyExistsError, ValidationError
from frazil.spark.stream.source.follower import Follower
from frazil.spark.stream.source.log import Position, StreamLog
from frazil.spark.stream.source.queries import Watch
from frazil.storage.files import FileIO


def ids(rows):
    return [row[0] for row in rows]


@pytest.fixture
def follower(stream, monkeypatch):
    """Makes a follower that no query is known to and that takes no other's place."""

    def made(**options) -> Follower:
        seen = []
        with monkeypatch.context() as patched:
            patched.setattr(Watch, "add", lambda watch, follower: seen.append(follower))
            stream.read(**options)
        return seen[0]

    return made


@pytest.mark.check
def test_one_that_was_not_first_goes_on_from_there(table, stream, rows, follower):
    table.append(rows(1))
    one, other = follower(), follower()
    for number in (2, 3, 4):
        table.append(rows(number))
        one.catch_up()
        other.catch_up()
        table.append(rows(10 * number))
        other.catch_up()
        one.catch_up()
    assert ids(stream.drain()) == [1, 2, 3, 4, 20, 30, 40]
    assert stream.drain() == []


def test_both_may_begin_the_log(table, stream, rows, follower, monkeypatch):
    table.append(rows(1))
    one = follower()
    # The other one looked before the first one began.
    late = Follower.__new__(Follower)
    late.__dict__.update(one.__dict__)
    late._state = None
    found = [None]
    latest = type(one.log).latest
    monkeypatch.setattr(type(one.log), "latest", lambda log: found.pop() if found else latest(log))
    monkeypatch.setattr(type(one.log), "begin", lambda log, header: None)
    late.catch_up()
    assert late._state.number == 0
    assert ids(stream.drain()) == [1]


def test_a_batch_that_came_second_is_removed(table, stream, rows, follower, tmp_path):
    table.append(rows(1))
    one, other = follower(), follower()
    table.append(rows(2))
    one.catch_up()
    batches = set((tmp_path / "checkpoint").rglob("batches/*"))
    other.catch_up()
    assert set((tmp_path / "checkpoint").rglob("batches/*")) == batches


@pytest.mark.check
def test_rows_that_were_written_second_are_removed(table, stream, rows, follower, tmp_path):
    options = {"on_overwrite": "changes", "on_delete": "changes"}

    def written():
        return set((tmp_path / "checkpoint").rglob("rows/data/*.parquet"))

    table.append(rows(1))
    one, other = follower(**options), follower(**options)
    table.append(rows(2))
    one.catch_up()
    firsts = written()
    assert len(firsts) == 2
    other.catch_up()
    assert written() == firsts
    assert ids(stream.drain(**options)) == [1, 2]


@pytest.mark.check
def test_a_store_that_is_asked_twice_finds_the_streams_own(
    table, stream, rows, follower, monkeypatch
):
    """Its first answer was lost."""
    options = {"on_overwrite": "changes", "on_delete": "changes"}
    table.append(rows(1))
    one = follower(**options)
    table.append(rows(2))
    create = FileIO.create

    def asked_twice(self, path, content):
        create(self, path, content)
        if path.endswith(".compact") and "/batches/" not in path:
            raise AlreadyExistsError(f"{path} is there already")

    with monkeypatch.context() as patched:
        patched.setattr(FileIO, "create", asked_twice)
        one.catch_up()
    assert ids(stream.drain(**options)) == [1, 2]
    assert stream.last.sizes == [1, 1]


@pytest.mark.check
def test_one_whose_place_was_taken_refuses_nothing(table, stream, rows, follower):
    """The new one may be allowed what the old one is not."""
    table.append(rows(1))
    old, new = follower(), follower(on_overwrite="skip")
    table.overwrite(rows(2))
    new.catch_up()
    new.take_over(old)
    old._or_refuse(old.catch_up)
    table.append(rows(3))
    assert ids(stream.drain(on_overwrite="skip")) == [1, 3]


def test_what_the_old_one_refused_is_taken_back(table, stream, rows, follower):
    table.append(rows(1))
    old, new = follower(), follower(on_overwrite="skip")
    table.overwrite(rows(2))
    old._or_refuse(old.catch_up)
    assert old._state.refused_folder is not None
    new.take_over(old)
    table.append(rows(3))
    assert ids(stream.drain(on_overwrite="skip")) == [1, 3]


def test_a_query_that_the_old_one_hears_of_late_is_the_new_ones(table, stream, rows, follower):
    table.append(rows(1))
    old, new = follower(), follower()
    new.take_over(old)
    old._follow_for(["a-query"])
    assert not old._taken
    assert "a-query" in new._taken
    new.query_ended("a-query")


def test_one_that_is_never_first_says_so(table, stream, rows, follower, monkeypatch):
    table.append(rows(1))
    one = follower()
    table.append(rows(2))
    monkeypatch.setattr(StreamLog, "publish", lambda *arguments: None)
    with pytest.raises(ValidationError, match="one stream at a time"):
        one.catch_up()


# Processes killed with a running stream, and followers killed at each write of the log.


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
