"""CPU seconds of processes that end while they are counted: once each, whoever waits for them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from bench.cpu_clock import CpuClock

from programs import forked

BEFORE, MEANWHILE = 0.4, 0.3


def _burn(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def _worker(ready: int, go: int) -> None:
    """Work before it is counted, then again, and end idle, as Spark's idle workers do."""
    _burn(BEFORE)
    os.write(ready, b"x")
    os.read(go, 1)
    _burn(MEANWHILE)
    time.sleep(0.6)


def _parent(handling: signal.Handlers, ready: int, go: int) -> None:
    signal.signal(signal.SIGCHLD, handling)
    worker = forked(_worker, ready, go)
    while Path(f"/proc/{worker}").exists():
        if handling is signal.SIG_DFL:
            os.waitpid(worker, os.WNOHANG)
        time.sleep(0.02)
    os.write(ready, b"x")
    time.sleep(60)


@pytest.mark.parametrize("handling", [signal.SIG_IGN, signal.SIG_DFL], ids=str)
def test_what_ends_meanwhile_counts_once(handling: signal.Handlers) -> None:
    is_ready, ready = os.pipe()
    go, begin = os.pipe()
    parent = forked(_parent, handling, ready, go)
    try:
        os.read(is_ready, 1)
        with CpuClock(parent) as clock:
            os.write(begin, b"x")
            os.read(is_ready, 1)
    finally:
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        for each in (is_ready, ready, go, begin):
            os.close(each)
    assert MEANWHILE - 0.05 < clock.seconds < MEANWHILE + 0.25


def _hold(megabytes: int) -> None:
    held = b"x" * (megabytes << 20)
    time.sleep(0.8)
    assert held


def test_memory_is_told_of_what_a_process_started() -> None:
    found = []
    for megabytes in (1, 65):
        with CpuClock(os.getpid()) as clock:
            os.waitpid(forked(_hold, megabytes), 0)
        found.append(clock.started)
    assert 1 < found[0] < found[1] - 60
