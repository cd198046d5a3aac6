"""What a Hive catalog says where Kerberos is asked for, and here is none or another name."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest
from catalog_cases import opened

from frazil.errors import ConfigurationError

pytest.importorskip("thrift")
pytest.importorskip("pymetastore")


KERBEROS = {"type": "hive", "uri": "thrift://127.0.0.1:1", "hive.kerberos-authentication": "true"}


@pytest.mark.parametrize("missing", [("puresasl", "puresasl.client"), ("kerberos",)])
def test_kerberos_without_its_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...]
) -> None:
    if missing == ("kerberos",):
        monkeypatch.setitem(sys.modules, "puresasl.client", ModuleType("puresasl.client"))
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    told = pytest.raises(ConfigurationError, match=rf"{missing[0]}.*frazil\[hive-kerberos\]")
    with closing(opened({**KERBEROS, "warehouse": str(tmp_path)})) as catalog, told:
        catalog.list_namespaces()


def test_a_ticket_and_a_name_contradict_each_other(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="remove ugi"):
        opened({**KERBEROS, "warehouse": str(tmp_path), "ugi": "eve"})
