"""What is followed and how, and what each step came to."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.cdc.connections import Dsn
from frazil.cdc.positions import lsn_text


@dataclass(frozen=True, slots=True, kw_only=True)
class CdcSettings:
    """What is followed, and how.

    Attributes:
        dsn: of the server and database.
        source: the table, ``schema.table``.
        slot: the replication slot.
        publication: the publication, which is made if there is none.
        batch_rows: a batch ends with the transaction that reaches so many changes.
        partition_by: of a table that is made.
        loads_again: all rows are put in place of those that the table has.
    """

    dsn: Dsn
    source: str
    slot: str
    publication: str
    batch_rows: int = 100_000
    partition_by: tuple[str, ...] = ()
    loads_again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CdcProgress:
    """What a step came to.

    Attributes:
        step: ``load`` or ``changes``.
        rows: that came or went.
        transactions: that they are of.
        lsn: the position that the table is at.
        lag_bytes: of log behind it.
        lag_seconds: since the last transaction was committed; None of a load.
        seconds: that the step took.
    """

    step: str
    rows: int
    transactions: int
    lsn: int
    lag_bytes: int
    lag_seconds: float | None
    seconds: float

    def __str__(self) -> str:
        rate = self.rows / self.seconds if self.seconds > 0 else 0
        what = (
            f"loaded {self.rows:,} rows"
            if self.step == "load"
            else f"{self.rows:,} changes of {self.transactions:,} transactions"
        )
        late = "" if self.lag_seconds is None else f" and {self.lag_seconds:.1f} s"
        return (
            f"{what} in {self.seconds:.1f} s ({rate:,.0f} a second), at {lsn_text(self.lsn)}, "
            f"{self.lag_bytes:,} bytes{late} behind"
        )
