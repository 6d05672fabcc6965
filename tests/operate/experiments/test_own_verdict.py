"""The page of a user's own modification, from made-up runs: its sentence, the ledger, divergence, traces."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import format_path, sha256_file
from plumbline.operate.experiments import own_verdict
from plumbline.operate.preflight.method_checks import checks_report
from plumbline.specs import own_methods_file
from plumbline.verdict import ledger
from plumbline.verdict import page as verdict_page
from plumbline.verdict.__main__ import main as verdict
from plumbline.verdict.ledger import LedgerEntry
from plumbline.verdict.own_method import decision_accuracy
from plumbline.verdict.page import SECTIONS
from plumbline.verdict.runs_picture import ALT
from tests.studies.transfer.synthetic_runs import World, curve, history, tasks_of

MINE = {
    "extends": "transfer",
    "methods": {"capped": {"model": {"mixer": {"name": "softmax_cap", "cap": 30.0}}}},
    "seeds": [42, 43, 44],
    "larger": "large",
}
LOSSES = {42: 5.000, 43: 5.004, 44: 4.997, 45: 5.002, 46: 4.999}

SIZE = "At 1.2M parameters and 44 steps of 2,304 tokens (preset demo)"


@pytest.fixture(autouse=True)
def held(monkeypatch: pytest.MonkeyPatch) -> None:
    """The made-up runs have no weights: they are taken to hold."""
    messages = {"base/capped": "held at 128 tokens (caps/base/capped/s42)"}
    monkeypatch.setattr(own_verdict.finished_run_checks, "check_finished_runs", lambda *_: messages)


class Made:
    """A project folder with a user's own file and its made-up runs."""

    def __init__(self, root: Path, gain: float = 0.0, **changes: Any) -> None:
        self.root, self.file = root, root / "caps.yaml"
        self.file.write_text(yaml.safe_dump(MINE | changes))
        self.mine = own_methods_file.load(str(self.file), "demo")
        self.world = World(root / "work", "demo", self.mine.study)
        for seed, loss in LOSSES.items():
            self.run("base", "baseline", seed, loss)
        for seed in self.mine.asked["seeds"]:
            self.run("base", "capped", seed, LOSSES[seed] + 0.001 - gain)
        for method, loss in (("baseline", 4.8), ("capped", 4.8 - gain / 2)):
            self.run("large", method, 42, loss)

    def run(self, scale: str, method: str, seed: int, loss: float) -> None:
        more = {"logprob_gold": tasks_of(0.3) - loss, "bits_per_byte": tasks_of(0.3) + loss}
        machine = {"device": "cpu"} | ({"peak_memory_bytes": seed * 10**7} if method == "capped" else {})
        metrics = curve(44, loss, every=11)
        self.world.completed(scale, method, seed, tasks_of(1 - loss / 10), loss, metrics, more=more, made_on=machine)

    @property
    def page(self) -> Path:
        return self.root / "verdict/caps.md"

    def write(self) -> str:
        """Make the page; the checks are taken to hold."""
        checks = {"failed": {}, "flagged": {}, "parity": {}, "starts_as": True}
        report = {
            "fingerprint": own_verdict.fingerprint_checks(self.mine),
            "checks": ["causality"],
            "methods": {"capped": checks},
        }
        place = self.root / "checks.json"
        trained = {"contexts": [128], "words": ["causality held at the trained context of 128 tokens"]}
        size = {"layers": 4, "width": 32, "vocabulary": 1024}
        place.write_text(json.dumps(report | {"size": size, "trained": trained}))
        request = own_verdict.VerdictInputs(
            mine=self.mine,
            work=self.world.root,
            checks=place,
            ledger=self.root / "verdict/ledger.jsonl",
            page=self.page,
        )
        return own_verdict.write(request)

    def numbers(self) -> dict[str, Any]:
        return json.loads(self.page.with_suffix(".json").read_text())


def test_a_gain_improves_and_nothing_is_ruled_out(tmp_path: Path) -> None:
    (tmp_path / "gain").mkdir()
    (tmp_path / "null").mkdir()
    text = Made(tmp_path / "gain", gain=0.05).write()
    assert text.startswith(f"{SIZE}: `capped` improves `validation_loss` by 0.049")
    assert "Flagged" not in (tmp_path / "gain/verdict/caps.md").read_text()
    (tmp_path / "leak").mkdir()
    leak = Made(tmp_path / "leak", gain=1.0)
    leak.write()
    assert "Flagged: `capped`: a gain of 333" in leak.page.read_text().partition("![")[0]
    null = Made(tmp_path / "null")
    text = null.write()
    assert text.startswith(f"{SIZE}: `capped`: a gain in `validation_loss` is ruled out above")
    page = null.page.read_text()
    assert page.startswith(f"# `capped` against `baseline`\n\n{text}\n\n![{ALT}](caps.svg)\n")
    assert "survive" not in page and "must be at most 0.025" in page
    before = section(null, "Before the runs")
    assert "trained context of 128 tokens." in before
    assert "`base/capped` held at" in section(null, "After the runs")
    assert "not in sigma" in section(null, "Limits")
    assert "hangs on normal tails" in section(null, "Limits")
    titles = re.findall("^## (.*)$", page, flags=re.M)
    of_a_screen = {"Effects", "The chosen set", "Together", "Design"}
    assert set(titles) == set(SECTIONS) - {"Looks", "At each budget"} - of_a_screen
    assert titles == [title for title in SECTIONS if title in titles]
    for title in ("By other metrics, not deciding", "The larger scale", "Power"):
        assert f"### {title}\n\n" in section(null, "By study targets")
    assert str(tmp_path) not in page + null.page.with_suffix(".json").read_text(), "where somebody keeps files"
    assert "mine='…/caps.yaml'" in page
    assert "Stouffer over 12 tasks" in page and " accuracy, mean of " in page
    costs = section(null, "What it cost").splitlines()
    memory = [line.split("|")[-2].strip() for line in costs if line.startswith(("| `", "|  `"))]
    assert memory == ["430", "not recorded", "420", "not recorded"]


def test_no_verdict_if_the_weights_evaluated_are_gone(tmp_path: Path) -> None:
    """What opens in all evaluations but the last is in the mean, and not in what is computed again."""
    case = Made(tmp_path, gain=0.05)
    for seed in case.mine.asked["seeds"]:
        ours = case.world.root / f"runs/caps/base/capped/s{seed}/outcome.json"
        outcome = json.loads(ours.read_text())
        ours.write_text(json.dumps(outcome | {"validation_loss": LOSSES[seed] + 0.001}))
    with pytest.raises(PlumblineError, match=r"capped: its gain is 0.0\d+ in the evaluations .*: set `last: 0`"):
        case.write()
    assert not (tmp_path / "verdict/ledger.jsonl").exists()


def test_a_file_below_the_project_is_named_from_there(tmp_path: Path) -> None:
    assert format_path(tmp_path / "my/caps.yaml", tmp_path) == "my/caps.yaml" == format_path("my/caps.yaml", tmp_path)
    linked = tmp_path / "link"
    linked.symlink_to(tmp_path)
    assert format_path(tmp_path / "my/caps.yaml", linked) == "my/caps.yaml"
    assert format_path("/home/somebody/caps.yaml", tmp_path) == "…/caps.yaml"


def test_every_number_has_its_run(tmp_path: Path) -> None:
    case = Made(tmp_path, gain=0.05)
    case.write()
    numbers = case.numbers()
    assert len(numbers["runs"]) == 3 + 5 + 2
    for key, run in case.mine.study.runs.items():
        assert numbers["runs"][key]["run_id"] == run.spec.run_id and f"`{run.spec.run_id}`" in case.page.read_text()
    # 44 steps, evaluated every 11: the last quarter has the evaluations at 33 and 44.
    curve_of = curve(44, LOSSES[45], every=11)
    last = curve_of[(curve_of["split"] == "validation") & (curve_of["step"] >= 33)]["loss"].mean()
    assert numbers["runs"]["transfer/base/baseline/s45"]["validation_loss"] == pytest.approx(last)
    assert numbers["methods"]["capped"]["baseline"]["45"] == pytest.approx(last)
    picture, gain = case.page.with_suffix(".svg").read_text(), numbers["methods"]["capped"]
    assert picture.count('<circle class="baseline"') == 2 * 5
    assert picture.count('<circle class="candidate"') == 2 * 3 + 1
    for end in ("gain", "low", "high"):
        assert f"{gain[end]:.4f}" in picture
    assert "95 % interval" in picture


def test_a_third_entry_changes_the_corrected_p_of_the_first(tmp_path: Path) -> None:
    case = Made(tmp_path, gain=0.006)
    case.write()
    first = case.numbers()["methods"]["capped"]
    assert first["tries"] == 1 and verdict(["--check-page", str(case.page)]) == 0
    case.write()
    assert case.numbers()["methods"]["capped"]["tries"] == 1, "the same again is no new try"
    assert "recipe is that of" in section(case, "Limits")
    other = LedgerEntry(kind="spec", name="o/a", fingerprint="a", baseline="other", metric="accuracy", test="pooled t")
    ledger.append(case.root / "verdict/ledger.jsonl", [other])
    assert verdict(["--check-page", str(case.page)]) == 0, "another family's entry"
    for name in ("other/a", "other/b"):
        same = {"baseline": "transfer/base/baseline", "metric": "validation_loss", "test": "pooled t"}
        ledger.append(
            case.root / "verdict/ledger.jsonl", [LedgerEntry(kind="spec", name=name, fingerprint=name, **same)]
        )
    assert verdict(["--check-page", str(case.page)]) == 1
    case.write()
    third = case.numbers()["methods"]["capped"]
    assert third["tries"] == 3 and third["p"] == first["p"]
    assert third["p_corrected"] == pytest.approx(min(1, 3 * first["p"]))


def test_a_method_of_which_a_seed_diverged_has_no_gain(tmp_path: Path) -> None:
    case = Made(tmp_path, gain=0.05)
    case.world.diverged("base", "capped", 43, 20, history("sudden", 20))
    text = case.write()
    assert "43: diverged), and none of `baseline`" in text
    assert case.numbers()["diverged"] == {"capped": ["caps/base/capped/s43"]} and case.numbers()["methods"] == {}
    assert ">2 runs, 1 diverged<" in case.page.with_suffix(".svg").read_text()
    assert len(ledger.read(case.root / "verdict/ledger.jsonl")) == 1, "it was a try"
    assert "Diverged seeds" in case.page.read_text()


def test_a_failed_page_enters_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Made(tmp_path)

    def full(*_: object) -> None:
        raise PlumblineError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(
            checks_report, "require_no_failure", lambda found, path: (_ for _ in ()).throw(PlumblineError("not causal"))
        )
        with pytest.raises(PlumblineError, match="not causal"):
            case.write()
    outcome = case.world.root / "runs/caps/base/capped/s43/outcome.json"
    aside = outcome.rename(outcome.with_name("aside"))
    with pytest.raises(PlumblineError, match=r"caps/base/capped/s43 is not there \(1 of 10 runs are not\): snakemake"):
        case.write()
    assert not (case.root / "verdict").exists()
    aside.rename(outcome)
    monkeypatch.setattr(verdict_page, "atomic_write_text", full)
    with pytest.raises(PlumblineError, match="full"):
        case.write()
    assert len(ledger.read(case.root / "verdict/ledger.jsonl")) == 0


def test_published_stands_beside_reproduced(tmp_path: Path) -> None:
    printed = tmp_path / "printed.csv"
    printed.write_text("method,metric,scale,value\ncapped,accuracy,base,0.512\n")
    case = Made(tmp_path, published="printed.csv")
    case.write()
    assert re.search(r"^\| `capped` +\| +accuracy \| +base \| +0\.512 \|", case.page.read_text(), flags=re.M)
    printed.write_text("method,metric,scale,value\ncaped,accuracy,base,0.512\n")
    with pytest.raises(PlumblineError, match=r"line 2.*'caped'.*not here.*'capped'"):
        case.write()
    assert len(ledger.read(case.root / "verdict/ledger.jsonl")) == 1


def test_decision_accuracy_of_the_printed_table() -> None:
    (table,) = decision_accuracy.read_printed("transfer")
    # Of ten methods 45 pairs; counted by hand from the two columns of table3.csv.
    assert (table.methods, table.pairs) == (10, 45)
    assert table.alike == 31
    crossed = decision_accuracy.compare({"a": 1, "b": 2, "c": 2}, {"a": 3, "b": 1, "c": 4}, source="", metric="")
    assert (crossed.alike, crossed.pairs) == (1.5, 3)


def test_decision_accuracy_of_this_page_and_those_before(tmp_path: Path) -> None:
    """Three methods before, of which two pairs keep their order, and this page's one, which does."""
    case = Made(tmp_path, gain=0.05)
    case.page.parent.mkdir()
    means = {"my/a": (5.0, 4.8), "my/b": (4.9, 4.7), "my/c": (4.8, 4.75)}
    for name, study in (("before", "transfer"), ("elsewhere", "quack")):
        entry = {"study": study, "metric": "validation_loss", "scales": ["base", "large"], "means": means}
        (case.page.parent / f"{name}.json").write_text(json.dumps({decision_accuracy.KEY: entry}))
    case.write()
    page = case.page.read_text()
    assert re.search(r"^\| your runs, from 2 pages +\| +validation loss \(nats\) +\| +5 +\| +3 of 4 ", page, flags=re.M)
    assert "At 2.8M `capped` lowers `validation_loss` by 0.025" in page
    before = case.page.parent / "before.json"
    before.with_suffix(".md").touch()
    fingerprint_file.write(case.page.parent / "before.md", "", numbers_sha256=sha256_file(before))
    before.write_text(before.read_text().replace("4.7", "4.6", 1))
    with pytest.raises(PlumblineError, match=r"before\.json has other numbers"):
        case.write()
    (case.page.parent / "before.json").write_text("{")
    with pytest.raises(PlumblineError, match=r"before\.json is not JSON .* rebuilds"):
        case.write()


def test_divergence_at_the_larger_scale_is_told(tmp_path: Path) -> None:
    case = Made(tmp_path, gain=0.05, larger_seeds=[42, 43])
    case.run("large", "baseline", 43, 4.8)
    case.world.diverged("large", "capped", 43, 20, history("sudden", 20))
    sentence = case.write()
    assert "`capped` improves `validation_loss`" in sentence
    assert sentence.endswith(" At 2.8M (scale large) 1 of 2 seeds of `capped` diverged.")
    page = case.page.read_text()
    assert "At 2.8M `capped` lowers" not in page, "a gain of the other seed would choose among its runs"
    assert re.search(r"^\| `capped` +\| +2 / 2 \| +diverged \| +not compared \|", page, flags=re.M)
    assert "`capped` lost caps/large/capped/s43" in page
    assert "the runs of this page" not in page, "decision accuracy of one pair is none"


def test_the_ledger_section_counts_tries_and_not_lines(tmp_path: Path) -> None:
    case = Made(tmp_path, gain=0.05)
    case.write()
    assert "1 try against `transfer/base/baseline` in `validation_loss`" in section(case)
    case.file.write_text(yaml.safe_dump(MINE | {"planned_tries": 20}))
    case.mine = own_methods_file.load(str(case.file), "demo")
    same = {"kind": "spec", "baseline": "transfer/base/baseline", "test": "pooled t"}
    place = case.root / "verdict/ledger.jsonl"
    other, decided = (LedgerEntry(name=f"o/{name}", fingerprint=name, metric="accuracy", **same) for name in "ab")
    ledger.append(place, [other, dataclasses.replace(decided, verdict="discard")])
    case.write()
    assert len(ledger.read(place)) == 4, "the announcement is a line, and what was decided another"
    facts = "1 try against `transfer/base/baseline` in `validation_loss`", "20 were announced", "`planned_tries:`"
    assert all(fact in section(case) for fact in (*facts, "multiplied by 20", ". 1 more, against "))
    page = case.page.read_text()
    assert "before the runs:" not in page and "named beforehand" not in page
    assert "before the runs cannot" in page


def section(case: Made, title: str = "Ledger") -> str:
    """The text of a section of its page."""
    return case.page.read_text().partition(f"\n## {title}\n\n")[2].partition("\n## ")[0]


def test_a_recipe_of_its_own_is_named(tmp_path: Path) -> None:
    capped = MINE["methods"]["capped"] | {"optimizer": {"learning_rate": 0.1}}
    case = Made(tmp_path, gain=0.003, methods={"capped": capped})
    case.write()
    limits = section(case, "Limits")
    assert "baseline's recipe: `optimizer.learning_rate` is 0.1 (baseline" in limits
    assert "recipe is that of" not in limits
    needed = case.numbers()["methods"]["capped"]["seeds_to_decide"]
    assert f"`capped`: {needed} seeds" in section(case, "By study targets")


def test_a_baseline_of_which_a_seed_diverged(tmp_path: Path) -> None:
    case = Made(tmp_path, gain=0.05)
    case.world.diverged("base", "baseline", 44, 20, history("sudden", 20))
    assert "`capped` cannot be judged: 1" in case.write()
    assert case.numbers()["methods"] == {} and list(case.numbers()["not judged"]) == ["capped"]
    case.file.write_text(yaml.safe_dump(MINE | {"allow_diverged": 1}))
    case.mine = own_methods_file.load(str(case.file), "demo")
    assert "`capped` improves `validation_loss` by" in case.write()
    assert "3 seeds against 4 of `baseline`" in case.write()
    case.world.diverged("base", "capped", 43, 20, history("sudden", 20))
    assert "2 seeds against 4 of `baseline`" in case.write(), "it may lose as many"


def test_what_a_verdict_stands_on_is_told(tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    case = Made(tmp_path, gain=0.05)
    text = case.write()
    assert case.numbers()["comparability"]["capped"]["equal budget"]["answer"] == "holds"
    assert "Equal within their noise: time" in section(case, "What it stands on")
    manifests = sorted((case.world.root / "runs").glob("*/base/capped/*/manifest.json"))
    for manifest in manifests:
        read = json.loads(manifest.read_text())
        manifest.write_text(json.dumps(read | {"wall_seconds": 3 * read["wall_seconds"]}))
    sentence = "The runs of `capped`, compared with those of `baseline`, took 3 times as long"
    assert case.write() == text and f"{text}\n\n{sentence}" in case.page.read_text()
    copies = Made(tmp_path / "copies", gain=0.05)
    for seed in copies.mine.asked["seeds"]:
        copies.run("base", "capped", seed, 4.951)
    assert "no effect: runs 42, 43 and 44" in copies.write()
    assert copies.numbers()["methods"] == {} and list(copies.numbers()["not judged"]) == ["capped"]
