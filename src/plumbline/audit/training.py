"""Named formulas of the audit about training: perplexity, tokens, matched sizes, cost."""

from __future__ import annotations

from mpmath import iv

from plumbline.audit.formulas import formula
from plumbline.audit.interval import Interval


@formula("perplexity", "exp(loss)")
def perplexity(loss: Interval) -> Interval:
    return iv.exp(loss)


@formula("mean perplexity", "exp(mean loss) (1 + (n - 1) sd^2 / (2 n)), n runs")
def mean_perplexity(loss: Interval, sd: Interval, n: Interval) -> Interval:
    # Mean of exp over n values with sample sd: second order of exp around the mean loss.
    return iv.exp(loss) * (1 + (1 - 1 / n) * sd**2 / 2)


@formula("sd of perplexity", "perplexity x sd of loss")
def perplexity_sd(ppl: Interval, sd: Interval) -> Interval:
    return ppl * sd


@formula("accelerator days", "nodes a x 24 days a / (nodes b x hours b)")
def accelerator_days(nodes_a: Interval, days_a: Interval, nodes_b: Interval, hours_b: Interval) -> Interval:
    return nodes_a * 24 * days_a / (nodes_b * hours_b)


@formula("tokens saved", "1000 (budget - needed), billions to millions")
def tokens_saved(budget_b: Interval, needed_b: Interval) -> Interval:
    return 1000 * (budget_b - needed_b)


@formula("saving in per cent", "100 saving / (1000 budget), millions and billions")
def saving_pct(saving_m: Interval, budget_b: Interval) -> Interval:
    return saving_m / (10 * budget_b)


@formula("matched width", "3 r / 2")
def matched_width(gated: Interval) -> Interval:
    return 3 * gated / 2


@formula("pre-activation variance", "width sd^2")
def preactivation_variance(width: Interval, sd: Interval) -> Interval:
    return width * sd**2


@formula("billions over 20 per million", "1000 tokens / (20 N), billions and millions")
def chinchilla(tokens_b: Interval, parameters_m: Interval) -> Interval:
    return 50 * tokens_b / parameters_m
