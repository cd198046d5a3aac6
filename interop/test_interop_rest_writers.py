"""Writers of many processes on servers of others: no acknowledged commit is lost, whoever dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import catalog_worker
import pytest
from catalog_cases import NO_REPORTS, QUICK_CHECKS, made_table, new_metadata, opened, set_properties
from interop_rest import java_server
from killed_writers import killed_at_each

from ci_share import only_in_soak
from frazil.catalog.rest.exchange.timed import TimedTransport
from programs import run_program

SERVERS = ["java", "nessie"]


@pytest.fixture
def properties(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """What a client needs of a server on which there is nothing."""
    if request.param == "nessie":
        nessie = request.getfixturevalue("nessie")
        yield {"type": "rest", "uri": nessie.empty_branch(), **nessie.properties}
        return
    with java_server(request.getfixturevalue("spark"), tmp_path) as (uri, _):
        yield {"type": "rest", "uri": uri, **NO_REPORTS}


@pytest.mark.parametrize("properties", SERVERS, indirect=True)
@pytest.mark.parametrize(("writers", "commits"), [(3, 4), only_in_soak(8, 25)])
def test_no_acknowledged_commit_is_lost(
    properties: dict[str, str], writers: int, commits: int
) -> None:
    """One whose outcome is unknown may be there or not.

    Nessie 0.99 answers some of many requests with 500: it writes the new metadata on a thread that
    knows no request (`ContextNotActiveException`), before it commits.
    """
    quick = {**properties, **QUICK_CHECKS}
    catalog = opened(quick)
    made_table(catalog)
    lines = run_program(Path(catalog_worker.__file__), quick, writers, commits).split()
    unknown = {line[1:] for line in lines if line.startswith("?")}
    acknowledged = {line for line in lines if not line.startswith("?")}
    found = catalog.load_table("db.t").metadata.properties
    there = {name for name, value in found.items() if value == "done"}
    assert acknowledged <= there <= acknowledged | unknown
    assert len(acknowledged) + len(unknown) == len(lines) == writers * commits
    assert not unknown or "nessie.is-nessie-catalog" in catalog.properties
    catalog.close()


def run_killed(step: int, *, after: bool, properties: dict[str, str], report: int) -> None:
    """Make a table and commit twice; die at a request, before it is sent or with its answer."""
    count = 0
    real = TimedTransport.handle_request

    def handle_request(self: TimedTransport, request: Any) -> Any:
        nonlocal count
        count += 1
        mine = count
        if mine == step and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = real(self, request)
        if mine == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    TimedTransport.handle_request = handle_request  # type: ignore[method-assign]
    catalog = opened(properties)
    catalog.create_table("db.t", new_metadata(catalog, "db.t"))
    os.write(report, b"created\n")
    for number in range(2):
        set_properties(catalog, "db.t", **{f"c{number}": "1"})
        os.write(report, b"c%d\n" % number)


@pytest.mark.parametrize("properties", SERVERS, indirect=True)
@pytest.mark.parametrize("after", [True, only_in_soak(False)])
def test_a_writer_killed_at_any_request(properties: dict[str, str], after: bool) -> None:
    steps, seen = killed_at_each(properties, run_killed, after=after)
    assert steps > 3
    assert {(), ("created", "c0", "c1")} <= seen
