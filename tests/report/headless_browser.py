"""A headless Chromium, spoken to through its pipe: no driver, no port, no package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

#: What Debian and others call it.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
#: Seconds for one answer.
PATIENCE = 60.0


def find_browser() -> str | None:
    """The browser of this machine, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of one browser. `requests` and `complaints` (console, exceptions) grow as it works."""

    def __init__(self, program: str) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._number, self._rest, self._loaded = 0, b"", 0
        self._home = tempfile.mkdtemp(prefix="plumbline-browser-")
        ours, theirs = os.pipe(), os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        options += [f"--user-data-dir={self._home}", "--remote-debugging-pipe", "--no-first-run", "about:blank"]
        # The browser reads its file 3 and writes its file 4; dup2 in a shell, for Popen's own files may be those.
        line = f'exec 3<&{ours[0]} 4>&{theirs[1]}; exec "$0" "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", line, program, *options],
            pass_fds=(ours[0], theirs[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(ours[0])
        os.close(theirs[1])
        self._in, self._out = ours[1], theirs[0]
        os.set_blocking(self._out, False)
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = ""
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._ask(f"{domain}.enable")

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._home, ignore_errors=True)

    def look(self, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """The size of the window, a phone's where it is narrow, and the reader's setting."""
        phone = width < 600
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a page from disk and wait for it and all that it loads."""
        before = self._loaded
        answer = self._ask("Page.navigate", url=page.resolve().as_uri() + fragment)
        if "loaderId" in answer:  # else it was there already, and only its fragment is another one
            self._until(lambda: self._loaded > before)

    def run(self, script: str) -> Any:
        """What a JavaScript expression gives."""
        answer = self._ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """A key, where the focus is."""
        text = {"Enter": "\r"}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text if kind == "keyDown" else "")

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """A screenshot."""
        shot = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, path: Path) -> None:
        """The page as it is printed."""
        reply = self._ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        path.write_bytes(base64.b64decode(reply["data"]))

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if getattr(self, "_session", ""):
            message["sessionId"] = self._session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        answers: list[dict[str, Any]] = []
        self._until(lambda: bool(answers), answers, self._number)
        assert "error" not in answers[0], (method, answers[0])
        return answers[0]["result"]

    def _until(self, done: Any, answers: list[dict[str, Any]] | None = None, number: int = -1) -> None:
        """Hear messages until `done`; the answer to message `number` goes into `answers`."""
        limit = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < limit and self._process.poll() is None, "the browser does not answer"
            try:
                self._rest += os.read(self._out, 1 << 20)
            except BlockingIOError:
                time.sleep(0.005)
                continue
            *messages, self._rest = self._rest.split(b"\0")
            for text in messages:
                message = json.loads(text)
                if answers is not None and message.get("id") == number:
                    answers.append(message)
                self._hear(message.get("method", ""), message.get("params", {}))

    def _hear(self, method: str, params: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded += 1
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(params["args"]))
