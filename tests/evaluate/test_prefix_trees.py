"""What requests begin with together is read once, and changes no score."""

from __future__ import annotations

import json
from functools import cache

import pytest
import torch

from plumbline.evaluate.prefix_tree_reader import PrefixTreeReader
from plumbline.evaluate.prefix_tree_rows import split_trees
from plumbline.evaluate.prefix_trees import SHORTEST, PrefixNode, TokenSegment, trees
from plumbline.model.decoder import Decoder
from plumbline.operate.preflight.method_checks.leaks import create_moved_model
from plumbline.specs import study_config
from plumbline.specs.spec import ModelSpec
from tests.conftest import REPOSITORY
from tests.model_specs import small

#: A passage with two questions of three answers each: one answer begins another, one is a token, two begin alike; then
#: a request that begins like the passage by chance alone, and one that shares nothing.
PASSAGE = list(range(10, 24))
FIRST, SECOND = [30, 31, 32, 33, 34, 35, 36, 37, 38], [40, 41]
REQUESTS = [
    (PASSAGE + FIRST, [50]),
    (PASSAGE + FIRST, [50, 51, 52]),
    (PASSAGE + FIRST, [50, 51, 53, 54, 55]),
    (PASSAGE + SECOND, [60, 61]),
    (PASSAGE + SECOND, [50]),
    (PASSAGE + SECOND, [62]),
    (PASSAGE[:3], [70, 71]),
    ([80], [81]),
    (PASSAGE + SECOND, [62]),
]
SEGMENTS = [TokenSegment(index, given + answer, len(answer)) for index, (given, answer) in enumerate(REQUESTS)]


def paths(nodes: list[PrefixNode], above: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """What is read from the root to each node."""
    result = []
    for node in nodes:
        result += [above + node.tokens, *paths(node.children, above + node.tokens)]
    return result


def read(nodes: list[PrefixNode]) -> int:
    return sum(len(node.tokens) + read(node.children) for node in nodes)


def test_trees_read_common_beginnings_once() -> None:
    shared, apart = trees(SEGMENTS), trees(SEGMENTS, shared=False)
    rows = {tuple(segment.tokens[:-1]) for segment in SEGMENTS}
    assert sorted(paths(apart)) == sorted(rows) and rows <= set(paths(shared))
    # The passage and the first question; answers' beginnings are too short to go on from, except for a whole row.
    assert read(shared) == len(PASSAGE) + len(FIRST) + 2 + 4 + len(SECOND) + len(SECOND) + 1 + 4 + 1
    assert read(apart) == sum(map(len, rows))
    assert all(len(node.tokens) >= SHORTEST for node in shared if node.children)


def test_tree_falls_apart_where_its_branches_are_long() -> None:
    """Eight tokens that two long rows begin with by chance are read twice; a long context with short answers once."""
    chance = [TokenSegment(index, [*range(8), 90 + index, *range(20, 80)], 3) for index in range(2)]
    apart = list(split_trees(trees(chance), worth=100))
    assert [len(node.tokens) + read(node.children) for node in apart] == [68, 68]
    assert [[len(node.queries) for node in tree.children] for tree in apart] == [[1], [1]]
    answers = [TokenSegment(index, [*range(60), 90 + index, 1, 2], 3) for index in range(4)]
    assert [read([tree]) for tree in split_trees(trees(answers), worth=100)] == [60 + 4 * 2]


@torch.no_grad()
def alone(model: Decoder, segment: TokenSegment) -> tuple[float, bool]:
    """The definition: one row, no padding."""
    logprobs = model(torch.tensor([segment.tokens[:-1]])).log_softmax(-1)[0, -segment.scored :]
    targets = torch.tensor(segment.tokens[-segment.scored :])
    return float(logprobs.gather(1, targets[:, None]).sum()), bool((logprobs.argmax(-1) == targets).all())


@cache
def combinations() -> dict[str, ModelSpec]:
    """The components that a run of any study has, at the sizes of its smallest preset and of two layers."""
    models: dict[str, ModelSpec] = {}
    for path in sorted((REPOSITORY / "studies").glob("*/study.yaml")):
        for run in study_config.load(path.parent.name, "smoke").runs.values():
            slots = {key: value for key, value in run.spec.model.to_dict().items() if isinstance(value, dict)}
            models.setdefault(json.dumps(slots, sort_keys=True), run.spec.model.resize(layers=2))
    return models


def test_no_component_of_any_study_changes_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short rows too: where a mixer takes n for the length of the call, it is read whole."""
    monkeypatch.setattr("plumbline.model.mixers.softmax.SPAN", 9)  # rows here are shorter than those it is made for
    whole = set()
    for name, spec in combinations().items():
        model = create_moved_model(spec).double()
        reader = PrefixTreeReader(model, batch_tokens=40, padding=0)
        scores = reader.scores(SEGMENTS, len(SEGMENTS))
        for (score, greedy), segment in zip(scores, SEGMENTS, strict=True):
            assert (pytest.approx(score, rel=2e-5, abs=2e-5), greedy) == alone(model, segment), name
        if not reader.padded:
            whole.add(name)
    assert whole == {name for name in combinations() if '"sequence"' in name}
    assert len(whole) == 3 and len(combinations()) > 60


def test_short_rows_stand_where_padding_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where branches may lie side by side; else padding stays, within its limit."""
    rows = [[40 + index, *range(length)] for index, length in enumerate((12, 32, 20, 5))]  # of so many tokens, read
    segments = [TokenSegment(index, row, 1) for index, row in enumerate(rows)]
    reader, read = PrefixTreeReader(create_moved_model(small()), batch_tokens=None, padding=0), Decoder.hidden
    passes: list[tuple[int, ...]] = []
    monkeypatch.setattr(Decoder, "hidden", lambda *args: passes.append(tuple(args[1].shape)) or read(*args))
    beside = reader.scores(segments, len(rows))
    assert passes == [(2, 32), (1, 8)], "20 and 12 in one row, and 5 apart"
    passes.clear()
    reader.shared = False
    padded = reader.scores(segments, len(rows))
    assert passes == [(4, 32)]
    assert [score for score, _ in beside] == pytest.approx([score for score, _ in padded], rel=1e-4)


def test_what_remembers_earlier_queries_reads_each_row_by_itself() -> None:
    """The branches of a tree are not earlier queries of each other."""
    summed = PrefixTreeReader(
        create_moved_model(small(mixer={"name": "selective", "variant": "original"})), batch_tokens=None, padding=0
    )
    plain = PrefixTreeReader(create_moved_model(small()), batch_tokens=None, padding=0)
    assert (summed.padded, summed.shared, plain.padded, plain.shared) == (True, False, True, True)


def test_what_was_cut_on_the_left_shares_nothing() -> None:
    """Answers of two lengths: the longer one's context loses a token more."""
    context = 32
    rows = [(list(range(40)) + answer)[-(context + 1) :] for answer in ([50, 51], [60, 61, 62])]
    roots = trees([TokenSegment(index, row, 2 + index) for index, row in enumerate(rows)])
    assert [node.children for node in roots] == [[], []] and read(roots) == 2 * context


def test_learned_positions_end_with_the_context() -> None:
    """A row as long as the context next to shorter ones, all after one beginning: padding has no position."""
    spec = small(positions={"name": "learned"}, context=32)
    model = create_moved_model(spec)
    begin = list(range(20))
    segments = [
        TokenSegment(0, [*begin, *range(40, 53)], 13),
        TokenSegment(1, [*begin, 60, 61], 2),
        TokenSegment(2, [5, 6], 1),
    ]
    scores = PrefixTreeReader(model, batch_tokens=None, padding=0).scores(segments, 3)
    for (score, _), segment in zip(scores, segments, strict=True):
        assert score == pytest.approx(alone(model, segment)[0], rel=1e-4)


def test_what_asks_nothing_and_what_reads_one_token() -> None:
    """An empty answer has the probability one; a model of one token has no rows to share or to fill up."""
    nothing = [TokenSegment(0, [3, 4, 5], 0), TokenSegment(1, [3], 0)]
    assert (
        PrefixTreeReader(create_moved_model(small()), batch_tokens=None, padding=0).scores(nothing, 2)
        == [(0.0, True)] * 2
    )
    model = create_moved_model(small(context=1))
    reader = PrefixTreeReader(model, batch_tokens=None, padding=0)
    segments = [TokenSegment(0, [3, 4], 1), TokenSegment(1, [5, 4], 1)]
    for (score, _), segment in zip(reader.scores(segments, 2), segments, strict=True):
        assert score == pytest.approx(alone(model, segment)[0], rel=1e-5)


def test_of_equal_logits_the_first_tokens_is_the_likeliest() -> None:
    """As `argmax` has it, by which the harness judges its own models: a model with equal logits prefers token 0."""
    silent = create_moved_model(small())
    torch.nn.init.zeros_(silent.head_weight)
    parts = [TokenSegment(index, [5, *answer], len(answer)) for index, answer in enumerate([[0], [1], [0, 0], [0, 7]])]
    scored = PrefixTreeReader(silent, batch_tokens=None, padding=0).scores(parts, len(parts))
    assert [greedy for _, greedy in scored] == [True, False, True, False]
