"""Threads of the virtual machine that call Python: many at once, and many that have ended."""

from __future__ import annotations

import socket
import struct
import threading
import time

import pytest

from frazil.spark.plans.machine import JavaObject, machine_of

THREADS = 40


class Caller(JavaObject):
    """Is called by so many threads at once, each of which waits for the others."""

    def __init__(self, machine, threads):
        self.machine = machine
        self._all_here = threading.Barrier(threads, timeout=60)

    def call(self):
        self._all_here.wait()
        return "called"

    class Java:
        implements = ["java.util.concurrent.Callable"]


def call_from_new_threads(spark, number):
    """What threads of their own were answered, all of which have ended."""
    concurrent = spark._jvm.java.util.concurrent
    caller, calls = Caller(machine_of(spark), number), spark._jvm.java.util.ArrayList()
    for _ in range(number):
        calls.add(caller)
    pool = concurrent.Executors.newFixedThreadPool(number)
    answers = [each.get() for each in pool.invokeAll(calls)]
    pool.shutdown()
    assert pool.awaitTermination(60, concurrent.TimeUnit.SECONDS)
    return answers


def most_waiting(listener):
    """How many connections the system lets wait for a listening socket."""
    told = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    # The field that counts acknowledged segments of other sockets: see tcp(7) of Linux.
    return struct.unpack_from("=I", told, 28)[0]


@pytest.mark.check
def test_connections_of_threads_that_have_ended_are_closed(spark):
    """py4j alone keeps a thread and two sockets for each of them."""
    assert call_from_new_threads(spark, THREADS) == ["called"] * THREADS
    before = threading.active_count()
    for _ in range(5):
        assert call_from_new_threads(spark, THREADS) == ["called"] * THREADS
    ends = time.monotonic() + 20
    while threading.active_count() > before + 2 * THREADS and time.monotonic() < ends:
        time.sleep(0.05)
    assert threading.active_count() <= before + 2 * THREADS


@pytest.mark.check
def test_many_threads_may_begin_to_call_at_once(spark):
    """Those that find no room try again a second later."""
    call_from_new_threads(spark, 1)
    assert most_waiting(spark.sparkContext._gateway.get_callback_server().server_socket) >= 128
