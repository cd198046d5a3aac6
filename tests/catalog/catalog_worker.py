"""A writer in a process of its own: commits properties and reports each that is acknowledged.

Arguments: the catalog's properties as JSON, this writer's number, how many commits.
"""

from __future__ import annotations

import json
import sys

from catalog_cases import opened, set_properties_retrying


def main() -> None:
    properties, number, count = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    catalog = opened(properties)
    print("ready", flush=True)
    sys.stdin.readline()
    for commit in range(count):
        name = f"w{number}.{commit}"
        set_properties_retrying(catalog, "db.t", **{name: "done"})
        print(name, flush=True)


if __name__ == "__main__":
    main()
