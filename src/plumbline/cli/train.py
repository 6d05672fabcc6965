"""Trains a run of a study without Snakemake, changed at will: ``plumbline train STUDY/SCALE/METHOD/sSEED --out
DIR``.

The packs are those that the workflow makes; what a run leaves in DIR is what it leaves in the workflow's own folder. A
METHOD may be a variant (``qknorm.x``) or an arm. Exit codes: 0 run to its end (completed or diverged), 75 asked to stop
and saved (the same command continues), anything else a fault.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import parse_json
from plumbline.core.stop_request import StopRequest
from plumbline.project import load
from plumbline.specs.spec import RunSpec
from plumbline.specs.spec_changes import change_spec
from plumbline.specs.yaml_files import PRESETS, load_config
from plumbline.train.trainer_settings import TrainerSettings


def arguments() -> argparse.ArgumentParser:
    """Build the command-line parser of `plumbline train`."""
    parser = argparse.ArgumentParser(
        prog=command_line.prog("plumbline train"),
        description=command_line.strip_backquotes(__doc__),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", metavar="RUN", help="such as transfer/base/qknorm/s42 (plumbline ls runs)")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="its outputs; its state is in DIR.state")
    parser.add_argument("--preset", choices=PRESETS, help="default: config/config.yaml's")
    words = "change a value of the spec, such as train.steps=100 or model.mixer.name=softpick; repeat for more"
    parser.add_argument("--set", action="append", default=[], metavar="PART.KEY=VALUE", dest="changes", help=words)
    parser.add_argument("--config", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="as snakemake's")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--micro-batch", type=int, metavar="SEQUENCES", help="most sequences at a time (default: all)")
    parser.add_argument("--tensorboard", type=Path, metavar="DIR", help="also write TensorBoard events there")
    parser.add_argument("--mlflow", metavar="URI", help="log the run to MLflow: a tracking server, or a folder")
    return parser


def _require_own_folder(out: Path, spec: RunSpec) -> None:
    """Refuse a folder that holds what another run left, which the present one would replace.

    Raises:
        PlumblineError: naming both.
    """
    try:
        outcome = parse_json((out / "outcome.json").read_bytes())
    except (OSError, ValueError):
        return  # none, or one that tells nothing
    found = outcome.get("run_id") if isinstance(outcome, dict) else None
    if found not in (None, spec.run_id):
        raise PlumblineError(
            f"--out {out}: holds run {found}, which is finished, but this command is for run {spec.run_id}: name "
            "another folder, or remove that one"
        )


def main() -> int:
    """Run `plumbline train`, and return the exit code. SIGTERM is caught before anything slow is imported."""
    stop = StopRequest().install()
    given = arguments().parse_args()
    config = load_config()
    if given.config:
        from plumbline.project import config_arguments

        config = config_arguments.change_config(config, given.config)
    if given.preset:
        config["preset"] = given.preset
    project = load(config)
    if given.run.count("/") != 3 or given.run not in project.runs:
        known = nearest(given.run, project.runs)
        raise PlumblineError(
            f"there is no run {given.run!r} at preset {project.name} (plumbline ls runs lists them){known}"
        )
    run = project.runs[given.run]
    spec = change_spec(run.spec, given.changes)
    if spec.data != run.spec.data or spec.model.context != run.spec.model.context:
        raise PlumblineError(
            f"--set: packs are cut for the study's own data and context ({run.spec.data}, "
            f"context {run.spec.model.context}); change them in the study's YAML"
        )
    _require_own_folder(given.out, spec)
    packs = {"data": project.paths.pack_manifest(run), "validation": project.paths.validation_manifest(run)}
    for manifest in packs.values():
        if not Path(manifest).exists():
            folder = Path(manifest).parent
            raise PlumblineError(
                f"there is no pack {manifest}; make it: snakemake {folder} --config preset={project.name}"
            )
    from plumbline.train.pretrain import pretrain

    settings = TrainerSettings(
        training_pack=Path(packs["data"]), validation_pack=Path(packs["validation"]), out=given.out,
        state=given.out.with_name(f"{given.out.name}.state"), device=given.device, micro_batch=given.micro_batch,
        tensorboard=given.tensorboard, mlflow=given.mlflow,
    )  # fmt: skip
    return pretrain(spec, settings, stop)


if __name__ == "__main__":
    command_line.run(main)
