"""What calls to the virtual machine raise. A PySpark of Spark Connect alone has no way there."""

from __future__ import annotations

try:
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
except ModuleNotFoundError:
    # Then nothing calls, and nothing raises these.
    class Py4JError(Exception):  # type: ignore[no-redef]
        """A call failed."""

    class Py4JJavaError(Py4JError):  # type: ignore[no-redef,misc]
        """A call failed in the virtual machine."""

    class Py4JNetworkError(Py4JError):  # type: ignore[no-redef,misc]
        """The virtual machine did not answer."""


__all__ = ["Py4JError", "Py4JJavaError", "Py4JNetworkError"]
