"""Work in threads: in order, with errors as they are."""

import threading

import pytest

from frazil.storage.side_by_side import in_threads


def test_results_come_in_the_order_of_the_items():
    second_is_done = threading.Event()

    def work(item):
        if item == 0:
            assert second_is_done.wait(10)
        elif item == 1:
            second_is_done.set()
        return item * item

    assert in_threads(work, range(20), threads=2, name="test") == [n * n for n in range(20)]


@pytest.mark.parametrize("items", [(), iter(())])
def test_without_items_nothing_runs(items):
    before = threading.active_count()
    assert in_threads(pytest.fail, items, threads=4, name="test") == []
    assert threading.active_count() == before


def test_one_item_needs_no_thread():
    found = in_threads(lambda _: threading.current_thread(), iter("a"), threads=4, name="test")
    assert found == [threading.current_thread()]


def test_threads_have_the_name_and_are_no_more_than_asked():
    names = set(
        in_threads(
            lambda _: threading.current_thread().name, range(100), threads=3, name="frazil-test"
        )
    )
    assert names <= {f"frazil-test_{n}" for n in range(3)}


def test_an_error_is_raised_as_it_is_and_what_has_not_begun_is_left_out():
    begun = []
    error = OSError("the store is gone")

    def work(item):
        begun.append(item)
        threading.Event().wait(0.01)
        if item == 1:
            raise error

    with pytest.raises(OSError, match="the store is gone") as raised:
        in_threads(work, range(500), threads=2, name="test")
    assert raised.value is error
    assert len(begun) < 500


def test_of_several_errors_that_of_the_first_item_is_raised():
    together = threading.Barrier(2)

    def work(item):
        together.wait(10)
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        in_threads(work, [0, 1], threads=2, name="test")


def test_items_that_cannot_be_made_leave_out_what_has_not_begun():
    release = threading.Event()
    begun = []

    def items():
        yield from range(50)
        release.set()
        raise LookupError("no more")

    def work(item):
        begun.append(item)
        assert release.wait(10)
        threading.Event().wait(0.05)

    with pytest.raises(LookupError, match="no more"):
        in_threads(work, items(), threads=2, name="test")
    assert len(begun) < 50
