"""The page, picture, sentence and terminal of a decision: its own numbers, whatever its names and values are."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

from plumbline.stats.after_stopping import estimate
from plumbline.stats.fresh_runs import FRESH_LEVEL
from plumbline.stats.sequential import SequentialDesign, boundary, statistic
from plumbline.stats.sessions import false_keeps
from plumbline.verdict.decision import decision_page
from plumbline.verdict.decision.decision_page import print_decision
from plumbline.verdict.decision.decision_sentences import write_sentence
from plumbline.verdict.decision.experiment import BASELINE, ArmRun, Decision, ExperimentTerms, read_decision
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.picture_parts import LEFT, RIGHT

BANK = (5.0021, 5.0043, 4.9972, 5.0011, 4.9993)
HOSTILE = "<script>alert(1)</script>\u202e`|](http://x) &amp;\x07\uffff\ud800"


def write_markdown(decision: Decision, picture_name: str) -> str:
    return decision_page.make_page(decision).markdown(picture_name)


def decide(
    values: Sequence[float], lost: Sequence[ArmRun] = (), bank: Sequence[float] = BANK, **terms: Any
) -> Decision:
    """A decision on these values of a candidate, as the loop makes it."""
    base: dict[str, Any] = {"name": "x", "baseline": "plain", "candidate": "cosine", "metric": "loss", "higher": False}
    base |= {"design": SequentialDesign(bank=len(bank), most=8)} | terms
    experiment = ExperimentTerms(**base)
    edges, looks = boundary(experiment.design), []
    for count in range(1, len(values) + 1):
        options = {"higher": experiment.higher, "minimum_gain": experiment.minimum_gain}
        looks.append(statistic(bank, values[:count], **options))
        if looks[-1].t >= edges.keep[count - 1] or looks[-1].t <= edges.discard[count - 1]:
            break
    verdict, effect = "crashed" if lost else "undecided", None
    if looks and not lost:
        last = looks[-1]
        verdict = "keep" if last.t >= edges.keep[last.k - 1] else verdict
        verdict = "discard" if last.t <= edges.discard[last.k - 1] else verdict
        effect = estimate(experiment.design, looks, verdict)
    runs = [ArmRun(arm=BASELINE, seed=100 + place, value=value) for place, value in enumerate(bank)]
    runs += [ArmRun(arm=experiment.candidate, seed=1 + place, value=value) for place, value in enumerate(values)]
    decision = Decision(
        terms=experiment,
        verdict=Outcome(verdict),
        runs=(*runs, *lost),
        looks=tuple(looks),
        boundary=edges,
        sentence="",
        estimate=effect,
    )
    return replace(decision, sentence=write_sentence(decision))


def make_diverged(seed: int, why: str = "") -> ArmRun:
    return ArmRun(arm="cosine", seed=seed, value=None, outcome="diverged", why=why)


def parse_picture(decision: Decision) -> dict[str, list[ElementTree.Element]]:
    """The elements of the picture by class and tag, read as a browser reads them."""
    root = ElementTree.fromstring(decision_page.make_picture(decision).svg())
    elements: dict[str, list[ElementTree.Element]] = {}
    for element in root.iter():
        tag = element.tag.rpartition("}")[2]
        elements.setdefault(f"{tag}.{element.get('class')}" if element.get("class") else tag, []).append(element)
    return elements


def dump(decision: Decision) -> str:
    """What a terminal shows."""
    stream = io.StringIO()
    print_decision(decision, file=stream)
    return stream.getvalue()


def test_the_picture_shows_each_value_each_look() -> None:
    decision = decide((4.9912, 4.9935))
    assert decision.verdict == "keep" and decision.estimate is not None
    parts = parse_picture(decision)
    (bank, own) = ([float(one.get("cx", "")) for one in parts[f"circle.{kind}"]] for kind in ("baseline", "candidate"))
    # On one axis from left to right: the distance of any two values is that of their dots.
    values = [*decision.baseline_values, *decision.candidate_values]
    dots = [*bank, *own[:2]]
    scale = (dots[0] - dots[5]) / (values[0] - values[5])
    assert [(dot - dots[5]) / scale for dot in dots] == pytest.approx([one - values[5] for one in values], abs=1e-5)
    assert min(dots) > LEFT and max(dots) < RIGHT
    description = parts["desc"][0].text or ""
    for look in decision.looks:
        assert f"after {look.k}: T = {look.t:.3f}" in description
        if look.k > 1:
            assert f"kept from {decision.boundary.keep[look.k - 1]:.3f}" in description
    for end in (decision.estimate.low, decision.estimate.median, decision.estimate.high):
        assert re.search(rf"{end:.4f}", description)
    assert len(parts["path.edge keep"]) == 7, "the first of eight looks keeps nothing"
    assert len(parts["path.edge discard"]) == 8
    # The second look is above its boundary, the first one below where the second one's is.
    edge = float(re.search(r"M\S+ (\S+)h", parts["path.edge keep"][0].get("d", ""))[1])  # type: ignore[index]
    assert float(parts["circle.candidate"][-1].get("cy", "")) < edge


def test_values_stand_in_order_of_time() -> None:
    decision = decide((4.9912, 4.9935))
    fresh = tuple(ArmRun(arm=arm, seed=300, value=value) for arm, value in ((BASELINE, 5.0), ("cosine", 4.99)))
    decision = replace(decision, fresh=fresh, order=(4, 3, 2, 1, 0, 40, 41, 43, 42))
    parts = parse_picture(decision)
    circles = {kind: parts[f"circle.{kind}"] for kind in ("baseline", "candidate", "baseline fresh", "candidate fresh")}
    by_time = (
        circles["baseline"][5:]
        + circles["candidate"][2:4]
        + [circles[f"{arm} fresh"][1] for arm in ("candidate", "baseline")]
    )
    across = [float(each.get("cx", "")) for each in by_time]
    assert across == sorted(across) and min(across) > LEFT and max(across) < RIGHT
    values = [*BANK[::-1], 4.9912, 4.9935, 4.99, 5.0]
    heights = [float(each.get("cy", "")) for each in by_time]
    scale = (heights[5] - heights[0]) / (values[5] - values[0])
    assert [(each - heights[0]) / scale for each in heights] == pytest.approx(
        [each - BANK[4] for each in values], abs=1e-4
    )
    assert "run 1: plain, seed 104: 4.9993" in [each.text for each in parts["title"]]
    assert "plain 4.9993, 5.0011, 4.9972, 5.0043, 5.0021; cosine 4.9912, 4.9935;" in (parts["desc"][0].text or "")
    assert "order of time" in write_markdown(decision, "x.svg")
    for order in ((), (*decision.order[:-1], None)):
        page, picture = write_markdown(replace(decision, order=order), "x.svg"), replace(decision, order=order)
        assert "order of time" not in page
        assert len(parse_picture(picture)["circle.baseline"]) == 5, "a place that is not known is not made up"


def test_the_page_refers_to_its_picture(tmp_path: Path) -> None:
    decision = decide((4.9912, 4.9935))
    decision_page.write(decision, tmp_path / "my page).md")
    page = (tmp_path / "my page).md").read_text()
    assert "](my%20page%29.svg)" in page and ElementTree.parse(tmp_path / "my page).svg")
    numbers = json.loads((tmp_path / "my page).json").read_text())
    assert numbers["verdict"] == "keep" and numbers["exit_code"] == 0 and numbers["sentence"] in page
    assert [run["value"] for run in numbers["runs"]] == [*BANK, 4.9912, 4.9935]
    assert numbers["boundary"]["keep"][0] is None and numbers["looks"][1]["t"] == decision.looks[1].t
    assert write_markdown(read_decision(tmp_path / "my page).json"), "my page).svg") == page


def test_a_decision_of_a_session_that_is_gone_is_read(tmp_path: Path) -> None:
    decision_page.write(decide((4.9912, 4.9935)), tmp_path / "x.md")
    numbers = json.loads((tmp_path / "x.json").read_text())
    numbers["terms"] |= {"session": "fdr", "design": numbers["terms"]["design"] | {"e_value": True}}
    (tmp_path / "x.json").write_text(json.dumps(numbers))
    past = read_decision(tmp_path / "x.json")
    page = write_markdown(past, "x.svg")
    assert past.exit_code == 0 and "Session `fdr`, of an earlier version" in page and "Session `each`" not in page


def test_each_verdict_has_its_words() -> None:
    kept, poor = decide((4.9968, 4.9958, 4.9963, 4.9962)), decide((5.0025,))
    assert kept.estimate is not None and poor.estimate is not None
    plain_mean = kept.looks[-1].gain
    assert kept.sentence.startswith(f"`cosine` improves `loss` by {kept.estimate.median:.4f} (90 % interval ")
    assert len(kept.looks) == 4 and f"{plain_mean:.4f}" not in kept.sentence, "the plain mean flatters what was kept"
    assert poor.verdict == "discard"
    assert (
        f"gains above {poor.estimate.high:.4f} in `loss` are ruled out" in poor.sentence or "any gain" in poor.sentence
    )
    patient = SequentialDesign(bank=5, most=2, target_gain_sigmas=None)
    still = decide((4.999, 5.0), design=patient)
    still = replace(still, more=4)
    assert write_sentence(still).startswith(
        "`cosine` is not decided after 2 runs against 5 of `plain`: 4 more runs would"
    )
    lost = decide((4.99,), [make_diverged(7, "not finite at step 31")])
    assert (
        "of 2 runs of `cosine` 1 diverged (seed 7: `not finite at step 31`), while none of `plain` did" in lost.sentence
    )
    assert lost.estimate is None and "0.01" not in lost.sentence
    without = decide((4.9912, 4.9935))
    sentence = write_sentence(replace(without, estimate=None))
    assert not re.search(r"\d\.\d", sentence) and "`plumbline confirm`" in sentence, "no number where none is right"
    for decision in (kept, poor, still, lost):
        assert "survive" not in decision.sentence + write_markdown(decision, "x.svg")


def test_the_sentence_can_be_quoted_alone_and_invents_no_size(tmp_path: Path) -> None:
    size = "1.2M parameters and 44 steps of 4,096 tokens (preset demo)"
    kept, poor = (decide(values, size=size) for values in ((4.9912, 4.9935), (5.0005, 5.0004)))
    assert poor.verdict == "discard" and poor.estimate is not None and kept.estimate is not None
    decision_page.write(kept, tmp_path / "x.md")
    page, numbers = (tmp_path / "x.md").read_text(), json.loads((tmp_path / "x.json").read_text())
    assert numbers["terms"]["size"] == size
    for text in (page, numbers["sentence"], " ".join(dump(kept).split())):
        assert f"At {size}, `cosine` improves `loss` by " in text
        assert f"one-sided p = {kept.estimate.p:.2g})" in text and "2 runs against 5 of `plain`" in text
    for phrase in (f"At {size}, ", f"estimated as {poor.estimate.median:.4f}, 90 % interval "):
        assert phrase in poor.sentence
    assert " p = " not in poor.sentence, "it may be small where the interval reaches zero"
    assert decide((4.9912, 4.9935)).sentence.startswith("`cosine` improves")
    assert "<b>" not in decide((4.9912, 4.9935), size="<b>[x](http://y)").sentence


def test_page_says_how_many_are_kept_for_nothing() -> None:
    decision = replace(decide((4.9945, 4.9947)), tries=40)
    keeps = false_keeps(decision.terms.design, 40)
    description = decision_page.describe_test(decision)
    assert " 40 changes " in description and f" {keeps.mean:.2g} false keeps" in description
    assert f"and {keeps.low} to {keeps.high} in 9 of 10" in description and keeps.high > 3 * keeps.mean


def test_the_figures_of_the_limits_are_those_of_the_table() -> None:
    """What is typed on a page is what benchmarks/experiment_rules.md has, as it is rounded there."""
    text = (Path(__file__).parents[3] / "benchmarks" / "experiment_rules.md").read_text()
    table = text.partition("## Noise of other shapes")[2].partition("##")[0]
    shares = {
        cells[0]: [round(100 * float(cell.split()[0])) for cell in cells[2:]]
        for line in table.splitlines()
        if line.startswith("|") and len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 7
        if "±" in cells[2]
    }
    loop = [row for name, row in shares.items() if re.fullmatch("stopping rule|interleaved|pairs", name)]
    on = [row for name, row in shares.items() if "not heeded" in name or "run on" in name]
    tails = [share for row in (*loop, *on) for share in row[:2]]
    wide = max(row[3] for row in loop)
    claim = next(row for name, row in shares.items() if name.startswith("`confirm`"))
    assert (
        decision_page.NORMAL.format(tails=f"{min(tails)} to {max(tails)} %", level="5 %", wide=f"up to {wide} %")
        == decision_page.LOOKED
    )
    assert (
        decision_page.NORMAL.format(tails=f"{max(claim[:2])} %", level="2.5 %", wide=f"{claim[3]} %")
        == decision_page.CLAIMED
    )
    match = re.search(r"\n\| stopping rule +\| 0 +\|(?:[^|]+\|){3} +([\d.]+)", text.partition("after stopping")[2])
    assert match and f"show {float(match[1]):.1f} sigma" in decision_page.STOPPED
    base, fresh = np.random.default_rng(0).standard_normal((2, 50_000, 5))
    confirmed = stats.ttest_ind(fresh, base, axis=1, alternative="greater").pvalue <= FRESH_LEVEL
    shown = (fresh.mean(axis=1) - base.mean(axis=1))[confirmed].mean()
    assert f"show {shown:.1f} sigma" in decision_page.FRESH


def test_what_is_required_is_in_sentence_and_picture() -> None:
    decision = decide((4.985, 4.986), minimum_gain=0.005)
    assert decision.verdict == "keep" and "more than the 0.0050 that are required" in decision.sentence
    assert "path.asked" in parse_picture(decision) and "path.asked" not in parse_picture(decide((4.985, 4.986)))


def test_others_names_are_shown_and_never_obeyed() -> None:
    run = replace(make_diverged(3, HOSTILE), arm=HOSTILE, others={HOSTILE: 1.0}, run_id=HOSTILE)
    terms = {"candidate": HOSTILE, "baseline": HOSTILE, "metric": HOSTILE, "trainer": HOSTILE, "unit": HOSTILE}
    for lost in ([run], []):
        decision = decide((4.9912, 4.9935), lost, **terms)
        svg, page = decision_page.make_picture(decision).svg(), write_markdown(decision, "x.svg")
        assert "script" not in {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}
        outside = re.sub(r"`[^`]*`", "", page)
        assert "<script" not in outside and "](http" not in outside
        for text in (svg, page, dump(decision), decision.sentence):
            assert "\u202e" not in text and "\x07" not in text and "\\u202e" in text
            text.encode("utf-8")  # a lone surrogate is not text
    bare = replace(decision, verdict=Outcome.CANNOT_BE_JUDGED)
    page = write_markdown(replace(bare, sentence=write_sentence(bare, reason="<script>no</script>")), "x.svg")
    assert "<script>no" not in page and "&lt;script>no" in page


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e200])
def test_values_of_any_size_are_drawn_and_told(scale: float) -> None:
    values, bank = [4.9912 * scale, 4.9935 * scale], [value * scale for value in BANK]
    decision = decide(values, bank=bank)
    usual = decide((4.9912, 4.9935))
    dots = [[dot.get("cx") for dot in parse_picture(each)["circle.baseline"]] for each in (decision, usual)]
    assert dots[0] == dots[1]
    assert not re.search(r"\d{15}|0\.0000000", write_markdown(decision, "x.svg") + dump(decision))
    labels = [text.text or "" for text in parse_picture(decision)["text.small"]]
    assert max(map(len, labels)) < 25 and len(set(labels)) > 10


def test_one_run_no_spread_and_no_look_have_a_page_too() -> None:
    empty = decide(())
    assert empty.sentence.startswith("`cosine` is not decided: ") and "no run" in empty.sentence
    alone = replace(empty, runs=empty.runs[:1], verdict=Outcome.CANNOT_BE_JUDGED)
    same = replace(empty, runs=tuple(replace(run, value=5.0) for run in empty.runs))
    for case in (empty, alone, same, replace(empty, runs=())):
        tags = parse_picture(case)
        assert "rect.keep" not in tags and "## Looks" not in write_markdown(case, "x.svg") and dump(case)
        assert all(math.isfinite(float(dot.get("cx", "nan"))) for dot in tags.get("circle.baseline", []))


def test_a_path_beyond_the_boundary_stays_in_the_picture() -> None:
    far = decide((4.2,))
    (dot,) = (node for node in parse_picture(far)["circle.candidate"] if len(node) and "T = " in (node[0].text or ""))
    height = float(ElementTree.fromstring(decision_page.make_picture(far).svg()).get("height", ""))
    assert 0 < float(dot.get("cy", "")) < height and f"T = {far.looks[0].t:.3f}" in (dot[0].text or "")
    beside = [node.text for node in parse_picture(far)["text.small"] if node.text and "T = " in node.text]
    assert beside == [f"T = {far.looks[0].t:.1f}"], "a dot at the edge says how far beyond it T is"
    assert not [node for node in parse_picture(decide((4.9912, 4.9935)))["text.small"] if "T = " in (node.text or "")]


def test_the_terminal_shows_runs_looks_and_the_sentence_last() -> None:
    text = dump(decide((4.9912, 4.9935)))
    rows = [line.split() for line in text.splitlines()]
    mean, sigma = sum(BANK) / 5, decide((4.9912, 4.9935)).looks[-1].sigma
    assert ["cosine", "1", "4.9912", f"{(mean - 4.9912) / sigma:+.1f}"] in rows
    edge = boundary(SequentialDesign(bank=5, most=8)).keep[1]
    assert re.search(rf"after 2 runs T = \d\.\d\d \(kept from {edge:.2f}, discarded up to 0\.\d\d\): kept", text)
    sentence = "kept after 2 runs against 5 of `plain`; whether fresh runs agree, `plumbline confirm` says."
    assert " ".join(text.split()).endswith(sentence)
    assert max(map(len, text.splitlines())) <= 80
