"""Compiled training: the same run except for rounding, and one that goes on, and says so, where the compiler fails."""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.core.processor import CPUINFO
from plumbline.model.decoder import create
from plumbline.model.distributed import RankGroup
from plumbline.specs.spec import ModelSpec
from plumbline.train import compiling
from plumbline.train.trainer_settings import TrainerSettings
from tests.model.transfer_methods import overlay
from tests.model_specs import run_spec
from tests.train.intervention_cases import spec
from tests.train.small_runs import products, read, settings, train, train_ranks
from tests.train.test_distributed import assert_alike


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have torch.compile use a given back end in place of its own, which takes a C++ compiler's minutes."""
    torch.compiler.reset()
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, "")
    plain = torch.compile

    def use(compiler: Any) -> None:
        monkeypatch.setattr(torch, "compile", functools.partial(plain, backend=compiler))

    return use


def make_settings(packs: Path, work: Path, **options: Any) -> TrainerSettings:
    return settings(packs, work, compile=True, compile_cache=work / "cache", **options)


#: Graphs of the layers of a model with three of them, where these are not all equal.
GRAPHS_OF_LAYERS = {
    "value_residual": 2,
    "denseformer": 3,
    "hyper.official": 3,
    "attnres": 3,
    "query_free_in_a_layer": 2,
}


@pytest.mark.parametrize(
    "name", ["baseline", "diff_attn", "hybrid_norm", "layerscale", "hyper", "gpt", "key_norms", *GRAPHS_OF_LAYERS]
)
def test_equal_layers_share_a_graph(name: str, tmp_path: Path, backend: Any) -> None:
    """And have the gradients that they have without being compiled; what follows the last layer is a graph more."""
    graphs = []

    def counting(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        graphs.append(graph)
        return graph

    backend(counting)
    tokens_BT = torch.randint(97, (2, 16), generator=torch.Generator().manual_seed(0))
    gradients = []
    for compiled in (False, True):
        model = create(ModelSpec.from_dict(overlay(name, layers=3)), 0)
        group = RankGroup(rank=0, world=1, device=torch.device("cpu"))
        forward = compiling.CompiledModel(model, model, group, tmp_path) if compiled else model
        forward(tokens_BT, loss=True).backward()
        gradients.append({key: value.grad for key, value in model.named_parameters()})
    assert len(graphs) == GRAPHS_OF_LAYERS.get(name, 1) + 1
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


def test_two_graphs_for_all_of_a_run(packs: Path, tmp_path: Path, undisturbed: Path, backend: Any) -> None:
    """Two micro-batches a step, and validations whose last part is smaller: nothing is compiled twice."""
    shapes = []

    def counting(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        shapes.append([tuple(value.shape) for value in inputs if value.dtype == torch.long])
        return graph

    backend(counting)
    assert train(run_spec(), make_settings(packs, tmp_path, micro_batch=4)) == 0
    assert shapes == [[], [(4, 32)]], "a layer, which sees no tokens, and the loss"
    assert_alike(tmp_path, undisturbed)
    manifest = read(tmp_path / "out/manifest.json")
    assert (manifest["compiled"], manifest["not_compiled"]) == (True, None)
    assert manifest["starts"][-1]["compiled"] is True and (tmp_path / "cache").is_dir()


def test_interventions_see_recomputed_layers(packs: Path, tmp_path: Path, backend: Any) -> None:
    """The lower layers share a graph; the upper two, which it watches, have one each, while it does and while not."""
    of = spec({"name": "entropy_floor", "floor": 0.999, "release": "fixed", "release_at": 0.5}, train__steps=8)
    graphs = []

    def counting(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        graphs.append(graph)
        return graph

    backend(counting)
    assert train(of, settings(packs, tmp_path / "plain")) == 0
    assert train(of, make_settings(packs, tmp_path / "compiled", recompute_activations=True)) == 0
    assert len(graphs) == 1 + 2 * 2 + 1 and read(tmp_path / "compiled/out/manifest.json")["compiled"] is True
    assert_alike(tmp_path / "compiled", tmp_path / "plain")


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("no such instruction\nand a page more", "no such instruction"),
        ("In a subprocess:\n\nTraceback:\n  at 18:4:\n  ^\nfp64 in loop!\n", "In a subprocess: fp64 in loop!"),
    ],
)
def test_where_the_compiler_fails_a_run_says_so_and_goes_on(
    packs: Path,
    tmp_path: Path,
    undisturbed: Path,
    backend: Any,
    capsys: pytest.CaptureFixture[str],
    message: str,
    why: str,
) -> None:
    def broken(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        raise RuntimeError(message)

    backend(broken)
    assert train(run_spec(), make_settings(packs, tmp_path)) == 0
    reason = f"torch.compile fails: RuntimeError: {why}"
    assert f"continuing without being compiled: {reason}\n" in capsys.readouterr().err
    assert products(tmp_path) == products(undisturbed)
    for record in (read(tmp_path / "out/manifest.json"), read(tmp_path / "state/starts.json")[-1]):
        assert (record["compiled"], record["not_compiled"]) == (False, reason)


def test_a_compiler_switched_off(packs: Path, tmp_path: Path, backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    backend(lambda graph, inputs: pytest.fail("it compiled"))
    assert train(run_spec(), make_settings(packs, tmp_path)) == 0
    manifest = read(tmp_path / "out/manifest.json")
    assert (manifest["compiled"], manifest["not_compiled"]) == (False, "TORCHDYNAMO_DISABLE is set")


def test_a_cache_that_cannot_be_made_is_said_and_done_without(packs: Path, tmp_path: Path, backend: Any) -> None:
    (tmp_path / "cache").touch()
    assert train(run_spec(), make_settings(packs, tmp_path)) == 0
    manifest = read(tmp_path / "out/manifest.json")
    assert manifest["compiled"] is False and "folder for compiled code" in manifest["not_compiled"]


def test_a_run_that_is_over_is_not_compiled_again(packs: Path, tmp_path: Path, backend: Any) -> None:
    """Its products are given again from its last checkpoint, and tell what they were trained with."""
    graphs = []

    def counting(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        graphs.append(graph)
        return graph

    backend(counting)
    for _ in range(2):
        assert train(run_spec(), make_settings(packs, tmp_path)) == 0
        assert len(graphs) == 2 and read(tmp_path / "out/manifest.json")["compiled"] is True
        (tmp_path / "out/manifest.json").unlink()


def test_a_run_that_diverged_tells_how_it_was_trained(packs: Path, tmp_path: Path, backend: Any) -> None:
    """Too: giving its products again is a separate start, in which nothing was compiled."""
    backend(lambda graph, inputs: graph)
    for starts in (1, 2):
        assert train(spec(optimizer__learning_rate=1e30), make_settings(packs, tmp_path)) == 0
        manifest = read(tmp_path / "out/manifest.json")
        assert read(tmp_path / "out/outcome.json")["outcome"] == "diverged"
        assert len(manifest["starts"]) == starts and manifest["compiled"] is True
        shutil.rmtree(tmp_path / "out")


def test_other_processors_share_nothing(tmp_path: Path, backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that uses one's instructions ends the other's process."""
    lines = ["processor : 0", "flags : sse2 avx512f", "cpu MHz : 2000", "processor : 1", "flags : sse2 avx512f"]

    read_text, model = Path.read_text, create(run_spec().model, 0)

    def folders(*changed: tuple[int, str]) -> set[Path]:
        """Of what is compiled, with that of this processor."""
        text = "\n".join({**dict(enumerate(lines)), **dict(changed)}.values())
        monkeypatch.setattr(Path, "read_text", lambda path, **how: text if path == CPUINFO else read_text(path, **how))
        compiling.CompiledModel(model, model, RankGroup(rank=0, world=1, device=torch.device("cpu")), tmp_path)
        assert Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).parent == tmp_path
        return set(tmp_path.iterdir())

    first = folders()
    assert len(first) == 1 and folders((2, "cpu MHz : 3000")) == first
    assert len(folders((1, "flags : sse2"), (4, "flags : sse2")) - first) == 1


def test_other_versions_share_nothing(tmp_path: Path, backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an upgrade in place torch would load what was compiled with its old headers."""
    model, paths = create(run_spec().model, 0), set()
    for version in (torch.__version__, "2.12.9", torch.__version__):
        monkeypatch.setattr(torch, "__version__", version)
        compiling.CompiledModel(model, model, RankGroup(rank=0, world=1, device=torch.device("cpu")), tmp_path)
        folder = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        assert folder.parent == tmp_path and f"-torch{version}-cpython" in folder.name
        assert Path(os.environ["TRITON_CACHE_DIR"]).parent == folder
        paths.add(folder)
    assert len(paths) == 2 == len(list(tmp_path.iterdir()))


@pytest.mark.parametrize("error", [ValueError("mine"), torch.OutOfMemoryError("too much")])
def test_what_is_not_the_compilers_fault_is_raised(packs: Path, tmp_path: Path, backend: Any, error: Exception) -> None:
    """In what was compiled; and too little memory for compiling, with what may be done about it."""

    def failing(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        if isinstance(error, torch.OutOfMemoryError):
            raise error

        def run(*args: torch.Tensor) -> Any:
            raise error

        return run

    backend(failing)
    of_memory = isinstance(error, torch.OutOfMemoryError)
    with pytest.raises(PlumblineError if of_memory else ValueError, match="--micro-batch" if of_memory else "mine"):
        train(run_spec(), make_settings(packs, tmp_path))
    assert not (tmp_path / "out/manifest.json").exists()


@pytest.mark.parametrize(
    ("strategy", "backends", "reason"),
    [("fsdp", "eager eager", None), ("ddp", "eager broken", "rank 1: torch.compile fails: RuntimeError: no compiler")],
)
def test_two_ranks_train_as_one(
    packs: Path, tmp_path: Path, undisturbed: Path, strategy: Any, backends: str, reason: str | None
) -> None:
    """Each layer a graph that knows what to compute again; and a rank that cannot compile, whom the others follow."""
    chosen = make_settings(packs, tmp_path, micro_batch=2, strategy=strategy, recompute_activations=strategy == "fsdp")
    assert train_ranks(2, run_spec(), chosen, COMPILE_BACKENDS=backends) == [0, 0]
    manifest = read(tmp_path / "out/manifest.json")
    assert (manifest["compiled"], manifest["not_compiled"]) == (reason is None, reason)
    assert_alike(tmp_path, undisturbed)
