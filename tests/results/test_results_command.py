"""The verb that makes tables and figures, given what a study's own code should not have returned."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.results import __main__ as verb
from plumbline.specs import study_parts


@pytest.mark.parametrize("kind", ["table", "figure"])
def test_a_function_that_returns_nothing(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback of the writer's, in which the study's file did not stand."""
    target, out = {"table": ("table1", "none.csv"), "figure": ("protocol_power", "none.png")}[kind]
    argv = ["verb", kind, "transfer", target, "--preset", "smoke", "--work", str(tmp_path), "--out", out]
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(study_parts, "function", lambda *names: lambda *read: None)
    monkeypatch.setattr(verb, "_load_frames", lambda *args, **more: SimpleNamespace(others=(), mixed=[], notes=[]))
    with pytest.raises(PlumblineError, match=rf"transfer/{kind}s/{target}.py: .*NoneType.* {kind} "):
        verb.main()


@pytest.mark.parametrize("left_out", ["CHECKS", "Evidence"])
def test_claims_without_register_or_evidence(left_out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class of another name was passed over without a word, and the base class judged in its place."""
    whole = {"CHECKS": {}, "Evidence": object, "__file__": "mine/claims.py"}
    whole.pop(left_out)
    monkeypatch.setattr(study_parts, "part", lambda *names: SimpleNamespace(**whole))
    argv = ["verb", "claims", "transfer", "--preset", "smoke", "--work", str(tmp_path), "--out", "none.csv"]
    monkeypatch.setattr(sys, "argv", argv)
    with pytest.raises(PlumblineError, match=f"mine/claims.py: there is no {left_out}"):
        verb.main()


def test_claims_of_a_preset_that_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback of the first checker that found no runs, or a table of claims that nothing was looked at for."""
    argv = ["verb", "claims", "premature", "--preset", "evening", "--out", str(tmp_path / "claims.csv")]
    monkeypatch.setattr(sys, "argv", argv)
    with pytest.raises(PlumblineError, match=r"premature has no claims at preset evening.*'demo'"):
        verb.main()
    assert not list(tmp_path.iterdir())


def test_the_work_of_all_presets_is_none_of_a_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--work work` for `--work work/smoke`: a table in which nothing was run."""
    (tmp_path / "smoke/runs").mkdir(parents=True)
    argv = ["verb", "table", "transfer", "table2", "--preset", "smoke", "--out", str(tmp_path / "x.csv")]
    monkeypatch.setattr(sys, "argv", [*argv, "--work", str(tmp_path)])
    with pytest.raises(PlumblineError, match=f"--work: .*name {tmp_path}/smoke"):
        verb.main()
