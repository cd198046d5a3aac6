"""A writer of a catalog's table that is killed at each of its steps, and what it leaves."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial

from catalog_cases import made_table, opened, set_properties_retrying

from frazil.catalog.protocol import Catalog
from frazil.table.handle import TableHandle
from programs import forked


def killed_at_each(
    properties: dict[str, str],
    run: Callable[..., None],
    *,
    after: bool,
    each: int = 1,
    open_it: Callable[[dict[str, str]], Catalog] = opened,
) -> tuple[int, set[tuple[str, ...]]]:
    """Run a writer that dies at a step, and check what is left; at each step until it ends alive.

    Returns:
        the last step, and what the writers acknowledged.
    """
    seen: set[tuple[str, ...]] = set()
    for step in range(1, 1000, each):
        catalog = open_it(properties)
        if not catalog.namespace_exists("db"):
            catalog.create_namespace("db")
        if catalog.table_exists("db.t"):
            catalog.drop_table("db.t")
        catalog.close()
        reader, writer = os.pipe()
        child = forked(partial(run, step, after=after, properties=properties, report=writer))
        os.close(writer)
        with os.fdopen(reader) as stream:
            acknowledged = stream.read().split()
        _, status = os.waitpid(child, 0)
        seen.add(tuple(acknowledged))
        check_acknowledged(open_it(properties), acknowledged)
        if os.waitstatus_to_exitcode(status) == 0:
            assert acknowledged == ["created", "c0", "c1"]
            return step, seen
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    raise AssertionError("the writer never ends")


def check_acknowledged(catalog: Catalog, acknowledged: list[str]) -> None:
    """The table opens, holds what was acknowledged and at most the one commit in flight.

    Nothing that it names is missing, and the next commit takes place.
    """
    if not catalog.table_exists("db.t"):
        assert acknowledged == []
        made_table(catalog)
    table = catalog.load_table("db.t")
    held = [name for name in ("c0", "c1") if name in table.metadata.properties]
    wanted = acknowledged[1:]
    assert held[: len(wanted)] == wanted
    assert len(held) <= len(wanted) + 1
    after = set_properties_retrying(catalog, "db.t", later="1")
    assert catalog.load_table("db.t").metadata == after.metadata
    assert set(after.metadata.properties) >= {*held, "later"}
    problems = TableHandle(catalog, after).maintenance.check().frame
    assert problems.is_empty(), problems
    catalog.close()
