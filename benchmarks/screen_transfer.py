"""Do the transfer study's modifications add up at demo size? All of them in one design, beside Table 2's runs of each.

    python benchmarks/screen_transfer.py                     # 72 runs of the design; screen_transfer.md, .svg
    python benchmarks/screen_transfer.py --runs 40 --fresh-runs 3       # a smaller design, and fewer fresh runs
    python benchmarks/screen_transfer.py --table2 FOLDER     # runs of table 2 elsewhere than in work/demo/runs
    python benchmarks/screen_transfer.py --words --config work=/scratch/me

`plumbline screen --study transfer` makes the runs (with whatever follows --words); what is finished is used, so that
the same command goes on, and writes the page again once all is there. Table 2's runs have the same budget, and are
those of `make table2`, or of a kept record (`plumbline rebuild records/demo-9466a36/bundle.tar.xz --into FOLDER`, then
`--table2 FOLDER/work/demo/runs`).
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from machine_description import describe
from scipy import special

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_count
from plumbline.specs import combined_methods, study_config
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import Study
from plumbline.verdict.formatting import format_value, write_grid

STUDY, PRESET, SCALE = "transfer", "demo", "base"
#: Of the intervals, as the screen's page has them.
INTERVAL = 0.9
PAGE = Path(__file__).with_suffix(".md")


def main() -> int:
    """Make the screen's runs that are missing, and write the page."""
    parser = command_line.Parser(__doc__)
    parser.add_argument("--table2", type=Path, default=Path("work") / PRESET / "runs", metavar="FOLDER")
    parser.add_argument("--runs", type=command_line.positive, default=72, help="of the design")
    parser.add_argument("--fresh-runs", type=command_line.positive, default=5, help="of what is chosen")
    parser.add_argument("--words", nargs=argparse.REMAINDER, default=[], help="for plumbline screen")
    options = parser.parse_args()
    screen = ["screen", "--study", STUDY, "--preset", PRESET, "--scale", SCALE, "--runs", str(options.runs)]
    screen += ["--fresh-runs", str(options.fresh_runs)]
    done = subprocess.run(
        [sys.executable, "-m", "plumbline", *screen, "--json", *options.words], stdout=subprocess.PIPE, text=True
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines or "effects" not in (decision := json.loads(lines[-1])):
        raise PlumblineError(f"plumbline {' '.join(screen)} ended with {done.returncode} and decided nothing")
    study = study_config.load(STUDY, PRESET)
    PAGE.write_text(write_page(decision, study, options.table2, screen), encoding="utf-8")
    picture = Path(decision["page"]).with_suffix(".svg")
    shutil.copyfile(picture, PAGE.with_suffix(".svg"))
    return 0


def read_losses(study: Study, folder: Path) -> dict[str, list[float]]:
    """Method -> final validation losses of its runs at the scale: the first of each, and further seeds that are there.

    Raises:
        PlumblineError: a method's first run is missing, or one is of another spec than the study's.
    """
    losses: dict[str, list[float]] = {}
    for run in study.group("base", "noise_floor"):
        path = folder / run.key / "outcome.json"
        if not path.is_file() and "base" not in run.groups:
            continue
        try:
            outcome = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise PlumblineError(f"{path} is missing; make table2, or name the folder of its runs: --table2") from None
        if outcome["run_id"] != run.spec.run_id:
            raise PlumblineError(f"{path} is of another spec ({outcome['run_id']}, not {run.spec.run_id})")
        losses.setdefault(run.spec.method, []).append(outcome["validation_loss"])
    return losses


def list_fresh(decision: dict[str, Any]) -> list[list[float]]:
    """Values of the fresh runs that confirm what was chosen, by arm."""
    by_arm: dict[str, list[float]] = {}
    for each in decision["runs"]:
        if each["request"]["part"] == "fresh" and each["run"]["value"] is not None:
            by_arm.setdefault(json.dumps(each["request"]["settings"]), []).append(each["run"]["value"])
    return list(by_arm.values())


def pool_spread(groups: Iterable[list[float]]) -> tuple[float, int]:
    """Sigma of a run by arms that have several runs, and its degrees of freedom."""
    several = [each for each in groups if len(each) > 1]
    df = sum(len(each) - 1 for each in several)
    return math.sqrt(sum(statistics.variance(each) * (len(each) - 1) for each in several) / df), df


def compare_alone(
    losses: dict[str, list[float]], method: str, baseline: str, spread: tuple[float, int]
) -> tuple[float, float]:
    """A method's gain over the baseline by table 2's runs, and half of its interval."""
    theirs, ours, (sigma, df) = losses[baseline], losses[method], spread
    half = float(special.stdtrit(df, (1 + INTERVAL) / 2)) * sigma * math.sqrt(1 / len(ours) + 1 / len(theirs))
    return statistics.fmean(theirs) - statistics.fmean(ours), half


def write_page(decision: dict[str, Any], study: Study, table2: Path, screen: list[str]) -> str:
    """Write the page: every effect beside the method alone, the study's own combinations, what stands out."""
    losses, effects = read_losses(study, table2), decision["effects"]
    sigma, df = spread_of_seeds = pool_spread([*losses.values(), *list_fresh(decision)])
    specs = {run.spec.method: run.spec for run in study.group("base") if run.spec.scale == SCALE}
    baseline, by_level = decision["terms"]["baseline"], {tuple(each["level"]): each for each in effects["effects"]}
    names = {
        (slot, method): combined_methods.name_level(slot, method, specs[method], specs[baseline])
        for slot, method in by_level
    }
    rows = []
    for (slot, method), effect in by_level.items():
        error, name = effect["error"], names[slot, method]
        alone = ("", "")
        if name == method:
            gain, half = compare_alone(losses, method, baseline, spread_of_seeds)
            alone = (
                format_value(gain, half),
                f"{format_value(gain - half, half)} to {format_value(gain + half, half)}",
            )
        interval = f"{format_value(effect['low'], error)} to {format_value(effect['high'], error)}"
        chosen = "chosen" if effect["chosen"] else ""
        rows.append((slot, f"`{name}`", format_value(effect["gain"], error), interval, chosen, *alone))
    percent = f"{100 * INTERVAL:.0f} %"
    heads = ("slot", "level", "gain in the screen", f"{percent} interval", "", "alone (Table 2)", f"{percent} interval")
    text = (
        f"{format_count(len(decision['design']['rows']), 'run')} of the design, {decision['terms']['size']}. "
        "A gain is in nats a token of validation loss, better upwards. In the screen it is what a level gains over the "
        "baseline's in its slot, as an average over what other slots have; alone it is a run or three of the method "
        f"against {len(losses[baseline])} of the baseline."
    )
    wider = float(special.fdtrc(effects["residual_df"], df, (effects["residual_sigma"] / sigma) ** 2))
    spread = (
        f"Whether they add up: around the sum of its levels a run of the screen spreads by "
        f"{effects['residual_sigma']:.3g} ({effects['residual_df']} degrees of freedom), seeds alone spread by "
        f"{sigma:.3g} ({df}); if all added up, the two would be alike (F test, p = {wider:.2g})."
    )
    parts = [
        "# Do the modifications of the transfer study add up? (demo size)",
        f"`plumbline {' '.join(screen)}`, on {describe()}. Demo size: it says nothing about a larger one, nor about "
        "another budget.",
        decision["sentence"],
        text,
        write_grid(heads, rows),
        spread,
        "![Every effect with its interval, and the half-normal plot](screen_transfer.svg)",
        "## The study's own combinations",
        write_combinations(losses, specs, by_level, baseline, spread_of_seeds),
        "## Interactions",
        write_interactions(effects, names),
        "## What was chosen",
        write_set(decision, names),
    ]
    return "\n\n".join(parts) + "\n"


def write_combinations(
    losses: dict[str, list[float]],
    specs: dict[str, RunSpec],
    effects: dict[tuple[str, str], dict[str, Any]],
    baseline: str,
    spread: tuple[float, int],
) -> str:
    """Set the gain of each method that changes several slots beside the sum of their effects."""
    choices = {name: combined_methods.list_choices(spec) for name, spec in specs.items()}
    rows = []
    for name, spec in specs.items():
        slots = combined_methods.find_changed_slots(spec, specs[baseline])
        if len(slots) < 2:
            continue
        levels = [
            level for level in effects if level[0] in slots and choices[level[1]][level[0]] == choices[name][level[0]]
        ]
        gain, half = compare_alone(losses, name, baseline, spread)
        total = sum(effects[level]["gain"] for level in levels)
        error = math.sqrt(sum(effects[level]["error"] ** 2 for level in levels))
        rows.append(
            (f"`{name}`", format_value(total, error), f"{format_value(gain, half)} ± {format_value(half, half)}")
        )
    return write_grid(("method", "sum of its effects in the screen", "its own run (Table 2)"), rows)


def write_interactions(effects: dict[str, Any], names: dict[tuple[str, str], str]) -> str:
    """List the pairs of levels that stand out."""
    rows = [
        (
            " × ".join(f"`{names[tuple(level)]}`" for level in each["pair"]),
            format_value(each["gain"], each["error"]),
            f"{each['adjusted']:.2g}",
            f"{len(each['aliases'])} more" if each["aliases"] else "",
        )
        for each in effects["interactions"]
    ]
    tested = effects["interactions_tested"]
    if not rows:
        return f"Of {tested:,} pairs of levels that these runs tell apart none stands out (Bonferroni at .05)."
    heads = ("two together", "gain beyond their sum", "corrected p", "same runs as")
    return f"Those of {tested:,} pairs that stand out (Bonferroni at .05):\n\n{write_grid(heads, rows)}"


def write_set(decision: dict[str, Any], names: dict[tuple[str, str], str]) -> str:
    """State what the fresh runs say of what was chosen, and of each of its parts."""
    if not decision["chosen"] or decision["confirmation"] is None:
        return "Nothing was chosen and run with fresh seeds."
    difference = decision["confirmation"]
    error = (difference["high"] - difference["low"]) / 4
    total = sum(e["gain"] for e in decision["effects"]["effects"] if e["level"] in decision["chosen"])
    text = (
        f"Chosen: {', '.join(f'`{names[tuple(level)]}`' for level in decision['chosen'])}. The gain is "
        f"{format_value(difference['gain'], error)} ({format_value(difference['low'], error)} to "
        f"{format_value(difference['high'], error)}) by {decision['terms']['fresh_runs']} fresh runs against as many "
        f"of the baseline; the sum of the effects is {format_value(total, error)}."
    )
    rows = []
    for each in decision["left_out"]:
        left = each["difference"]
        error = (left["high"] - left["low"]) / 4
        interval = f"{format_value(left['low'], error)} to {format_value(left['high'], error)}"
        rows.append((f"`{names[tuple(each['level'])]}`", format_value(left["gain"], error), interval))
    return f"{text}\n\n{write_grid(('taken out', 'what the set loses', '90 % interval'), rows)}" if rows else text


if __name__ == "__main__":
    command_line.run(main)
