"""AWS's signature by its description: a server that checks it, and a signer that gives it away."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

UNSIGNED = "UNSIGNED-PAYLOAD"


def signature(
    secret: str,
    scope: str,
    date: str,
    method: str,
    url: str,
    headers: Mapping[str, str],
    signed: Iterable[str],
) -> str:
    """The signature of version 4 for S3."""
    parts = urlsplit(url)
    query = sorted(
        (quote(k, safe="-_.~"), quote(v, safe="-_.~"))
        for k, v in parse_qsl(parts.query, keep_blank_values=True)
    )
    names = sorted(signed)
    canonical = "\n".join(
        [
            method,
            quote(unquote(parts.path), safe="/-_.~") or "/",
            "&".join(f"{k}={v}" for k, v in query),
            *(f"{name}:{' '.join(headers[name].split())}" for name in names),
            "",
            ";".join(names),
            headers["x-amz-content-sha256"],
        ]
    )
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashed}"
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


@dataclass
class SignaturesChecked:
    """Lets in what is signed with one of the keys; the others are refused, as S3 does.

    Attributes:
        keys: secrets by key id; of temporary ones with their session token.
        used: the key ids of the requests that were let in, with their methods.
    """

    keys: dict[str, tuple[str, str | None]]
    used: list[tuple[str, str]] = field(default_factory=list)
    application: Any = None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        key_id = self._signer(environ)
        if key_id is None:
            start_response("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"<Error><Code>AccessDenied</Code><Message>who are you?</Message></Error>"]
        self.used.append((key_id, environ["REQUEST_METHOD"]))
        return self.application(environ, start_response)

    def around(self, application: Any) -> SignaturesChecked:
        """Check what goes to an application."""
        self.application = application
        return self

    def _signer(self, environ: dict[str, Any]) -> str | None:
        headers = {
            name[5:].replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            headers[name.replace("_", "-").lower()] = environ.get(name, "")
        kind, _, rest = headers.get("authorization", "").partition(" ")
        told = dict(part.strip().split("=", 1) for part in rest.split(",") if "=" in part)
        if kind != "AWS4-HMAC-SHA256" or "Credential" not in told:
            return None
        key_id, _, scope = told["Credential"].partition("/")
        secret, token = self.keys.get(key_id, ("", None))
        if not secret or headers.get("x-amz-security-token") != token:
            return None
        url = environ.get("RAW_URI") or environ["REQUEST_URI"]
        if headers.get("x-amz-content-sha256", "").startswith("STREAMING"):
            return key_id if told.get("Signature") else None
        made = signature(
            secret,
            scope,
            headers["x-amz-date"],
            environ["REQUEST_METHOD"],
            url,
            headers,
            told["SignedHeaders"].split(";"),
        )
        return key_id if hmac.compare_digest(made, told["Signature"]) else None


def signed_by(key_id: str, secret: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What a catalog's server answers to a request to sign."""

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        date = "20380119T031407Z"
        scope = f"{date[:8]}/{asked['region']}/s3/aws4_request"
        headers = {name.lower(): ", ".join(values) for name, values in asked["headers"].items()}
        headers |= {
            "host": urlsplit(asked["uri"]).netloc,
            "x-amz-date": date,
            "x-amz-content-sha256": UNSIGNED,
        }
        names = [
            n for n in headers if n.startswith("x-amz-") or n in ("host", "content-md5", "range")
        ]
        made = signature(secret, scope, date, asked["method"], asked["uri"], headers, names)
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={key_id}/{scope}, SignedHeaders="
            f"{';'.join(sorted(names))}, Signature={made}"
        )
        del headers["host"]
        return {"uri": asked["uri"], "headers": {k: [v] for k, v in headers.items()}}

    return answer
