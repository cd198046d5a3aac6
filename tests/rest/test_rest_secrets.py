"""No secret of a whole job is in a log, a plan, an error, an event log, a checkpoint or a file."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from catalog_cases import new_metadata, properties_of

from programs import ended_program
from requirements_catalog import RequirementsCatalog
from rest_server import Fault, Server, served
from s3_server import s3_server
from s3_signatures import SignaturesChecked
from s3_spark import connector

JOB = Path(__file__).parent / "secret_job.py"
CLIENT_SECRET = "kI9-client-s3cr3t/of+the=job"
LAPSED_SECRET = "wR0ng-client-s3cr3t-of-another"
ACCESS_TOKEN = "tOk3n.of.the-whole-catalog_x9Qz"
TABLE_TOKEN = "tOk3n.of.one-table_77dQzP"
HEADER_KEY = "hEad3r-key-8823-kkPq"
VENDED_KEY = "vEnd3d/s3cr3t+key/of/the=bucket"
SESSION_TOKEN = "s3ss10n/token+of=the/bucket//Zz09=="
SECRETS = {
    "client secret": CLIENT_SECRET,
    "refused client secret": LAPSED_SECRET,
    "access token": ACCESS_TOKEN,
    "table's token": TABLE_TOKEN,
    "header": HEADER_KEY,
    "vended key": VENDED_KEY,
    "session token": SESSION_TOKEN,
}


@dataclass(frozen=True)
class Run:
    """What came of the job.

    Attributes:
        printed: all that it said.
        out: the folder of its logs, checkpoint and event log.
        lake: the folder of the catalog and of its tables.
        server: what was asked of it.
        store: what it let in.
    """

    printed: str = field(repr=False)
    out: Path
    lake: Path
    server: Server
    store: SignaturesChecked


def forms(secret: str) -> Iterator[bytes]:
    """A secret as text and as part of what is packed in base64, at each of its three places."""
    raw = secret.encode()
    yield raw
    yield json.dumps(secret)[1:-1].encode()
    for before in range(3):
        packed = base64.b64encode(b"\0" * before + raw)
        yield packed[4 if before else 0 : -4]


def leaks(name: str, content: bytes) -> list[str]:
    """Which secrets some content holds, with what stands before them."""
    found = []
    for kind, secret in SECRETS.items():
        for form in forms(secret):
            place = content.find(form)
            if place >= 0:
                around = content[max(0, place - 120) : place].decode(errors="replace")
                found.append(f"{kind} in {name} behind …{around!r}")
                break
    return found


@pytest.fixture(scope="module", params=["local", pytest.param("s3", marks=pytest.mark.soak)])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The job, with its tables on the local disk and, by Hadoop's connector, on S3."""
    is_s3 = request.param == "s3"
    out, lake = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("lake")
    checked = SignaturesChecked({})
    with s3_server(checked.around) as s3:
        own = s3.properties["s3.access-key-id"], s3.properties["s3.secret-access-key"]
        checked.keys = {own[0]: (own[1], None), "AKVENDED": (VENDED_KEY, SESSION_TOKEN)}
        closed = f"{s3.new_bucket('closed')}/t"
        place = {"warehouse": f"{s3.new_bucket('warehouse')}/wh"} if is_s3 else {}
        given = {**properties_of("sqlite", lake), **s3.properties, **place}
        behind = RequirementsCatalog("behind", given)
        behind.create_namespace("db")
        metadata = new_metadata(behind, "db.closed")
        behind.create_table("db.closed", replace(metadata, location=closed))
        server = Server(behind)
        prepare(server, s3.properties)
        with served(server):
            setup = {
                "out": str(out),
                "closed": closed,
                "stream": not is_s3,
                "spark": hadoop_aws() if is_s3 else {},
                "catalog": {
                    "uri": server.address,
                    "credential": f"client:{CLIENT_SECRET}",
                    "oauth2-server-uri": f"{server.address}/v1/oauth/tokens",
                    "header.X-Key": HEADER_KEY,
                },
                "wrong": {"credential": f"client:{LAPSED_SECRET}"},
            }
            job = ended_program(JOB, cwd=out, variables={"FRAZIL_SECRET_JOB": json.dumps(setup)})
            printed = job.printed + "".join(job.errors)
            (out / "printed.txt").write_text(printed)
            yield Run(printed, out, lake, server, checked)
        behind.close()


def hadoop_aws() -> dict[str, str]:
    """Settings of a session with Hadoop's connector to S3, of the version that Spark has."""
    return {
        "spark.jars.packages": connector(),
        # moto's server speaks HTTP/1.0, in which nobody answers `Expect: 100-continue`.
        "spark.hadoop.fs.s3a.connection.expect.continue": "false",
        "spark.hadoop.fs.s3a.attempts.maximum": "1",
        "spark.hadoop.fs.s3a.retry.limit": "1",
    }


def prepare(server: Server, store: dict[str, str]) -> None:
    """Let the server give tokens and keys, and say in an error what it was sent."""

    def grants(form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if form.get("client_secret") != CLIENT_SECRET:
            told = {"error": "invalid_client", "error_description": f"not {form!r}"}
            return 401, told
        return 200, {"access_token": ACCESS_TOKEN, "token_type": "bearer", "expires_in": 3600}

    server.grants = grants
    server.check = lambda request: (
        request.headers.get("authorization") in (f"Bearer {ACCESS_TOKEN}", f"Bearer {TABLE_TOKEN}")
    )
    ends = str(int((time.time() + 3600) * 1000))
    vended = {
        "s3.endpoint": store["s3.endpoint"],
        "s3.region": "us-east-1",
        "s3.access-key-id": "AKVENDED",
        "s3.secret-access-key": VENDED_KEY,
        "s3.session-token": SESSION_TOKEN,
        "s3.session-token-expires-at-ms": ends,
    }
    server.table = {
        "config": {"token": TABLE_TOKEN},
        "storage-credentials": [
            {"prefix": "s3", "config": vended},
            {"prefix": "s3://closed", "config": {**vended, "s3.access-key-id": "AKWRONG"}},
        ],
    }
    told = f"you sent {ACCESS_TOKEN} and {HEADER_KEY} for {CLIENT_SECRET}"
    content = json.dumps({"error": {"message": told, "type": "BadRequestException", "code": 400}})
    server.faults = [
        Fault("GET", "/echo", status=400, content=content.encode(), times=100),
    ]


@pytest.mark.check
def test_the_job_did_what_it_was_to_do(run: Run) -> None:
    """Else nothing of what follows says anything."""
    if "THE END" not in run.printed:
        pytest.fail(run.printed[-8_000:], pytrace=False)
    assert "DID NOT FAIL" not in run.printed
    sent = {each.headers.get("authorization") for each in run.server.exchanges}
    assert sent >= {f"Bearer {ACCESS_TOKEN}", f"Bearer {TABLE_TOKEN}"}
    assert {each.headers.get("x-key") for each in run.server.exchanges} >= {HEADER_KEY}
    log = (run.out / "python.log").read_text()
    assert "DEBUG:py4j" in log
    assert "x-amz-security-token:***" in log
    if not list(run.out.glob("checkpoint/**/*")):
        # Spark's own files, by the credentials that the catalog gave.
        assert {key for key, _ in run.store.used} == {"AKIAMADEUPFORTESTS", "AKVENDED"}
        assert "UnsupportedError" in run.printed
        events = b"".join(each.read_bytes() for each in run.out.glob("events/*/*"))
        assert b"fs.s3a.bucket.warehouse.secret.key=*********(redacted)" in events


@pytest.mark.check
def test_no_secret_is_anywhere(run: Run) -> None:
    found = leaks("what was printed", run.printed.encode())
    for folder in (run.out, run.lake):
        for path in folder.rglob("*"):
            if path.is_file():
                found += leaks(str(path.relative_to(folder)), path.read_bytes())
    assert found == []
