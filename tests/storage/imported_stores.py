"""Which archives on Python's path are asked for plug-ins when the stores are imported."""

import sys
import zipfile
from importlib import metadata

folder = sys.argv[1]
for name in ("some.jar", "some.zip"):
    with zipfile.ZipFile(f"{folder}/{name}", "w") as archive:
        archive.writestr("a/B.class", "")
    sys.path.insert(1, f"{folder}/{name}")
before, listed = list(sys.path), metadata.FastPath.zip_children


def seen(self):
    print(self.root.removeprefix(folder).strip("/"))
    return listed(self)


metadata.FastPath.zip_children = seen
from frazil.storage.files import FileIO  # noqa: E402

assert not FileIO().exists("memory://a/b")
assert "fsspec" in sys.modules
assert sys.path == before
