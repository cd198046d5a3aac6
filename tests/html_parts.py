"""What a page is made of: its elements, its addresses, and its texts outside of scripts."""

from __future__ import annotations

import html.parser
from typing import Any

HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror=alert(1)>'


class Parts(html.parser.HTMLParser):
    """The parts of a page.

    Attributes:
        tags: names of elements, in order.
        links: values of ``src``, ``href`` and ``action``.
        handlers: attributes that would run something.
        texts: what is shown.
        rows: what each row of a table shows, cell by cell.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.handlers: list[str] = []
        self.texts: list[str] = []
        self.rows: list[list[str]] = []
        self.fields: dict[str, str] = {}
        self._is_script = self._is_cell = False
        self.feed(page)

    @property
    def text(self) -> str:
        """All that is shown."""
        return " ".join(self.texts)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "action")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self._is_script = tag in ("script", "style")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._is_cell = True
        if tag == "input":
            held = dict(attrs)
            self.fields[held.get("name", "")] = held.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        self._is_script = False
        if tag in ("td", "th"):
            self._is_cell = False

    def handle_data(self, data: str) -> None:
        if self._is_script:
            return
        self.texts.append(data)
        if self._is_cell:
            self.rows[-1][-1] += data
