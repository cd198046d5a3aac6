"""What libraries write into their logs at the level DEBUG, without the secrets in it.

The driver of S3 notes each request with its headers, a session token among them. The bridge to
Spark's JVM notes each call with its arguments: what executors are sent, and so files of a table
with their credentials.
"""

from __future__ import annotations

import logging
import re
from typing import Final

_LOGGERS: Final = (
    *("botocore.auth", "botocore.endpoint", "botocore.hooks", "botocore.httpsession"),
    *("botocore.credentials", "botocore.utils", "botocore.regions", "botocore.retryhandler"),
    *("py4j.clientserver", "py4j.java_gateway"),
)
_TOKEN: Final = re.compile(r"(?i)(security-token['\"]?\s*[:=]\s*b?['\"]?)[^\s'\",;&]+")
_PACKED: Final = re.compile(r"[A-Za-z0-9+/=]{200,}")


class _WithoutSecrets(logging.Filter):
    """Leaves tokens and packed arguments out of a message."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        shown = _TOKEN.sub(r"\1***", text)
        if record.name.startswith("py4j"):
            shown = _PACKED.sub("***", shown)
        if shown != text:
            record.msg, record.args = shown, None
        return True


def hide_secrets() -> None:
    """Let no library write a secret that it was given into its log; asked again it does nothing."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(each, _WithoutSecrets) for each in logger.filters):
            logger.addFilter(_WithoutSecrets())
