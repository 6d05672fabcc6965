"""Times are read in one grammar, whichever file or flag has them."""

from __future__ import annotations

import pytest

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError
from plumbline.core.formats import parse_duration

TIMES = {"90s": 90, "30 min": 1800, "15m": 900, "2 hours": 7200, "1h30m": 5400, "1 h 30 minutes": 5400, "1.5d": 129600}


@pytest.mark.parametrize(("text", "seconds"), TIMES.items())
def test_times(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "2x", "2 hourss", "1h x", "0h", "-1h", "1.2.3s", "11 d 87600h", "1months"])
def test_no_times(text: str) -> None:
    with pytest.raises(PlumblineError, match="write 90s, 30 min, 2 hours, 1d"):
        parse_duration(text)


def test_an_option_takes_a_time_and_names_the_grammar(capsys: pytest.CaptureFixture[str]) -> None:
    parser = command_line.Parser("")
    parser.add_argument("--every", type=command_line.duration)
    assert parser.parse_args(["--every", "1h30m"]).every == 5400
    with pytest.raises(SystemExit):
        parser.parse_args(["--every", "90"])
    assert "--every" in (message := capsys.readouterr().err) and "'90'" in message and "90s" in message
