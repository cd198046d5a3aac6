"""moto's Glue and S3 over HTTP, with what moto leaves out: versions, pages, limits, and faults."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from s3_server import Application, S3Store, s3_server

_TARGET = "AWSGlue."
_LISTS = {"GetTables": "TableList", "GetDatabases": "DatabaseList"}
_LONGEST_COMMENT = 255


@dataclass
class Fault:
    """What goes wrong with calls of one operation.

    Attributes:
        operation: as in the protocol, ``UpdateTable``.
        code: of the answer; none where the connection ends without one.
        status: of HTTP.
        carried_out: whether the call takes effect all the same.
        times: how many calls it happens to.
        seconds: how long the service is silent before.
        message: of the answer.
        then: run once before the answer goes.
    """

    operation: str
    code: str = "InternalServiceException"
    status: int = 500
    carried_out: bool = False
    times: int = 1
    seconds: float = 0
    message: str = "made up"
    then: Callable[[], object] | None = None


@dataclass
class LikeGlue:
    """Rules of the real service in front of moto, which keeps none of them.

    A stale VersionId is refused, listings come in pages, and comments of columns are short and of
    one line.

    Attributes:
        application: moto.
        page_size: entries of a page.
        faults: each is used up from the first on.
        calls: operations with their arguments, in order.
    """

    application: Application
    page_size: int = 3
    faults: list[Fault] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        target = environ.get("HTTP_X_AMZ_TARGET", "")
        if not target.startswith(_TARGET):
            return self.application(environ, start_response)
        operation = target.removeprefix(_TARGET)
        length = int(environ.get("CONTENT_LENGTH") or 0)
        arguments = json.loads(environ["wsgi.input"].read(length) or b"{}")
        self.calls.append((operation, arguments))
        status, answer = self._answered(operation, arguments, environ)
        body = json.dumps(answer).encode()
        headers = [("Content-Type", "application/x-amz-json-1.1"), ("x-amzn-RequestId", "made-up")]
        start_response(f"{status} made", [*headers, ("Content-Length", str(len(body)))])
        return [body]

    def _answered(
        self, operation: str, arguments: dict[str, Any], environ: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        fault = next((each for each in self.faults if each.operation == operation), None)
        if fault is None:
            return self._ruled(operation, arguments, environ)
        fault.times -= 1
        if not fault.times:
            self.faults.remove(fault)
        if fault.carried_out:
            self._ruled(operation, arguments, environ)
        if fault.then is not None:
            fault.then()
        if fault.seconds:
            time.sleep(fault.seconds)
        return fault.status, {"__type": fault.code, "Message": fault.message}

    def _ruled(
        self, operation: str, arguments: dict[str, Any], environ: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        given = arguments.get("TableInput", {})
        for column in given.get("StorageDescriptor", {}).get("Columns", ()):
            comment = column.get("Comment", "")
            if len(comment.encode()) > _LONGEST_COMMENT or "\n" in comment:
                return 400, {"__type": "ValidationException", "Message": "comment"}
        if operation == "UpdateTable" and "VersionId" in arguments:
            place = {"DatabaseName": arguments["DatabaseName"], "Name": given["Name"]}
            _, found = self._of_moto("GetTable", place, environ)
            if found.get("Table", {}).get("VersionId") not in (None, arguments["VersionId"]):
                return 400, {"__type": "ConcurrentModificationException", "Message": "stale"}
        status, answer = self._of_moto(operation, arguments, environ)
        if operation in _LISTS and status == 200:
            self._cut(answer, _LISTS[operation], int(arguments.get("NextToken") or 0))
        return status, answer

    def _cut(self, answer: dict[str, Any], key: str, begin: int) -> None:
        end = begin + self.page_size
        if end < len(answer[key]):
            answer["NextToken"] = str(end)
        answer[key] = answer[key][begin:end]

    def _of_moto(
        self, operation: str, arguments: dict[str, Any], environ: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        body = json.dumps(arguments).encode()
        said: list[str] = []
        asked = {
            **environ,
            "HTTP_X_AMZ_TARGET": f"{_TARGET}{operation}",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body),
        }
        parts = self.application(asked, lambda status, headers, info=None: said.append(status))
        return int(said[0].split()[0]), json.loads(b"".join(parts) or b"{}")


@dataclass(frozen=True)
class GlueServer:
    """The services of one address.

    Attributes:
        s3: the store, on the same address.
        rules: what stands in front of moto.
        client: boto3's of Glue, to look without this library.
    """

    s3: S3Store
    rules: LikeGlue
    client: Any

    @property
    def address(self) -> str:
        """Of both services."""
        return self.s3.properties["s3.endpoint"]

    def emptied(self, warehouse: str) -> dict[str, str]:
        """Return the properties of a catalog on a service that has no databases any more."""
        from moto.backends import get_backend

        for regions in get_backend("glue").values():
            for backend in regions.values():
                backend.databases.clear()
        self.rules.faults.clear()
        self.rules.calls.clear()
        return {
            **self.s3.properties,
            "type": "glue",
            "warehouse": warehouse,
            "glue.endpoint": self.address,
            "glue.region": "us-east-1",
            "glue.access-key-id": self.s3.properties["s3.access-key-id"],
            "glue.secret-access-key": self.s3.properties["s3.secret-access-key"],
        }

    def operations(self) -> list[str]:
        """Return the operations that were called, in order."""
        return [operation for operation, _ in self.rules.calls]


@contextmanager
def glue_server() -> Iterator[GlueServer]:
    """moto's Glue and S3 behind the rules."""
    import boto3
    import botocore.session

    # Each session would read the descriptions of the services anew.
    botocore.session.create_loader = cache(botocore.session.create_loader)
    rules: list[LikeGlue] = []

    def wrapped(application: Application) -> Application:
        rules.append(LikeGlue(application))
        return rules[0]

    with s3_server(wrapped) as s3:
        client = boto3.client(
            "glue",
            endpoint_url=s3.properties["s3.endpoint"],
            aws_access_key_id=s3.properties["s3.access-key-id"],
            aws_secret_access_key=s3.properties["s3.secret-access-key"],
            region_name="us-east-1",
        )
        yield GlueServer(s3, rules[0], client)
