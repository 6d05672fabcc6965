"""Says what each study states of small models before their runs, with the power of every test, the hours, and what
the runs said: one page of all studies, and one beside each study.

Without an option the pages' sections are printed. A statement's noise is that of kept runs; where none is known, the
gain that would be seen is in sigma. Verdicts are those of the study's small.csv, the table of a kept record; without
one nothing was run.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from plumbline.core.command_line import Parser, run
from plumbline.core.csv_text import read_rows
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_text
from plumbline.plan import machines, model_counts
from plumbline.plan.run_estimate import RunEstimator
from plumbline.project import load
from plumbline.specs import small_file, small_runs, study_config, study_folders, yaml_files
from plumbline.specs.small_file import SmallFile, Statement
from plumbline.specs.study_config import Run
from plumbline.specs.yaml_files import ROOT
from plumbline.stats import stated_power
from plumbline.stats.sample_spread import bound_sigma
from plumbline.verdict.small_models.statement_gains import NOT_RUN

#: The page of all studies, that of one in its folder, and what begins and ends the section that is written here.
PAGE = Path("docs/small-models.md")
STUDY_PAGE = "small_models.md"
BEGIN = "<!-- begin: python -m plumbline.report.small_models --write -->"
END = "<!-- end -->"
#: Of a study's folder: the table and the figure of the record that is kept of its runs.
TABLE, PICTURE = "small.csv", "small_gains.svg"
#: Hours are those of so many cores of this entry of config/machines.yaml.
MACHINE, CORES = "core", 2

_TESTS = {
    "t": "t test",
    "paired_t": "t test of pairs",
    "sign": "sign test",
    "order": "test of tau by permutation",
}


def arguments() -> Parser:
    """Build the command-line parser of `python -m plumbline.report.small_models`."""
    parser = Parser(__doc__)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--write", action="store_true", help=f"write {PAGE} and each study's {STUDY_PAGE}")
    group.add_argument("--check", action="store_true", help="fail if a page says otherwise")
    return parser


def main() -> None:
    """Print, write or check the sections.

    Raises:
        PlumblineError: with ``--check``, a page's section is another one.
    """
    options = arguments().parse_args()
    sections = describe_studies(Path(load(yaml_files.load_config()).paths.counts))
    for path, section in sections.items():
        text = read_page(path)
        if options.write:
            atomic_write_text(path, replace_section(text, section, path))
        elif not options.check:
            print(section)
        elif replace_section(text, section, path) != text:
            raise PlumblineError(f"{path} says otherwise than small.yaml; run with --write, and read what differs")


def read_page(path: Path) -> str:
    """A page as it is; of a study that has none, a title above an empty section."""
    if path.name == STUDY_PAGE and not path.exists():
        return f"# What small models say of {path.parent.name}\n\n{BEGIN}\n{END}\n"
    return path.read_text(encoding="utf-8")


def replace_section(page: str, section: str, path: Path) -> str:
    """Put the section between the page's two marks.

    Raises:
        PlumblineError: the page does not have them once.
    """
    pattern = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)
    if len(pattern.findall(page)) != 1:
        raise PlumblineError(f"{path}: the marks {BEGIN} and {END} must be there once; restore them")
    return pattern.sub(lambda _: f"{BEGIN}\n\n{section}\n\n{END}", page)


def describe_studies(counts: Path, root: Path = ROOT) -> dict[Path, str]:
    """Write the section of the page of all studies that have a small.yaml, and that of each study's own: page -> text.

    Args:
        counts: the file of counted models, which gets those that it lacks.
    """
    files = [
        small_file.load_small(name, root)
        for name in yaml_files.studies(root)
        if small_file.path_of(name, root).exists()
    ]
    sections = {study_folders.folder(small.study, root) / STUDY_PAGE: _describe(small, counts, root) for small in files}
    return {root / PAGE: _list_statements(files, root)} | sections


def _list_statements(files: list[SmallFile], root: Path) -> str:
    """A line of the table for each statement, of a study without runs one for all, below how many there are."""
    levels = [statement.level for small in files for statement in small.statements for _ in statement.sizes]
    word_counts = Counter(word for small in files for word in list_verdicts(small, root).values())
    lines = [
        f"{sum(len(small.statements) for small in files)} statements give {len(levels)} verdicts, one a size; were no "
        f"idea true, {sum(levels):.1f} at most would be *seen* by chance. So far: "
        f"{', '.join(f'{count} {word}' for word, count in word_counts.most_common())}.",
        "",
        join_cells("study", "stated", "here"),
        "|---|---|---|",
    ]
    for small in files:
        page = f"[{small.study}](../studies/{small.study}/{STUDY_PAGE})"
        verdicts = list_verdicts(small, root)
        if set(verdicts.values()) == {NOT_RUN}:
            lines.append(join_cells(page, f"{len(small.statements)} statements", NOT_RUN))
            continue
        for statement in small.statements:
            labels: dict[str, list[str]] = {}
            for size in statement.sizes:
                label = small.sizes[size].label
                labels.setdefault(verdicts[statement.id, label], []).append(label)
            texts = [f"{word} at {', '.join(sizes)}" for word, sizes in labels.items() if word != NOT_RUN]
            texts += ["others not run"] * (NOT_RUN in labels)
            verdict_text = "; ".join(texts) if len(labels) > 1 else f"{next(iter(labels))} at every size"
            lines.append(join_cells(page, statement.idea.removesuffix("."), verdict_text))
    return "\n".join(lines)


def _read_rows(study: str, root: Path) -> list[dict[str, str]]:
    """The rows of the kept table; none where nothing is kept."""
    path = study_folders.folder(study, root) / TABLE
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as lines:
        return list(read_rows(lines))


def list_verdicts(small: SmallFile, root: Path) -> dict[tuple[str, str], str]:
    """(statement, label of its size) -> the verdict.

    Raises:
        PlumblineError: the kept table has other rows than the statements give, or is of another text of one.
    """
    rows = {(row["statement"], row["size"]): row for row in _read_rows(small.study, root)}
    statements = {(each.id, small.sizes[size].label): each for each in small.statements for size in each.sizes}
    path, remedy = study_folders.folder(small.study, root) / TABLE, f"keep the table that {study_folders.SMALL} gives"
    for statement, size in rows.keys() ^ statements.keys() if rows else ():
        raise PlumblineError(f"{path}: {statement} at {size} is there or in {study_folders.SMALL} alone; {remedy}")
    for place, row in rows.items():
        if row["statement_digest"] != statements[place].digest:
            raise PlumblineError(f"{path}: {place[0]} at {place[1]} was judged by another text of it; {remedy}")
    return {place: rows[place]["verdict"] if rows else NOT_RUN for place in statements}


def compute_power(statement: Statement, small: SmallFile, size: str) -> tuple[float, float, float] | None:
    """The power of a statement's test at a size: by the noise's sigma, and by the ends of its 90 % interval, the larger
    sigma first; None where the noise is not known."""
    n, level = len(statement.seeds), statement.level_of_contrast
    if statement.test == "sign":
        power = stated_power.compute_sign_power(statement.target_gain, n, level)
        return power, power, power
    if statement.noise is None:
        return None
    noise = (small.noise or {})[statement.noise[size]]
    low, high = bound_sigma(noise.sigma, noise.df)
    if statement.test == "order":
        assert statement.spread is not None and statement.tuning is not None and statement.tuning.own_seeds
        seeds, methods = (len(statement.tuning.own_seeds), n), len(statement.contrasts)
        correlation, spread = statement.target_gain, statement.spread
        powers = [
            stated_power.simulate_order_test(correlation, spread, sigma, seeds, methods=methods, level=level)
            for sigma in (noise.sigma, high, low)
        ]
    else:
        weights, arms = _combine(statement)
        gain = statement.target_gain - statement.minimum_gain
        powers = [
            stated_power.simulate_t_test(gain, sigma, n, weights, arms=arms, level=level)
            for sigma in (noise.sigma, high, low)
        ]
    return powers[0], powers[1], powers[2]


def find_least_gain(statement: Statement) -> float:
    """The gain above the minimum that a t test sees in 80 % of worlds, in standard deviations of what it pools."""
    weights, arms = ((1.0,), 1) if statement.test == "paired_t" else _combine(statement)
    return stated_power.find_least_gain(len(statement.seeds), weights, arms=arms, level=statement.level_of_contrast)


def _combine(statement: Statement) -> tuple[tuple[float, ...], int]:
    """Weights of the contrast with the largest error, and how many arms' spreads are pooled."""
    every_weight = [tuple(weights.values()) for weights in statement.contrasts.values()]
    return max(every_weight, key=lambda weights: sum(weight**2 for weight in weights)), len(statement.arms)


def estimate_hours(small: SmallFile, counts: Path, root: Path = ROOT) -> tuple[int, float]:
    """How many runs a file's statements take, each counted once, and the hours of training on two cores."""
    stated_runs = small_runs.list_stated_runs(small_runs.load_definition(small, root), small, root)
    runs = [Run(spec=spec, groups=()) for spec in {run.spec.run_id: run.spec for run in stated_runs}.values()]
    return len(runs), sum(_price(runs, counts, root)) / CORES / 3600


def _price(runs: list[Run], counts: Path, root: Path) -> Iterable[float]:
    """Seconds of training by run, by what config/machines.yaml states, whatever was run on this machine."""
    calibration = machines.Calibration(
        speed={}, pretrain_start=None, evaluate_start=None, runs=0, seconds={}, memory={}
    )
    estimator = RunEstimator(
        project=load(yaml_files.load_config(root / "config" / "config.yaml")),
        machine=machines.load(MACHINE, root),
        calibration=calibration,
        sizes=model_counts.ModelCostLookup(model_counts.update(counts, runs)),
    )
    return [estimator.pretrain_seconds(run) for run in runs]


def _describe(small: SmallFile, counts: Path, root: Path) -> str:
    """The section of a study's own page."""
    count, hours = estimate_hours(small, counts, root)
    paper = study_config.paper_of(small.study, root)
    labels = ", ".join(f"`{name}` {size.label}" for name, size in small.sizes.items())
    study = study_config.load(small.study, "paper", root)
    printed = " and ".join(
        study.scale_label(name) for name, presets in study.definition["scales"].items() if "paper" in presets
    )
    own_sizes = ", ".join(size.label for size in small.sizes.values())
    return "\n".join(
        [
            _fill(
                f"What is stated of {paper.short if paper else small.study}. Sizes: {labels}. {count} runs, about "
                f"{hours:.1f} hours of training on two cores (planned, not measured). {_describe_noise(small)}"
            ),
            "",
            "## Published beside seen",
            "",
            join_cells("stated", "target, and where it is from", "here"),
            "|---|---|---|",
            *(
                join_cells(
                    statement.idea,
                    f"{statement.target_gain:g} ({statement.target_from})",
                    describe_verdicts(statement, small, root),
                )
                for statement in small.statements
            ),
            "",
            _fill(describe_picture(small.study, root)),
            "",
            "## What is tested",
            "",
            *(_wrap(_describe_statement(statement, small)) for statement in small.statements),
            "",
            "## What is not asked",
            "",
            *(_wrap(f"**{each.idea}** ({each.place}) Not asked: {each.why}.") for each in small.not_asked),
            "",
            "## What it cannot say",
            "",
            _fill(
                f"The paper's models have {printed} parameters, these {own_sizes}. A verdict is of its own size: "
                "evidence about the mechanism as stated here, none about the paper's models. *Not seen* bounds "
                "a gain below its target; it does not say that there is none."
            ),
        ]
    )


def describe_picture(study: str, root: Path) -> str:
    """The picture of the kept record; without one, where it will be."""
    if (study_folders.folder(study, root) / PICTURE).exists():
        return f"![Each gain with its bounds, between the minimum at 0 and the target at 1, by size]({PICTURE})"
    return f"The picture of all gains, `results/evening/{study}/small_gains.png`, is not drawn: nothing was run."


def _describe_noise(small: SmallFile) -> str:
    noise_texts = [
        f"{noise.sigma:g} with {noise.df} degrees of freedom ({noise.runs})" for noise in (small.noise or {}).values()
    ]
    pilots = dict.fromkeys(statement.pilot for statement in small.statements if statement.pilot)
    sentences = [f"Noise known: {'; '.join(noise_texts)}."] if noise_texts else []
    if pilots:
        sentences.append(f"{'Else it is' if noise_texts else 'The noise is'} known once {'; '.join(pilots)}.")
    return " ".join(sentences)


def _describe_statement(statement: Statement, small: SmallFile) -> str:
    level = f"level {statement.level:g}"
    if statement.test != "order" and len(statement.contrasts) > 1:
        level += f" over {len(statement.contrasts)} contrasts"
    if statement.test in ("t", "paired_t"):
        level += f"; must exceed {statement.minimum_gain:g}"
    runs = f"{len(statement.seeds)} seeds at {', '.join(statement.sizes)}"
    if statement.rates:
        runs += f", {len(statement.rates)} rates"
    if statement.tuning:
        runs += f" (chosen on {len(statement.tuning.seeds)} other seeds, of those at which none diverges)"
        if statement.tuning.own_seeds:
            runs += f", and {len(statement.tuning.own_seeds)} more seeds at the arms' own rates"
    sentences = [
        f"**{statement.idea}** ({statement.place})",
        f"{_capitalise(statement.statistic)}: {_TESTS[statement.test]}, {level}; {runs}.",
        f"{_capitalise(_describe_power(statement, small))}. Against it: {statement.counts_against}.",
    ]
    return " ".join(sentences)


def describe_verdicts(statement: Statement, small: SmallFile, root: Path) -> str:
    """What the runs said at each size, with each contrast's gain and bounds."""
    verdicts = {size: word for (name, size), word in list_verdicts(small, root).items() if name == statement.id}
    if set(verdicts.values()) == {NOT_RUN}:
        return NOT_RUN
    rows = [row for row in _read_rows(small.study, root) if row["statement"] == statement.id]
    texts = []
    for size, word in verdicts.items():
        gains = []
        for row in rows:
            if row["size"] == size and row["gain"]:
                gain, low, high = (f"{float(row[name]):+.3g}" for name in ("gain", "low", "high"))
                name = f"{row['contrast']} " if len(statement.contrasts) > 1 else ""
                lacking = "" if row["lacking"] == "nothing" else f", runs {row['lacking']}"
                below = row["contrast_verdict"] == "seen" and row["below_target"] == "yes"
                bounds = f"{gain}, {low} to {high}" + ", below its target" * below
                gains.append(f"{name}{bounds}{lacking}")
        texts.append(f"*{word} at {size}*" + (f" ({'; '.join(gains)})" if gains else ""))
    return ", ".join(texts)


def _describe_power(statement: Statement, small: SmallFile) -> str:
    name = "power of a contrast" if statement.test != "order" and len(statement.contrasts) > 1 else "power"
    if statement.pilot is not None:
        of = "a seed's own gain" if statement.test == "paired_t" else "a run"
        least = find_least_gain(statement)
        return f"80 % {name} from {least:.1f} sigma of {of} above the minimum"
    cells = []
    for shares in (compute_power(statement, small, size) or (0.0, 0.0, 0.0) for size in statement.sizes):
        power, low, high = (f"{100 * share:.0f}" for share in shares)
        cells.append(f"{power} %" if low == high else f"{power} % ({low} to {high})")
    return f"{name} {', '.join(dict.fromkeys(cells))}"


def join_cells(*cells: str) -> str:
    """A line of a table."""
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"


def _fill(text: str) -> str:
    """A paragraph, in lines as long as the other pages' are."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _wrap(text: str) -> str:
    """An item of a list, in lines as long as the other pages' are."""
    return textwrap.fill(f"- {text}", 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


if __name__ == "__main__":
    run(main)
