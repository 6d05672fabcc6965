"""What asks a trainer to stop, and what does not."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from plumbline.core.stop_request import StopRequest, StopRequested

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_a_wish_to_stop(number: signal.Signals) -> None:
    """A terminal that is closed is one as well."""
    stop = StopRequest().install()
    assert signal.getsignal(number) is not signal.SIG_DFL, "it would end the process at once"
    os.kill(os.getpid(), number)
    with pytest.raises(StopRequested):
        stop.poll()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_was_ignored_before_stays_ignored(number: signal.Signals) -> None:
    """As nohup, and a shell that puts a command into the background, have it."""
    signal.signal(number, signal.SIG_IGN)
    stop = StopRequest().install()
    os.kill(os.getpid(), number)
    assert not stop.requested
