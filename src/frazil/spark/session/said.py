"""What errors of Spark say to people."""

from __future__ import annotations

from typing import Final

_NOT_FOR_PEOPLE: Final = ("JVM stacktrace", "at ", "... ", "Driver stacktrace", "SQLSTATE:")


def lines_for_people(text: str) -> list[str]:
    """Return the lines of an error's text up to the first one of a trace.

    Args:
        text: what the error says.
    """
    lines = []
    for line in text.splitlines():
        if line.strip().startswith(_NOT_FOR_PEOPLE):
            break
        if line.strip():
            lines.append(line.rstrip())
    return lines
