"""What the virtual machine is answered stays there until it has read it."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
from py4j.protocol import Py4JJavaError

from frazil.spark.plans.machine import JavaObject


class Found:
    """What stands for an object of the virtual machine: that forgets it when this one is gone."""

    _target_id = "o1"
    _gateway_client = None


class Finder(JavaObject):
    def find(self):
        return Found()

    def fail(self):
        raise Py4JJavaError("it failed", Found())


def seen(call):
    """A weak reference to what a call answers, of which nothing else is kept."""
    try:
        found = weakref.ref(call())
    except Py4JJavaError as error:
        found = weakref.ref(error.java_exception)
    gc.collect()
    return found


@pytest.mark.parametrize("name", ["find", "fail"])
def test_an_answer_is_held_until_its_threads_next_one(name):
    finder = Finder()
    first = seen(getattr(finder, name))
    assert first() is not None
    other = threading.Thread(target=finder.find)
    other.start()
    other.join()
    assert first() is not None
    second = seen(finder.find)
    assert first() is None
    assert second() is not None
