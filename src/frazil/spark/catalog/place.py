"""A session of Spark as its parser and its catalogs see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from frazil.spark.attached.names import SessionNames
from frazil.spark.attached.statements import run_statement
from frazil.spark.catalog.own_statements import own_statements
from frazil.spark.plans.machine import Machine


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """A session with lakes.

    Attributes:
        machine: where it is.
        spark: the session.
        session: the same, there.
        names: its lakes.
        manager: its catalogs.
        current: what tells the catalog that USE has set; None where USE is ours.
    """

    machine: Machine
    spark: SparkSession
    session: Any
    names: SessionNames
    manager: Any
    current: Any

    def names_now(self) -> SessionNames:
        """Return the lakes, and where names without one are looked for now."""
        if self.current is None:
            return self.names
        lake = str(self.current.currentCatalog())
        if lake in self.names.attached:
            self.names.use(lake, tuple(self.manager.currentNamespace()))
        elif self.names.lake is not None:
            self.names.use(None)
        return self.names

    def run(self, text: str) -> DataFrame:
        """Run a statement of a lake."""
        with own_statements(self.spark):
            return run_statement(self.names, SparkSession.sql, self.spark, text)
