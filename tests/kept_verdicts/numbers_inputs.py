"""Inputs of `plumbline verdict`: tables of numbers, logs of searches, records as files, samples of lm-eval."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from tests.kept_verdicts.carry_out import VerdictInput, remove, replace, write

BASE = (3.280, 3.285, 3.279, 3.283, 3.281)
LOSS = "--baseline base --metric loss --lower-is-better"


def table(runs: Mapping[str, Sequence[object]], metric: str = "loss", mark: str = ",") -> str:
    """A table of runs: for each method its values, at seeds from 1 on."""
    rows = [("method", "seed", metric)]
    rows += [(method, str(seed), str(value)) for method, values in runs.items() for seed, value in enumerate(values, 1)]
    return "".join(mark.join(row) + "\n" for row in rows)


def _table(
    name: str, runs: Mapping[str, Sequence[object]], candidate: str, more: str = "", *, has_page: bool = True
) -> VerdictInput:
    """A table of two arms, as sentences and as one object."""
    command = f"plumbline verdict t.csv {LOSS} --exit-code-of {candidate}{more and ' '}{more}"
    shows = ("t.verdict.*",) if has_page else ()
    steps = (command, f"{command} --json")
    return VerdictInput(name=name, files={"t.csv": table(runs)}, steps=steps, shows=shows)


def _search(rows: Sequence[tuple[str, object, str, str]]) -> str:
    heads = "commit\tval_bpb\tmemory_gb\tstatus\tdescription\n"
    return heads + "".join(
        f"{commit}\t{value}\t44.0\t{status}\t{description}\n" for commit, value, status, description in rows
    )


SEARCH = "plumbline verdict log.tsv --metric val_bpb --lower-is-better"
START = [
    ("a1", 0.9979, "keep", "start"),
    ("a1", 0.99874, "discard", "start"),
    ("a1", 0.99812, "discard", "start"),
    ("a1", 0.99841, "discard", "start"),
    ("b7", 0.99427, "keep", "higher learning rate"),
    ("c2", 0.9981, "discard", "deeper"),
    ("d3", "", "crash", "twice the batch"),
    ("e4", 0.98127, "keep", "no weight decay"),
    ("f5", 0.9866, "discard", "other warm-up"),
]


def _samples(values: Sequence[float], task: str, **more: object) -> tuple[str, str]:
    lines = [
        {"doc_id": place, "doc_hash": f"h{place}", "prompt_hash": "p", "target_hash": "y"}
        | {"filter": "none", "metrics": ["acc"], "acc": value}
        | more
        for place, value in enumerate(values)
    ]
    return f"samples_{task}_2026-01-02T03-04-05.678.jsonl", "".join(json.dumps(line) + "\n" for line in lines)


def _model(name: str, tasks: Mapping[str, Sequence[float]], **settings: object) -> dict[str, str]:
    """A folder as lm-eval writes it: samples of each task, and the results that state what was requested."""
    files = dict(_samples(values, task, **settings.get("sample", {})) for task, values in tasks.items())
    results = {
        "results": {task: {"acc,none": 0.5} for task in tasks},
        "n-shot": dict.fromkeys(tasks, settings.get("shots", 0)),
        "versions": dict.fromkeys(tasks, 1.0),
        "config": {"model": "hf", "model_args": f"pretrained={name},dtype=float32", "limit": settings.get("limit")},
        "chat_template_sha": None,
        "system_instruction_sha": None,
        "fewshot_as_multiturn": False,
        "lm_eval_version": "0.4.13",
        "model_name": name,
    }
    files["results_2026-01-02T03-04-05.678.json"] = json.dumps(results)
    return {f"{name}/{file}": text for file, text in files.items()}


EASY = [float(place % 3 != 0) for place in range(60)]
BETTER = [1.0 if place % 4 == 0 else value for place, value in enumerate(EASY)]
HARD = [float(place % 4 == 1) for place in range(40)]
HARDLY = [1.0 - value if place in (2, 9, 17) else value for place, value in enumerate(HARD)]
ITEMS = "plumbline verdict mine --baseline theirs --metric acc --higher-is-better --exit-code-of mine"


def _submission(values: Sequence[float], name: str) -> str:
    seeds = {str(seed): {"val_bpb": value} for seed, value in enumerate(values, 42)}
    mean = round(sum(values) / len(values), 5)
    return json.dumps({"name": name, "date": "2026-01-01", "val_bpb": mean, "seed_results": seeds})


SUBMISSIONS = "plumbline verdict records --baseline a --metric val_bpb --lower-is-better"
WANDB = """\
Name,State,loss,seed
base,finished,3.281,1
base,finished,3.279,2
base,finished,3.284,3
new,finished,3.2,1
new,running,3.7,2
"""
OF_NAME = f"plumbline verdict t.csv {LOSS} --method-column Name --exit-code-of new"
STEPS = "".join(
    json.dumps({"method": method, "seed": seed, "step": step, "eval": {"loss": round(value - step / 1000, 4)}}) + "\n"
    for method, values in {"base": (3.38, 3.385, 3.379), "new": (3.36, 3.366, 3.357)}.items()
    for seed, value in enumerate(values, 1)
    for step in (50, 80, 90 + 5 * seed)
)
PRINTED = "method,acc,std,n\nours,55.2,0.4,3\nbaseline,54.2,0.6,3\n"
CELLS = "method,acc\nours,57.2 ± 0.4\nbaseline,54.2 ± 0.6\n"

INPUTS = (
    _table("verdict_improves", {"base": BASE, "good": (3.262, 3.258, 3.266)}, "good"),
    _table("verdict_ruled_out", {"base": BASE, "worse": (3.288, 3.286, 3.2874)}, "worse"),
    _table("verdict_undecided", {"base": BASE, "null": (3.279, 3.284)}, "null"),
    _table("verdict_crashed", {"base": BASE, "new": (3.262, "nan", 3.266)}, "new"),
    _table("verdict_no_noise_floor", {"base": (3.28,), "new": (3.26,)}, "new", has_page=False),
    _table("verdict_baseline_diverged", {"base": (*BASE, "inf"), "new": (3.262, 3.258)}, "new", has_page=False),
    _table("verdict_allowed_divergence", {"base": (*BASE, "inf"), "new": (3.262, 3.258)}, "new", "--allow-diverged 1"),
    _table("verdict_implausible", {"base": BASE, "leak": (0.6, 0.61, 0.605)}, "leak"),
    _table(
        "verdict_claimed_gain",
        {"base": BASE, "null": (3.279, 3.284, 3.2811)},
        "null",
        "--claimed-gain 0.05 --size '124M parameters, 3,000 steps'",
    ),
    _table(
        "verdict_minimum_gain",
        {"base": BASE[:2], "new": (3.2651, 3.2628, 3.2672)},
        "new",
        "--minimum-gain 0.005 --alpha 0.01 --sigma 0.0021 --sigma-runs 12 --target-gain 0.01",
    ),
    VerdictInput(
        name="verdict_many_arms",
        files={
            "t.tsv": table(
                {
                    "base": (0.512, 0.518, 0.509, 0.515),
                    "best": (0.547, 0.539, 0.552),
                    "null": (0.514, 0.52),
                    "worse": (0.49, 0.493, 0.488),
                    "lone": (0.521,),
                    "lost": (0.53, "nan"),
                },
                "acc",
                "\t",
            )
        },
        steps=(
            "plumbline verdict t.tsv --baseline base --metric acc --higher-is-better",
            "plumbline verdict t.tsv --baseline base --metric acc --higher-is-better --json",
        ),
        shows=("t.verdict.*",),
    ),
    VerdictInput(
        name="verdict_paired",
        files={
            "t.jsonl": "".join(
                json.dumps({"method": method, "seed": seed, "loss": value}) + "\n"
                for method, values in {"base": (3.28, 3.31, 3.25, 3.29), "new": (3.269, 3.302, 3.238, 3.281)}.items()
                for seed, value in enumerate(values, 1)
            )
        },
        steps=(
            f"plumbline verdict t.jsonl {LOSS} --paired --exit-code-of new",
            f"plumbline verdict t.jsonl {LOSS} --exit-code-of new --json --out unpaired.md",
        ),
        shows=("t.verdict.*", "unpaired.*"),
    ),
    VerdictInput(
        name="verdict_goal",
        files={"t.csv": table({"a": (3.2786, 3.2779, 3.2791, 3.278), "b": (3.2801, 3.2796)})},
        steps=(
            "plumbline verdict t.csv --goal 3.28 --metric loss --lower-is-better --alpha 0.01 --exit-code-of a",
            "plumbline verdict t.csv --goal 3.28 --metric loss --lower-is-better --alpha 0.01 --exit-code-of b --json",
        ),
        shows=("t.verdict.*",),
    ),
    VerdictInput(
        name="verdict_chain",
        files={"t.csv": table({"a": (3.281, 3.284, 3.279), "b": (3.271, 3.274, 3.27), "c": (3.2705, 3.273)})},
        steps=(
            "plumbline verdict t.csv --compare-with-previous --metric loss --lower-is-better",
            "plumbline verdict t.csv --compare-with-previous --metric loss --lower-is-better --exit-code-of b --json",
        ),
        shows=("t.verdict.*",),
    ),
    VerdictInput(
        name="verdict_steps",
        files={"t.jsonl": STEPS},
        steps=(
            "plumbline verdict t.jsonl --baseline base --metric eval.loss --lower-is-better",
            "plumbline verdict t.jsonl --baseline base --metric eval.loss --lower-is-better --at-step 50 --json",
            "plumbline verdict t.jsonl --baseline base --metric eval.loss --lower-is-better --at-step best",
        ),
        shows=("t.verdict.md",),
    ),
    VerdictInput(
        name="verdict_metric_in_rows",
        files={
            "t.csv": "method,seed,metric,value\n"
            + "".join(
                f"{method},{seed},{metric},{value}\n"
                for method, values in {"base": BASE, "good": (3.262, 3.258)}.items()
                for seed, loss in enumerate(values, 1)
                for metric, value in (("loss", loss), ("accuracy", 0.5))
            )
        },
        steps=(
            f"plumbline verdict t.csv {LOSS}",
            "plumbline verdict t.csv --baseline base --lower-is-better",
            "plumbline verdict t.csv --baseline base --metric lss --lower-is-better --json",
        ),
    ),
    VerdictInput(
        name="verdict_printed_spreads",
        files={"printed.csv": PRINTED, "cells.csv": CELLS},
        steps=(
            "plumbline verdict printed.csv --baseline baseline --metric acc --higher-is-better --planned-tries 4",
            "plumbline verdict cells.csv --baseline baseline --metric acc --higher-is-better --seeds 3 --spread std "
            "--ledger other.jsonl --exit-code-of ours --json",
            "plumbline verdict cells.csv --baseline baseline --metric acc --higher-is-better",
        ),
        shows=("*.verdict.*",),
    ),
    VerdictInput(
        name="verdict_statuses",
        files={"t.csv": WANDB},
        steps=(
            f"{OF_NAME} --json",
            f"{OF_NAME} --status-map running=crashed",
            f"{OF_NAME} --status-map running=finished --json",
            replace("t.csv", "3.284,3\nnew,finished", "3.284,3\nnew,fishy"),
            f"{OF_NAME} --json",
        ),
    ),
    VerdictInput(
        name="verdict_second_look",
        files={"t.csv": table({"base": BASE, "good": (3.27, 3.272)})},
        steps=(
            f"plumbline verdict t.csv {LOSS} --exit-code-of good",
            "plumbline verdict --check-page t.verdict.md",
            write("u.csv", table({"base": BASE, "null": (3.279, 3.284)})),
            f"plumbline verdict u.csv {LOSS} --planned-tries 20",
            "plumbline verdict --check-page t.verdict.md",
            f"plumbline verdict t.csv {LOSS} --exit-code-of good",
            "plumbline verdict --check-page t.verdict.md",
            remove("ledger.jsonl"),
            "plumbline verdict --check-page t.verdict.md",
            f"plumbline verdict t.csv {LOSS} --json",
        ),
        shows=("t.verdict.md",),
    ),
    VerdictInput(
        name="verdict_usage",
        files={"t.csv": table({"base": BASE, "good": (3.262, 3.258)}), "empty.csv": "method,seed,loss\n"},
        steps=(
            "plumbline verdict",
            "plumbline verdict t.csv --baseline base --metric loss",
            "plumbline verdict t.csv --baseline base --metric loss --json",
            "plumbline verdict none.csv --lower-is-better",
            f"plumbline verdict t.csv {LOSS} --exit-code-of base",
            f"plumbline verdict t.csv {LOSS} --exit-code-of god --json",
            f"plumbline verdict t.csv {LOSS} --alpha 0.7",
            "plumbline verdict t.csv --baseline bsae --metric loss --lower-is-better",
            "plumbline verdict t.csv --goal nan --metric loss --lower-is-better",
            f"plumbline verdict t.csv {LOSS} --goal 3",
            f"plumbline verdict empty.csv {LOSS} --json",
            write("t.verdict.md", "# My notes\n"),
            f"plumbline verdict t.csv {LOSS}",
        ),
    ),
    VerdictInput(
        name="verdict_bad_rows",
        files={
            "twice.csv": "method,seed,loss\nbase,1,3\na,1,2\nbase,1.0,3\n",
            "comma.csv": 'method,seed,loss\nbase,1,"3,2"\na,1,3\n',
            "cells.csv": "method,seed,loss\nbase,1,3\nbase,2\n",
            "steps.csv": "method,seed,step,loss\nbase,1,9,3\nbase,2,9,3.1\na,1,8,3\n",
            "equal.csv": "method,seed,loss\nbase,1,3\nbase,2,3\na,1,2\n",
        },
        steps=tuple(
            f"plumbline verdict {name}.csv {LOSS} --exit-code-of a --json"
            for name in ("twice", "comma", "cells", "steps", "equal")
        ),
    ),
    VerdictInput(
        name="search_improves",
        files={"log.tsv": _search(START)},
        steps=(SEARCH, f"{SEARCH} --exit-code-of e4 --json"),
        shows=("log.verdict.*",),
    ),
    VerdictInput(
        name="search_run_again",
        files={
            "log.tsv": _search(
                [*START, ("e4", 0.98627, "discard", "no weight decay"), ("e4", 0.98577, "discard", "no weight decay")]
            )
        },
        steps=(f"{SEARCH} --exit-code-of e4", f"{SEARCH} --exit-code-of e4 --json"),
        shows=("log.verdict.*",),
    ),
    VerdictInput(
        name="search_undecided",
        files={"log.tsv": _search([*START[:3], ("b7", 0.99727, "keep", "wider"), ("c2", 0.9981, "discard", "deeper")])},
        steps=(f"{SEARCH} --exit-code-of b7", f"{SEARCH} --exit-code-of b7 --json"),
        shows=("log.verdict.md",),
    ),
    VerdictInput(
        name="search_without_repeats",
        files={"log.tsv": _search([START[0], *START[4:]])},
        steps=(
            f"{SEARCH} --exit-code-of e4",
            f"{SEARCH} --exit-code-of e4 --json",
            f"{SEARCH} --exit-code-of e4 --sigma 0.0006 --minimum-gain 0.001",
            replace("log.tsv", "keep\tno weight", "fishy\tno weight"),
            SEARCH,
        ),
    ),
    VerdictInput(
        name="search_of_try",
        files={
            "results.tsv": "commit\tloss\tmemory_gb\tstatus\tdescription\tseeds\tp\n"
            "a1\t3.0\t0.0\tkeep\tbaseline\t5\t\n"
            "b2\t2.99\t0.0\tundecided\twider\t2\t0.1\n"
            "b2\t2.98\t0.0\tkeep\twider\t4\t0.01\n"
            "c3\t2.5\t0.0\timplausible\tleak\t2\t0.001\n"
            "d4\t0.0\t0.0\tcrash\tdeeper\t0\t\n"
        },
        steps=(
            "plumbline verdict results.tsv --metric loss --lower-is-better --exit-code-of b2",
            "plumbline verdict results.tsv --metric loss --lower-is-better --sigma 0.5 --json",
        ),
        shows=("results.verdict.md",),
    ),
    VerdictInput(
        name="submissions",
        files={
            "records/a/submission.json": _submission((1.1231, 1.1239, 1.1228), "a"),
            "records/b/submission.json": _submission((1.1151, 1.1163, 1.1149), "b"),
        },
        steps=(f"{SUBMISSIONS} --minimum-gain 0.005 --alpha 0.01 --exit-code-of b", f"{SUBMISSIONS} --json"),
        shows=("records.verdict.*",),
    ),
    VerdictInput(
        name="items_one_task",
        files=_model("mine", {"arc_easy": BETTER}) | _model("theirs", {"arc_easy": EASY}),
        steps=(ITEMS, f"{ITEMS} --json"),
        shows=("mine.verdict.*",),
    ),
    VerdictInput(
        name="items_two_tasks",
        files=_model("mine", {"arc_easy": EASY, "piqa": HARDLY}, limit=100.0)
        | _model("theirs", {"arc_easy": EASY, "piqa": HARD}),
        steps=(ITEMS, f"{ITEMS} --json"),
        shows=("mine.verdict.*",),
    ),
    VerdictInput(
        name="items_other_questions",
        files=_model("mine", {"arc_easy": BETTER}, shots=5, sample={"prompt_hash": "q"})
        | _model("theirs", {"arc_easy": EASY}),
        steps=(
            ITEMS,
            f"{ITEMS} --json",
            remove("mine/results_2026-01-02T03-04-05.678.json"),
            replace("mine/samples*", '"prompt_hash": "q"', '"prompt_hash": "p"'),
            ITEMS,
        ),
    ),
)
