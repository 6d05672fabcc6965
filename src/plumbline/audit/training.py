"""Named formulas of the audit about training: perplexity, tokens, schedules, initial scales, cost."""

from __future__ import annotations

from mpmath import iv

from plumbline.audit.formulas import Intervals, formula, relative_gap, total
from plumbline.audit.interval import Interval, high, low


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


@formula("softmax", "exp(z_i) / sum_j exp(z_j)")
def softmax(i: Interval, z: Intervals) -> Interval:
    return 1 / total(*(iv.exp(other - z[round(low(i))]) for other in z))


@formula("softplus plus offset", "log(1 + exp(x)) + c")
def softplus_offset(x: Interval, c: Interval) -> Interval:
    return iv.log(1 + iv.exp(x)) + c


@formula("SSMax temperature", "1 / (s log n), s = softplus(logit) + c")
def ssmax_temperature(logit: Interval, c: Interval, n: Interval) -> Interval:
    return 1 / (softplus_offset(logit, c) * iv.log(n))


@formula("SSMax temperature gap", "100 |1 / (s log n) / reference - 1| %")
def ssmax_gap(logit: Interval, c: Interval, n: Interval, reference: Interval) -> Interval:
    return relative_gap(ssmax_temperature(logit, c, n), reference)


@formula("release checkpoint", "100 round(0.005 k S) / S, S = tokens // batch, k = 200 start + patience - 1")
def release(start_pct: Interval, patience: Interval, tokens: Interval, batch: Interval) -> Interval:
    steps = int(low(tokens) // low(batch))
    evaluation = round(2 * low(start_pct) + low(patience) - 1)
    return iv.mpf(100) * round(0.005 * evaluation * steps) / steps


@formula("nearest evaluation", "the evaluation (0.5 % grid of whole steps) next to the printed share")
def nearest_evaluation(share_pct: Interval, tokens: Interval, batch: Interval) -> Interval:
    steps = int(low(tokens) // low(batch))
    evaluation = round((low(share_pct) + high(share_pct)) / 2 / 0.5)
    return iv.mpf(100) * round(0.005 * evaluation * steps) / steps


@formula("std of scores, learned query", "sigma^2 sqrt(d_k)")
def score_std(sigma: Interval, d_k: Interval) -> Interval:
    return sigma**2 * iv.sqrt(d_k)


@formula("std of scores, identity query", "sigma / sqrt(h)")
def reduced_score_std(sigma: Interval, h: Interval) -> Interval:
    return sigma / iv.sqrt(h)


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


@formula("score ratio", "1 / (sigma sqrt(h d_k))")
def score_ratio(sigma: Interval, h: Interval, d_k: Interval) -> Interval:
    return 1 / (sigma * iv.sqrt(h * d_k))


@formula("billions over 20 per million", "1000 tokens / (20 N), billions and millions")
def chinchilla(tokens_b: Interval, parameters_m: Interval) -> Interval:
    return 50 * tokens_b / parameters_m
