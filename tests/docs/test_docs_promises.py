"""What a release promises to keep is still there, and is documented: `tests/docs/promises.txt`."""

from __future__ import annotations

import pytest
from pages import DOCUMENTS
from promises import COMMAND, PROMISES, as_text, differences, from_text, promises

# What these are is said by docstrings and by `frazil --help`, not by a page.
SAID_BY_ITSELF = ("python", "catalogs", "command", "change-type")


@pytest.fixture(scope="module")
def now() -> dict[str, str]:
    return promises()


def test_every_public_name_is_as_it_was_promised(now: dict[str, str]) -> None:
    found = differences(from_text(PROMISES.read_text()), now)
    assert not found, (
        "\n".join(found) + "\nWhat is gone or other breaks somebody's program: "
        f"docs/reference/promises.md. To write the list again: {COMMAND}"
    )
    assert PROMISES.read_text() == as_text(now), f"write the list again: {COMMAND}"


def test_each_part_of_the_list_is_there(now: dict[str, str]) -> None:
    for name, use in {
        "python frazil.open_table": "(location, *, spark=None, moved=None, **properties)",
        "python Lake.sql": "(statement, args=None, **frames)",
        "python errors.CommitStateUnknownError": "class(CommitError)",
        "python types.DecimalType": "class(precision, scale)",
        "procedure rollback_to_snapshot": (
            "(table => string, snapshot_id => bigint) -> "
            "previous_snapshot_id: long, current_snapshot_id: long"
        ),
        "function system.bucket": "(a number of buckets, a value)",
        "option-of-read as-of-timestamp": "",
        "option-of-write isolation-level": "",
        "option-of-write distribution-mode": "write.distribution-mode",
        "table-property write.wap.enabled": "true or false; False unless set",
        "catalog-property hive uri": "",
        "session-setting frazil.read.footers": "",
        "environment FRAZIL_HOME": "",
        "command frazil scan --where": "text",
        "command frazil scan TABLE": "text, required",
    }.items():
        assert now.get(name) == use, name
    assert "branch=…" in now["python Table.append"]


def test_what_is_gone_new_or_other_is_told() -> None:
    kept = from_text("python a  (x, y=1)\npython b  attribute\noption c\n")
    now = {"python a": "(x, y=2)", "option c": "", "option d": ""}
    assert differences(kept, kept) == []
    assert differences(kept, now) == [
        "gone:  python b  attribute",
        "new:   option d",
        "other: python a\n  was  (x, y=1)\n  is   (x, y=2)",
    ]
    assert from_text(as_text(now)) == now


def test_what_is_promised_is_on_a_page(now: dict[str, str]) -> None:
    pages = "\n".join(page.read_text() for page in DOCUMENTS).lower()
    words = {name: name.split()[-1].split("<")[0].lower() for name in now}
    missing = [
        name
        for name, word in words.items()
        if not name.startswith(SAID_BY_ITSELF) and word.removeprefix("system.") not in pages
    ]
    assert missing == []
