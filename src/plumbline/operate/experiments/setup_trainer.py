"""Sets up a trainer of one's own: writes `plumbline.toml`, and takes the baseline's first runs.

One run of the committed code is made in a copy of it. Its log says the metric (lines METRIC name=value, name: value,
rows of JSON), the script how it takes its seed, and a failure which ignored files it missed. What was chosen is said,
with what else was seen. A plumbline.toml that is there is never written over: without COMMAND its baseline is run.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError, UsageError, visible
from plumbline.core.files import atomic_write_json, atomic_write_text, read_json
from plumbline.operate.experiments import guess_fixed_files, independent_runs, measuring_terms, setup_guesses
from plumbline.operate.experiments.carry_out_experiment import tell
from plumbline.operate.experiments.folder_arguments import place_of, remember_trust, require_trust
from plumbline.operate.experiments.folder_baseline import FolderBaseline
from plumbline.operate.experiments.past_experiments import print_noise
from plumbline.operate.experiments.setup_guesses import SeenMetric
from plumbline.verdict.decision.experiment import BASELINE
from plumbline.verdict.own_trainer import first_values, metric, run_end, written_files
from plumbline.verdict.own_trainer.folder import Folder
from plumbline.verdict.own_trainer.git_call import git
from plumbline.verdict.own_trainer.processes import pool
from plumbline.verdict.own_trainer.requests import Result, interruption_file, read_request, read_result
from plumbline.verdict.own_trainer.snapshot import FOLDER, ROWS, Repository
from plumbline.verdict.own_trainer.trainer_file import FLAGS, INJECT, NAME, MetricPart, TrainerFile, load, parse
from plumbline.verdict.own_trainer.tree_warnings import list_tree_warnings

#: What `inject` does, for whoever is about to rely on it.
WHAT_IS_SHIFTED = (
    "Every seed that random, numpy (seed, default_rng) and torch are given is shifted, also one that chooses data to "
    "evaluate; generators of its own (torch.Generator, RandomState), jax, mlx and tensorflow are left alone."
)
#: What stands in a `plumbline.toml` where no file was seen to measure alone.
_NONE_FIXED = '# fixed = ["evaluate.py", "data/val*"]  # files that measure, which no candidate may change'
#: First runs that may fail for ignored files before it is given up.
TRIES = 5
#: Ignored entries that no run is given: environments, caches.
NOT_SHARED = (".venv", "venv", "__pycache__", FOLDER, ROWS, "node_modules", ".git")


def arguments() -> command_line.Parser:
    """Build the command-line parser of `plumbline setup-trainer`."""
    parser = command_line.Parser(__doc__)
    add = parser.add_argument
    add("command", nargs="?", metavar="COMMAND", help="what trains, quoted: 'python train.py'; none: that of the file")
    text = "which of the metrics that the first run says decides; FILE:KEY of one that it writes (out.json:eval.loss)"
    add("--metric", metavar="NAME", help=text)
    add("--direction", choices=("lower", "higher"), help="which is better (default: by the metric's name)")
    add("--seed", metavar="HOW", help="'--seed {seed}', env:NAME or inject (default: as the script is seen to take it)")
    add("--share", nargs="+", default=[], metavar="PATH", help="what git ignores and a run needs")
    add("--timeout", metavar="TIME", help="of a run, such as 15 min (default: none)")
    add("--again", action="store_true", help="take the baseline's runs again, with fresh seeds")
    add("--trust", action="store_true", help="run the command of a plumbline.toml from elsewhere")
    add("-n", "--dry-run", action="store_true", help="say what would be written, and run nothing")
    return parser


def main() -> int:
    """Run `plumbline setup-trainer`."""
    with command_line.exit_on_sigterm():
        return _main(_parse_line(sys.argv[1:]))


def _parse_line(line: list[str]) -> argparse.Namespace:
    parser = arguments()
    options, unknown = parser.parse_known_args(line)
    if unknown and options.command and " " not in options.command:
        command = " ".join(line[line.index(options.command) :])
        raise UsageError(f'quote the command: plumbline setup-trainer "{command}"')
    return options if not unknown else parser.parse_args(line)


def _main(options: argparse.Namespace) -> int:
    root = Path.cwd()
    has_file = (root / NAME).exists()
    if options.command and has_file and (differ := _describe_difference(options, load(root))):
        raise PlumblineError(
            f"{root / NAME} is there, and is never written over; it says another {differ}: edit it, or remove it; "
            "plumbline setup-trainer without a command takes its baseline's runs"
        )
    if not options.command and not has_file:
        raise PlumblineError(f'{root} has no {NAME}; name what trains: plumbline setup-trainer "python train.py"')
    repository, folder = Repository(root), Folder(root)
    if options.dry_run:
        print(f"{root / NAME} is there; the baseline would be run" if has_file else _write_dry_run(options, root))
        return 0
    with folder.hold("plumbline setup-trainer"):
        if has_file:
            file = load(root)
            # Whoever types the command agrees to it; a profile's commands are others.
            require_trust(file, options.trust or (bool(options.command) and not file.where.profile), "setup-trainer")
        else:
            try:
                file = _write_file(options, repository, folder)
            finally:
                folder.remove_copies(repository)
        return _take(file, folder, repository, again=options.again)


def _describe_difference(options: argparse.Namespace, file: TrainerFile) -> str:
    """What of a command line a `plumbline.toml` states otherwise; empty if it may have been written by these words, so
    that a set-up that was stopped goes on by them.
    """
    run, metric_part = file.run, file.metric
    is_same = {
        "command": run.command in (options.command, _append_flags(options.command)),
        "--metric": options.metric in (None, metric_part.called, metric_part.json),
        "--direction": options.direction in (None, metric_part.direction),
        "--seed": options.seed in (None, run.seed),
        "--share": set(options.share) <= set(run.share),
        "--timeout": options.timeout in (None, run.timeout),
    }
    return next((name for name, same in is_same.items() if not same), "")


def _take(file: TrainerFile, folder: Folder, repository: Repository, *, again: bool) -> int:
    """Take the baseline's runs, and print what they show of the noise."""
    baseline, bank = FolderBaseline(file, folder, repository, tell), folder.bank()
    independent_runs.release_dependent(baseline, bank)
    folder.hold_baseline(repository)
    measuring_terms.record_fixed(baseline)
    if moved := baseline.move_where_broken(bank):
        tell(moved)
    if again:
        baseline.take_again(bank)
    baseline.require_same_machine(bank)
    runs = independent_runs.take_bank(baseline, baseline.trainer(), bank)
    if lost_runs := [run for run in runs if not run.has_value]:
        remedy = f"put that right in {NAME}, or in the code, and commit that; then plumbline setup-trainer again"
        reason = f"the baseline's seed {lost_runs[0].seed} {lost_runs[0].outcome}: {lost_runs[0].why}; "
        raise _describe_failure([reason], folder.log(baseline.arm.method, lost_runs[0].seed), remedy)
    place = place_of(file.folder)
    reruns = independent_runs.list_reruns(baseline, bank)
    print_noise(argparse.Namespace(json=False), place, baseline.beside_next(bank, place.read_ledger()), reruns)
    print("Next: change something, and: plumbline try -m 'what was changed'")
    return 0


def _write_file(options: argparse.Namespace, repository: Repository, folder: Folder) -> TrainerFile:
    """Make the first run, write `plumbline.toml` by what it printed, and keep the run as the baseline's first."""
    root = repository.folder
    setup_guesses.require_python_path(options.command)
    (way, why), share = _seed(options, root), list(options.share)
    tell(f'seed = "{way}": {why}')
    ignored = _list_ignored(root)
    head = repository.arm("HEAD").commit[:7]
    tell(f"the baseline is the commit {head}: what has changed since is what plumbline try will try")
    program = Path(shlex.split(options.command)[0])  # of an environment of the folder's own
    if len(program.parts) > 1 and not program.is_absolute():
        is_ignored = git(root, "check-ignore", "-q", program.parts[0], check=False).returncode == 0
        share += [program.parts[0]] if is_ignored else []
    for warning in list_tree_warnings(repository, "HEAD", options.command):
        tell(warning)
    output: list[str] = []
    for _ in range(TRIES):
        draft = _make_file(options, root, way, share, output, {"name": "metric"})
        result, copy = _make_first_run(draft, folder, repository)
        names = [name for name in result.opened if not (copy / name).exists() and (root / name).exists()]
        missed = setup_guesses.find_missed([*names, *(result.tail if result.exit_code else ())], root, ignored)
        missed = [entry for entry in missed if entry not in (*share, *output)]
        if not missed:
            break
        for entry in missed:
            entry_names = {name for name in result.opened + result.written if _is_below(name, entry, repository)}
            if entry_names and entry_names <= set(result.written):
                tell(f"the run writes into what git ignores: output = [{json.dumps(entry)}], empty in each copy")
                output.append(entry)
            else:
                tell(f"the run missed what git ignores: share = [{json.dumps(entry)}]")
                share.append(entry)
    log = Path(result.log)
    candidates = setup_guesses.metrics(log, copy)
    chosen = _choose_metric(candidates, options.metric, copy)
    if chosen is not None and metric.number(chosen.text) is None:
        reason = f"{chosen.name} is {chosen.text!r}, {metric.explain_no_number(chosen.text)}{_describe_line(chosen)}"
        raise _describe_failure([reason, "nothing was written; or name another metric (--metric). "], log)
    if chosen is not None and not math.isfinite(metric.number(chosen.text) or 0.0):
        other_flags = ", ".join(f"--metric {candidate.name}" for candidate in candidates if candidate is not chosen)
        choice = f"; or name another metric ({other_flags})" if other_flags else ""
        remedy = f"put that right in the code, commit that, and repeat the command{choice}"
        reason = f"the baseline diverged: {chosen.name} is {chosen.text}{_describe_line(chosen)}"
        raise _describe_failure([reason, f"nothing was written; {remedy}. "], log)
    if result.exit_code:
        raise _describe_failure([f"{options.command}: {result.why}", "nothing was written. "], log)
    if chosen is None:
        reason = f"{options.command} {_describe_no_metric(candidates, options.metric)}"
        raise _describe_failure([reason, "", _write_toml(draft), "nothing was written. "], log)
    fixed, reason = guess_fixed_files.guess(result.readers, result.written, repository.prefix)
    part = chosen.settings | {"direction": options.direction or chosen.direction, "fixed": fixed}
    file = _make_file(options, root, way, share, output, part)
    if into := [name for name in result.written if any(_is_below(name, entry, repository) for entry in share)]:
        tell(f"mind: each run writes to what is shared, which is your own file: {', '.join(into[:3])}")
    tell(f"metric: {chosen.name}, {chosen.text}, {file.metric.direction} is better{_describe_line(chosen)}")
    if options.metric is None and (warning := setup_guesses.only_of_training(candidates)):
        tell(f"  mind: {warning}")
    if warning := setup_guesses.describe_early(chosen, candidates):
        tell(f"  mind: {warning}")
    for candidate in candidates:
        if candidate is not chosen:
            tell(f"  also seen: --metric {candidate.name}, {candidate.text}{_describe_line(candidate)}")
    if len(candidates) > 1:
        tell(f"  for another one: rm {NAME}, and plumbline setup-trainer COMMAND --metric NAME")
    if fixed:
        tell(f"fixed = {json.dumps(fixed)}: {reason}; a change of these is refused (fixed = [] says that none is)")
    if file.run.seed == INJECT:
        counted = ", ".join(f"{name} x {number}" for name, number in result.shifted.items()) or "no call was seen"
        tell(f"seeds that were shifted: {counted}. {WHAT_IS_SHIFTED}")
    _keep_run(file, folder, repository, result, copy)
    atomic_write_text(root / NAME, _write_toml(file))
    remember_trust(file)
    tell(f"{root / NAME} is written; change what is not meant, and repeat plumbline setup-trainer")
    return load(root)


def _make_first_run(file: TrainerFile, folder: Folder, repository: Repository) -> tuple[Result, Path]:
    """Make the first run, of which no metric is known yet; returns it with the folder that it ran in."""
    baseline = FolderBaseline(file, folder, repository, tell)
    trainer, seed = baseline.trainer(baseline=repository.arm("HEAD", label=BASELINE)), file.decide.first_seed
    path = trainer.write_request(BASELINE, seed)
    request = msgspec.structs.replace(read_request(path), watch=True)
    atomic_write_json(path, msgspec.to_builtins(request))
    command = file.run.command.replace(FLAGS, "").strip()
    tell(f"{command}: the first run, seed {seed}")
    for _ in pool(file.where.devices[:1], [path], tell):
        pass
    result = read_result(Path(request.result))
    if result is None:
        why = (read_json(interruption_file(Path(request.result))) or {}).get("why", "its process ended without a word")
        raise PlumblineError(f"{command} was not run: {why}; nothing was written")
    Path(request.result).unlink()
    return result, Path(request.folder)


def _keep_run(file: TrainerFile, folder: Folder, repository: Repository, result: Result, copy: Path) -> None:
    """Keep the first run as that of the trainer that the file now defines, so that it is not made again."""
    trainer = FolderBaseline(file, folder, repository, tell).trainer(baseline=repository.arm("HEAD", label=BASELINE))
    run_id = trainer.run_id(BASELINE, result.seed)
    score, end = metric.read(file.metric, Path(result.log), copy), run_end.read(file.metric, Path(result.log), copy)
    if end.diverged:
        raise PlumblineError(
            f"{file.run.command}: the baseline diverged: with its last {file.metric.called}, {score.text}, or after "
            f"it, it printed {end.diverged}; nothing was written ({result.log} is its log)"
        )
    for warning in setup_guesses.list_kinds_of_rows(file.metric, end.last):
        tell(f"  mind: {warning}")
    read_of_log = {"value": score.value, "text": score.text, "others": score.others}
    places = {"place": end.place, "interval": end.interval, "last": end.last}
    ended = {"outcome": "finished", "why": "", "signs": end.signs, **places}
    first = first_values.read_first_values(file.metric, Path(result.log), copy)
    result_of_file = msgspec.structs.replace(result, run_id=run_id, printed_first=first, **read_of_log, **ended)
    atomic_write_json(folder.runs / f"{run_id}.result.json", msgspec.to_builtins(result_of_file))
    written_files.note(folder.own, folder.copy(result.run_id))
    repository.remove(folder.copy(result.run_id))


def _seed(options: argparse.Namespace, root: Path) -> tuple[str, str]:
    return (
        (options.seed, "as asked") if options.seed else setup_guesses.seed(setup_guesses.script(options.command, root))
    )


def _choose_metric(candidates: list[SeenMetric], name: str | None, copy: Path) -> SeenMetric | None:
    if name is not None and ":" in name:
        text = metric.read(MetricPart(json=name), copy, copy).text
        return SeenMetric(name=name.rpartition(":")[2], settings={"json": name}, text=text) if text else None
    return next((metric_seen for metric_seen in candidates if name in (None, metric_seen.name)), None)


def _describe_no_metric(candidates: list[SeenMetric], name: str | None) -> str:
    if name is not None:
        return f"did not say {name} (seen: {', '.join(candidate.name for candidate in candidates) or 'nothing'})"
    return (
        "said no metric that is known by its name: print a line METRIC name=value, or name a file that the run writes "
        f"(--metric out.json:eval.loss), or write this as {NAME}, with a pattern of yours:"
    )


def _is_below(name: str, entry: str, repository: Repository) -> bool:
    """Whether a file of a copy, as its top has it, lies below an entry of the trainer's folder."""
    return Path(name).is_relative_to(Path(repository.prefix, entry))


def _make_file(
    options: argparse.Namespace,
    root: Path,
    way: str,
    share: list[str],
    output: list[str],
    metric_settings: Mapping[str, object],
) -> TrainerFile:
    run: dict[str, object] = {"command": _append_flags(options.command), "seed": way, "share": share, "output": output}
    run |= {"timeout": options.timeout} if options.timeout else {}
    return parse({"run": run, "metric": dict(metric_settings)}, root / NAME)


def _append_flags(command: str) -> str:
    return command if FLAGS in command else f"{command} {FLAGS}"


def _list_ignored(root: Path) -> list[str]:
    """What git ignores in the folder, whole folders as one."""
    options = ("--others", "--ignored", "--exclude-standard", "--directory", "-z")
    listed = git(root, "ls-files", *options, check=False).stdout
    return [path for path in listed.split("\0") if path and not set(Path(path).parts) & set(NOT_SHARED)]


def _describe_line(candidate: SeenMetric) -> str:
    """Where a value was read, as a run's log has it."""
    line = " ".join(candidate.line.split())
    return f": the last in {visible(line if len(line) <= 100 else f'{line[:99]}...')!r}" if line else ""


def _describe_failure(lines: list[str], log: Path, *more: str) -> PlumblineError:
    """State in lines what went wrong, with the end of the run's log."""
    tail = [f"  {visible(line)}" for line in metric.last_lines(log)]
    return PlumblineError("\n".join([*lines[:-1], f"{lines[-1]}{log} ends with:", *tail, *more]))


def _write_dry_run(options: argparse.Namespace, root: Path) -> str:
    way, why = _seed(options, root)
    file = _make_file(options, root, way, list(options.share), [], {"name": options.metric or "metric"})
    return f"{_write_toml(file)}\n# seed: {why}; the metric is what the first run says"


def _write_toml(file: TrainerFile) -> str:
    """Write what is not as it is anyway; what decides stands there to be seen."""
    run, metric_part, decide = file.run, file.metric, file.decide
    lines = ["[run]", f"command = {_text(run.command)}", f"seed = {_text(run.seed)}"]
    for key, names in (("share", run.share), ("output", run.output)):
        lines += [f"{key} = [{', '.join(map(_text, names))}]"] if names else []
    lines += [f"timeout = {_text(run.timeout)}"] if run.timeout else []
    lines += ['# size = "124M parameters, 3,000 steps"  # in your words, for the sentence to quote']
    lines += [
        '# budget = "--max-steps {3000}"  # how a run is given its length: plumbline try --at 1x,2x,4x',
        "",
        "[metric]",
    ]
    lines += [f"{key} = {_text(value)}" for key in ("pattern", "json", "name") if (value := getattr(metric_part, key))]
    patterns = ", ".join(map(_text, metric_part.fixed))
    fixed = f"fixed = [{patterns}]  # no candidate may change these" if patterns else _NONE_FIXED
    lines += [f"direction = {_text(metric_part.direction)}", fixed, "", "[decide]"]
    for setting, comment in (
        (f"alpha = {decide.alpha:g}", "chance that a change that does nothing is kept, one-sided"),
        (f"minimum_gain = {decide.minimum_gain:g}", "a gain must exceed this, in the metric's units"),
        (f"max_runs = {decide.max_runs}", "of a change, at most; it mostly needs fewer"),
        (f"baseline_runs = {decide.baseline_runs}", "beside which it is judged; they are used again"),
        (f"session = {_text(decide.session)}", "what alpha holds for: each change by itself; fwer: all that are tried"),
    ):
        lines.append(f"{setting:<20}# {comment}")
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    return (
        f"'{value}'" if ("\\" in value or '"' in value) and "'" not in value else json.dumps(value, ensure_ascii=False)
    )


if __name__ == "__main__":
    command_line.run(main)
