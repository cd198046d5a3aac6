"""Requests that a store did not answer, made again by Java's properties ``s3.retry.*``."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from frazil.errors import ConfigurationError

RETRIES: Final = "s3.retry.num-retries"
MIN_WAIT: Final = "s3.retry.min-wait-ms"
MAX_WAIT: Final = "s3.retry.max-wait-ms"
RETRY_DEFAULTS: Final[Mapping[str, int]] = {RETRIES: 5, MIN_WAIT: 2_000, MAX_WAIT: 20_000}
"""As Java's; times in milliseconds."""

_MOST_DOUBLINGS: Final = 30

T = TypeVar("T")


class RetriesSpentError(Exception):
    """A store did not answer, however often it was asked; the message counts how often."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a request is made again, and how long is waited before.

    Attributes:
        count: tries after the first.
        min_wait_ms: the longest wait before the first of them; it doubles with each.
        max_wait_ms: the longest wait.
    """

    count: int
    min_wait_ms: int
    max_wait_ms: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Retries:
        """Return what the properties say."""
        return cls(*(_number(properties, name) for name in RETRY_DEFAULTS))

    def run(
        self,
        request: Callable[[], T],
        is_passing: Callable[[Exception], bool],
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> T:
        """Return what the request answers.

        `is_passing`: whether an error of it may be gone the next time; others are raised. Raises
        RetriesSpentError where it failed each time.
        """
        started = time.monotonic()
        for retry in range(self.count + 1):
            try:
                return request()
            except Exception as error:
                if not is_passing(error):
                    raise
                if retry == self.count:
                    took = time.monotonic() - started
                    said = f"{str(error) or type(error).__name__}; asked {retry + 1} times"
                    raise RetriesSpentError(f"{said} in {took:.1f} s") from error
            sleep(self._seconds(retry))
        raise AssertionError("unreachable")

    def _seconds(self, retry: int) -> float:
        """Half of the wait and a random part of the other half, so that clients spread out."""
        longest = min(self.max_wait_ms, self.min_wait_ms * 2 ** min(retry, _MOST_DOUBLINGS))
        return random.uniform(longest / 2, longest) / 1000  # noqa: S311


def _number(properties: Mapping[str, str], name: str) -> int:
    text = properties.get(name)
    if text is None:
        return RETRY_DEFAULTS[name]
    if not text.strip().isascii() or not text.strip().isdigit():
        raise ConfigurationError(f"the property {name} must be a whole number, not {text!r}")
    return int(text)
