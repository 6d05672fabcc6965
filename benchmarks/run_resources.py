"""Steps of benchmarks/job_resources.py for the jobs of a run: training, evaluation, probes; measurements, a bundle, a
verdict.

On processors: models of made-up width are trained for two steps on packs of the preset `smoke`, in 4-byte weights.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: Widths of models of eight layers: 26 M, 102 M and 228 M parameters; the last of a training alone.
WIDTHS = (512, 1024, 1536)
#: Widths of the models that a verdict looks at, at a context of 1,024: 2 M and 7 M parameters.
LOOKED_AT = (128, 256)

LOOK = """
import sys
from pathlib import Path
from plumbline.operate.preflight.method_checks import finished_run_checks
from plumbline.operate.preflight.method_checks.finished_run_checks import TrainedModel, TrainedRun
from plumbline.operate.preflight.method_checks.finished_run_checks import locate_held_out_pack, read_sequences
from plumbline.specs.spec import RunSpec
kind, spec, folder, work = sys.argv[1], RunSpec.from_json(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])
if kind == "whole":
    seen = finished_run_checks.check_run(folder, spec, locate_held_out_pack(work, spec))
    assert seen.leak is None, seen.leak
else:
    run = TrainedRun(folder=folder, spec=spec)
    pack = locate_held_out_pack(work, spec)
    wrong, _ = TrainedModel(run).loss(read_sequences(pack, spec, 0, finished_run_checks.MORE_TOKENS))
    assert wrong is None, wrong
    seen = finished_run_checks.check_gain_elsewhere([run], run, work)
    assert seen.leak is None and "training sequences" in seen.text, seen
"""

Step = Iterator[tuple[dict[str, float], list[str]]]


def verb_command(name: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", f"plumbline.{name}", *map(str, arguments)]


def run_command(command: list[str]) -> None:
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@cache
def _smoke(work: Path) -> Any:
    """The project of the preset `smoke` with its packs and items below a folder."""
    from plumbline.project import load
    from plumbline.specs.yaml_files import load_config

    project = load(load_config() | {"preset": "smoke", "studies": ["transfer"], "work": str(work)})
    run = project.runs["transfer/base/baseline/s42"]
    manifests = (project.paths.pack_manifest(run), project.paths.validation_manifest(run))
    targets = [str(Path(manifest).parent) for manifest in manifests]
    targets.append(project.paths.items(run.spec.data.corpus, run.suite))
    arguments = ["--config", "preset=smoke", f"work={work}", "--cores", "2", "--nolock", "--quiet", "all"]
    os.environ.pop("SNAKEMAKE_PROFILE", None)
    run_command([sys.executable, "-m", "snakemake", *targets, *arguments])
    return project, run


def _training(folder: Path, width: int) -> tuple[float, list[str]]:
    """Millions of parameters of a model, and the command that trains it for two steps."""
    from plumbline.plan.model_counts import estimate_cost
    from plumbline.specs.spec import RunSpec

    project, run = _smoke(folder / "work")
    content = json.loads(json.dumps(run.spec.to_dict()))
    content["model"] |= {"layers": 8, "width": width, "heads": 16, "key_value_heads": 16, "head_width": width // 16}
    content["model"] |= {"ffn_width": 8 * width // 3 // 8 * 8}
    content["train"] |= {"steps": 2, "validate_every": 2}
    content["probes"] = [{"name": "attention_concentration", "at": [0.5, 1.0], "sequences": 8, "beyond": 50.0}]
    spec = folder / f"spec{width}.json"
    spec.write_text(json.dumps(content))
    arguments = ("--spec", spec, "--training-pack", project.paths.pack_manifest(run))
    arguments += ("--validation-pack", project.paths.validation_manifest(run))
    arguments += ("--state", folder / f"state{width}", "--out", folder / f"run{width}")
    return estimate_cost(RunSpec.from_json(str(spec)).model).parameters / 1e6, verb_command("train", *arguments)


def pretrain(folder: Path) -> Step:
    for width in WIDTHS:
        millions, command = _training(folder, width)
        yield {"parameters_m": millions}, command


def evaluate(folder: Path) -> Step:
    for width in WIDTHS[:2]:
        millions, command = _training(folder, width)
        if not (folder / f"run{width}").exists():
            run_command(command)
        project, run = _smoke(folder / "work")
        items = Path(project.paths.items(run.spec.data.corpus, run.suite)).parent
        arguments = ("--run", folder / f"run{width}", "--items", items, "--tokenizer")
        arguments += (project.paths.tokenizer(run.spec.data.corpus), *project.commands.evaluation(run).split())
        yield {"parameters_m": millions}, verb_command("evaluate", *arguments, "--out", folder / f"scores{width}")


def probe(folder: Path) -> Step:
    for width in WIDTHS[:2]:
        millions, command = _training(folder, width)
        if not (folder / f"run{width}").exists():
            run_command(command)
        project, run = _smoke(folder / "work")
        arguments = ("--run", folder / f"run{width}", "--validation-pack", project.paths.validation_manifest(run))
        yield {"parameters_m": millions}, verb_command("probes", *arguments, "--out", folder / f"probes{width}.parquet")


def _packs(folder: Path) -> Path:
    """A folder with packs of made-up tokens at a context of 1,024: more than two steps read, and than a loss is of."""
    import numpy as np

    project, run = _smoke(folder / "work")
    corpus = folder / "looked" / "corpora" / run.spec.data.corpus
    facts = {"corpus": run.spec.data.corpus, "source": "local", "collections": [], "split_rule": "", "piece_bytes": 0}
    split = {"file": "x", "sha256": "0" * 64, "documents": 1}
    manifest = folder / "made_up.json"
    manifest.write_text(json.dumps(facts | {"splits": {"train": split, "validation": split}}))
    for side, size_name in (("train", "base"), ("validation", "validation")):
        tokens = np.random.default_rng(0).integers(1, 1000, 400 * 1024).astype("<u2")
        tokens[::1000] = tokens[-1] = 0  # the separator
        np.save(folder / f"{side}.npy", tokens)
        arguments = (
            "--token-shards",
            folder / f"{side}.npy",
            "--tokenizer",
            project.paths.tokenizer(run.spec.data.corpus),
        )
        arguments += ("--split", side, "--documents", manifest, "--context", 1024, "--pack-size", f"{size_name}=all")
        run_command(verb_command("data.pack", *arguments, "--out", corpus / "packs" / "context1024" / side))
    return folder / "looked"


def _train_at_long_context(folder: Path, width: int) -> tuple[float, Path, Path, Path]:
    """Millions of parameters, spec, run and work folder of a model that was trained for two steps at context 1,024."""
    from plumbline.operate.preflight.method_checks.finished_run_checks import locate_held_out_pack, locate_training_pack
    from plumbline.specs.spec import RunSpec

    millions, _ = _training(folder, width)
    spec, work = folder / f"spec{width}.json", folder / "looked"
    if not work.exists():
        _packs(folder)
    content = json.loads(spec.read_text())
    content["model"] |= {"context": 1024}
    content["train"] |= {"batch_tokens": 8192, "validation_sequences": 64}
    content["probes"] = []
    spec.write_text(json.dumps(content))
    run, loaded = folder / f"looked{width}", RunSpec.from_json(str(spec))
    if not run.exists():
        arguments = ("--spec", spec, "--training-pack", locate_training_pack(work, loaded))
        arguments += (
            "--validation-pack",
            locate_held_out_pack(work, loaded),
            "--state",
            folder / f"state_looked{width}",
        )
        run_command(verb_command("train", *arguments, "--out", run))
    return millions, spec, run, work


def verdict_whole(folder: Path) -> Step:
    """The run of an arm that is looked at whole."""
    for width in LOOKED_AT:
        millions, spec, run, work = _train_at_long_context(folder, width)
        command = [sys.executable, "-c", LOOK, "whole", str(spec), str(run), str(work)]
        # Eight layers of 8,192 tokens.
        yield {"states_m": 8 * 8192 * width / 1e6, "looked_at_m": millions}, command


def verdict_more(folder: Path) -> Step:
    """Each run's loss again, and its gain elsewhere, with the baseline's."""
    for width in LOOKED_AT:
        millions, spec, run, work = _train_at_long_context(folder, width)
        command = [sys.executable, "-c", LOOK, "more", str(spec), str(run), str(work)]
        yield {"parameters_m": millions, "all_runs_m": millions}, command


def bundle(folder: Path) -> Step:
    """What the preset `smoke` gave, as far as it is there."""
    arguments = ("--preset", "smoke", "--study", "transfer", "--allow-missing", "--out", folder / "bundle.tar.xz")
    yield {}, verb_command("bundle", *arguments)


def measure(folder: Path) -> Step:
    """Each measurement of a study on a processor, at the preset `smoke`."""
    for study, name in (("quack", "step_time"), ("query_free", "basis_transfer")):
        out = ("--preset", "smoke", "--out", folder / f"{name}.parquet")
        yield {}, verb_command("results.measurements.run_measurement", study, name, *out)


STEPS = {
    "bundle": {"smoke": bundle},
    "evaluate": {"process": evaluate},
    "probe": {"process": probe},
    "pretrain": {"process": pretrain},
    "measure": {"processor": measure},
    "verdict": {"whole": verdict_whole, "more": verdict_more},
}
