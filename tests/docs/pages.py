"""The blocks of a page: what is run, what it is to print, and what is left alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LEFT_ALONE = "# not run here:"
"""How the first line of a block begins that the tests cannot run; the reason follows."""

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"(?:#|--) ((?:[\w-]+/)*[\w-]+\.\w+)\n")
_NEXT_TO = re.compile(r"\s*\Z")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        line: of its first line, from 1.
        printed: the block of text below it, which is what it prints; None without one.
    """

    language: str
    text: str
    line: int
    printed: str | None = None

    @property
    def is_left_alone(self) -> bool:
        """Whether it says itself that it is not run."""
        return self.text.startswith(LEFT_ALONE)


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page in order; text that directly follows a block is its output."""
    text = page.read_text()
    found: list[Block] = []
    end = -1
    for fence in _FENCE.finditer(text):
        line = text.count("\n", 0, fence.start()) + 2
        follows = end >= 0 and _NEXT_TO.match(text[end : fence.start()])
        if fence[1] == "text" and follows and found[-1].printed is None:
            last = found[-1]
            found[-1] = Block(last.language, last.text, last.line, fence[2])
        else:
            found.append(Block(fence[1], fence[2], line))
        end = fence.end()
    return found


def masked(text: str) -> str:
    """What is printed, without what differs from run to run: ids, times, sizes, and blanks."""
    text = re.sub(r"\b\d{15,19}\b", "<id>", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?(\+00:00)?", "<time>", text)
    text = re.sub(r"\d[\d,.]* (B|KiB|MiB)\b", "<size>", text)
    text = re.sub(
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}[\w.-]*", "<file>", text
    )
    text = re.sub(r"-{2,}", "--", text)
    return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


def files_of(page: Path) -> dict[str, str]:
    """The files that a page shows: blocks whose first line is a comment with a file's name."""
    found = {}
    for block in blocks_of(page):
        named = _NAMED.match(block.text)
        if named:
            found[named[1]] = block.text[named.end() :]
    return found
