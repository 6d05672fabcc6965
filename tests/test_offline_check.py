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
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_call_to_another_machine_is_found_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    calls = carry_out([sys.executable, "-c", CALLS], tmp_path / "folder", 0)
    assert len(calls) == 3 and all(
        address in call for address, call in zip(("192.0.2.1", "2001:db8::1", "192.0.2.2"), calls)
    )
    assert carry_out([sys.executable, "-c", "pass"], tmp_path / "folder", 0) == []
