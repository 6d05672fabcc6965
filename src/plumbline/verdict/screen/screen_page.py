"""Writes the page of a screen: the sentence, effects, the chosen set, interactions, the design as a matrix, the limits.

Next to the page (`x.md`) stand the same as HTML (`x.html`), its picture (`x.svg`) and every number of it (`x.json`),
from which it is made again.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, TextIO

import msgspec

from plumbline.core.errors import PlumblineError, visible
from plumbline.core.files import read_json
from plumbline.core.formats import format_count, format_percent, format_seconds
from plumbline.stats.factor_effects import WIDER_LEVEL
from plumbline.stats.fresh_runs import MeanDifference
from plumbline.verdict.comparability import every_check
from plumbline.verdict.decision.run_table import write_run_table
from plumbline.verdict.formatting import format_freedom, format_p, format_value, quote, write_grid
from plumbline.verdict.page import VerdictPage, escape_tags, print_in_terminal, write_list
from plumbline.verdict.picture import PicturedGain
from plumbline.verdict.screen.screen_course import ScreenDecision
from plumbline.verdict.screen.screen_design import WITH, Level, name_level
from plumbline.verdict.screen.screen_effects import INTERVAL, Effect, ScreenEffects
from plumbline.verdict.screen.screen_plan import describe_rule, write_design
from plumbline.verdict.screen.screen_runs import DESIGN, FRESH, LEFT_OUT
from plumbline.verdict.screen.screen_terms import ScreenTerms
from plumbline.verdict.screen_picture import MOST, ScreenPicture

#: Effects that a terminal lists, and those beyond that are chosen.
MOST_PRINTED = 12
LIMITS = (
    "An effect is an average over the levels of all others. Where two gain together more, or less, than their sum, "
    "half of that is in the effect of each.",
    "What is claimed is the gain of the set against fresh runs. The effect of one of the set is from the runs that "
    "chose it, and flatters it a little.",
    "Without interactions the rule keeps its promise; interactions may have something chosen that gains only "
    "beside others (simulated: benchmarks/screen_rates.md).",
)


def write(decision: ScreenDecision, page: Path) -> None:
    """Write the page, also as HTML, its picture and its numbers."""
    make_page(decision).write(page, decision_to_json(decision), html=True)


def read(path: Path) -> ScreenDecision:
    """Read a decision from the numbers next to its page.

    Raises:
        PlumblineError: there is none.
    """
    try:
        return msgspec.convert(_restore(read_json(path)), ScreenDecision)
    except (msgspec.ValidationError, AttributeError, TypeError, KeyError) as error:
        raise PlumblineError(f"{path} is no decision of a screen ({error}); repeat plumbline screen") from None


def _restore(values: Any) -> Any:
    """JSON has no NaN: what could not be estimated is null there."""
    if values.get("effects"):
        effects = values["effects"]
        parts = [effects, effects["lenth"], *effects["effects"]]
        for part in parts:
            part.update({key: math.nan for key, value in part.items() if value is None})
    return values


def decision_to_json(decision: ScreenDecision) -> dict[str, Any]:
    """Every number of a decision as JSON has them, with p-values and intervals of what fresh runs say."""
    values: dict[str, Any] = json.loads(msgspec.json.encode(decision))
    if decision.confirmation is not None:
        values["confirmation"] |= _describe_difference(decision.confirmation)
    for left_out, comparison in zip(values["left_out"], decision.left_out):
        left_out["difference"] |= _describe_difference(comparison.difference)
    return values | {"exit_code": decision.exit_code}


def _describe_difference(difference: MeanDifference) -> dict[str, float]:
    low, high = difference.interval(INTERVAL)
    return {"p": difference.p, "low": low, "high": high}


def describe_try(decision: ScreenDecision, name: str) -> dict[str, Any]:
    """State of one idea what a list of tries shows."""
    effects = decision.effects.effects if decision.effects else ()
    effect = next((each for each in effects if name in _list_try_names(each.level)), None)
    gain = "" if effect is None or math.isnan(effect.gain) else format_value(effect.gain, effect.error)
    runs = sum(run.request.part == DESIGN and run.run.has_value for run in decision.runs)
    return {"against": decision.terms.baseline, "runs": runs, "baseline_runs": 0, "gain": gain}


def _list_try_names(level: Level) -> tuple[str, ...]:
    """What a try of a level may be called: the idea, or the method (`combined_methods.name_level`)."""
    factor, value = level
    return (factor,) if value == WITH else (value, f"{value}.{factor}")


def make_page(decision: ScreenDecision) -> VerdictPage:
    """Make the page of a decision: its sentence, its picture, and its sections as Markdown."""
    terms = decision.terms
    fresh = every_check.write_answers(decision.fresh_comparability) if decision.fresh_comparability else ""
    stands_on = [
        every_check.write_answers(decision.comparability) if decision.comparability else "",
        f"Of the fresh runs:\n\n{fresh}" if fresh else "",
        _write_changes(decision),
    ]
    sections = {
        "What decides": describe_rule(terms),
        "Effects": _write_effects(decision),
        "The chosen set": _write_set(decision),
        "Together": _write_interactions(decision),
        "Design": _write_design(decision),
        "Runs": _write_runs(decision),
        "What it stands on": "\n\n".join(filter(None, stands_on)),
        "What it cost": describe_cost(decision),
        "Ledger": escape_tags(decision.ledger),
        "Limits": write_list([*LIMITS, *map(escape_tags, decision.notes)]),
    }
    sentences = list_told(decision)
    return VerdictPage(
        title=f"A screen of {decision.design.counted} beside {quote(terms.baseline)}",
        sentence=decision.sentence,
        told=sentences,
        picture=(picture := make_picture(decision)),
        alt=f"every effect with its interval{', and the half-normal plot' * picture.has_half_normal}",
        sections=sections,
    )


def list_told(decision: ScreenDecision) -> list[str]:
    """List the sentences next to the verdict: of the spread, and by the checks."""
    sentences = [*every_check.list_told(decision.comparability), *every_check.list_told(decision.fresh_comparability)]
    spread = [describe_spread(decision.effects)] if decision.effects is not None else []
    return list(dict.fromkeys(filter(None, [*spread, *sentences])))


def make_picture(decision: ScreenDecision) -> ScreenPicture:
    """State what is drawn of a decision."""
    effects = decision.effects
    estimates = [] if effects is None else [each for each in effects.effects if not math.isnan(each.error)]
    top = sorted(estimates, key=lambda each: -abs(each.gain / each.error) if each.error else -math.inf)[:MOST]
    return ScreenPicture(
        title=f"A screen of {decision.design.counted}: {decision.verdict}",
        metric=decision.terms.metric,
        interval=format_percent(INTERVAL),
        gains=[
            PicturedGain(name=_label(each.level), middle=each.gain, low=each.low, high=each.high)
            for each in sorted(top, key=lambda each: -each.gain)
        ],
        chosen=frozenset(map(_label, decision.chosen)),
        half_normal=[] if effects is None else [(_label(level), x, y) for level, x, y in effects.half_normal],
        pseudo_error=0.0 if effects is None else effects.lenth.pseudo_error,
        simultaneous=0.0 if effects is None else effects.lenth.simultaneous,
        left_out=len(estimates) - len(top),
    )


def _label(level: Level) -> str:
    return name_level(level).replace("`", "")


def _sort_effects(effects: ScreenEffects) -> list[Effect]:
    return sorted(effects.effects, key=lambda each: math.inf if math.isnan(each.gain) else -each.gain)


def _write_effects(decision: ScreenDecision) -> str:
    effects, terms = decision.effects, decision.terms
    if effects is None:
        return ""
    rows = []
    for each in _sort_effects(effects):
        result = "gains less than one that it cannot stand beside" if each.selected else ""
        result = "chosen" if each.chosen else "crashes" if each.level in decision.dropped else result
        change = terms.changes.get(each.level[0], "")
        rows.append((name_level(each.level), *_format_effect(each), result, quote(change) if change else ""))
    heads = ["idea" if decision.design.are_ideas else "level", "gain", f"{format_percent(INTERVAL)} interval"]
    heads += ["p of no gain", "corrected", "p of no harm", "", "what it changes"]
    return "\n\n".join(
        [
            _describe_sigma(effects, terms),
            write_grid(heads, rows),
            "The gain is in units of the metric, better upwards; its interval and p-values are of each effect by "
            "itself.",
            _describe_lenth(effects),
        ]
    )


def _format_effect(effect: Effect) -> tuple[str, str, str, str, str]:
    if math.isnan(effect.error):
        return ("not told apart", "", "", "", "")
    ends = f"{format_value(effect.low, effect.error)} to {format_value(effect.high, effect.error)}"
    gain = format_value(effect.gain, effect.error)
    return (gain, ends, format_p(effect.p_gain), format_p(effect.adjusted), format_p(effect.p_harm))


def _describe_sigma(effects: ScreenEffects, terms: ScreenTerms) -> str:
    unit = f" {terms.unit}" if terms.unit else ""
    residual = ""
    if effects.residual_df and effects.source != "residuals":
        residual = f" (residuals alone: {effects.residual_sigma:.3g}, {effects.residual_df})"
    drift = ""
    if not math.isnan(effects.trend_p):
        drift = f" Whether values drift with the order of the runs: p = {format_p(effects.trend_p)}."
    return (
        f"Sigma of one run is {effects.sigma:.3g}{unit}, by {effects.source}, {format_freedom(effects.df)} degrees of "
        f"freedom{residual}; {effects.runs} runs have a value.{drift}"
    )


def _describe_lenth(effects: ScreenEffects) -> str:
    labels = [_label(level) for level, _, size in effects.half_normal if size > effects.lenth.simultaneous]
    listed = ", ".join(map(quote, reversed(labels))) if labels else "none"
    return (
        f"By the effects alone (Lenth 1989), a run's sigma is {effects.lenth.pseudo_error:.3g}; beyond his "
        f"simultaneous margin: {listed}. It does not decide."
    )


def _write_set(decision: ScreenDecision) -> str:
    if not decision.chosen:
        return ""
    lines = [f"Together: {', '.join(map(name_level, decision.chosen))}."]
    if (difference := decision.confirmation) is not None:
        lines.append(f"Against the baseline, fresh runs of both: {_format_difference(difference)}.")
    effects = {each.level: each for each in decision.effects.effects} if decision.effects else {}
    if all(level in effects for level in decision.chosen) and decision.effects is not None:
        total = sum(effects[level].gain for level in decision.chosen)
        lines.append(f"The sum of their effects in the design is {format_value(total, decision.effects.sigma / 10)}.")
    if decision.to_keep:
        lines.append(f"To keep it: {quote(decision.to_keep)}")
    text = " ".join(lines)
    if not decision.left_out:
        return text
    rows = [(name_level(each.level), *_format_difference_cells(each.difference)) for each in decision.left_out]
    heads = ("taken out", "what the set loses", f"{format_percent(INTERVAL)} interval", "p of no loss")
    return f"{text}\n\n{write_grid(heads, rows)}"


def _format_difference(difference: MeanDifference) -> str:
    gain, ends, p = _format_difference_cells(difference)
    return f"gain {gain} ({format_percent(INTERVAL)} interval {ends}; one-sided p = {p})"


def _format_difference_cells(difference: MeanDifference) -> tuple[str, str, str]:
    ends = " to ".join(format_value(end, difference.error) for end in difference.interval(INTERVAL))
    return format_value(difference.gain, difference.error), ends, format_p(difference.p)


def describe_spread(effects: ScreenEffects) -> str:
    """State that ideas do together what no sum of effects says, where residuals show it; empty where they do not."""
    if not effects.wider_p < WIDER_LEVEL:
        return ""
    times = effects.residual_sigma / effects.past_sigma if effects.past_sigma else math.inf
    return (
        f"What the effects leave over spreads {times:.2g} times as far as the baseline's own runs (F test, p = "
        f"{format_p(effects.wider_p)}): together, these change runs in ways that no sum of effects says, or make them "
        "noisier. An effect is an average over that, and what is not chosen may gain alone: plumbline try."
    )


def _write_interactions(decision: ScreenDecision) -> str:
    if decision.effects is None:
        return ""
    spread = describe_spread(decision.effects)
    return "\n\n".join(filter(None, (spread, _format_interactions(decision.effects, adds_up=not spread))))


def _format_interactions(effects: ScreenEffects, *, adds_up: bool) -> str:
    tested = effects.interactions_tested
    if not tested:
        return "These runs leave nothing by which interactions could be seen: whether two add up is not known here."
    if not effects.interactions:
        remark = "nothing here says that effects do not add up" if adds_up else "which ones do not add up is not told"
        return f"Of {tested:,} interactions of two that can be seen, none stands out (Bonferroni at .05): {remark}."
    rows = []
    for each in effects.interactions:
        names = [" × ".join(map(name_level, pair)) for pair in each.aliases]
        text = f"or {', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}" if names else ""
        gain = format_value(each.gain, each.error)
        rows.append((" × ".join(map(name_level, each.pair)), gain, format_p(each.adjusted), text))
    heads = ("two together", "gain beyond their sum", "corrected p", "same runs as")
    return f"Those that stand out of {tested:,} (Bonferroni at .05):\n\n{write_grid(heads, rows)}"


def _write_design(decision: ScreenDecision) -> str:
    results = [each.run.has_value for each in decision.runs if each.request.part == DESIGN]
    value_places = [place for place, has_value in enumerate(results) if has_value]
    return write_design(decision.terms, decision.design, range(len(results)), value_places=value_places)


def _write_runs(decision: ScreenDecision) -> str:
    first = {factor.name: factor.levels[0] for factor in decision.design.factors}
    sigma = decision.effects.sigma if decision.effects else math.nan
    rows = []
    for number, each in enumerate(decision.runs, start=1):
        settings = each.request.settings
        levels = [(name, settings[name]) for name in first if settings[name] != first[name]]
        part = {DESIGN: f"row {number}", FRESH: "fresh", LEFT_OUT: "fresh, one left out"}[each.request.part]
        names = (
            f"{len(levels)} levels" if each.request.part == DESIGN else ", ".join(map(name_level, levels)) or "baseline"
        )
        rows.append(([part, names], each.run))
    return write_run_table(["run", "of"], rows, decision.terms.metric, decision.terms.unit, sigma=sigma)


def _write_changes(decision: ScreenDecision) -> str:
    if not decision.changed_files:
        return "" if decision.changed_files is None else "No file differs from the baseline."
    rows = [(quote(name), lines) for name, lines in decision.changed_files.items()]
    return write_grid(("changed file of the set", "lines"), rows)


def describe_cost(decision: ScreenDecision) -> str:
    """State how many runs there are and what they took."""
    counts = [(part, sum(run.request.part == part for run in decision.runs)) for part in (DESIGN, FRESH, LEFT_OUT)]
    names = {DESIGN: "of the design", FRESH: "fresh, of the set and of the baseline", LEFT_OUT: "with one left out"}
    listed = ", ".join(f"{number} {names[part]}" for part, number in counts if number)
    took = format_seconds(sum(run.run.seconds or 0.0 for run in decision.runs), "second")
    return f"{format_count(len(decision.runs), 'run')} ({listed}), {took} of training." if listed else "No run."


def print_decision(decision: ScreenDecision, page: str, *, file: TextIO | None = None) -> None:
    """Print what a terminal shows: the effects that matter, what is told next to the verdict, and the sentence."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    parts = list[Table | Text]()
    if decision.effects is not None:
        ordered = _sort_effects(decision.effects)
        rows = [each for place, each in enumerate(ordered) if each.chosen or place < MOST_PRINTED]
        heads = ("effect", "gain", f"{format_percent(INTERVAL)} interval", "p of no gain", "")
        table = Table(*heads, box=box.SIMPLE_HEAD, pad_edge=False)
        for each in rows:
            gain, ends, p, _, _ = _format_effect(each)
            table.add_row(Text(visible(_label(each.level))), gain, ends, p, "chosen" if each.chosen else "")
        parts.append(table)
        if len(rows) < len(decision.effects.effects):
            parts.append(Text(f"and {len(decision.effects.effects) - len(rows)} more, on the page", style="dim"))
    notes = dict.fromkeys([*decision.notes, *list_told(decision)])
    print_in_terminal(parts, notes, decision.sentence, [describe_cost(decision)], file=file, width=100)
    print(page, file=file, flush=True)
