"""Writers in processes of their own: they commit properties and report each one.

Arguments: the catalog's properties as JSON, how many writers, how many commits of each. A line is a
property whose commit was acknowledged, or one behind a question mark whose outcome is unknown.
"""

from __future__ import annotations

import json
import os
import sys

from catalog_cases import opened, set_properties_retrying

from frazil.errors import CommitStateUnknownError
from programs import forked


def main() -> None:
    properties, writers, commits = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    children = [forked(write, properties, number, commits) for number in range(writers)]
    ends = [os.waitpid(child, 0)[1] for child in children]
    if any(ends):
        sys.exit("a writer failed")


def write(properties: dict[str, str], number: int, commits: int) -> None:
    """Set a property a commit."""
    catalog = opened(properties)
    for commit in range(commits):
        name = f"w{number}.{commit}"
        try:
            set_properties_retrying(catalog, "db.t", **{name: "done"})
        except CommitStateUnknownError:
            name = f"?{name}"
        # In one step: an unbuffered print ends its line in another, and all share one pipe.
        os.write(1, f"{name}\n".encode())


if __name__ == "__main__":
    main()
