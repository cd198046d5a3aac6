"""The documents say what the code does: properties and options are all listed, links lead on."""

import re

from pages import DOCUMENTS, ROOT

from frazil.format.properties.table import COLUMN_PROPERTIES, PROPERTIES
from frazil.spark.write.options import _OPTIONS, _OTHER_OPTIONS

PROPERTY = re.compile(
    r'"((?:write|commit|history|gc|schema)\.[a-z0-9.\-]*[a-z0-9])\.?"(?!\s*\+)', re.IGNORECASE
)


def test_every_table_property_is_documented():
    documented = (ROOT / "docs/reference/properties.md").read_text()
    names = [*PROPERTIES, *(f"{each.prefix}<name>" for each in COLUMN_PROPERTIES)]
    assert len(names) > 50
    assert [name for name in names if f"`{name}`" not in documented] == []


def test_table_properties_are_named_in_one_module():
    found = {
        (str(path.relative_to(ROOT / "src/frazil")), name)
        for path in (ROOT / "src/frazil").rglob("*.py")
        for name in PROPERTY.findall(path.read_text())
    }
    home = "format/properties/table.py"
    named = {name for file, name in found if file == home}
    assert len(named) > 50
    # The name mapping names itself in the errors of its JSON.
    assert {each for each in found if each[0] != home} == {
        ("format/schema/name_mapping.py", "schema.name-mapping.default")
    }


def test_every_write_option_is_documented():
    documented = (ROOT / "docs/reference/properties.md").read_text()
    options = [*_OPTIONS, *_OTHER_OPTIONS]
    assert [name for name in options if f"`{name}`" not in documented] == []


def test_links_between_documents():
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+\.md)", path.read_text()):
            assert (path.parent / target).is_file(), f"{path.name} links to {target}"
