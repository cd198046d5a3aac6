"""What a read of data files and deletes costs: a sum of measured constants.

`bench/read_costs.py` measures them: seconds of one core at a local disk, here with Spark 4.1, a
million rows and nothing else that ran. They tell which choice wins more, not how long a query takes
on a cluster: predicted gains were 0.6 to 1.5 times the measured ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCosts:
    """Seconds of one core.

    Attributes:
        open_file: to open a data file and read its footer.
        read_byte: to read and decode a byte of a data file.
        write_byte: to encode and write one.
        open_delete: to open a delete file or a vector's Puffin file.
        test_position: to test whether a row's position is deleted.
        test_key: to test whether a row's key is deleted: between 1e-7 of integers, which become
            bitmaps, and 3e-7 of text, which is joined.
    """

    open_file: float = 1.7e-3
    read_byte: float = 1.2e-8
    write_byte: float = 6.6e-8
    open_delete: float = 4.8e-4
    test_position: float = 8.0e-8
    test_key: float = 1.7e-7

    def of_files(self, files: pl.DataFrame) -> float:
        """Return what data files of an `Evaluation` cost, without the opening of delete files."""
        rows = pl.col("rows")
        each = (
            self.open_file
            + pl.col("size") * self.read_byte
            + pl.when(pl.col("position_files") > 0).then(rows * self.test_position).otherwise(0.0)
            + pl.when(pl.col("equality_files") > 0).then(rows * self.test_key).otherwise(0.0)
        )
        return float(files.select(each.sum()).item())

    def of_rewritten(self, files: int, size: float) -> float:
        """Return what the files of a rewrite cost to read: they have no deletes."""
        return files * self.open_file + size * self.read_byte

    def of_rewrite(self, files: pl.DataFrame, size: float) -> float:
        """Return the cost to read the files and to write `size` bytes, in seconds."""
        return self.of_files(files) + size * self.write_byte


READ_COSTS = ReadCosts()
