"""Writes a finished run as a folder that other tools load, without Plumbline: ``plumbline export RUN --format hf``.

A Llama becomes a Llama. Any other model takes the code along that it runs, and is loaded by
``AutoModelForCausalLM.from_pretrained(FOLDER, trust_remote_code=True)``. Before the folder takes its place it is loaded
in a process without Plumbline, and its logits are compared. A folder with anything else in it is refused.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError, nearest
from plumbline.project import load
from plumbline.specs.yaml_files import PRESETS, load_config


def arguments() -> argparse.ArgumentParser:
    """Build the command-line parser of `plumbline export`."""
    parser = argparse.ArgumentParser(
        prog=command_line.prog("plumbline export"),
        description=command_line.described(__doc__),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "run", metavar="RUN", help="such as transfer/base/qknorm/s42 (plumbline ls runs), or the folder of one"
    )
    parser.add_argument("--format", required=True, choices=["hf"], help="hf: a folder for transformers")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="default: exports/PRESET/STUDY-SCALE-METHOD-sSEED")
    parser.add_argument(
        "--tokenizer", type=Path, help="tokenizer.json of its corpus (default, of a run by its name: the workflow's)"
    )
    parser.add_argument(
        "--card-scores", type=Path, help="scores.parquet, for the model card (default: the workflow's, if they exist)"
    )
    parser.add_argument("--preset", choices=PRESETS, help="of a run by its name (default: config/config.yaml's)")
    parser.add_argument("--force", action="store_true", help="replace an export of another run, or a changed one")
    parser.add_argument("--no-check", action="store_true", help="do not load the folder to compare logits")
    return parser


@dataclass(frozen=True, slots=True)
class RunWithScores:
    """A run's folder, with the tokenizer and the scores that the workflow made for the run (None where it is not
    known).
    """

    folder: Path
    tokenizer: Path | None = None
    scores: Path | None = None


def find(run: str, preset: str | None) -> RunWithScores:
    """Find a run by its folder, or by its name such as ``transfer/base/qknorm/s42``.

    Raises:
        PlumblineError: it is neither, or the run has not finished.
    """
    folder = Path(run)
    if folder.is_dir():
        if preset:
            raise PlumblineError(
                f"--preset: {folder} is a folder, whose manifest states its preset; leave out --preset"
            )
        return RunWithScores(folder)
    config = load_config()
    project = load(config | {"preset": preset or config["preset"]})
    named = project.runs.get(run)
    if named is None:
        known = nearest(run, project.runs)
        raise PlumblineError(
            f"{run} is no folder, and no run at preset {project.name} (plumbline ls runs lists them){known}"
        )
    outcome = project.paths.run(named, "outcome.json")
    if not (project.root / outcome).is_file():
        raise PlumblineError(
            f"{run} has not finished at preset {project.name}; "
            f"snakemake {outcome} --config preset={project.name} makes it"
        )
    scores = project.root / project.paths.scores(named)
    tokenizer = project.root / project.paths.tokenizer(named.spec.data.corpus)
    return RunWithScores((project.root / outcome).parent, tokenizer, scores if scores.is_file() else None)


def main() -> None:
    """Run `plumbline export`: write the folder, and say where it is."""
    given = arguments().parse_args()
    found = find(given.run, given.preset)
    from plumbline.export.write_export import export_hf
    from plumbline.runtime.finished_run import FinishedRun

    spec, tokenizer = FinishedRun.read(found.folder).spec, given.tokenizer or found.tokenizer
    if tokenizer is None:
        raise PlumblineError("--tokenizer is missing; give the tokenizer.json of the run's corpus")
    out = given.out or Path("exports") / spec.preset / spec.key.replace("/", "-")
    scores = given.card_scores or found.scores
    done = export_hf(
        found.folder, out, tokenizer=tokenizer, scores=scores, force=given.force, compare=not given.no_check
    )
    size = sum(path.stat().st_size for path in out.iterdir())
    what = "a Llama" if done.form == "llama" else "with its own code (trust_remote_code=True)"
    if done.difference is None:
        compared = "logits not compared"
    else:
        compared = f"logits differ by {done.difference:.2g} at most" if done.difference else "equal logits"
    print(f"{out}: {what}, {size / 1e6:.1f} MB, {compared}")


if __name__ == "__main__":
    command_line.run(main)
