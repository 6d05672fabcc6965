"""The check that no process asks another machine finds one that does."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.offline_check import carry_out

CALLS = """
import os, socket
def ask(family, kind, address):
    own = socket.socket(family, kind)
    own.setblocking(False)
    try:
        own.connect(address) if kind == socket.SOCK_STREAM else own.sendto(b"x", address)
    except OSError:
        pass
ask(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 9))
ask(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 9))
if not os.fork():
    ask(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 443))
    ask(socket.AF_INET6, socket.SOCK_STREAM, ("2001:db8::1", 443))
    ask(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.2", 53))
    ask(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.53", 53))
    ask(socket.AF_UNIX, socket.SOCK_STREAM, "/nonexistent/io.systemd.Resolve")
    ask(socket.AF_UNIX, socket.SOCK_STREAM, "/nonexistent/nscd")
assert "https_proxy" not in os.environ and "HTTP_PROXY" not in os.environ
"""
ADDRESSES = ("192.0.2.1", "2001:db8::1", "192.0.2.2", "127.0.0.53", "systemd.Resolve")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_call_to_another_machine_is_found_in_every_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is a name that this machine's own resolver looks up elsewhere, and nothing hides behind a proxy here."""
    for name in ("https_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (tmp_path / "folder").mkdir()
    calls = carry_out([sys.executable, "-c", CALLS], tmp_path / "folder", 0)
    assert len(calls) == len(ADDRESSES) and all(address in call for address, call in zip(ADDRESSES, calls))
    assert carry_out([sys.executable, "-c", "pass"], tmp_path / "folder", 0) == []
