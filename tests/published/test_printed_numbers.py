"""The printed numbers: complete, readable as printed, and equal to the reference they came from."""

from __future__ import annotations

import csv
import re

import pytest
import yaml

from plumbline.core.errors import PlumblineError
from plumbline.published.printed_numbers import NOT_PRINTED, PrintedNumbers, read_printed
from plumbline.results.claims.claim_checkers import KINDS
from plumbline.specs.yaml_files import papers

PAPERS = papers()


def rows(path):
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as handle:
            return sum(1 for _ in csv.reader(handle)) - 1
    return len(yaml.safe_load(path.read_text(encoding="utf-8")))


def test_five_documents_are_there():
    assert {"key_norms", "premature", "quack", "query_free", "transfer"} <= set(PAPERS)


@pytest.mark.parametrize("study", PAPERS)
def test_inventory_counts_every_file(study):
    folder = PrintedNumbers.of(study).directory
    with (folder.parent / "inventory.csv").open(newline="", encoding="utf-8") as handle:
        stated = {row["file"]: int(row["rows"]) for row in csv.DictReader(handle)}
    assert {path.name: rows(path) for path in folder.iterdir()} == stated


# The reference's names of columns and of values -> ours, which are the names that the tables of the project use.
RENAMED = {
    "premature/table10.csv": {"multiplier": "lr_multiplier", "qk_bilinear_displacement_3pct": "qk_displacement_3pct"},
    "premature/table12.csv": {
        "lambda_q": "locality_query",
        "lambda_k": "locality_key",
        "rp_over_x_energy": "immature_energy_share",
    },
    "premature/claims.yaml": {
        "tokens_b: -0.329": "tokens_to_control_loss_b: -0.329",  # the paired difference; elsewhere the name stays
        "of": "out_of",
        "selective_copy": "selective_lower_copy_score",
        "selective_entropy": "selective_upper_entropy",
        "global_copy": "half_lr_lower_copy_score",
        "global_entropy": "half_lr_upper_entropy",
    },
    "query_free/table2.csv": {
        "total_params_m": "params_m",
        "non_emb_params_m": "non_embedding_params_m",
        "mlp_mult": "ffn_multiple",
        "attn_scale_extra_divisor": "extra_score_divisor",
        "attn_scale_dk": "head_width",
        "vs_baseline_pct": "loss_vs_baseline_pct",
    },
    "query_free/claims.yaml": {
        "total_params_m": "params_m",
        "non_emb_params_m": "non_embedding_params_m",
        "mlp_mult": "ffn_multiple",
        "vs_baseline_pct": "loss_vs_baseline_pct",
    },
    "transfer/claims.yaml": {"of": "out_of"},
}


def with_our_names(text, key):
    """Return the reference's text with our names: in a CSV's first line, in a claim's values and derived names."""

    def is_named(line, number):
        return number == 0 if key.endswith(".csv") else line.lstrip().startswith(("values:", "derived:"))

    names = RENAMED.get(key, {})
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in names) or "$^")
    return "".join(
        pattern.sub(lambda match: names[match[0]], line) if is_named(line, number) else line
        for number, line in enumerate(text.splitlines(keepends=True))
    )


def test_complete_against_the_reference(shared):
    reference = shared / "reference"
    if not reference.is_dir():
        pytest.skip("no reference numbers")
    files = [path for path in sorted(reference.glob("*/*")) if path.is_file()]
    assert len(files) >= 34
    apart = []
    for path in files:
        key = f"{path.parent.name}/{path.name}"
        ours = (PrintedNumbers.of(path.parent.name).directory / path.name).read_text(encoding="utf-8")
        theirs = with_our_names(path.read_text(encoding="utf-8"), key)
        # Entries of ours follow those of the reference.
        same = ours.startswith(theirs) if path.name in ("setup.yaml", "claims.yaml") else ours == theirs
        apart += [] if same else [key]
    assert apart == []


@pytest.mark.parametrize("study", PAPERS)
def test_claims_setup_and_prose(study):
    published = PrintedNumbers.of(study)
    claims = published.claims()
    assert len({claim.id for claim in claims}) == len(claims) > 20
    assert all(claim.kind in KINDS and claim.text and claim.source for claim in claims)
    # Own short words: a claim's text is a label, not a passage.
    assert max(len(claim.text) for claim in claims) < 160
    assert published.setup()
    for name, number in published.prose().items():
        float(number.text)
        assert number.source, name


def test_text_is_kept_as_printed_and_missing_stays_missing():
    transfer = PrintedNumbers.of("transfer")
    table = transfer.table("table2")
    assert table.loc["sandwich_norm", "climb_avg"] == "0.4880" and (table["p_bonf"] == "").sum() == 4
    assert read_printed(table, "ssmax", "p_bonf") == read_printed(table, "nobody", "z") == NOT_PRINTED
    numbers = transfer.numbers("table2")
    assert numbers["z"].dtype == "float64" and numbers["p_bonf"].isna().sum() == 4
    lists = ["references", "repeats"]
    assert PrintedNumbers.of("premature").tables() == sorted([*lists, *(f"table{i}" for i in range(1, 13))])


def test_what_a_target_does_not_declare_it_may_not_read():
    narrow = PrintedNumbers.of("transfer", reads=["table2"])
    assert len(narrow.table("table2")) == 20
    for read in (lambda: narrow.table("table7"), narrow.prose, narrow.claims, lambda: narrow.claim("spearman_7")):
        with pytest.raises(PlumblineError, match=r"transfer/study.yaml: targets: '\w+'.*declared"):
            read()


def test_bad_input_is_named(tmp_path):
    with pytest.raises(PlumblineError, match=r"no study 'nobody'.*studies/nobody/study.yaml is missing"):
        PrintedNumbers.of("nobody").table("table1")
    with pytest.raises(PlumblineError, match=r"tabel2.csv.*'table2'"):
        PrintedNumbers.of("transfer").table("tabel2")
    with pytest.raises(PlumblineError, match="claim 'spearman7'; did you mean 'spearman_7'"):
        PrintedNumbers.of("transfer").claim("spearman7")
    assert PrintedNumbers(tmp_path).claims() == []
    (tmp_path / "claims.yaml").write_text("- {id: x, txet: y}\n")
    with pytest.raises(PlumblineError, match="entry 'x'"):
        PrintedNumbers(tmp_path).claims()
    (tmp_path / "setup.yaml").write_text("a: [\n")
    with pytest.raises(PlumblineError, match="not YAML"):
        PrintedNumbers(tmp_path).setup()
