"""Procedures that change which snapshot is current, or look at the history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from frazil.errors import NoSuchSnapshotError
from frazil.spark.procedures.parameters import ArgumentKind, Arguments, Parameter
from frazil.spark.procedures.procedure import (
    LONG,
    TABLE,
    TEXT,
    Caller,
    Row,
    Run,
    procedure,
    required_parameter,
)
from frazil.spark.table import Table
from frazil.table.snapshots.cherry_pick import WAP_ID

_PREVIOUS: Final = ("previous_snapshot_id", LONG)
_CURRENT: Final = ("current_snapshot_id", LONG)
_SOURCE: Final = ("source_snapshot_id", LONG)


def _run_of_change(change: Callable[[Table, Arguments], None]) -> Run:
    """What tells the current snapshots before and after a change."""

    def run(caller: Caller, given: Arguments) -> list[Row]:
        table = caller.table(given["table"])
        before = table.metadata.current_snapshot_id
        change(table, given)
        return [(before, table.metadata.current_snapshot_id)]

    return run


def _cherrypick_snapshot(caller: Caller, given: Arguments) -> list[Row]:
    table = caller.table(given["table"])
    table.cherrypick_snapshot(given["snapshot_id"])
    return [(given["snapshot_id"], table.metadata.current_snapshot_id)]


def _publish_changes(caller: Caller, given: Arguments) -> list[Row]:
    table = caller.table(given["table"])
    table.publish_changes(given["wap_id"])
    staged = (
        snapshot.snapshot_id
        for snapshot in table.metadata.snapshots
        if (snapshot.summary or {}).get(WAP_ID) == given["wap_id"]
    )
    return [(next(staged), table.metadata.current_snapshot_id)]


def _fast_forward(caller: Caller, given: Arguments) -> list[Row]:
    table, branch = caller.table(given["table"]), given["branch"]
    before = table.metadata.refs.get(branch)
    table.fast_forward(branch, given["to"])
    previous = None if before is None else before.snapshot_id
    return [(branch, previous, table.metadata.ref(branch).snapshot_id)]


def _ancestors_of(caller: Caller, given: Arguments) -> list[Row]:
    table, snapshot_id = caller.table(given["table"]), given["snapshot_id"]
    if snapshot_id is not None:
        # One that is not there is an error, and not without ancestors.
        table.metadata.snapshot_by_id(snapshot_id)
    elif table.metadata.current_snapshot_id is None:
        raise NoSuchSnapshotError(f"{given['table']} is empty: it has no snapshot")
    return [(each.snapshot_id, each.timestamp_ms) for each in table.ancestors(snapshot_id)]


OF_SNAPSHOTS: Final = (
    procedure(
        "rollback_to_snapshot",
        [TABLE, required_parameter("snapshot_id", ArgumentKind.LONG)],
        [_PREVIOUS, _CURRENT],
        _run_of_change(lambda table, given: table.rollback_to_snapshot(given["snapshot_id"])),
    ),
    procedure(
        "rollback_to_timestamp",
        [TABLE, required_parameter("timestamp", ArgumentKind.TIMESTAMP)],
        [_PREVIOUS, _CURRENT],
        _run_of_change(lambda table, given: table.rollback_to_timestamp(given["timestamp"])),
    ),
    procedure(
        "set_current_snapshot",
        [TABLE, Parameter("snapshot_id", ArgumentKind.LONG), Parameter("ref")],
        [_PREVIOUS, _CURRENT],
        _run_of_change(
            lambda table, given: table.set_current_snapshot(given["snapshot_id"], ref=given["ref"])
        ),
        optional=["previous_snapshot_id"],
    ),
    procedure(
        "cherrypick_snapshot",
        [TABLE, required_parameter("snapshot_id", ArgumentKind.LONG)],
        [_SOURCE, _CURRENT],
        _cherrypick_snapshot,
    ),
    procedure(
        "publish_changes",
        [TABLE, required_parameter("wap_id")],
        [_SOURCE, _CURRENT],
        _publish_changes,
    ),
    procedure(
        "fast_forward",
        [TABLE, required_parameter("branch"), required_parameter("to")],
        [
            ("branch_updated", TEXT),
            ("previous_ref", LONG),
            ("updated_ref", LONG),
        ],
        _fast_forward,
        optional=["previous_ref"],
    ),
    procedure(
        "ancestors_of",
        [TABLE, Parameter("snapshot_id", ArgumentKind.LONG)],
        [("snapshot_id", LONG), ("timestamp", LONG)],
        _ancestors_of,
        optional=["snapshot_id", "timestamp"],
    ),
)
"""The procedures of this file."""
