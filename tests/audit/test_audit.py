"""The audit as a whole: its rows, known contradictions, and that each verdict is computed."""

import shutil
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest

from plumbline.audit.formulas import FORMULAS
from plumbline.audit.interval import Number, high, low, span
from plumbline.audit.report import AUDITS, build, read_explanations, to_csv, to_markdown
from plumbline.audit.rows import MATCH, MISMATCH, WITHIN, Ledger
from plumbline.cli import PlumblineError
from plumbline.results.published import STUDIES, Published


@pytest.fixture(scope="module")
def root(repository):
    return repository / "config" / "published"


@pytest.fixture(scope="module")
def audit(root):
    return build(root).set_index(["document", "id"], drop=False)


def test_rows_per_document(audit):
    rows = audit["document"].value_counts()
    least = {"transfer": 341, "premature": 113, "query_free": 54, "quack": 9, "key_norms": 28}
    assert {study: rows[study] >= number for study, number in least.items()} == dict.fromkeys(least, True)
    assert audit.index.is_unique and set(audit["verdict"]) == {MATCH, WITHIN, MISMATCH}


def test_every_mismatch_is_explained_and_nothing_else_is(audit, root):
    found = {(row.document, row.id) for row in audit.itertuples() if row.verdict == MISMATCH}
    explained = {
        (study, name) for study, entries in read_explanations(root / "explanations.yaml").items() for name in entries
    }
    assert explained == found


@pytest.mark.parametrize(
    ("document", "id", "verdict", "recomputed"),
    [
        ("transfer", "tokens_b", MISMATCH, 46.137344),
        ("transfer", "tokens_b_half", MATCH, 23.068672),
        ("transfer", "sigma_baseline", WITHIN, 0.0020647841),
        ("transfer", "welch_t_softpick_seeds", MATCH, 6.3604284),
        ("transfer", "t2_p_softpick", MATCH, 1.4861e-4),
        ("transfer", "t2_p_hyper", MISMATCH, 2.3616e-21),
        ("transfer", "bonferroni_degraders", MATCH, 5),
        ("transfer", "holm", MATCH, 7),
        ("transfer", "bh", WITHIN, 12),
        ("transfer", "bh_from_table", MATCH, 11),
        ("transfer", "fwer", MATCH, 62.264638),
        ("transfer", "spearman_rho", MISMATCH, -3 / 7),
        ("transfer", "spearman_p", MATCH, 0.5582),
        ("transfer", "t3_rank_base_attnres", MISMATCH, 18),
        ("transfer", "t3_rank_base_sigmoid_attn", MATCH, 20),
        ("transfer", "t4_params_baseline", MATCH, 1.216710656),
        ("transfer", "t4_delta_selective_attn", MATCH, -2.0683491),
        ("transfer", "t4_flops_gated", MISMATCH, 5 / 36),
        ("transfer", "t5_mean_primary", MATCH, 0.48204167),
        ("transfer", "ssmax_rise_text", MISMATCH, 1600),
        ("transfer", "ssmax_rise_to_nan", MATCH, 1800),
        ("transfer", "diverged_after_passing", MISMATCH, 1),
        ("transfer", "pack_3b_superset", MATCH, 60.044928),
        ("premature", "rho_geglu", MATCH, 0.256),
        ("premature", "rho_swiglu", MATCH, 0.216258574),
        ("premature", "t8_main", MATCH, 4.0058725),
        ("premature", "t8_stricter_patience", MATCH, 4.9916107),
        ("premature", "t11_ppl_control", MISMATCH, 18.22509),
        ("premature", "params_270m", MATCH, 269.68224),
        ("query_free", "t2_total_baseline_small_d", MATCH, 117.915816),
        ("query_free", "t2_pct_baseline_small_d", WITHIN, 0.40760870),
        ("query_free", "score_ratio", MATCH, 1.8125),
        ("query_free", "chinchilla_baseline", MATCH, 11.8597733),
        ("quack", "params_mha", MATCH, 1.040246784),
        ("key_norms", "init_norm", MATCH, 8),
        ("key_norms", "softmax2_1", MISMATCH, 0.36716540),
        ("key_norms", "params_m", MISMATCH, 88.630528),
    ],
)
def test_known_rows(audit, document, id, verdict, recomputed):
    row = audit.loc[(document, id)]
    assert row["verdict"] == verdict
    assert row["recomputed"] == pytest.approx(recomputed, rel=1e-4)


class Sampling(Ledger):
    """Draws numbers that round to the printed inputs and looks where the formulas take them."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.outside: list[str] = []
        self._rng = np.random.default_rng(0)

    def check(self, id, what, source, formula, printed, inputs):
        super().check(id, what, source, formula, printed, inputs)
        row = self.rows[-1]
        for _ in range(4):
            point = FORMULAS[formula].function(*(self._draw(value) for value in inputs.values()))
            slack = 1e-9 * max(abs(row.low), abs(row.high), 1e-30)
            if low(point) < row.low - slack or high(point) > row.high + slack:
                self.outside.append(f"{id}: {low(point)} outside [{row.low}, {row.high}]")

    def _draw(self, value):
        if isinstance(value, Number):
            interval = value.interval()
            x = self._rng.uniform(low(interval), high(interval)) if low(interval) < high(interval) else low(interval)
            return span(x, x)
        return [self._draw(one) for one in value] if isinstance(value, Sequence) else span(value, value)


@pytest.mark.parametrize("study", STUDIES)
def test_no_rounding_of_the_inputs_leaves_the_interval(root, study):
    """The ranges are enclosures: for natural extensions and for those taken over corners alike."""
    ledger = Sampling(study, Published(root))
    for fill in AUDITS[study]:
        fill(ledger)
    assert ledger.outside == []


def test_verdicts_follow_the_data(root, tmp_path):
    """A changed printed number changes the rows that depend on it, and no others."""
    changed = tmp_path / "published"
    shutil.copytree(root, changed)
    table = changed / "transfer" / "table2.csv"
    table.write_text(table.read_text().replace("relu_squared,ReLU^2,0.4878", "relu_squared,ReLU^2,0.4978"))
    before, after = (build(folder, ["transfer"]).set_index("id") for folder in (root, changed))
    moved = set(before.index[before["verdict"] != after["verdict"]])
    assert {"t2_delta_relu_squared", "t2_z_relu_squared", "t3_base_relu_squared"} <= moved
    assert not any(name.startswith(("t4_", "t5_", "t7_")) for name in moved)


def test_rendering_is_stable_and_complete(audit):
    frame = audit.reset_index(drop=True)
    assert to_csv(frame) == to_csv(frame) and len(to_csv(frame).splitlines()) > 500
    page = to_markdown(frame)
    assert all(name in page for name in ("tokens_b", "t11_ppl_control", "softmax2_1", "Formulas"))


def test_command_needs_no_torch_and_writes_both_files(root, tmp_path):
    out = tmp_path / "audit.csv"
    code = (
        "import sys, plumbline.audit.__main__ as verb\n"
        f"sys.argv = ['audit', '--published', {str(root)!r}, '--out', {str(out)!r}]\n"
        "verb.main()\n"
        "assert not {'torch', 'transformers', 'lm_eval'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "| all " in done.stdout and out.is_file() and out.with_suffix(".md").is_file()


def test_command_names_what_is_missing(tmp_path):
    command = [sys.executable, "-m", "plumbline.audit", "--published", str(tmp_path / "nothing")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("error: no published numbers at")


def test_ledger_refuses_what_is_not_printed(root):
    ledger = Ledger("transfer", Published(root))
    with pytest.raises(PlumblineError, match=r"table2.csv: baseline.p_bonf is not printed"):
        ledger.cell("table2", "baseline", "p_bonf")
    with pytest.raises(PlumblineError, match="no entry 'nothing'"):
        ledger.prose("nothing")
