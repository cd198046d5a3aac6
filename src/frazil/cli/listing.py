"""The commands that there are: help lists them without importing what they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Listed:
    """A command as help lists it.

    Attributes:
        words: how it is called, after `frazil`.
        module: the module of `frazil.cli.commands` that declares it.
        summary: the first sentence of its own help.
    """

    words: str
    module: str
    summary: str

    @property
    def word(self) -> str:
        """The first of its words."""
        return self.words.partition(" ")[0]


SECTIONS: Final[dict[str, tuple[Listed, ...]]] = {
    "SQL": (
        Listed("sql", "sql", "Run statements of SQL, or open a prompt; starts a local Spark."),
    ),
    "Look at tables": (
        Listed("tables", "look", "List the tables, of one namespace or of all."),
        Listed("namespaces", "look", "List the namespaces, at the top or below another one."),
        Listed("describe", "look", "Show a table's columns, layout and newest snapshot."),
        Listed("schema", "look", "Show every column with its id, nested ones too."),
        Listed("history", "look", "Show which snapshot was current when."),
        Listed("snapshots", "look", "Show every snapshot that is kept, and what it changed."),
        Listed("files", "look", "Show the files of the current or another snapshot."),
        Listed("partitions", "look", "Show the partitions with their rows, files and sizes."),
        Listed("refs", "look", "Show branches and tags, and how long they are kept."),
        Listed("properties", "look", "Show the table's properties."),
        Listed(
            "check",
            "maintenance",
            "Look for files that are lost, broken, or not as the metadata says.",
        ),
        Listed(
            "report",
            "report",
            "Write a page about a table, or about the whole lake: an index and a page for "
            "each table.",
        ),
    ),
    "Read rows": (
        Listed("scan", "read", "Show rows; starts a local Spark."),
        Listed("count", "read", "Count rows; starts Spark only if metadata cannot tell."),
    ),
    "Change tables": (
        Listed("create-namespace", "change", "Make a namespace, and a catalog if there is none."),
        Listed("create", "change", "Make an empty table."),
        Listed("rename", "change", "Give a table another name; its files stay in place."),
        Listed("branch", "change", "Make, move or remove a branch."),
        Listed("tag", "change", "Make, move or remove a tag."),
        Listed("rollback", "change", "Make an earlier snapshot the current one."),
        Listed("expire", "change", "Remove old snapshots and the files that only they need."),
        Listed("drop", "change", "Remove a table from the catalog."),
        Listed(
            "compute-table-stats",
            "statistics",
            "Count the distinct values of columns, for the planners of engines.",
        ),
        Listed(
            "compute-partition-stats",
            "statistics",
            "Count rows, files and deletes by partition, for the planners of engines.",
        ),
        Listed(
            "add-files",
            "add_files",
            "Make the data files below a folder files of a table, as they are.",
        ),
        Listed(
            "adopt",
            "setup.adopt",
            "Register the Iceberg tables and views of another catalog in this one.",
        ),
        Listed(
            "remove-orphan-files",
            "maintenance",
            "Delete files in a table's folder that no metadata reaches.",
        ),
        Listed(
            "repair",
            "maintenance",
            "Mend what a check finds: forget lost data files and statistics, "
            "correct sizes and counts.",
        ),
        Listed(
            "rewrite-table-path",
            "maintenance",
            "Stage a table's metadata for another place, with a list of files to copy.",
        ),
        Listed(
            "optimize",
            "optimize",
            "Do the maintenance that is worth it: small files, equality deletes, "
            "files of deleted rows.",
        ),
        Listed(
            "call",
            "call",
            "Run a procedure of maintenance, as CALL does in Spark's SQL with "
            "Iceberg's Java runtime.",
        ),
        Listed(
            "run", "run", "Run a program of Python whose Spark sessions know the configured lakes."
        ),
        Listed("cdc", "cdc", "Follow a table of PostgreSQL: its rows first, then every change."),
    ),
    "Serve tables": (
        Listed(
            "serve",
            "serve",
            "Serve the catalog to engines by Iceberg's REST protocol, until it is interrupted.",
        ),
        Listed(
            "spark-server",
            "serving.spark_server",
            "Serve Spark with the configured lakes by Spark Connect, JDBC or both, until it is "
            "ended.",
        ),
    ),
    "Set up": (
        Listed("catalog ls", "setup.catalog", "List the catalogs of the environment and the file."),
        Listed(
            "catalog add", "setup.catalog", "Write a catalog into the file, for you alone to read."
        ),
        Listed(
            "catalog test",
            "setup.catalog",
            "Connect to a catalog, list its namespaces, and tell how long that took.",
        ),
        Listed(
            "catalog remove",
            "setup.catalog",
            "Take a catalog out of the file and the keyring; its tables stay as they are.",
        ),
        Listed(
            "doctor", "setup.doctor", "Look at versions, catalogs and stores, and say what to do."
        ),
    ),
}
"""Headings of the help, and the commands below each in order; a new command is a line here."""
