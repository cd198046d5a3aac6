"""A real Chromium for tests: it opens pages, is typed into, and tells what it shows and says."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = next(
    (p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None
)
_SECONDS = 60.0
_KEYS = {"Tab": 9, "Enter": 13, "Space": 32}


class Page:
    """The one page of a browser, by the protocol of its developer tools over a pipe."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._held = b""
        self._last = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        """What the console, the policy and exceptions said, and what was asked of a network."""
        self.requests: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._last:
                assert "error" not in answer, (method, answer["error"])
                return dict(answer["result"])

    def open(self, address: str) -> None:
        """Open an address and wait until it is loaded."""
        self.ask("Page.navigate", url=address)
        self.wait_until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """Return the value of an expression."""
        told = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def wait_until(self, script: str) -> None:
        """Wait until an expression is true, over changes of the page too."""
        end = time.monotonic() + _SECONDS
        while True:
            try:
                if self.run(script):
                    return
            except AssertionError:
                pass
            assert time.monotonic() < end, (script, self.complaints, self.run("document.title"))
            time.sleep(0.05)

    def size(self, width: int, height: int = 900) -> None:
        """Give the window a size in CSS pixels."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip

    def prefer(self, scheme: str) -> None:
        """Prefer light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self.ask("Input.insertText", text=text)

    def press(self, key: str, times: int = 1) -> None:
        """Press a key: Tab, Enter or Space."""
        text = {"Enter": "\r", "Space": " "}.get(key)
        code = {"key": " " if key == "Space" else key, "code": key}
        code |= {"windowsVirtualKeyCode": _KEYS[key]}
        for _ in range(times):
            down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
            self.ask("Input.dispatchKeyEvent", **down, **code)
            self.ask("Input.dispatchKeyEvent", type="keyUp", **code)

    def names(self) -> set[tuple[str, str]]:
        """What a screen reader is told: roles with names."""
        nodes = self.ask("Accessibility.getFullAXTree")["nodes"]
        return {
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if not node["ignored"]
        }

    def focused(self) -> str:
        """The text or name of what has the focus."""
        return str(
            self.run(
                "(e => e.tagName + ':' + (e.getAttribute('name') || e.textContent.trim()))"
                "(document.activeElement)"
            )
        )

    def picture(self, path: Path) -> bytes:
        """Write a picture of the whole page."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))
        return path.read_bytes()

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._held:
            got = os.read(self._back, 1 << 20)
            assert got, "the browser has ended"
            self._held += got
        text, _, self._held = self._held.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        told = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled":
                self.complaints.append(json.dumps(told)[:2000])
            case "Log.entryAdded":
                self.complaints.append(told["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])


@contextmanager
def browsing(folder: Path, *options: str) -> Iterator[Page]:
    """A browser whose profile is in a folder, and which reaches this machine alone."""
    assert PROGRAM is not None
    theirs, to = os.pipe()
    back, answers = os.pipe()

    def as_three_and_four() -> None:
        # To free numbers above both first, so that neither end is lost under the other.
        one, two = (fcntl.fcntl(end, fcntl.F_DUPFD, 5) for end in (theirs, answers))
        os.dup2(one, 3)
        os.dup2(two, 4)

    process = subprocess.Popen(
        [
            PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            f"--user-data-dir={folder}/profile", "--remote-debugging-pipe", "--no-first-run",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
            *options,
        ],
        close_fds=False,
        preexec_fn=as_three_and_four,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(theirs)
    os.close(answers)
    try:
        yield Page(to, back)
    finally:
        process.kill()
        process.wait()
        os.close(to)
        os.close(back)
