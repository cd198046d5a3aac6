"""Procedures that show what happened to rows."""

from __future__ import annotations

from typing import Final

from frazil.spark.procedures.parameters import ArgumentKind, Arguments, Parameter
from frazil.spark.procedures.procedure import TABLE, TEXT, Caller, Row, procedure


def _create_changelog_view(caller: Caller, given: Arguments) -> list[Row]:
    view = caller.table(given["table"]).create_changelog_view(
        given["changelog_view"],
        options=given["options"],
        compute_updates=given["compute_updates"],
        identifier_columns=given["identifier_columns"],
        net_changes=bool(given["net_changes"]),
    )
    return [(view,)]


OF_CHANGES: Final = (
    procedure(
        "create_changelog_view",
        [
            TABLE,
            Parameter("changelog_view"),
            Parameter("options", ArgumentKind.TEXT_MAP),
            Parameter("compute_updates", ArgumentKind.BOOLEAN),
            Parameter("identifier_columns", ArgumentKind.TEXTS),
            Parameter("net_changes", ArgumentKind.BOOLEAN),
        ],
        [("changelog_view", TEXT)],
        _create_changelog_view,
    ),
)
"""The procedures of this file."""
