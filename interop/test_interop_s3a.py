"""Tables on S3 whose data Spark reads and writes through Hadoop's s3a connector.

The tests themselves are in the folder `s3a`. They run in a process of their own, for their session
has another jar than that of the neighbours; here is the server, and what is to be seen from
outside: what lies in the bucket afterwards and what was printed.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest

from programs import ended_program

pytestmark = pytest.mark.soak

FOLDER = Path(__file__).parent / "s3a"
CASES = sorted(map(str, FOLDER.glob("cases_*.py")))


@dataclass(frozen=True)
class Run:
    """What came of the cases.

    Attributes:
        status: of the process.
        printed: everything that it, Spark and the workers said.
        objects: what the bucket holds, by key.
        secret: the key that both sides used.
    """

    status: int
    printed: str = field(repr=False)
    objects: dict[str, bytes] = field(repr=False)
    secret: str = field(repr=False)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of moto's S3 over HTTP."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Handler(WSGIRequestHandler):
        disable_nagle_algorithm = True

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    app = DomainDispatcherApplication(create_backend_app)
    # One request at a time: moto itself does not make a condition and its write one step.
    made = make_server("127.0.0.1", 0, app, threaded=False, request_handler=Handler)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture(scope="module")
def run(server: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The cases, run once."""
    secret = f"made-up-{secrets.token_hex(16)}"
    variables = {
        "S3A_ENDPOINT": server,
        "S3A_SECRET": secret,
        "PYTEST_DEBUG_TEMPROOT": str(tmp_path_factory.mktemp("cases")),
    }
    words = ["-p", "no:cacheprovider", "-s", "--tb=short", *CASES]
    done = ended_program(
        "pytest", *words, code=(0, 1), seconds=1800, cwd=FOLDER, variables=variables
    )
    client: Any = boto3.client(
        "s3",
        endpoint_url=server,
        aws_access_key_id="made-up",
        aws_secret_access_key=secret,
        region_name="us-east-1",
    )
    objects = {
        item["Key"]: client.get_object(Bucket="lake", Key=item["Key"])["Body"].read()
        for page in client.get_paginator("list_objects_v2").paginate(Bucket="lake")
        for item in page.get("Contents", ())
    }
    return Run(done.process.returncode, done.printed + "".join(done.errors), objects, secret)


def test_the_cases_pass(run: Run) -> None:
    """Every test of the folder; its output is the message."""
    if run.status != 0:
        pytest.fail(run.printed[-20_000:], pytrace=False)


def test_nothing_temporary_stays(run: Run) -> None:
    """No folder of Spark's committer, no marker of a folder, no scratch file.

    Markers belong to Spark in its checkpoints and to the filesystem catalog in its namespaces.
    """
    own = [key for key in run.objects if not key.startswith(("check/", "hadoop/"))]
    words = ("_temporary", "_SUCCESS", "/scratch/", "_spark_metadata")
    left = [key for key in own if key.endswith("/") or any(word in key for word in words)]
    assert own
    assert left == []


def test_the_secret_is_nowhere(run: Run) -> None:
    """Neither in what was printed nor in an object."""
    assert run.printed.find(run.secret) == -1
    assert [key for key, body in run.objects.items() if run.secret.encode() in body] == []
