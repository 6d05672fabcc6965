"""A user's own file that asks for a verdict: its runs, what is reused, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.core.errors import PlumblineError
from plumbline.specs import own_methods_file, study_config
from plumbline.specs.yaml_files import ROOT

MINE: dict[str, Any] = {
    "extends": "transfer",
    "methods": {"capped": {"model": {"mixer": {"name": "softmax_cap", "cap": 20.0}}}, "qknorm": None},
    "larger": "large",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the study that is extended, and a folder for the user's own files."""
    folder = tmp_path_factory.mktemp("mine")
    for name in ("config", "studies"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "my").mkdir()
    return folder


def load(root: Path, name: str = "caps", **changes: Any) -> own_methods_file.OwnMethodsFile:
    path = root / "my" / f"{name}.yaml"
    content = {key: value for key, value in (MINE | changes).items() if value != "left out"}
    path.write_text(yaml.safe_dump(content))
    return own_methods_file.load(f"my/{name}.yaml", "smoke", root)


def test_its_methods_are_runs_of_its_own(root: Path) -> None:
    own = load(root)
    keys = set(own.study.runs)
    assert {f"caps/base/capped/s{seed}" for seed in (42, 43, 44)} <= keys
    assert {f"transfer/base/baseline/s{seed}" for seed in (42, 43, 44, 45, 46)} <= keys
    assert {f"transfer/base/qknorm/s{seed}" for seed in (42, 43, 44)} <= keys, (
        "an empty entry is the study's own method"
    )
    assert {"caps/large/capped/s42", "transfer/large/baseline/s42", "transfer/large/qknorm/s42"} <= keys
    assert len(keys) == 3 + 5 + 3 + 3 and own.against == {"capped": "baseline", "qknorm": "baseline"}
    transfer = study_config.load("transfer", "smoke", root)
    shared = keys & transfer.runs.keys()
    assert len(shared) == 8, "seeds 42 to 44 of baseline and qknorm, and both at the larger scale"
    assert all(own.study.runs[key].spec.run_id == transfer.runs[key].spec.run_id for key in shared)


def test_a_seed_more_keeps_the_others(root: Path) -> None:
    before, after = load(root), load(root, seeds=[42, 43, 44, 45])
    new = after.study.runs.keys() - before.study.runs.keys()
    assert new == {"caps/base/capped/s45", "transfer/base/qknorm/s45"}
    assert all(after.study.runs[key].spec == run.spec for key, run in before.study.runs.items())


def test_each_method_may_have_a_baseline_of_its_own(root: Path) -> None:
    own = load(root, methods={"capped": MINE["methods"]["capped"] | {"against": "qknorm"}, "softpick": None})
    assert own.against == {"capped": "qknorm", "softpick": "baseline"} and own.references == ["qknorm", "baseline"]
    assert len(own.runs("base", "qknorm")) == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extend": "transfer"}, r"unknown key 'extend'; did you mean 'extends'\?"),
        ({"extends": "transfr"}, r"no study 'transfr'; did you mean 'transfer'\?"),
        ({"methods": {"qknrm": None}}, r"methods: .* 'qknrm'; .* 'qknorm'\?"),
        ({"methods": {"qknorm": {"model": {"query_key": {"name": "qk_norm"}}}}}, "method of transfer; choose"),
        ({"methods": {"a": {"modle": {}}}}, r"unknown key 'modle'; did you mean 'model'\?"),
        (
            {"methods": {"a": {"model": {"mixer": {"name": "softmx"}}}}},
            r"no component 'softmx'; did you mean 'softmax'",
        ),
        ({"against": "basline"}, r"against: .* 'basline'; .* 'baseline'\?"),
        ({"methods": {"baseline": None}}, "'baseline' .* itself"),
        ({"decides": "loss"}, "'loss' is not"),
        ({"larger": "huge"}, "'huge' at preset 'smoke'"),
        ({"larger": "base"}, "'base' is the scale"),
        (
            {"methods": {"longer": {"train": {"steps": 9}}}},
            "train.steps is 9, that of baseline is 6; they would not read",
        ),
        ({"methods": {"other": {"data_seed": 1}}}, "data_seed is 1, that of baseline is 0"),
        ({"alpha": 0.7}, "alpha"),
        (
            {"paired": True, "reference_seeds": [45, 46]},
            r"paired: 'capped' has the seeds \[42, 43, 44\] and 'baseline'",
        ),
        ({"paired": True, "seeds": [42]}, "so that 1 are of both"),
        (
            {"published": "nowhere.csv"},
            "published: .* my/nowhere.csv; .* my/caps",
        ),
        ({"against": 5}, "against: 5 is not a text"),
        ({"against": None}, "against: None"),
        ({"methods": {"qknorm": {"against": ["baseline"]}}}, r"methods.qknorm.against: \['baseline'\] is not the name"),
        ({"methods": {"qknorm": {"against": None}}}, "methods.qknorm.against: None"),
        ({"methods": {None: {}}}, "methods: None"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_remedy(root: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError, match=message) as refused:
        load(root, **changes)
    assert "my/caps.yaml" in str(refused.value) or "transfr" in message


def test_a_file_with_the_name_of_a_study_is_refused(root: Path) -> None:
    with pytest.raises(PlumblineError, match="'transfer' is the name"):
        load(root, name="transfer")
    with pytest.raises(PlumblineError, match="lower-case letters"):
        load(root, name="My-Idea")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"capped,val_loss,base,3.2\n", "printed.csv, line 2: metric: 'val_loss'"),
        (b"capped,validation_loss,base,3.2 \xb1 0.1\n", "published: my/printed.csv is not UTF-8"),
        (b"capped,validation_loss,base,\n", "line 2: value"),
        (b"capped,validation_loss,base\n", "line 2: 3 cells under 4 columns"),
    ],
)
def test_printed_numbers_are_read_before_any_run(root: Path, content: bytes, message: str) -> None:
    (root / "my/printed.csv").write_bytes(b"method,metric,scale,value\n" + content)
    with pytest.raises(PlumblineError, match=message):
        load(root, published="printed.csv")


def test_printed_numbers_lie_beside_file_and_may_begin_with_mark(root: Path) -> None:
    (root / "my/printed.csv").write_bytes(b"\xef\xbb\xbfmethod,metric,scale,value\ncapped,validation_loss,base,3.2\n")
    assert load(root, published="printed.csv").asked["published"] == "my/printed.csv"


def test_a_key_that_is_no_word_is_refused(root: Path) -> None:
    (root / "my/caps.yaml").write_text(yaml.safe_dump(MINE | {1: 2}))
    with pytest.raises(PlumblineError, match=r"my/caps.yaml: top level: unknown key 1"):
        own_methods_file.load("my/caps.yaml", "smoke", root)


def test_no_announced_tries_may_be_said(root: Path) -> None:
    assert load(root, planned_tries=0).asked["planned_tries"] == 0
