"""Sentences with a number: the rule, the list of each study, and what is stated about it."""

import hashlib

import pytest

from plumbline.audit.audit_csv import build, findings, read_coverage, sentences
from plumbline.audit.audit_page import WIDTH, to_markdown
from plumbline.audit.sentences import REASONS, count_sentences
from plumbline.core.errors import PlumblineError
from tests.audit.numbered_sentences import numbered_sentences, shorten

#: Study -> sentences with a number, and how many of them rows read.
COUNTS = {
    "transfer": (330, 186),
    "query_free": (332, 50),
    "premature": (166, 57),
    "quack": (25, 11),
    "key_norms": (46, 25),
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
    assert "| sentences  |      25 |" in text and "- **other work**: a number of another work." in text
    for wrong in (f"rows: [norms], {wording}", "", "wording: {kind: rumour, places: [{where: a, says: b}]}"):
        path.write_text(f"findings: [{{id: x, bears_on: detail, text: why, {wrong}}}]\n")
        with pytest.raises(PlumblineError, match=r"quack/findings.yaml"):
            findings("quack", changed)
