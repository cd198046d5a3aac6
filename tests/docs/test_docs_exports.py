"""What is public: the classes that `frazil` names, and those that their methods return."""

import inspect
import re
import typing
from pathlib import Path

import frazil

API = (Path(__file__).resolve().parents[2] / "docs/reference/api.md").read_text()
# What engines build on: it is there for them, and documented where it lies.
FOR_ENGINES = {
    "Catalog", "FileIO", "HandlePort", "LoadedTable", "MetadataFrames", "SparkHandlePort",
    "SparkPort", "SparkTransactionPort", "TableFiles", "TableInspector", "TableMaintenance",
    "TableMetadata", "TablePort", "Transaction", "TransactionPort", "FileChanges",
    "StatisticsChanges", "StructType", "IcebergType", "PartitionField", "Expression",
}  # fmt: skip


def public_classes():
    found = (getattr(frazil, name) for name in frazil.__all__)
    return {each for each in found if inspect.isclass(each) and not issubclass(each, Exception)}


def returned_by(owner):
    """The classes of ours that the public methods of a class return."""
    for name, member in inspect.getmembers(owner):
        function = member.fget if isinstance(member, property) else member
        if name.startswith("_") or not inspect.isroutine(function):
            continue
        text = str(getattr(function, "__annotations__", {}).get("return", ""))
        for word in re.findall(r"\b[A-Z]\w+", text):
            found = inspect.unwrap(function).__globals__.get(word)
            if inspect.isclass(found) and found.__module__.startswith("frazil."):
                yield found


def test_what_public_methods_return_is_public():
    public = public_classes()
    maintenance = typing.get_type_hints(frazil.Table.maintenance.fget)["return"]
    missing = {
        found.__name__
        for owner in (*public, maintenance)
        for found in returned_by(owner)
        if found not in public and found.__name__ not in FOR_ENGINES
    }
    assert missing == set()


def test_every_result_is_documented_under_its_public_name():
    results = [name for name in frazil.__all__ if name.endswith("Result")]
    assert len(results) > 12
    assert [name for name in results if f"::: frazil.{name}\n" not in API] == []
