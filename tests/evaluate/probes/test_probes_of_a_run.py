"""All families on a run: offline from its points, online from inside it, on one rank and on two."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.core.run_files import read_points_index
from plumbline.data.loader import Pack
from plumbline.evaluate.probes import read
from plumbline.evaluate.probes._offline import read_run
from plumbline.evaluate.probes.locality import read_locality
from plumbline.evaluate.probes.lower_copy import LowerCopy
from plumbline.model.decoder import Decoder
from plumbline.specs.components import available
from tests.model_specs import run_spec
from tests.train.small_runs import make_packs, settings, train, train_ranks
from tests.train.small_runs import read as read_json

ONLINE = sorted(set(available("probe")) - {"locality"})
PROBES = [
    *({"name": name, "at": [0.0, 1.0], "sequences": 4} for name in ONLINE),
    {"name": "locality", "at": [0.0, 0.5, 1.0], "sequences": 3},
]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_packs(tmp_path_factory.mktemp("packs"))


@pytest.fixture(scope="module")
def finished(packs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with every family at its start and its end; locality in between, against the end."""
    work = tmp_path_factory.mktemp("probed")
    assert train(run_spec(probes=PROBES), settings(packs, work)) == 0
    return work / "out"


def at(folder: Path, fraction: float) -> Decoder:
    """The run's model at a point."""
    model = Decoder(run_spec().model)
    [file] = [point["file"] for point in read_points_index(folder)["points"] if point["fraction"] == fraction]
    model.load_state_dict(load_file(folder / "points" / file))
    return model


def test_a_run_is_read_at_its_points(packs: Path, finished: Path) -> None:
    result = read_run(finished, packs / "validation.json", CPU)
    frame = pd.DataFrame(result.rows)
    by_point = {fraction: set(part.probe) for fraction, part in frame.groupby("fraction")}
    assert set(frame.source) == {"offline"} and set(by_point) == {0.0, 0.5, 1.0}
    local = {name for name in by_point[0.5] if name.startswith(("locality", "projector"))}
    assert by_point[0.5] == local and len(local) == 7
    assert by_point[0.0] - by_point[1.0] == local, "at the end nothing moves towards the end"
    assert {"entropy", "lower_copy", "ffn_write_rms", "key_norm", "bilinear_relative", "loss_neither"} <= by_point[1.0]
    # Where training starts the bilinear form has not moved; at the end it has.
    start, end = (frame[(frame.probe == "bilinear_displacement") & (frame.fraction == f)].value for f in (0.0, 1.0))
    assert len(start) == 2 * 4 and (start == 0).all() and (end > 0.01).all()
    # The numbers are those of the weights at the points, on the first sequences of the pack.
    tokens_BT = torch.from_numpy(Pack(packs / "validation.json").rows(np.arange(4)))
    values = frame[(frame.probe == "lower_copy") & (frame.fraction == 1.0)].value.tolist()
    assert values == [probe_value.value for probe_value in read(at(finished, 1.0), [LowerCopy()], tokens_BT)]
    expected = [probe_value.value for probe_value in read_locality(at(finished, 0.5), at(finished, 1.0), tokens_BT[:3])]
    assert frame[frame.fraction == 0.5].value.tolist() == expected


def test_what_run_left_for_probes_is_compared_with_its_manifest(packs: Path, tmp_path: Path) -> None:
    probes = [{"name": "query_key_norms", "every": 2, "sequences": 2}]
    assert train(run_spec(probes=probes), settings(packs, tmp_path)) == 0
    read_run(tmp_path / "out", packs / "validation.json", CPU)
    for name in ("online.parquet", "index.json"):
        path = tmp_path / "out/points" / name
        path.write_bytes(path.read_bytes() + b" ")
        message = rf"{path} is not what the trainer wrote: sha256 \w+, not \w+ as in manifest"
        with pytest.raises(PlumblineError, match=message):
            read_run(tmp_path / "out", packs / "validation.json", CPU)


def test_separators_of_the_pack_are_left_out(packs: Path, finished: Path, tmp_path: Path) -> None:
    """A pack states what its separator is; the fingerprint, which is the tokens', stays."""
    manifest = shutil.copytree(packs, tmp_path / "packs") / "validation.json"
    plain = pd.DataFrame(read_run(finished, manifest, CPU).rows)
    commonest = np.bincount(Pack(manifest).rows(np.arange(4)).flat).argmax()
    manifest.write_text(manifest.read_text().replace('"vocabulary"', f'"separator": {commonest}, "vocabulary"'))
    without = pd.DataFrame(read_run(finished, manifest, CPU).rows)
    changed = plain.value != without.value
    assert set(plain[changed].probe) == {"lower_copy"}


def test_run_that_diverged_before_other_point_has_no_locality(packs: Path, tmp_path: Path) -> None:
    spec = run_spec(probes=PROBES, optimizer__learning_rate=1e20, optimizer__gradient_clip=0.0)
    assert train(spec, settings(packs, tmp_path)) == 0
    assert read_json(tmp_path / "out/outcome.json")["outcome"] == "diverged"
    result = read_run(tmp_path / "out", packs / "validation.json", CPU)
    names = {row["probe"] for row in result.rows}
    assert {row["fraction"] for row in result.rows} == {0.0, result.end / spec.train.steps} and "entropy" in names
    assert not [name for name in names if name.startswith(("locality", "projector"))]
    assert [point["fraction"] for point in result.missed] == [0.5, 1.0]


def test_online_and_offline_agree_and_two_ranks_read_as_one(packs: Path, tmp_path: Path) -> None:
    """At step 0, before anything is rounded differently, also where the weights are sharded."""
    online = [{"name": name, "every": 6, "sequences": 4} for name in ONLINE]
    spec = run_spec(probes=[*online, *PROBES[:-1]])
    for name in ("one", "two"):
        chosen = settings(packs, tmp_path / name, strategy="fsdp")
        assert (train_ranks(2, spec, chosen) if name == "two" else [train(spec, chosen)]) in ([0], [0, 0])
    single, two = (
        frames.read(tmp_path / name / "out/points/online.parquet", "probes").sort_values(["step", "probe"])
        for name in ("one", "two")
    )
    assert len(single) == len(two) and set(single.step) == {0, 6, 12}
    torch.testing.assert_close(torch.tensor(single.value.values), torch.tensor(two.value.values), rtol=5e-3, atol=1e-4)
    first = two.step == 0
    torch.testing.assert_close(
        torch.tensor(single[single.step == 0].value.values), torch.tensor(two[first].value.values), rtol=1e-6, atol=1e-7
    )
    offline = pd.DataFrame(read_run(tmp_path / "one/out", packs / "validation.json", CPU).rows)
    for step in (0, 12):
        both = [
            part[part.step == step].sort_values(["probe", "layer", "head"]).value.to_numpy()
            for part in (offline[offline.source == source] for source in ("online", "offline"))
        ]
        assert len(both[0]) > 50 and (both[0] == both[1]).all()


def test_probes_that_are_read_change_nothing(packs: Path, finished: Path, tmp_path: Path) -> None:
    assert train(run_spec(), settings(packs, tmp_path)) == 0
    assert sha256_file(tmp_path / "out/model.safetensors") == sha256_file(finished / "model.safetensors")
