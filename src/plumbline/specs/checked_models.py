"""Lists the models that are checked before a method of a user's own is trained, of a file that says ``extends:`` or of
a study that does. Imports no torch."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, sha256_text
from plumbline.specs import code_hash, corpus, experiment_runs, own_methods_file, study_config
from plumbline.specs.own_methods_file import OwnMethodsFile
from plumbline.specs.spec import ModelSpec, RunSpec
from plumbline.specs.study_config import Study
from plumbline.specs.yaml_files import ROOT

#: The preset whose sizes models are checked at before anything is trained.
SMALL = "smoke"


def make_own_methods_file(
    experiment: dict[str, Any], study: Study, root: Path = ROOT, source: str = corpus.AS_THE_CORPUS_SAYS
) -> OwnMethodsFile | None:
    """Make the file that would ask for the experiment's method; None for a method that the study did not bring.

    Args:
        experiment: `config.experiment`, without its seeds.
        study: the study that it names.

    Raises:
        PlumblineError: as `experiment_runs.load`.
    """
    method = experiment["method"]
    if study.code == study.name or method.partition(".")[0] in study.definition["inherited"]:
        return None
    runs = experiment_runs.load(experiment | {"baseline_seeds": [0], "seeds": [0]}, study, root, source)
    return OwnMethodsFile(
        path=study.file,
        study=dataclasses.replace(study, runs=runs.runs),
        against={method: experiment["against"]},
        asked=own_methods_file.DEFAULTS | {"scale": runs.scale},
        experiment=experiment,
    )


def list_checked_models(mine: OwnMethodsFile) -> dict[str, tuple[RunSpec, dict[str, ModelSpec]]]:
    """The models to check before training: for every method and baseline a small spec, and by scale the model to be
    trained.

    The small spec is that of the preset smoke; where the study has no such scale there, it is two layers of the model.
    """
    small = mine if mine.study.preset == SMALL else _load_small(mine)
    specs = {}
    for method in mine.compared:
        models = {run.spec.scale: run.spec.model for run in mine.study.runs.values() if run.spec.method == method}
        if small is not None:
            specs[method] = (small.runs(small.scale, method)[0].spec, models)
        else:
            spec, model = mine.runs(mine.scale, method)[0].spec, models[mine.scale]
            limits = {"layers": 2, "vocabulary": 1024, "context": 64}
            sizes = {key: min(limit, getattr(model, key)) for key, limit in limits.items()}
            specs[method] = (structs.replace(spec, model=structs.replace(model, **sizes)), models)
    return specs


def _load_small(mine: OwnMethodsFile) -> OwnMethodsFile | None:
    """The same methods at the small preset; None if they are not there."""
    try:
        if mine.experiment is None:
            return own_methods_file.load(mine.path, SMALL)
        experiment = {key: mine.experiment[key] for key in ("study", "scale", "method", "against")}
        return make_own_methods_file(experiment, study_config.load(mine.study.name, SMALL))
    except PlumblineError:
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedSize:
    """How the runs of a method read: tokens of a sequence, sequences of a batch, whether in bfloat16, and the layers of
    the deepest of them.
    """

    context: int
    rows: int
    half: bool
    layers: int


def list_trained_sizes(mine: OwnMethodsFile, *methods: str) -> list[TrainedSize]:
    """List how the runs of some methods read at every scale, each way once, shorter contexts first."""
    layers: dict[tuple[int, int, bool], int] = {}
    for run in mine.study.runs.values():
        if run.spec.method in methods:
            model = run.spec.model
            size = (model.context, run.spec.sequences_per_batch, run.spec.train.precision != "float32")
            layers[size] = max(layers.get(size, 0), model.layers)
    return [
        TrainedSize(context=context, rows=rows, half=half, layers=depth)
        for (context, rows, half), depth in sorted(layers.items())
    ]


def fingerprint_checks(mine: OwnMethodsFile) -> str:
    """Fingerprint the checks of a user's own file.

    It changes with their code, the models' code, and the models checked.
    """
    entries = ("operate/preflight/method_checks/checks_report.py", "operate/preflight/method_checks/training_checks.py")
    files = {file for entry in entries for file in code_hash.product_files(code_hash.PACKAGE / entry)}
    checked: list[Any] = [mine.against, mine.asked["parity"]]
    for method, (small, models) in list_checked_models(mine).items():
        sizes = [dataclasses.asdict(size) for size in list_trained_sizes(mine, method)]
        runs = {k: v.to_dict() for k, v in models.items()}
        checked.append([method, small.to_dict(), small.components, runs, sizes])
    return sha256_text(canonical_json([code_hash.tree_hash(files), checked]))[:16]
