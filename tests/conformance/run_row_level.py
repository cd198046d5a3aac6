"""Runs the cases of ../shared/row_level, which call `update_spec` by another name.

    python tests/conformance/run_row_level.py frazil [--one-of-each-kind] [options of its run.py]

With `--one-of-each-kind` only so many that each kind of command, clause, refusal, table and type
has one.
"""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from frazil import Table

CASES = Path(__file__).resolve().parents[3] / "shared" / "row_level"
ONE_OF_EACH_KIND = "--one-of-each-kind"
TYPES = re.compile("struct|array|variant|date|timestamp|boolean|double|decimal")
OPTIONS = ("conf", "lineage", "partition_by", "properties", "self_view", "sort_by")


def kinds(case: dict[str, Any]) -> set[Hashable]:
    """What a case has in common with others: each step, each type, each option, sub-queries."""
    steps = repr(case["steps"])
    options = {option for option in OPTIONS if case.get(option)}
    types = set(TYPES.findall(case["ddl"]))
    of_steps = set().union(*map(kinds_of_step, case["steps"]))
    return {*of_steps, *types, *options, "(select" in steps}


def kinds_of_step(step: dict[str, Any]) -> set[Hashable]:
    """The command with how it is refused, each of its clauses, and how many they are."""
    clauses = step.get("clauses", ())
    each = {(clause["when"], clause["do"]) for clause in clauses}
    return {(step["op"], step.get("error")), *each, len(clauses)}


def one_of_each_kind(cases: list[tuple[str, dict[str, Any]]]) -> str:
    """A pattern of cases that have each kind among them: next comes what has most that lack."""
    lacking = set().union(*(kinds(case) for _, case in cases))
    chosen = []
    while lacking:
        file, case = max(cases, key=lambda one: len(lacking & kinds(one[1])))
        lacking -= kinds(case)
        chosen.append(f"{file}:{case['name']} {case['source']}")
    return f"^({'|'.join(map(re.escape, chosen))})$"


if __name__ == "__main__":
    setattr(Table, "update_partitioning", Table.update_spec)  # noqa: B010
    sys.path.insert(0, str(CASES))
    if ONE_OF_EACH_KIND in sys.argv:
        sys.argv.remove(ONE_OF_EACH_KIND)
        every = runpy.run_path(str(CASES / "run.py"))["load"]()
        sys.argv += ["--only", one_of_each_kind(every)]
    runpy.run_path(str(CASES / "run.py"), run_name="__main__")
