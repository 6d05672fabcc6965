"""How far the plan is from what was measured, after one calibration run.

    python benchmarks/plan_accuracy.py                   # table 2 of the transfer study, from work/demo

The only measurement that the estimator is given is one run (training and evaluation). Its predictions for the other
runs of the target are compared with the wall seconds in Snakemake's benchmark files.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from machine_description import command, describe

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError
from plumbline.plan.machines import job_seconds, read_finished
from plumbline.plan.run_estimate import RunEstimator, estimator
from plumbline.project import load
from plumbline.specs.study_config import Run
from plumbline.specs.yaml_files import PRESETS, load_config


def compare(priced: RunEstimator, runs: list[Run]) -> pd.DataFrame:
    """Predicted and measured seconds of each job of `runs` that has been measured undisturbed."""
    rows = []
    for run in runs:
        manifest = read_finished(run, priced.work)
        if manifest is None or manifest["attempts"] != 1:
            continue
        for rule, predicted in (("pretrain", priced.pretrain_seconds(run)), ("evaluate", priced.evaluate_seconds(run))):
            measured = job_seconds(priced.work, rule, run)
            if measured is not None and predicted is not None:
                rows.append({"run": run.key, "job": rule, "predicted": predicted, "measured": measured})
    return pd.DataFrame(rows, columns=["run", "job", "predicted", "measured"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=PRESETS, default="demo")
    parser.add_argument("--work", help="the folder that holds <preset>/ (default: config/config.yaml's)")
    parser.add_argument("--study", default="transfer")
    parser.add_argument("--target", default="table2")
    parser.add_argument("--machine", default="core")
    parser.add_argument("--calibration-run", metavar="RUN", default="transfer/base/baseline/s42")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    changed = {"preset": options.preset, "machine": options.machine, "studies": [options.study]}
    config = load_config() | changed | ({"work": options.work} if options.work else {})
    whole = load(config)
    if options.calibration_run not in whole.runs:
        raise PlumblineError(f"--calibration-run: there is no run {options.calibration_run!r}")
    runs = [run for run in whole.targets.runs(options.study, options.target) if run.key != options.calibration_run]
    calibrated = estimator(whole, calibrate_on=[whole.runs[options.calibration_run]])
    if not calibrated.calibration.speed or calibrated.calibration.evaluate_start is None:
        raise PlumblineError(
            f"{options.calibration_run} is not trained and evaluated under {whole.paths.work}; run Snakemake first"
        )
    frame = compare(calibrated, runs)
    if frame.empty:
        raise PlumblineError(f"no other run of {options.target} has been measured under {whole.paths.work}")
    stated = compare(estimator(whole, calibrate_on=[]), runs)
    text = report(frame, stated, len(runs), options)
    options.out.write_text(text, encoding="utf-8")
    print(text)


def report(frame: pd.DataFrame, stated: pd.DataFrame, runs: int, options: argparse.Namespace) -> str:
    """The totals, then a row a job."""
    there = frame["run"].nunique()
    jobs = frame.groupby("job", sort=False)[["predicted", "measured"]].sum()
    jobs.loc["together"] = jobs.sum()
    jobs["predicted without any measurement"] = stated.groupby("job", sort=False)["predicted"].sum()
    jobs.loc["together", "predicted without any measurement"] = stated["predicted"].sum()
    jobs["predicted/measured"] = jobs["predicted"] / jobs["measured"]
    jobs["without any/measured"] = jobs["predicted without any measurement"] / jobs["measured"]
    frame = frame.assign(ratio=frame["predicted"] / frame["measured"])
    spread = frame["ratio"].quantile([0, 0.5, 1])
    factor = jobs.loc["together", "predicted/measured"]
    return "\n\n".join(
        [
            f"# The plan against benchmark files: {options.target} at `{options.preset}`",
            f"{describe(with_torch=False)}. Calibrated on `{options.calibration_run}` alone; {there} of the "
            f"target's {runs} "
            f"other runs are measured. Job seconds, summed. `{command()}`",
            jobs.round(2).to_markdown(),
            f"Within a factor of 1.5: **{'yes' if 1 / 1.5 <= factor <= 1.5 else 'no'}** ({factor:.2f}). A single job's "
            f"ratio lies between {spread[0]:.2f} and {spread[1]:.2f}, median {spread[0.5]:.2f}.",
            frame.round(2).to_markdown(index=False),
            "",
        ]
    )


if __name__ == "__main__":
    command_line.run(main)
