"""Sentences with a number: the rule, the list of each study, and what is stated about it."""

import hashlib
import re

import pytest

from plumbline.audit.audit_csv import build, findings, ledger, read_coverage, sentences
from plumbline.audit.audit_page import WIDTH, to_markdown
from plumbline.audit.sentences import REASONS, SentenceOfAudit, TextNumber, count_sentences, list_text_numbers
from plumbline.core.errors import PlumblineError
from plumbline.published.printed_numbers import PrintedNumbers
from tests.audit.numbered_sentences import numbered_sentences, shorten

#: Study -> sentences with a number, and how many of them rows read.
COUNTS = {
    "transfer": (330, 166),
    "query_free": (332, 45),
    "premature": (166, 52),
    "quack": (25, 11),
    "key_norms": (46, 22),
}

PAPER = """A Title of 2 Lines

Abstract

We train 20 methods. Of these two fail (Smith et al., 2021). Nobody counts this one.

1 Introduction

It costs 1,048,576 tokens, i.e. 2^20. See Appendix E. The rest of it has
three parts:

- a first part of ten items
- a second part without any number

Table 2: Results of all 12 runs.
ours 0.5 0.6

$$x = 2 y$$

References

A. Smith. 2021. A paper of 3 pages.

A Data Composition

The pack has 474 shards that go on over the end of the page, and its number of to-

kens is 23 billion.
"""


def test_the_rule():
    pairs = [(sentence.at, sentence.numbers) for sentence in numbered_sentences(PAPER)]
    assert pairs == [
        ("abstract p1 s1", ("20",)),
        ("abstract p1 s2", ("two", "2021")),
        ("1 p1 s1", ("1,048,576", "2", "20")),
        ("1 p1 s3", ("three",)),
        ("1 p2 s1", ("ten",)),
        ("1 p4 s1", ("2", "12")),
        ("A p1 s1", ("474", "23")),
    ]


def test_numbers_are_kept_as_printed_or_as_a_count_with_a_hash():
    assert shorten(("1,048,576", "two")) == "1,048,576 two"
    eleven = tuple("12345678901")
    assert shorten(eleven) == f"11 numbers, {hashlib.sha256(b'1 2 3 4 5 6 7 8 9 0 1').hexdigest()[:8]}"


@pytest.mark.parametrize("study", COUNTS)
def test_every_sentence_is_read_or_left_out_with_a_reason(repository, study):
    listed = sentences(study, repository)
    counted = count_sentences(listed)
    assert (counted["sentences"], counted["read"]) == COUNTS[study]
    assert counted["left out"] == sum(counted[reason] for reason in REASONS) == counted["sentences"] - counted["read"]
    assert len({sentence.at for sentence in listed}) == len(listed)
    assert all(bool(sentence.read) != bool(sentence.left_out) for sentence in listed)


@pytest.mark.parametrize("study", COUNTS)
def test_the_list_is_what_the_rule_finds_in_the_paper(repository, study):
    """Papers are not distributed: next to the repository, or nowhere."""
    path = repository.parent / "shared" / "papers" / f"{study}.txt"
    path = path if path.is_file() else repository.parents[1] / "shared" / "papers" / f"{study}.txt"
    if not path.is_file():
        pytest.skip("the text of the paper is not there")
    in_paper = numbered_sentences(path.read_text(encoding="utf-8"))
    listed = sentences(study, repository)
    assert [(each.at, shorten(each.numbers)) for each in in_paper] == [(each.at, each.numbers) for each in listed]
    if study == "query_free":
        return  # its conversion writes formulas twice, so that the digits of a long sentence run together
    numbers = list_text_numbers(PrintedNumbers.of(study, repository), ledger(study, repository).read)
    for each, sentence in zip(in_paper, listed, strict=True):
        whole = SentenceOfAudit(at=each.at, numbers=" ".join(each.numbers)[:160], left_out="counted")
        assert all(whole.prints(numbers[name].text) for name in sentence.read), each.at


def test_a_sentence_read_by_what_is_not_there_is_refused(changed):
    path = changed / "studies" / "quack" / "sentences.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("read: [norms_removed", "read: [norm_removed", 1), encoding="utf-8")
    with pytest.raises(PlumblineError, match=r"key results p4 s1: .*'norm_removed'.*'norms_removed'"):
        sentences("quack", changed)
    path.write_text("sentences: [{at: 1 p1 s1, numbers: '2', words: We train two}]\n", encoding="utf-8")
    with pytest.raises(PlumblineError, match="unknown key 'words'"):
        sentences("quack", changed)
    path.unlink()
    assert sentences("quack", changed) == [] and read_coverage("quack", changed).missing == []


@pytest.mark.parametrize(
    ("study", "at", "name", "fault"),
    [
        ("quack", "key results p4 s1", "faster_pct_tradeoffs", "printed in Design tradeoffs; .* add key results"),
        ("transfer", "1 p5 s3", "holm_survivors", "printed 7, which is none of 20 eight"),
        ("transfer", "1 p4 s2", "loss_gap_ssmax_pct", "printed 3.0, which is none of 20 1.2 3 3"),
        ("transfer", "4.2 p1 s2", "attention_parts", "'attention_parts'"),
        ("transfer", "5.2 p1 s2", "replacement_failures", "which is none of 0.009 0.017"),
        ("premature", "5.1 p1 s2", "table1", "'table1'"),
        ("premature", "5.5 p1 s2", "t4_gpt", "'t4_gpt'"),
    ],
)
def test_an_equal_number_elsewhere_reads_no_sentence(changed, study, at, name, fault):
    """Nor does a table with the number, nor a row that prints one."""
    path = changed / "studies" / study / "sentences.yaml"
    text, times = re.subn(
        rf'(at: "{re.escape(at)}", numbers: "[^"]*", read): .*}}', rf"\g<1>: [{name}]}}", path.read_text("utf-8")
    )
    assert times == 1
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PlumblineError, match=f"{re.escape(at)}: .*{fault}"):
        sentences(study, changed)


@pytest.mark.parametrize(
    ("source", "section", "stands"),
    [
        ("sec 4.1, Limitations", "limitations", True),
        ("sec 4.1, Limitations", "4", False),
        ("sec 4", "4.1", False),
        ("App E fig 2 caption, E.1", "E", True),
        ("App E fig 2 caption", "E.1", False),
        ("sec 6 R5", "6", True),
        ("", "B", True),
    ],
)
def test_a_number_stands_in_the_sections_of_its_source(source, section, stands):
    assert TextNumber(text="3", source=source).stands_in(section) is stands


@pytest.mark.parametrize(
    ("numbers", "text", "prints"),
    [
        ("two 1.2", "2", True),
        ("1,048,576", "1048576", True),
        ("220", "2.2e2", True),
        ("1 10 4", "1e-4", True),
        ("1 10 5", "1e-4", False),
        ("3.1 10 4", "1e-4", True),
        ("6 10 4", "6e-4", True),
        ("10 4", "6e-4", False),
        ("3 3", "3.0", False),
        ("2.45", "-2.45", True),
        ("fourfold", "4", True),
        ("11 numbers, d6d48754", "0.80", True),
    ],
)
def test_a_sentence_prints_the_digits_of_a_number(numbers, text, prints):
    sentence = SentenceOfAudit(at="1 p1 s1", numbers=numbers, left_out="counted")
    assert sentence.prints(text) is prints


def test_a_number_of_the_text_is_one_that_enters_a_row(repository):
    """A printed table's cells are no numbers of the text, nor are those that no row reads."""
    numbers = list_text_numbers(PrintedNumbers.of("quack", repository), {("prose", "params_b", "printed")})
    assert numbers == {"params_b": TextNumber(text="1", source="Open question 1, Limitations")}
    read = {("table1", "control", "ppl_mean"), ("repeats", "budget_4", "printed")}
    numbers = list_text_numbers(PrintedNumbers.of("premature", repository), read)
    assert numbers == {"repeats.budget_4.printed": TextNumber(text="2.5", source="sec 4")}


def test_no_sentence_of_a_paper_is_stored(repository):
    for study in COUNTS:
        assert all(len(sentence.numbers) <= 160 for sentence in sentences(study, repository))
        for finding in findings(study, repository):
            places = finding.wording.places if finding.wording else ()
            assert all(len(place.says.split()) <= 16 for place in places)
            assert bool(finding.rows) != bool(places)


def test_a_finding_about_words_has_places_and_no_rows(changed):
    path = changed / "studies" / "quack" / "findings.yaml"
    wording = "wording: {kind: reference, places: [{where: sec 1, says: see section 7}]}"
    path.write_text(f"findings: [{{id: x, bears_on: detail, text: There are six sections., {wording}}}]\n")
    (finding,) = findings("quack", changed)
    assert finding.rows == () and [place.where for place in finding.wording.places] == ["sec 1"]
    by_study, read = {"quack": [finding]}, {"quack": read_coverage("quack", changed)}
    listed = {"quack": sentences("quack", changed)}
    text = to_markdown(build(["quack"], changed), ["quack"], by_study, read, {"quack": None}, listed)
    assert '### quack: x (words: reference)\n\nThere are six sections.\n\n- sec 1: "see section 7"\n' in text
    assert "Findings about words alone: 1." in text and max(map(len, text.splitlines())) <= WIDTH
    assert "| sentences  |      25 |" in text and "- **other work**: a number" in text
    for wrong in (f"rows: [norms], {wording}", "", "wording: {kind: rumour, places: [{where: a, says: b}]}"):
        path.write_text(f"findings: [{{id: x, bears_on: detail, text: why, {wrong}}}]\n")
        with pytest.raises(PlumblineError, match=r"quack/findings.yaml"):
            findings("quack", changed)
