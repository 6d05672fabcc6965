"""What a sentence says by itself: changes between two numbers, tests with their p; right, wrong, and not to be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.audit.paper.latex.write_tables import write_tables
from plumbline.audit.paper.paper_audit import PaperAudit, audit_folder


def audit_text(folder: Path, *paragraphs: str) -> PaperAudit:
    (folder / "t.csv").write_text("m,A\nx,1.5\ny,2.5\n")
    passages = [
        {"kind": "text", "section": "Results", "where": f"paper.tex:{n}", "text": text}
        for n, text in enumerate(paragraphs, 1)
    ]
    (folder / "sources.json").write_text(json.dumps({"passages": passages}))
    return audit_folder(folder)


CHANGES = {
    "It cuts perplexity from 26.6 to 24.8, a {} reduction.": ("6.8 %", "8.6 %"),
    "It cuts perplexity from 26.6 to 24.8 (-{}).": ("6.8%", "7.8%"),
    "Perplexity falls by {} (from 26.6 to 24.8).": ("6.8%", "9.8%"),
    "Ours has a {} relative reduction in word error from 26.6 to 24.8.": ("6.8%", "6.2%"),
    "Memory shrinks from 80 GB to 20 GB, i.e. {} less.": ("4x", "5x"),
    "Accuracy rises from 61.2% to 64.0%, by {}.": ("2.8 points", "3.8 points"),
    "Accuracy rises from 61.2% to 64.0% ({}).": ("+2.8%", "+3.8%"),
    "Accuracy rises 61.2 → 64.0 ({}) on the test set.": ("+2.8%", "+5.8%"),
    "Accuracy rises from 62.1% to 68.4%, a gain of {}.": ("6.3 points", "6.8 points"),
    "Caching lowers the latency per query from 26.6 ms to 24.8 ms, a {} reduction.": ("6.8%", "9.8%"),
    "The number of parameters grows from 110M to 340M, a {} increase.": ("3.1x", "4.1x"),
    "It was significant, t(28) = 2.20, p = {}, adjusted R2 = .11.": (".036", ".072"),
    "It is {} faster, from 100 ms to 40 ms.": ("2.5x", "2.9x"),
    "Traffic went from 1.2M to 600K requests, a {} reduction.": ("2.0x", "2.5x"),
    "Latency falls from 1.2 s to 900 ms, a {} reduction.": ("25%", "45%"),
    "Latency falls from 5 minutes to 20 seconds, a {} speedup.": ("15x", "12x"),
    "Memory falls from 1.5 GB to 512 MB, a {} reduction.": ("3x", "4x"),
    "Latency drops from 100 ms to 80 ms, {} faster.": ("25%", "35%"),
    "Pruning cuts latency from 100 ms to 40 ms, a {} reduction in latency.": ("60%", "70%"),
    "Perplexity drops from 26.6 to 24.8, a {} improvement.": ("6.8%", "8.6%"),
    "Accuracy rises from 0.612 to 0.640, a gain of {}.": ("2.8 points", "3.8 points"),
    "Accuracy drops from 64.0 to 61.2, a {} drop.": ("2.8%", "3.8%"),
    "GSM8K rises from 54.0 to 58.0 ({}).": ("+4.0%", "+5.0%"),
    "Word error falls from 10.0 to 8.0, a {} relative reduction.": ("20%", "22%"),
    "Word error falls from 10.0 to 8.0, a {} absolute reduction.": ("2%", "3%"),
    "Its size shrinks from 100 to 40 ({}).": ("0.4x", "0.5x"),
    "The cost goes from $12,500 to $9,000, a {} saving.": ("28%", "38%"),
    "It was significant, t(28) = 2.20, p = {}.": (".036", ".063"),
    "It was significant (F(2, 45) = 4.51, p = {}).": ("0.016", "0.046"),
    "They differ, χ^2(2, N = 90) = 8.10, p = {}.": ("0.017", "0.071"),
    "They differ, z = 2.10, p = {}.": ("0.036", "0.063"),
    "They are related, r(48) = 0.31, p = {}.": ("0.028", "0.28"),
    "It was significant, t(28) = 1.20, p {}.": ("> .05", "< .05"),
    "By a one-sided test, t(28) = 1.80, p = {}.": (".041", ".014"),
    "By a one-tailed test, t(15) = 1.80, p {}.": ("< .05", "< .01"),
    "After Holm's correction, t(28) = 2.20, p = {}.": (".036", ".012"),  # corrected, it is never smaller
}


@pytest.mark.parametrize("sentence", CHANGES)
def test_a_sentence_is_held_against_itself(tmp_path: Path, sentence: str) -> None:
    right, wrong = CHANGES[sentence]
    audit = audit_text(tmp_path, f"First. {sentence.format(right)} Last.")
    assert audit.answer == "nothing contradicts" and len(audit.rows) == 1
    audit = audit_text(tmp_path, f"First. {sentence.format(wrong)} Last.")
    assert [row["source"] for row in audit.contradictions] == ["paper.tex:1"]


@pytest.mark.parametrize(
    "sentence",
    [
        "It cuts perplexity from 26.6 to 24.8, and accuracy rises by 2.1%.",
        "It cuts perplexity from 26.6 to 24.8 and memory from 10 to 5, a 9% and 50% reduction respectively.",
        "Going from 12 to 24 layers gives a 3.1% improvement.",
        "From 2017 to 2019, 12% of papers did so.",
        "It is up to 3.2x faster than before.",
        "We had t = 5 and p = 3 in all runs.",
        "Accuracy rises from 70.1 to 72.4, a gain of 5 points over the baseline.",
        "Use rose from 2010 to 2020, a 2x increase.",
    ],
)
def test_what_is_not_said_is_not_read(tmp_path: Path, sentence: str) -> None:
    assert audit_text(tmp_path, sentence).answer == "nothing was checked"


@pytest.mark.parametrize(
    "sentence",
    [
        # The two are a setting, and the change is another quantity's.
        "Raising the batch from 32 to 64, a 3.1% improvement, is enough.",
        "Moving from 224 to 384 pixels, a 2.9x increase in FLOPs, helps.",
        "Going from 12 to 24 layers (1.7x slower) costs time.",
        "Reducing from 12 to 6 layers, a 40% reduction in latency, costs little.",
        "Shrinking the rank from 64 to 32, a 45% reduction in trainable parameters.",
        "Training from 300 to 600 epochs, a 2.1x increase in cost.",
        "The batch size is increased from 32 to 64, a 1.6x speedup.",
        "We prune from 70B to 35B parameters (40% less memory).",
        "Training went from 1.2M to 600K tokens, a 2.5x reduction.",
        "It goes from 16 images to 24 crops, a 1.8x increase.",
        "Accuracy rises from 70.1 to 72.4, a 5% gain over the baseline.",
        "It cuts perplexity from 26.6 to 24.8, a roughly 9% reduction.",
        # Another reading of the words gives it.
        "Accuracy rose from 70.0 to 80.0, a 12.5% increase.",
        "WER falls from 10.0 to 8.0 (a 25% relative reduction).",
        "Perplexity dropped from 20.0 to 18.0, a 2% reduction.",
        "Memory fell from 0.80 to 0.60 (20% reduction).",
        "Error went from 26.6 to 24.8, a 6.8% increase.",
        "Accuracy rises from 61.2% to 64.0%, a drop of 2.8 points.",
        "Throughput goes from 100 to 250, a 1.5x speedup.",
        "It was significant, t(28) = 1.80, p = .041.",  # one-sided
        "It was significant, t(15) = 1.80, p < .05.",
    ],
)
def test_what_may_be_meant_otherwise_accuses_nobody(tmp_path: Path, sentence: str) -> None:
    assert audit_text(tmp_path, sentence).answer == "likely"


@pytest.mark.parametrize(
    "said", ["All p-values are adjusted by Holm's method.", "We apply a Bonferroni correction.", "The p are corrected."]
)
def test_a_p_that_may_be_corrected_accuses_nobody(tmp_path: Path, said: str) -> None:
    sentence = "It was none, t(28) = 2.20, p = .087, nor was t(28) = 2.30, p > .05."
    assert len(audit_text(tmp_path, sentence).contradictions) == 2
    audit = audit_text(tmp_path, f"{said} {sentence}")
    assert audit.contradictions == [] and len(audit.likely) == 2


@pytest.mark.parametrize(("second", "found"), [(".068", [0, 2]), (".023", [1, 0]), (".032", [2, 0])])
def test_p_that_are_all_so_many_times_as_large_accuse_nobody(tmp_path: Path, second: str, found: list[int]) -> None:
    first = "It was significant, t(28) = 3.10, p = .013."  # three times .0044; by itself the second one is .0228
    audit = audit_text(tmp_path, first, f"So was t(28) = 2.41, p = {second}.")
    assert [len(audit.contradictions), len(audit.likely)] == found


def test_a_paragraph_stands_where_its_words_begin_and_one_on_tests_is_kept(tmp_path: Path) -> None:
    lines = [
        r"\begin{document}\begin{table}\begin{tabular}{lr}m & A \\ \hline x & 1.5 \\ \end{tabular}\end{table}",
        r"\section{The 1st test}",
        "",
        "  All tests are one-sided.",
        "",
        "It was significant, t(28) = 1.80, p = .014.",
        r"\subsection{More}",
        "Also t(28) = 1.80, p = .041.",
        r"\end{document}",
    ]
    (tmp_path / "paper.tex").write_text("\n".join(lines))
    write_tables(tmp_path / "paper.tex", tmp_path / "out")
    audit = audit_folder(tmp_path / "out")
    assert [(row["source"], row["verdict"]) for row in audit.rows] == [
        ("paper.tex:6", "mismatch"),
        ("paper.tex:8", "match"),
    ]
