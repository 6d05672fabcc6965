"""Says what each target costs before it is run, on a named machine (``plumbline plan``).

With ``--fit TIME`` it says which tokens, seeds and scale of one method against another one fit a time, as words for
--config to paste.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from plumbline.core.command_line import described, prog, run
from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import atomic_write_text
from plumbline.plan import counts, machines, page
from plumbline.plan.estimate import estimator
from plumbline.plan.targets import table
from plumbline.project import load
from plumbline.specs.config import PRESETS, load_config, studies
from plumbline.specs.study_config import Study


def arguments() -> argparse.ArgumentParser:
    """Build the command-line parser of `plumbline plan`."""
    parser = argparse.ArgumentParser(prog=prog("python -m plumbline.plan"), description=described(__doc__))
    parser.add_argument("--preset", choices=PRESETS, help="default: config/config.yaml's")
    parser.add_argument("--machine", help="an entry of config/machines.yaml (default: config/config.yaml's)")
    parser.add_argument("--price", type=float, help="price of a device-hour, in any currency")
    words = "as snakemake --config: a part of a nested value leaves the others unchanged"
    parser.add_argument("--config", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help=words)
    profiles = "as for snakemake, in the same order: the configuration in these profiles"
    parser.add_argument("--profile", action="append", default=[], metavar="PROFILE", help=profiles)
    parser.add_argument(
        "--configuration", metavar="JSON", help="the whole configuration, instead of config/config.yaml"
    )
    parser.add_argument("--out", type=Path, metavar="PLAN.csv", help="also write PLAN.csv and PLAN.md")
    fits = parser.add_argument_group("what fits a time")
    fits.add_argument("--fit", metavar="TIME", help="such as 2h, 90min or 1h30m")
    fits.add_argument("--method", help="the method to be compared, or a variant of one")
    fits.add_argument("--baseline", metavar="METHOD", help="default: the study's reference")
    fits.add_argument("--study", help="default: config/config.yaml's main_study")
    fits.add_argument("--scale", help="default: the largest that reads one token per parameter, else the smallest")
    fits.add_argument("--seeds", type=int, metavar="N", help="of each; default: 6, or what --gain needs")
    fits.add_argument("--gain", type=float, metavar="NATS", help="in validation loss, to be resolved")
    return parser


def main() -> None:
    """Run `plumbline plan`: print the plan for a terminal, or with ``--fit`` what fits a time.

    With ``--out`` the plan is also written, with all columns, as csv and md.
    """
    given = arguments().parse_args()
    config = _configuration(given)
    if given.fit:
        print(_fitting(given, config))
        return
    machine = machines.load(config["machine"])
    if given.price is not None:
        machine = machines.priced(machine, given.price)
    planned = load(config)
    known = counts.update(Path(planned.paths.counts), planned.runs.values())
    priced = estimator(planned, machine, sizes=counts.ModelCostLookup(known))
    frame = table(priced)
    print(page.terminal(priced, frame))
    if given.out:
        text = page.markdown(priced, frame)
        atomic_write_text(given.out.with_suffix(".md"), f"# What each target costs\n\n{text}\n")
        atomic_write_text(given.out, frame.to_csv(index=False))


def _fitting(given: argparse.Namespace, config: dict[str, Any]) -> str:
    from plumbline.plan import fit, fit_page, seed_noise

    if given.method is None:
        raise PlumblineError("--fit needs the method to compare; add --method METHOD")
    if given.out:
        raise PlumblineError("--out: --fit prints its page and writes none; leave out --out")
    if given.seeds is not None and given.seeds < 2:
        raise PlumblineError(f"--seeds {given.seeds}: noise needs at least 2 seeds of each; write --seeds 2 or more")
    if given.gain is not None and not (math.isfinite(given.gain) and given.gain > 0):
        raise PlumblineError(f"--gain {given.gain:g}: a gain is a number of nats above 0; write such as --gain 0.03")
    name = given.study or config["main_study"]
    if given.study and given.study not in (there := studies()):
        raise PlumblineError(f"--study: there is no study {name!r}{nearest(name, there)} (there are {there})")
    planned = load(config | {"studies": [name], "main_study": name, "trial": {}})
    against = given.baseline or planned.study(name).reference
    if against is None:
        raise PlumblineError(f"--fit: the study {name!r} has no reference; name the baseline with --baseline")
    _require_methods(planned.study(name), {"--method": given.method, "--baseline": against})
    asked = fit.FitQuestion(
        seconds=fit.seconds_of(given.fit),
        study=name,
        method=given.method,
        against=against,
        scale=given.scale,
        seeds=given.seeds,
        gain=given.gain or 0.0,
    )
    runs = [*planned.runs.values(), *seed_noise.earlier(planned, name)]
    known = counts.update(Path(planned.paths.counts), runs)
    priced = estimator(
        planned, machines.load(config["machine"]), sizes=counts.ModelCostLookup(known), calibrate_on=runs
    )
    sigmas = (*seed_noise.measured(planned, runs, against), *seed_noise.assumed(planned.root))
    return fit_page.terminal(fit.BudgetFit(estimator=priced, asked=asked, sigmas=sigmas), given.profile)


def _require_methods(study: Study, given: dict[str, str]) -> None:
    """Name the option where there is no such method; what else a trial cannot be, its own check says."""
    known = [*study.definition["methods"], *study.definition.get("arms", {}), *study.definition["inherited"]]
    for option, method in given.items():
        if method not in known and method.partition(".")[0] not in known:
            raise PlumblineError(
                f"{option}: the study {study.name!r} has no method {method!r}{nearest(method, known)} "
                f"(there are {known})"
            )
    if given["--method"] == given["--baseline"]:
        raise PlumblineError(f"--method: {given['--method']!r} is compared with itself; name another one")


def _configuration(given: argparse.Namespace) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(given.configuration) if given.configuration else load_config()
    if given.profile or given.config:
        from plumbline.project import invocation

        of_profiles = [word for one in given.profile for word in invocation.profile_words(invocation.profile_file(one))]
        config = invocation.changed(config, [*of_profiles, *given.config])
    if given.preset:
        config["preset"] = given.preset
    if given.machine:
        config["machine"] = given.machine
    return config


if __name__ == "__main__":
    run(main)
