"""Rows become data files."""

from __future__ import annotations

from frazil.spark.write.files import WriteProgress, write_data_files

__all__ = ["WriteProgress", "write_data_files"]
