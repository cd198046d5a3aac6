"""A report becomes a file."""

from __future__ import annotations

import os
from pathlib import Path

from frazil.errors import StorageError
from frazil.format.metadata import TableMetadata
from frazil.storage.files import FileIO
from frazil.table.report.page import report_page


def write_report(
    path: str | os.PathLike[str], *, name: str, metadata: TableMetadata, io: FileIO
) -> None:
    """Write the page about a table to a local file, in place of one that is there.

    Raises:
        StorageError: the file cannot be written.
        UnsupportedError, ConfigurationError: as `report_page`.
    """
    page = report_page(name, metadata, io)
    target = Path(path)
    half = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        try:
            half.write_text(page, encoding="utf-8")
            half.replace(target)
        finally:
            half.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"the report {target} cannot be written: {error}") from error
