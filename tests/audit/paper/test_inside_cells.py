"""What cells print beside their number: a change, a list, a spread of seeds, stars. Each with a fault and without."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, pstdev, stdev

import pytest

from plumbline.audit.paper.paper_audit import PaperAudit, audit_folder


def audit_table(folder: Path, text: str, caption: str = "") -> PaperAudit:
    (folder / "t.csv").write_text(text)
    if caption:
        table = {"where": "paper.tex:3", "caption": caption}
        (folder / "sources.json").write_text(json.dumps({"tables": {"t": table}}))
    return audit_folder(folder)


def broken(audit: PaperAudit) -> list[str]:
    return [str(row["quantity"]).removeprefix("t, ") for row in audit.contradictions]


VALUES = {
    "Base": (45.8, 60.2, 71.4),
    "Ours": (54.5, 61.9, 70.1),
    "Wide": (47.1, 63.0, 75.5),
    "Deep": (50.0, 66.2, 72.9),
}


def set_changes(form: str, *, across: bool = False) -> str:
    """A table with each value's change from Base: `form` of the value, its difference, percentage and ratio."""
    base, rows = VALUES["Base"], []
    for name, values in VALUES.items():
        pairs = zip(values, base, strict=True)
        cells = [f"{x}" if name == "Base" else form.format(x, x - b, 100 * (x / b - 1), x / b) for x, b in pairs]
        rows.append([name, *cells])
    table = [["m", "A", "B", "C"], *rows]
    return "\n".join(",".join(line) for line in (zip(*table, strict=True) if across else table)) + "\n"


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize(
    ("form", "planted"),
    [
        ("{0} ({1:+.1f})", ("+2.8", "+3.8")),
        ("{0} ({2:+.1f}%)", ("+4.7%", "+4.1%")),
        ("{0} ({3:.2f}x)", ("1.05x", "1.15x")),
        ("{0}_{1:+.1f}", ("+2.8", "-2.8")),
    ],
)
def test_a_change_in_brackets_is_that_from_the_base_of_most(
    tmp_path: Path, form: str, planted: tuple[str, str], across: bool
) -> None:
    text = set_changes(form, across=across)
    audit = audit_table(tmp_path, text)
    assert audit.answer == "nothing contradicts" and "9 of 9 agree" in audit.relations[0]
    assert text.count(planted[0]) == 1
    assert len(broken(audit_table(tmp_path, text.replace(*planted)))) == 1


def test_brackets_that_are_no_change_are_left(tmp_path: Path) -> None:
    counts = "m,A,B\nx,45.8 (16),60.2 (4)\ny,54.5 (32),61.9 (8)\nz,47.1 (4),63.0 (16)\n"
    others = "m,A,B\nx,45.8 (+1.2),60.2 (-0.3)\ny,54.5 (+0.7),61.9 (+0.2)\nz,47.1 (-2.2),63.0 (+1.9)\n"
    for text in (counts, others):
        assert audit_table(tmp_path, text).answer == "nothing was checked"


SEEDS = {"a": (50.12, 49.27, 51.03), "b": (61.40, 60.18, 62.77), "c": (47.95, 48.41, 46.02), "d": (55.01, 57.30, 56.12)}


@pytest.mark.parametrize("spread", [stdev, pstdev, lambda values: stdev(values) / 3**0.5])
@pytest.mark.parametrize("head", ["m,Seeds,Mean,Std", "m,Seeds,Acc ± sd", "m,Seed 1,Seed 2,Seed 3,Mean,Std"])
def test_seeds_stand_beside_their_mean_and_spread(tmp_path: Path, head: str, spread: object) -> None:
    between = " ± " if "±" in head else ","
    parts = "," if "Seed 1" in head else " / "
    rows = [f"{name},{parts.join(f'{x:.2f}' for x in values)},{mean(values):.2f}{between}{spread(values):.2f}"  # type: ignore[operator]
            for name, values in SEEDS.items()]  # fmt: skip
    text = "\n".join([head, *rows]) + "\n"
    audit = audit_table(tmp_path, text)
    assert audit.answer == "nothing contradicts" and len(audit.rows) >= 8
    for number in (f"{mean(SEEDS['b']):.2f}", f"{spread(SEEDS['c']):.2f}"):  # type: ignore[operator]
        assert len(broken(audit_table(tmp_path, text.replace(number, f"{float(number) + 0.4:.2f}")))) == 1


def test_stars_are_those_that_the_caption_states(tmp_path: Path) -> None:
    text = "m,t,p\na,2.1,0.036*\nb,2.9,0.004**\nc,1.1,0.271\nd,3.9,0.0002***\n"
    caption = "Tests. * p < 0.05, ** p < 0.01, *** p < 0.001."
    assert audit_table(tmp_path, text, caption).answer == "nothing contradicts"
    assert broken(audit_table(tmp_path, text.replace("0.271", "0.271*"), caption)) == ["c, p: its stars"]
    assert audit_table(tmp_path, text.replace("0.271", "0.271*"), "Tests.").answer == "nothing was checked"


STARS = "m,t,p\na,2.1,0.038*\nb,2.9,0.0045**\nc,3.6,0.0005***\nd,3.5,0.0006***\ne,5.1,0.00002****\nf,1.1,0.274\n"
FOUR = "Tests. * p < .05, ** p < .01, *** p < .001, **** p < .0001."


@pytest.mark.parametrize(
    ("now", "caption", "answer"),
    [
        ("0.0006***", FOUR, "nothing contradicts"),
        ("0.0006****", FOUR, "contradicts"),
        ("0.0006**", FOUR, "contradicts"),
        ("0.0006**", FOUR.replace("Tests", "Tests, Holm-corrected"), "likely"),
        ("0.0006**", FOUR.replace("Tests", "Tests with adjusted p"), "likely"),
        ("0.0006**", FOUR.replace("Tests", "Adjusted R2 is 0.43"), "contradicts"),
        ("0.0006***", FOUR.replace("* p < .05, **", "**", 1), "nothing contradicts"),  # one star means another thing
    ],
)
def test_four_stars_are_more_than_three(tmp_path: Path, now: str, caption: str, answer: str) -> None:
    assert audit_table(tmp_path, STARS.replace("0.0006***", now), caption).answer == answer


def test_stars_of_corrected_p_accuse_nobody(tmp_path: Path) -> None:
    corrected = STARS.replace("0.038*", "0.038").replace("0.0045**", "0.0045*")
    assert audit_table(tmp_path, corrected, FOUR).answer == "likely"
    few = audit_table(tmp_path, corrected.replace("0.0005***", "0.0005**"), FOUR)
    assert few.answer == "nothing was checked" and any("3 of 6 agree" in text for text in few.dropped)


def test_stars_of_which_few_agree_are_likely(tmp_path: Path) -> None:
    text = "m,t,p\na,3.9,0.0003***\nb,2.1,0.038**\nc,3.0,0.003**\nd,1.1,0.267\ne,2.8,0.026**\n"
    audit = audit_table(tmp_path, text, FOUR)
    assert audit.answer == "likely" and len(audit.likely) == 2


def test_a_bracketed_change_can_be_from_the_row_above(tmp_path: Path) -> None:
    sound = "m,A,B\nR50,38.2,22.5\n+ ours,40.1 (+1.9),24.8 (+2.3)\nR101,40.0,24.1\n+ ours,41.6 (+1.6),26.2 (+2.1)\n"
    sound += "Swin,42.1,26.9\n+ ours,44.0 (+1.9),29.0 (+2.1)\n"
    audit = audit_table(tmp_path, sound)
    assert audit.answer == "nothing contradicts" and "above" in audit.relations[0] and len(audit.rows) == 6
    audit = audit_table(tmp_path, sound.replace("44.0 (+1.9)", "44.0 (+2.9)"))
    assert broken(audit) == ["+ ours#3, A, the change in brackets"]
    # Against the first row it is right: that it is meant so there is likelier than a slip.
    audit = audit_table(tmp_path, sound.replace("44.0 (+1.9)", "44.0 (+5.8)"))
    assert broken(audit) == [] and len(audit.likely) == 1


#: Scores of a measure of which less is better and of two of which more is; of how much better each is.
BETTER = {
    "Base": (20.1, 41.0, 70.0),
    "A": (18.0, 42.5, 71.0),
    "B": (17.0, 42.9, 72.0),
    "C": (22.5, 40.1, 68.8),
    "D": (16.2, 44.2, 74.0),
}


def set_improvements(form: str, lower: str, rows: str = "ABCD") -> str:
    lines = [f"m,{lower},X,Y", "Base,20.1,41.0,70.0"]
    for name in rows:
        triples = zip(BETTER[name], BETTER["Base"], (-1, 1, 1), strict=True)
        cells = [form.format(x, s * (x - b), 100 * s * (x / b - 1), (x / b) ** s) for x, b, s in triples]
        lines.append(",".join([name, *cells]))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("lower", ["FID ↓", "Z", "MAE"])
@pytest.mark.parametrize(
    ("form", "rows", "planted"),
    [
        ("{0} ({1:+.1f})", "ABCD", ("+3.9", "+3.4")),
        ("{0} ({1:+.1f})", "ABCD", ("+3.9", "-3.9")),
        ("{0} ({1:+.1f})", "ABCD", ("+1.9", "-1.9")),
        ("{0} ({2:.1f}%)", "ABD", ("19.4%", "14.9%")),
        ("{0} (↑{2:.1f}%)", "ABD", ("↑19.4%", "↑14.9%")),
        ("{0} ({3:.2f}x)", "ABCD", ("1.24x", "1.42x")),
    ],
)
def test_an_improvement_in_brackets_is_a_reduction_where_less_is_better(
    tmp_path: Path, form: str, rows: str, lower: str, planted: tuple[str, str]
) -> None:
    text = set_improvements(form, lower, rows)
    audit = audit_table(tmp_path, text)
    assert audit.answer == "nothing contradicts" and f"of {lower} the other way round" in audit.relations[0]
    assert len(audit.rows) == 3 * len(rows) and text.count(planted[0]) == 1
    assert len(broken(audit_table(tmp_path, text.replace(*planted)))) == 1


def test_a_single_change_that_is_turned_round_contradicts_where_more_is_better(tmp_path: Path) -> None:
    row = "Base,20.1,41.0,70.0,55.0,9.7,33.3\nOurs,18.0 (+2.1),42.5 (+1.5),71.0 (+1.0),55.5 (+0.5),9.0 (-0.7),"
    row += "37.1 (+3.8)\n"
    answers = [audit_table(tmp_path, f"m,{name},X,Y,V,W,U\n{row}").answer for name in ("FID ↓", "Z", "Acc ↑")]
    assert answers == ["nothing contradicts", "likely", "contradicts"]


def test_changes_without_any_sign_do_not_say_which_way(tmp_path: Path) -> None:
    text = set_changes("{0} ({2:.1f}%)").replace("(-", "(")
    audit = audit_table(tmp_path, text)
    assert broken(audit) == [] and audit.answer == "likely"
    assert len(broken(audit_table(tmp_path, text.replace("4.7%", "7.4%")))) == 1


def test_losses_printed_as_gains_do_not_hide_each_other(tmp_path: Path) -> None:
    sound = "m,Acc ↑,BLEU ↑,F1 ↑\nBase,61.2,55.4,70.1\nS,63.4 (+2.2),54.9 (-0.5),71.4 (+1.3)\n"
    sound += "L,65.7 (+4.5),53.3 (-2.1),72.0 (+1.9)\n"
    assert audit_table(tmp_path, sound).answer == "nothing contradicts"
    audit = audit_table(tmp_path, sound.replace("(-", "(+"))
    assert audit.answer == "likely" and len(audit.likely) == 2 and not audit.dropped
