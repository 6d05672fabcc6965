"""Trains a run of a study without Snakemake, any part of it changed: ``plumbline train STUDY/SCALE/METHOD/sSEED --out
DIR``.

It reads the packs that the workflow makes, and writes to DIR the files that the workflow writes of a run. METHOD may be
a variant (``qknorm.x``) or an arm. Exit codes: 0 the run ended (completed or diverged), 75 stopped on request and saved
(the same command continues), anything else an error.
"""

from __future__ import annotations

from pathlib import Path

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import parse_json
from plumbline.core.stop_request import StopRequest
from plumbline.project import load
from plumbline.specs import name_completers
from plumbline.specs.spec import RunSpec
from plumbline.specs.spec_changes import change_spec
from plumbline.specs.yaml_files import PRESETS, load_config
from plumbline.train.trainer_settings import TrainerSettings


def arguments() -> command_line.Parser:
    """Build the command-line parser of `plumbline train`."""
    parser = command_line.Parser(__doc__)
    parser.add_argument(
        "run",
        metavar="RUN",
        completer=name_completers.runs,
        help="such as transfer/base/qknorm/s42 (plumbline ls runs)",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="outputs; the state is in DIR.state")
    parser.add_argument("--preset", choices=PRESETS, help="default: config/config.yaml's")
    change = "change a value of the spec, such as train.steps=100 or model.mixer.name=softpick; repeat for more"
    parser.add_argument("--set", action="append", default=[], metavar="PART.KEY=VALUE", dest="changes", help=change)
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
        return  # there is none, or it cannot be read
    run_id = outcome.get("run_id") if isinstance(outcome, dict) else None
    if run_id not in (None, spec.run_id):
        raise PlumblineError(
            f"--out {out}: holds run {run_id}, which is finished, but this command is for run {spec.run_id}: name "
            "another folder, or remove that one"
        )


def main() -> int:
    """Run `plumbline train`, and return the exit code. SIGTERM is caught before anything slow is imported."""
    stop = StopRequest().install()
    options = arguments().parse_args()
    config = load_config()
    if options.config:
        from plumbline.project import config_arguments

        config = config_arguments.change_config(config, options.config)
    if options.preset:
        config["preset"] = options.preset
    project = load(config)
    if options.run.count("/") != 3 or options.run not in project.every_run:
        suggestion = nearest(options.run, project.every_run)
        raise PlumblineError(
            f"there is no run {options.run!r} at preset {project.name} (plumbline ls runs lists them){suggestion}"
        )
    study, scale, method, seed = options.run.split("/")
    run = project.run(study, scale, method, seed.removeprefix("s"))
    spec = change_spec(run.spec, options.changes)
    if spec.data != run.spec.data or spec.model.context != run.spec.model.context:
        raise PlumblineError(
            f"--set: packs are cut for the study's own data and context ({run.spec.data}, "
            f"context {run.spec.model.context}); change them in the study's YAML"
        )
    _require_own_folder(options.out, spec)
    packs = {"data": project.paths.pack_manifest(run), "validation": project.paths.validation_manifest(run)}
    for manifest in packs.values():
        if not Path(manifest).exists():
            folder = Path(manifest).parent
            raise PlumblineError(
                f"there is no pack {manifest}; make it: snakemake {folder} --config preset={project.name}"
            )
    from plumbline.train.pretrain import pretrain

    settings = TrainerSettings(
        training_pack=Path(packs["data"]), validation_pack=Path(packs["validation"]), out=options.out,
        state=options.out.with_name(f"{options.out.name}.state"), device=options.device,
        micro_batch=options.micro_batch, tensorboard=options.tensorboard, mlflow=options.mlflow,
    )  # fmt: skip
    return pretrain(spec, settings, stop)


if __name__ == "__main__":
    command_line.run(main)
