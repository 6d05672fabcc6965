"""Steps of benchmarks/job_resources.py for the jobs of a run: training, evaluation, probes; measurements, a bundle.

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

Step = Iterator[tuple[dict[str, float], list[str]]]


def verb(name: str, *words: object) -> list[str]:
    return [sys.executable, "-m", f"plumbline.{name}", *map(str, words)]


def done(words: list[str]) -> None:
    subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@cache
def _smoke(work: Path) -> Any:
    """The project of the preset `smoke` with its packs and items below a folder."""
    from plumbline.project import load
    from plumbline.specs.yaml_files import load_config

    project = load(load_config() | {"preset": "smoke", "studies": ["transfer"], "work": str(work)})
    run = project.runs["transfer/base/baseline/s42"]
    manifests = (project.paths.pack_manifest(run), project.paths.validation_manifest(run))
    wanted = [str(Path(manifest).parent) for manifest in manifests]
    wanted.append(project.paths.items(run.spec.data.corpus, run.suite))
    asked = ["--config", "preset=smoke", f"work={work}", "--cores", "2", "--nolock", "--quiet", "all"]
    os.environ.pop("SNAKEMAKE_PROFILE", None)
    done([sys.executable, "-m", "snakemake", *wanted, *asked])
    return project, run


def _training(folder: Path, width: int) -> tuple[float, list[str]]:
    """Millions of parameters of a model, and the command that trains it for two steps."""
    from plumbline.plan.model_cost import estimated
    from plumbline.specs.spec import RunSpec

    project, run = _smoke(folder / "work")
    told = json.loads(json.dumps(run.spec.to_dict()))
    told["model"] |= {"layers": 8, "width": width, "heads": 16, "key_value_heads": 16, "head_width": width // 16}
    told["model"] |= {"ffn_width": 8 * width // 3 // 8 * 8}
    told["train"] |= {"steps": 2, "validate_every": 2}
    told["probes"] = [{"name": "attention_concentration", "at": [0.5, 1.0], "sequences": 8, "beyond": 50.0}]
    spec = folder / f"spec{width}.json"
    spec.write_text(json.dumps(told))
    asked = ("--spec", spec, "--training-pack", project.paths.pack_manifest(run))
    asked += ("--validation-pack", project.paths.validation_manifest(run))
    asked += ("--state", folder / f"state{width}", "--out", folder / f"run{width}")
    return estimated(RunSpec.from_json(str(spec)).model).parameters / 1e6, verb("train", *asked)


def pretrain(folder: Path) -> Step:
    for width in WIDTHS:
        millions, words = _training(folder, width)
        yield {"parameters_m": millions}, words


def evaluate(folder: Path) -> Step:
    for width in WIDTHS[:2]:
        millions, words = _training(folder, width)
        if not (folder / f"run{width}").exists():
            done(words)
        project, run = _smoke(folder / "work")
        items = Path(project.paths.items(run.spec.data.corpus, run.suite)).parent
        asked = ("--run", folder / f"run{width}", "--items", items, "--tokenizer")
        asked += (project.paths.tokenizer(run.spec.data.corpus), *project.commands.evaluation(run).split())
        yield {"parameters_m": millions}, verb("evaluate", *asked, "--out", folder / f"scores{width}")


def probe(folder: Path) -> Step:
    for width in WIDTHS[:2]:
        millions, words = _training(folder, width)
        if not (folder / f"run{width}").exists():
            done(words)
        project, run = _smoke(folder / "work")
        asked = ("--run", folder / f"run{width}", "--validation-pack", project.paths.validation_manifest(run))
        yield {"parameters_m": millions}, verb("probes", *asked, "--out", folder / f"probes{width}.parquet")


def bundle(folder: Path) -> Step:
    """What the preset `smoke` gave, as far as it is there."""
    asked = ("--preset", "smoke", "--study", "transfer", "--allow-missing", "--out", folder / "bundle.tar.xz")
    yield {}, verb("bundle", *asked)


def measure(folder: Path) -> Step:
    """Each measurement of a study on a processor, at the preset `smoke`."""
    for study, name in (("quack", "step_time"), ("query_free", "basis_transfer")):
        out = ("--preset", "smoke", "--out", folder / f"{name}.parquet")
        yield {}, verb("results.measurements.run_measurement", study, name, *out)


STEPS = {
    "bundle": {"smoke": bundle},
    "evaluate": {"process": evaluate},
    "probe": {"process": probe},
    "pretrain": {"process": pretrain},
    "measure": {"processor": measure},
}
