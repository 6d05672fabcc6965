"""The audit as a whole: its rows, known contradictions, and that each verdict is computed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mpmath import iv

import plumbline.audit
from plumbline.audit.audit_csv import build, choose_studies, findings, read_coverage, summary, to_csv
from plumbline.audit.audit_page import WIDTH, to_markdown
from plumbline.audit.audit_rows import (
    CLASSES,
    COLUMNS,
    EDGE,
    MATCH,
    MIDDLE,
    MISMATCH,
    VALUE,
    VERDICTS,
    WITHIN,
    AuditRows,
)
from plumbline.core.errors import PlumblineError
from plumbline.published.expression import FUNCTIONS, audit_function, lift
from plumbline.published.interval_arithmetic import high, low
from plumbline.published.printed_number import PrintedNumber, exact
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.report import markdown_page
from plumbline.specs import study_parts
from plumbline.specs.study_config import paper_of
from plumbline.specs.yaml_files import papers
from plumbline.studies.transfer.audit.parameters_and_flops import FLOPS

#: Documents that have rows; the fewest that each may have.
LEAST = {"transfer": 419, "premature": 167, "query_free": 89, "quack": 10, "key_norms": 41}

#: How a README writes a number of findings.
WORDS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 8: "eight", 9: "nine", 10: "ten"}


@pytest.fixture(scope="module")
def audit(repository):
    return pd.DataFrame(build((), repository), columns=COLUMNS).set_index(["study", "id"], drop=False)


def page(rows, studies, root):
    by_study, read = (
        {study: findings(study, root) for study in studies},
        {study: read_coverage(study, root) for study in studies},
    )
    papers = {study: paper_of(study, root) for study in studies}
    return to_markdown(rows, studies, by_study, read, papers)


def test_rows_per_document(audit):
    rows = audit["study"].value_counts()
    assert {study: rows[study] >= number for study, number in LEAST.items()} == dict.fromkeys(LEAST, True)
    assert audit.index.is_unique and set(audit["verdict"]) == set(VERDICTS)


@pytest.mark.parametrize("study", LEAST)
def test_a_studys_readme_counts_as_the_audit_does(audit, repository, study):
    rows = audit[audit["study"] == study]
    readme = " ".join((repository / "studies" / study / "README.md").read_text(encoding="utf-8").split())
    wrong = (rows["verdict"] == "mismatch").sum()
    sentence = f"Of {len(rows)} checks of its printed numbers {wrong} do not hold"
    assert (sentence if wrong else f"All {len(rows)} checks of its printed numbers hold") in readme
    worded = sum(not finding.rows for finding in findings(study, repository))
    assert re.search(rf"\b{WORDS[worded]} \[?findings?\b", readme, re.IGNORECASE)


@pytest.mark.parametrize("study", LEAST)
def test_every_mismatch_has_a_finding(audit, repository, study):
    rows = audit[audit["study"] == study]
    mismatches = set(rows["id"][rows["verdict"] == MISMATCH])
    by_id = {finding.id: set(finding.rows) for finding in findings(study, repository) if finding.rows}
    assert mismatches <= set().union(set(), *by_id.values())
    assert [name for name, about in by_id.items() if not about & mismatches] == []
    assert set(rows["finding"]) - {""} == set(by_id)


@pytest.mark.parametrize("study", LEAST)
def test_every_printed_number_is_read_by_row_or_listed(repository, study):
    coverage = read_coverage(study, repository)
    assert coverage.missing == [] and coverage.idle == []
    assert coverage.read > 0.85 * coverage.printed  # a pattern that lists everything is not a reason


def test_mismatch_of_documents_own_numbers_is_contradiction(audit):
    classes = {(row["evidence_kind"], row["verdict"] == MISMATCH) for _, row in audit.iterrows()}
    assert {name for name, _ in classes} == set(CLASSES)
    assert not classes & {("contradiction", False), ("follows", True), ("copy", True)}
    assert audit.loc[("transfer", "heads"), "evidence_kind"] == "contradiction"
    assert audit.loc[("key_norms", "params_m"), "evidence_kind"] == "outside source"
    assert audit.loc[("transfer", "tokens_b_half"), "evidence_kind"] == "other interpretation"


@pytest.mark.parametrize(
    ("study", "id"),
    [
        *(("transfer", f"divergence_{seed}") for seed in (42, 43, 44)),
        ("transfer", "gain_floor"),
        ("transfer", "ssmax_rise_text"),
        ("transfer", "peak_step"),
        ("transfer", "orders"),
    ],
)
def test_a_word_or_an_about_is_no_exact_number(audit, study, id):
    assert audit.loc[(study, id), "verdict"] in (MATCH, WITHIN)


def test_counts_are_whole_numbers(audit):
    counted = audit[audit["formula"].str.match(r"(count|rank|rising|falling|in_same_order|\w+_survivors)\(")]
    assert len(counted) > 40 and (counted["recomputed"] % 1 == 0).all()
    assert audit.loc[("transfer", "gain_floor"), "recomputed"] == 10


def test_what_is_no_value_is_marked_and_what_is_zero_is_zero(audit):
    spans = audit["formula"].str.contains(r"between\(|one_of_runs\(|sd_of_mean\(|possible_wins\(")
    assert sum(spans) >= 4 and list(audit["recomputed_kind"] == MIDDLE) == list(spans)
    assert set(audit["recomputed_kind"]) == {VALUE, MIDDLE}
    assert (
        audit.loc[("transfer", "a100_difference"), "recomputed_low"]
        == 0
        < audit.loc[("transfer", "t2_p_attnres"), "recomputed_low"]
    )


def test_a_formula_names_the_cells_that_it_reads(audit):
    row = audit.loc[("transfer", "t2_z_softpick")]
    scores = "table2.softpick.climb_avg", "table2.baseline.climb_avg", "noise_floor.baseline.climb_avg_std"
    assert row["formula"] == "({} - {}) / {}".format(*scores)
    assert row["inputs"] == "{}=0.4922; {}=0.4829; {}=0.00208".format(*scores)


def test_a_row_can_be_computed_from_its_formula_and_inputs_alone(audit):
    functions = {"abs": abs, **{name: function.call for name, function in FUNCTIONS.items()}}
    for row in audit.to_dict("records"):
        formula, values = row["formula"].partition(", F = ")[0], {}
        for place, (name, printed) in enumerate(part.split("=") for part in row["inputs"].split("; ") if part):
            formula, times = re.subn(rf"(?<![\w.]){re.escape(name)}(?![\w.\[])", f"input{place}", formula)
            assert times, (row["id"], name)
            numbers = [exact(text) for text in printed.replace("< ", "").split()]
            values[f"input{place}"] = numbers if "[" in name else numbers[0]
        values = {name: lift(numbers) for name, numbers in values.items()}
        (value, _) = lift(eval(formula, functions, values)).one()
        assert (low(value) + high(value)) / 2 == pytest.approx(row["recomputed"], rel=1e-9, abs=1e-15), row["id"]


def test_no_method_has_its_flops_typed(audit):
    """Table 4's column is compared with the formula, also where it states that nothing is added."""
    rows = audit[(audit["study"] == "transfer") & audit["id"].str.startswith("t4_flops_")]
    assert len(rows) >= 20 and set(rows["formula"]) == {f"100 * (F / F_baseline - 1), {FLOPS}"}
    assert all(re.search(r"F=\d{12,}; F_baseline=\d{12,}", inputs) for inputs in rows["inputs"])


def test_the_engine_names_no_study(repository):
    source = "".join(path.read_text() for path in Path(plumbline.audit.__file__).parent.glob("*.py"))
    assert len(papers(repository)) >= 5
    assert [study for study in papers(repository) if re.search(rf"\b{study}\b", source)] == []


@pytest.mark.parametrize(
    ("study", "id", "verdict", "recomputed"),
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
        ("transfer", "t4_flops_gated_attn_qknorm", MISMATCH, 5 / 36),
        ("transfer", "t4_flops_relu_squared", MATCH, 0),
        ("transfer", "t4_delta_layerscale_literal", MISMATCH, 100 * 98304 / 1216710656),
        ("transfer", "spearman_p_recomputed", MISMATCH, 0.33737),
        ("transfer", "shards_superset", MISMATCH, 1223),
        ("transfer", "gain_floor", WITHIN, 10),
        ("transfer", "t5_mean_primary", MATCH, 0.48204167),
        ("transfer", "ssmax_rise_text", WITHIN, 1600),
        ("transfer", "ssmax_rise_to_nan", MATCH, 1800),
        ("transfer", "diverged_after_passing", MISMATCH, 1),
        ("transfer", "pack_3b_superset", MATCH, 60.044928),
        ("premature", "rho_geglu", MATCH, 0.256),
        ("premature", "rho_swiglu", MATCH, 0.216258574),
        ("premature", "t8_main", MATCH, 4.0058725),
        ("premature", "t8_stricter_patience", MATCH, 4.9916107),
        ("premature", "t11_ppl_control", MISMATCH, 18.22509),
        ("premature", "params_270m", MATCH, 269.68224),
        ("premature", "one_of_three_intervention_token_saving_pct", MATCH, 13.17),
        ("premature", "t2_sd_mean", MATCH, 5.288 / 14),
        ("premature", "t5_rank_upper_entropy", MISMATCH, 2),
        ("premature", "t3_between", MATCH, (0.5858 + 0.1075) / 2),
        ("transfer", "inside_bootstrap", MISMATCH, 4),
        ("transfer", "ssmax_within", MISMATCH, 6516),
        ("premature", "entropy_order", MISMATCH, 2),
        ("premature", "theorem_3_ratio", MISMATCH, 3),
        ("query_free", "corollary_8_4_1", MISMATCH, 20),
        ("query_free", "theorem_8_3_must", MISMATCH, 4),
        ("query_free", "t2_total_baseline_small_d", MATCH, 117.915816),
        ("query_free", "t2_pct_baseline_small_d", WITHIN, 0.40760870),
        ("query_free", "score_ratio", MATCH, 1.8125),
        ("query_free", "chinchilla_baseline", MATCH, 11.8597733),
        ("query_free", "transfer_angle_distance", MISMATCH, 9.518e-4),
        ("query_free", "transfer_distance", EDGE, 1e-3),
        ("quack", "params_mha", MATCH, 1.040246784),
        ("key_norms", "init_norm", MATCH, 8),
        ("key_norms", "softmax2_1", MISMATCH, 0.36716540),
        ("key_norms", "params_m", MISMATCH, 88.630528),
    ],
)
def test_known_rows(audit, study, id, verdict, recomputed):
    row = audit.loc[(study, id)]
    assert row["verdict"] == verdict
    assert row["recomputed"] == pytest.approx(recomputed, rel=1e-4)


@pytest.mark.parametrize("study", LEAST)
def test_no_rounding_of_the_inputs_leaves_the_interval(repository, study, monkeypatch):
    """The ranges are enclosures: for natural extensions and for those taken over corners alike."""
    draws, printed = np.random.default_rng(0), PrintedNumber.middle

    def draw_within(number):
        ends = low(number.interval()), high(number.interval())
        return iv.mpf(draws.uniform(*ends)) if ends[0] < ends[1] else printed(number)

    monkeypatch.setattr(PrintedNumber, "middle", draw_within)
    outside = []
    for _ in range(4):
        ledger = AuditRows(study, PrintedNumbers.of(study, repository))
        study_parts.part(study, "audit").audit(ledger)
        for row in ledger.rows:
            slack = 1e-9 * max(abs(row.recomputed_low), abs(row.recomputed_high), 1e-30)
            if not row.recomputed_low - slack <= row.recomputed <= row.recomputed_high + slack:
                outside.append(f"{row.id}: {row.recomputed} outside [{row.recomputed_low}, {row.recomputed_high}]")
    assert ledger.rows and outside == []


@pytest.fixture
def sixth(changed):
    """The root with one more paper: printed numbers, and no code."""
    folder = changed / "studies" / "sixth" / "published"
    folder.mkdir(parents=True)
    (folder / "table1.csv").write_text("method,loss\nours,2.71\n")
    return changed


def test_a_folder_with_only_printed_numbers_is_listed(audit, sixth):
    studies = choose_studies((), sixth)
    assert studies == sorted([*LEAST, "sixth"])
    rows = build((), sixth)
    assert to_csv(rows) == to_csv(audit.to_dict("records"))
    assert set(summary(rows, studies)["sixth"].values()) == {0}
    assert "`sixth`: no checks yet" in page(rows, studies, sixth)
    assert "no checks yet" not in page(rows, list(LEAST), sixth)


def test_an_audit_without_any_rows(sixth):
    rows = build(["sixth"], sixth)
    text = page(rows, ["sixth"], sixth)
    assert rows == [] and len(to_csv(rows).splitlines()) == 1
    assert "`sixth`: no checks yet" in text and "Findings" not in text and "Functions" not in text


def test_the_page_fits_a_terminal(audit, repository):
    rows = audit.to_dict("records")
    assert to_csv(rows) == audit.to_csv(index=False, float_format="%.10g") and len(rows) > 590
    text = page(rows, list(LEAST), repository)
    assert max(map(len, text.splitlines())) <= WIDTH <= 100
    ids = [finding.id for study in LEAST for finding in findings(study, repository)]
    assert sorted(re.findall(r"^### \w+: (\w+) \((?:\d+ of \d+ checks|words: )", text, re.MULTILINE)) == sorted(ids)
    headings = re.findall(r"^## (.*)", text, re.MULTILINE)
    assert headings[:4] == [*(f"Findings: {it}" for it in ("conclusion", "setup", "detail")), "Knife edges"]
    flat = " ".join(text.split())
    assert 'Transfer at 1–3B" (Zhao et al.): 63 of 439 checks' in flat
    # A recomputed number is one digit longer than the printed one: enough to see the difference.
    assert "printed 18.2287, recomputed 18.2251 (18.22419 to 18.22602)" in text
    assert "0.002, recomputed 0.001 (0.0005 to 0.0015) (knife edge)" in text


def test_a_finding_about_a_row_that_is_not_is_refused(changed):
    path = changed / "studies" / "quack" / "findings.yaml"
    path.write_text("findings: [{id: x, bears_on: detail, text: why, rows: [lr_gird]}]\n")
    with pytest.raises(PlumblineError, match=r"quack/findings.yaml.*no row 'lr_gird'"):
        build(["quack"], changed)
    path.write_text("findings: [{id: x, bears_on: detail, text: why, rows: [norms], weight: 1}]\n")
    with pytest.raises(PlumblineError, match=r"unknown key 'weight'"):
        build(["quack"], changed)
    path.write_text("findings: [{id: x, bears_on: detail, text: why, rows: [norms, norms]}]\n")
    with pytest.raises(PlumblineError, match=r"'norms' is there twice"):
        build(["quack"], changed)


def test_what_an_author_answers_stands_below_its_finding(changed, audit):
    path = changed / "studies" / "quack" / "findings.yaml"
    entry = "{{id: {name}, bears_on: detail, text: why {name}, rows: [{row}]{more}}}"
    first, second = audit.loc["quack"]["id"].iloc[:2]
    reply = "{by: A. Author, date: 2026-12-01, text: " + "The table was typed by hand. " * 8 + "}"
    entries = (
        entry.format(name="x", row=first, more=f", replies: [{reply}]"),
        entry.format(name="y", row=second, more=""),
    )
    path.write_text(f"findings: [{', '.join(entries)}]\n")
    text = page(build(["quack"], changed), ["quack"], changed)
    of_first, of_second = text.split("### quack: ")[1:3]
    assert of_first.startswith("x") and "\n\n> **Reply of A. Author, 2026-12-01**: The table" in of_first
    assert "Reply" not in of_second.split("\n## ")[0] and max(map(len, text.splitlines())) <= WIDTH
    html = markdown_page.to_html(text)
    assert re.search(r"<blockquote>\s*<p><strong>Reply of A. Author, 2026-12-01</strong>", html)
    path.write_text(path.read_text().replace("date: 2026-12-01", "date: in winter"))
    with pytest.raises(PlumblineError, match=r"quack/findings.yaml.*replies.*date"):
        findings("quack", changed)


def command(root, *arguments):
    here = os.environ | {"PYTHONPATH": str(Path(plumbline.audit.__file__).parents[2])}
    argv = [sys.executable, "-m", "plumbline.audit", *arguments]
    return subprocess.run(argv, cwd=root, env=here, capture_output=True, text=True, check=False)


def test_command_writes_both_files_of_the_project_it_is_run_in(sixth, tmp_path):
    out = tmp_path / "new" / "audit.csv"
    process = command(sixth, "--study", "quack", "--study", "sixth", "--out", str(out))
    assert process.returncode == 0, process.stderr
    assert "| sixth " in process.stdout and "| all " in process.stdout and "transfer" not in process.stdout
    assert max(map(len, process.stdout.splitlines())) <= max(WIDTH, len(str(out)) + 6)
    assert "25, of which rows read 11" in process.stdout
    assert process.stdout.splitlines()[-1] == f"open {out.with_suffix('.md')}" and "citation" not in process.stdout
    assert len(out.read_text().splitlines()) == 11 and "`sixth`" in out.with_suffix(".md").read_text()


def test_command_names_what_is_wrong(repository, tmp_path):
    process = command(repository, "--study", "transfr")
    assert process.returncode == 1
    assert process.stderr.startswith("error: --study transfr: ") and "'transfer'?" in process.stderr
    process = command(repository, "--out", "audit.txt")
    assert process.returncode == 1 and "must end in .csv" in process.stderr
    for name in ("config", "studies"):
        (tmp_path / name).mkdir()
    process = command(tmp_path)
    assert process.returncode == 1 and process.stderr.startswith("error: no published numbers in ")


def test_ledger_refuses_what_is_not_printed(repository):
    ledger = AuditRows("transfer", PrintedNumbers.of("transfer", repository))
    table, heads = ledger.table("table2"), ledger.prose("heads")
    with pytest.raises(PlumblineError, match=r"table2.csv: baseline.p_bonf is not printed"):
        table["baseline", "p_bonf"]
    with pytest.raises(PlumblineError, match=r"table2.csv.*no row 'softpik'.*'softpick'"):
        table.column("z", ["softpik"])
    with pytest.raises(PlumblineError, match="entry 'head'; did you mean 'heads'"):
        ledger.prose("head")
    with pytest.raises(PlumblineError, match=r"table2\[:\].z - heads"):
        ledger.check("x", "x", "x", heads, table.column("z") - heads)
    with pytest.raises(PlumblineError, match="'x' does not give"):
        ledger.check("x", "x", "x", heads, heads / 0)
    ledger.check("x", "x", "x", heads, heads)
    with pytest.raises(PlumblineError, match=r"called.*'x'"):
        ledger.check("x", "x", "x", heads, heads)


def test_document_without_running_text_or_configuration_has_rows(sixth):
    ledger = AuditRows("sixth", PrintedNumbers.of("sixth", sixth))
    ledger.copy("loss", "loss", "table 1", PrintedNumber(text="2.7"), ledger.table("table1")["ours", "loss"])
    assert [row.verdict for row in ledger.rows] == [MATCH]
    with pytest.raises(PlumblineError, match=r"prose.csv is missing"):
        ledger.prose("loss")
    with pytest.raises(PlumblineError, match=r"setup.yaml is missing"):
        ledger.settings.whole("model", "layers")


def test_two_functions_cannot_have_one_name():
    def mean(x):
        return x

    with pytest.raises(PlumblineError, match=r"functions.*'mean'"):
        audit_function("another mean")(mean)
    assert FUNCTIONS["mean"].meaning == "sum of a list over its length"
