"""The premature study's figures: their numbers are the runs', gaps are reported."""

from __future__ import annotations

import pytest

from plumbline.specs import study_parts
from tests.studies import made_targets
from tests.studies.premature.synthetic_runs import PUBLISHED, load_frames, make_published_facts, study_at, write_runs


def draw(root, name):
    frames = load_frames(root, *study_at().definition["targets"][name]["runs"])
    return study_parts.function("premature", "figures", name)(frames, study_at(), PUBLISHED)


def words(picture) -> str:
    texts = [text.get_text() for axes in picture.figure.axes for text in axes.texts]
    titles = [axes.get_title(loc) for axes in picture.figure.axes for loc in ("center", "left")]
    return "\n".join([*texts, *titles, picture.figure.get_suptitle()])


def test_fig1_has_both_factors_and_what_holds_them_back():
    frame = made_targets.draw("premature", "fig1").frame.set_index(["cause", "effect"])
    assert frame.index.is_unique and frame.loc[("energy", "growth"), "inhibits"] == False  # noqa: E712
    assert set(frame.index[frame["inhibits"]]) == {("gate", "energy"), ("slow", "step")}


def test_fig2_shows_gains_and_entropies_beside_the_printed():
    picture = made_targets.draw("premature", "fig2")
    frame = picture.frame.set_index("architecture")
    assert len(frame) == 7 and frame["ppl_reduction"].notna().all() and frame["ppl_reduction_published"].notna().all()
    assert (frame["ppl_reduction"] - frame["ppl_reduction_published"]).abs().max() < 2e-4
    assert frame.loc["gpt_geglu", "upper_entropy_3pct_published"] == 0.729
    assert "(printed +0.586)" in words(picture)
    lengths = {round(patch.get_width(), 4) for patch in picture.figure.axes[0].patches}
    assert round(float(frame.loc["gpt", "ppl_reduction"]), 4) in lengths


def test_fig2_needs_no_colours():
    picture = made_targets.draw("premature", "fig2")
    hatched = {bool(patch.get_hatch()) for patch in picture.figure.axes[0].patches}
    assert hatched == {True, False}


def test_fig2_names_what_is_missing(tmp_path):
    facts = make_published_facts()
    del facts["premature/base/llama_slow/s42"]
    facts["premature/base/gpt_biasless/s42"].outcome = "diverged"
    picture = draw(write_runs(facts, tmp_path), "fig2")
    frame = picture.frame.set_index("architecture")
    assert frame.loc["llama", "missing_reason"] == "missing"
    assert frame.loc["gpt_biasless", "missing_reason"] == "diverged"
    assert "missing (printed +0.018)" in words(picture) and len(picture.figure.axes[0].patches) == 5


def test_fig3_has_events_curves_and_printed_numbers():
    frame = made_targets.draw("premature", "fig3").frame
    measured, printed = frame[frame["seed"] != "printed"], frame[frame["seed"] == "printed"]
    at = measured[(measured["seed"] == "42") & (measured["training_pct"].round(6) == 3)].set_index(["panel", "arm"])[
        "value"
    ]
    assert at["entropy", "control"] == pytest.approx(0.6215) and at["logit", "intervention"] == pytest.approx(0.4287)
    assert at["ablation", "control"] == pytest.approx(82.3) and at["ablation", "intervention"] == pytest.approx(0.35)
    assert at["singular", "control"] > at["singular", "intervention"]
    events = measured[(measured["panel"] == "sharp") & (measured["seed"] == "42")].set_index("arm")["training_pct"]
    assert events.round(6).to_dict() == {"control": 3.0, "intervention": 20.0}
    assert printed[printed["panel"] == "ablation"]["value"].tolist() == [82.3, 146.1, 0.35, 17.4]


def test_fig3_says_what_never_happens_and_what_is_missing(tmp_path):
    facts = {key: run for key, run in make_published_facts().items() if "/base/gpt" in key}
    del facts["premature/base/gpt_slow/s44"]
    for seed in (42, 43):
        curve = facts[f"premature/base/gpt_slow/s{seed}"].run_values["entropy", "upper"]
        facts[f"premature/base/gpt_slow/s{seed}"].run_values["entropy", "upper"] = dict.fromkeys(curve, (0.9, 1.0))
    picture = draw(write_runs(facts, tmp_path), "fig3")
    text = words(picture)
    assert "never: 2 of 2" in text and "intervention 44 (missing)" in text


def test_fig3_writes_no_words_on_marks(tmp_path):
    """Marks of panel A may stand anywhere; what never happens is named at the other edge."""
    for name, at, edge in (("late", 1.0, "left"), ("early", 0.01, "right")):
        facts = make_published_facts()
        for seed in (43, 44):
            entropy = facts[f"premature/base/gpt_slow/s{seed}"].run_values["entropy", "upper"]
            entropy.update(dict.fromkeys(entropy, (0.9, 1.0)))
        entropy = facts["premature/base/gpt_slow/s42"].run_values["entropy", "upper"]
        entropy.update({fraction: (0.7 if fraction >= at else 0.9, 1.0) for fraction in entropy})
        events = draw(write_runs(facts, tmp_path / name), "fig3").figure.axes[0]
        [never] = [text for text in events.texts if text.get_text() == "never: 2 of 3"]
        assert never.get_ha() == edge
