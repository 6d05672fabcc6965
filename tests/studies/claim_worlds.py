"""Judges every claim in a made-up world in which it is false, and in one in which its effect is reversed.

python -m tests.studies.claim_worlds [STUDY ...]

It prints a table by study: its claims, those with a world in which they are false, those with a direction and
a world in which that is reversed, how many of each are seen as "not reproduced", and the claims that nothing here can
tell or that have no direction, with the reason.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.claims.claim_registry import ClaimChecks
from plumbline.results.claims.claim_verdicts import judge_claims

#: What a world does to a claim: it makes it false, or turns its effect around.
Kind = Literal["false", "reversed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedWorld:
    """A world in which a claim is judged; `verdict` runs it."""

    claim: str
    kind: Kind
    name: str
    verdict: Callable[[], str]


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyWorlds:
    """A study's claims and their worlds. `undirected` and `untestable`: claim -> reason."""

    study: str
    checks: ClaimChecks
    worlds: list[JudgedWorld]
    undirected: Mapping[str, str]

    @property
    def untestable(self) -> dict[str, str]:
        """Claims that nothing here can decide."""
        return {name: check.untested for name, check in self.checks.items() if check.function is None}

    def claims(self, kind: Kind) -> set[str]:
        """Claims that have a world of this kind."""
        return {world.claim for world in self.worlds if world.kind == kind}

    def row(self) -> dict[str, int]:
        """The counts of the table, without running anything."""
        return {
            "claims": len(self.checks),
            "false worlds": len(self.claims("false")),
            "reversed worlds": len(self.claims("reversed")),
            "no direction": len(self.undirected),
            "untestable": len(self.untestable),
        }


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for one world."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def _judge_patched(patch: Callable[[pytest.MonkeyPatch], object], judge: Callable[[], str]) -> Callable[[], str]:
    """Judge while the code is otherwise."""

    def verdict() -> str:
        with pytest.MonkeyPatch.context() as monkeypatch:
            patch(monkeypatch)
            return judge()

    return verdict


def transfer() -> StudyWorlds:
    """Worlds of the transfer study."""
    from tests.studies.transfer import false_definitions as definitions
    from tests.studies.transfer import reversed_worlds
    from tests.studies.transfer import runs_with_false_claims as runs
    from tests.studies.transfer import test_transfer_claims as tests
    from tests.studies.transfer.synthetic_results import hold_frames, right

    def one(name: str, facts: runs.Facts, published: PrintedNumbers = tests.PUBLISHED) -> str:
        return str(tests.judge_frames(hold_frames(facts), [name], published=published).loc[name, "verdict"])

    def world(name: str, kind: Kind, label: str, change: runs.Change) -> JudgedWorld:
        return JudgedWorld(
            claim=name, kind=kind, name=label, verdict=lambda: one(name, runs.change_facts(right(), change))
        )

    def code(name: str) -> JudgedWorld:
        verdict = _judge_patched(definitions.FALSE[name], lambda: one(name, {}))
        return JudgedWorld(claim=name, kind="false", name="other code", verdict=verdict)

    def print_of(name: str) -> JudgedWorld:
        published = definitions.PRINTED_FALSE.get(name, tests.PUBLISHED)
        return JudgedWorld(claim=name, kind="false", name="print", verdict=lambda: one(name, {}, published))

    worlds = [world(name, "false", name, change) for name, change in runs.MUTANTS.items()]
    worlds += [code(name) for name in definitions.FALSE]
    # Two counts of tokens are false as they are printed.
    worlds += [print_of(name) for name in (*definitions.PRINTED_FALSE, "tokens_1p2b", "tokens_3b")]
    worlds += [
        world(name, "reversed", of, change)
        for of, (change, names) in reversed_worlds.REVERSED.items()
        for name in names
    ]
    undirected = reversed_worlds.UNDIRECTED | dict.fromkeys(tests.ARITHMETIC, "a size, a definition or a theorem")
    return StudyWorlds(study="transfer", checks=tests.CHECKS, worlds=worlds, undirected=undirected)


def premature() -> StudyWorlds:
    """Worlds of the premature study."""
    from tests.studies.premature import claims_made_false
    from tests.studies.premature import test_premature_claims as tests

    def world(name: str, kind: Kind, label: str, change: claims_made_false.Change) -> JudgedWorld:
        verdict = lambda: str(tests.of_runs_where(change, name).loc[name, "verdict"])  # noqa: E731
        return JudgedWorld(claim=name, kind=kind, name=label, verdict=verdict)

    def theory(name: str) -> str:
        evidence = tests.Evidence(tests.load_published(), tests.study_at(), tests.PUBLISHED)
        claims = [claim for claim in tests.CLAIMS if claim.id == name]
        return judge_claims(claims, ClaimChecks({name: tests.CHECKS[name]}), evidence)[0]["verdict"]

    def code(name: str) -> JudgedWorld:
        verdict = _judge_patched(lambda monkeypatch: monkeypatch.setattr(*tests.WRONG[name]), lambda: theory(name))
        return JudgedWorld(claim=name, kind="false", name="other code", verdict=verdict)

    worlds = [world(name, "false", name, change) for name, change in claims_made_false.FALSE.items()]
    worlds += [code(name) for name in tests.WRONG]
    worlds += [
        world(name, "reversed", of, change)
        for of, (change, names) in claims_made_false.REVERSED.items()
        for name in names
    ]
    undirected = claims_made_false.UNDIRECTED | dict.fromkeys(tests.WRONG, "a size, a definition or a theorem")
    return StudyWorlds(study="premature", checks=tests.CHECKS, worlds=worlds, undirected=undirected)


def query_free() -> StudyWorlds:
    """Worlds of the query_free study."""
    from plumbline.studies.query_free import theorem_checks
    from plumbline.studies.query_free.claims import theorems
    from tests.studies.query_free import runs_with_false_claims as runs
    from tests.studies.query_free import test_query_free_claims as tests
    from tests.studies.query_free.synthetic_runs import Transfer, as_the_document_says, write_runs, write_transfer

    def world(name: str, kind: Kind, label: str, change: runs.Change, transfer: Transfer) -> JudgedWorld:
        def verdict() -> str:
            with folder() as root:
                root_of_measurement = write_transfer(transfer, write_runs(change(as_the_document_says()), root))
                return str(tests.verdicts(root_of_measurement, name)[name])

        return JudgedWorld(claim=name, kind=kind, name=label, verdict=verdict)

    def same(world: runs.World) -> runs.World:
        return world

    def code(name: str, patch: Callable[[pytest.MonkeyPatch], object]) -> JudgedWorld:
        verdict = _judge_patched(patch, world(name, "false", name, same, Transfer()).verdict)
        return JudgedWorld(claim=name, kind="false", name="other code", verdict=verdict)

    def document(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(theorem_checks, "load_paper", runs.another)

    def theorem(name: str) -> Callable[[pytest.MonkeyPatch], None]:
        def patch(monkeypatch: pytest.MonkeyPatch) -> None:
            first = theorems.STATEMENTS.get(name, ("prop_4_1",))[0]
            theorems_by_id = theorem_checks.theorems()
            changed = theorems_by_id | {first: tests.that_fails(theorems_by_id[first])}
            monkeypatch.setattr(theorem_checks, "theorems", lambda: changed)

        return patch

    def wide(monkeypatch: pytest.MonkeyPatch) -> None:
        gaussian_singular_values = theorems.norm_semiconjugacy.gaussian_singular_values
        monkeypatch.setattr(
            theorems.norm_semiconjugacy,
            "gaussian_singular_values",
            lambda d, seed: 3 * gaussian_singular_values(d, seed),
        )

    worlds = [world(name, "false", name, change, Transfer()) for name, (change, _) in runs.MUTANTS.items()]
    worlds += [
        world(of, "false", of, same, transfer)
        for of, (transfer, verdict, _) in runs.TRANSFERS.items()
        if verdict == "not reproduced" and "," not in of
    ]
    worlds += [code(name, document) for name in sorted(runs.OF_SPECS)]
    worlds += [code(name, theorem(name)) for name in (*theorems.STATEMENTS, "single_head")]
    worlds.append(code("sigma_max_random", wide))
    worlds.append(world("equal_nonemb_apart", "false", "the document's own sizes", same, Transfer()))
    far = lambda world: tests.far_off()  # noqa: E731
    worlds += [world(f"t2_{method}", "false", "far off", far, Transfer()) for method in tests.CONFIGURATIONS]
    worlds += [
        world(name, "reversed", of, change, transfer)
        for of, (change, transfer, names) in runs.REVERSED.items()
        for name in names
    ]
    return StudyWorlds(study="query_free", checks=tests.CHECKS, worlds=worlds, undirected=runs.UNDIRECTED)


def quack() -> StudyWorlds:
    """Worlds of the quack study."""
    from plumbline.studies.quack import lemma1_numbers
    from tests.studies.quack import runs_with_false_claims as runs
    from tests.studies.quack import synthetic_runs
    from tests.studies.quack import test_quack_claims as tests
    from tests.studies.quack.synthetic_runs import Written, times

    def one(name: str, written: Callable[[Path], Written]) -> str:
        with folder() as root:
            return str(tests.judge_runs(written(root), [name]).loc[name, "verdict"])

    def world(name: str, kind: Kind, label: str, mutant: synthetic_runs.Mutant) -> JudgedWorld:
        def write_runs(root: Path) -> Written:
            return Written(root, mutant(synthetic_runs.right()))

        return JudgedWorld(claim=name, kind=kind, name=label, verdict=lambda: one(name, write_runs))

    def slower(name: str, kind: Kind, label: str, seconds: float) -> JudgedWorld:
        def write_runs(root: Path) -> Written:
            return Written(root, {}).measured("step_time", times(qk_norm=1.0, quack=seconds))

        return JudgedWorld(claim=name, kind=kind, name=label, verdict=lambda: one(name, write_runs))

    def code(name: str) -> JudgedWorld:
        def patch(monkeypatch: pytest.MonkeyPatch) -> None:
            monkeypatch.setattr(lemma1_numbers, "sizes", lambda study: tests.SMALL)
            lemma1_numbers.compute_rows.cache_clear()
            tests.CODE_MUTANTS[name](monkeypatch)

        def verdict() -> str:
            try:
                return _judge_patched(patch, lambda: one(name, lambda root: Written(root, {}, "smoke")))()
            finally:
                lemma1_numbers.compute_rows.cache_clear()

        return JudgedWorld(claim=name, kind="false", name="other code", verdict=verdict)

    worlds = [world(name, "false", name, mutant) for name, (mutant, _) in runs.MUTANTS.items()]
    worlds += [code(name) for name in tests.CODE_MUTANTS]
    worlds += [slower(name, "false", "as fast", 1.02) for name in runs.SLOWER]
    worlds += [slower(name, "reversed", "slower by as much", 1 / 0.9) for name in runs.SLOWER]
    worlds += [world(name, "reversed", of, mutant) for of, (mutant, names) in runs.REVERSED.items() for name in names]
    return StudyWorlds(study="quack", checks=tests.CHECKS, worlds=worlds, undirected=runs.UNDIRECTED)


def key_norms() -> StudyWorlds:
    """Worlds of the key_norms study."""
    from plumbline.specs import study_config
    from plumbline.studies.key_norms.norm_curves import count_layers
    from tests.studies.key_norms import synthetic_runs
    from tests.studies.key_norms import test_key_norms_claims as tests

    def arms() -> dict[str, synthetic_runs.Arm]:
        return synthetic_runs.as_the_document_says(count_layers(study_config.load("key_norms", "paper")))

    def world(name: str, kind: Kind, label: str, change: Callable[[dict], dict]) -> JudgedWorld:
        def verdict() -> str:
            with folder() as root:
                verdicts = tests.verdicts(synthetic_runs.World(root, arms=change(arms())), tests.with_values(name))
                return str(verdicts[name])

        return JudgedWorld(claim=name, kind=kind, name=label, verdict=verdict)

    def same(verdicts: dict) -> dict:
        return verdicts

    def code(name: str, kind: Kind, patch: Callable[[pytest.MonkeyPatch], None]) -> JudgedWorld:
        verdict = _judge_patched(patch, world(name, kind, name, same).verdict)
        return JudgedWorld(claim=name, kind=kind, name="other code", verdict=verdict)

    def print_of(name: str, values: dict) -> JudgedWorld:
        def verdict() -> str:
            with folder() as root:
                world_of_runs = synthetic_runs.World(root, arms=arms())
                return str(tests.verdicts(world_of_runs, tests.with_values(name, **values))[name])

        return JudgedWorld(claim=name, kind="false", name="print", verdict=verdict)

    changes = {name: change for name, (change, _) in tests.MUTANTS.items()} | {"order_end": tests.upside_down}
    worlds = [world(name, "false", name, change) for name, change in changes.items()]
    worlds += [code(name, "false", change) for name, (change, _) in tests.CODE_MUTANTS.items()]
    worlds += [print_of(name, values) for name, values in tests.PRINTED_FALSE.items()]
    worlds += [world(name, "reversed", of, change) for of, (change, names) in tests.REVERSED.items() for name in names]
    worlds += [code(name, "reversed", change) for change, names in tests.REVERSED_CODE.values() for name in names]
    return StudyWorlds(study="key_norms", checks=tests.CHECKS, worlds=worlds, undirected=tests.UNDIRECTED)


STUDIES: dict[str, Callable[[], StudyWorlds]] = {
    "transfer": transfer,
    "premature": premature,
    "query_free": query_free,
    "quack": quack,
    "key_norms": key_norms,
}


def main(names: list[str]) -> int:
    """Run the command."""
    heads = ("study", "claims", "false worlds", "seen not reproduced", "reversed worlds", "seen not reproduced")
    print("| " + " | ".join((*heads, "no direction", "untestable")) + " |\n|" + "---|" * (len(heads) + 2))
    failed, notes = [], []
    for name in names or list(STUDIES):
        worlds = STUDIES[name]()
        row, claims_by_kind = worlds.row(), {kind: set(worlds.claims(kind)) for kind in ("false", "reversed")}
        for world in worlds.worlds:
            verdict = world.verdict()
            if verdict != "not reproduced":
                claims_by_kind[world.kind].discard(world.claim)
                failed.append(f"{name}: {world.claim} is {verdict} where {world.kind} ({world.name})")
        counts = [
            row["claims"],
            row["false worlds"],
            len(claims_by_kind["false"]),
            row["reversed worlds"],
            len(claims_by_kind["reversed"]),
        ]
        counts += [row["no direction"], row["untestable"]]
        print(f"| {name} | " + " | ".join(map(str, counts)) + " |", flush=True)
        notes += [f"{name}: {claim}: {why}" for claim, why in worlds.untestable.items()]
        reasons = Counter(worlds.undirected.values())
        notes += [f"{name}: no direction: {why}: {count}" for why, count in reasons.most_common()]
    print("\n".join(["", *(f"- {note}" for note in notes), *(f"- NOT SEEN: {line}" for line in failed)]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
