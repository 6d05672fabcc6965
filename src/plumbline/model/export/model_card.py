"""Writes the model card: what a folder holds, where it is from, how good the model is, and how it is loaded."""

from __future__ import annotations

import json
from importlib.metadata import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_text
from plumbline.core.run_files import EXPORT_RECORD, MODEL, TOKENIZER
from plumbline.model.finished_run import NOT_RECORDED, FinishedRun
from plumbline.specs.code_hash import PACKAGE
from plumbline.specs.corpus import DOCUMENTS, REPRODUCTION

if TYPE_CHECKING:
    import pandas as pd

    from plumbline.model.export.capability_check import DecodingCapabilities

#: The run's manifest in an exported folder.
MANIFEST = "run_manifest.json"

_LOAD = """\
```python
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = "."  # where this file lies
model = AutoModelForCausalLM.from_pretrained(folder{trust})
tokenizer = AutoTokenizer.from_pretrained(folder{trust})
tokens = tokenizer("The", return_tensors="pt")
print(tokenizer.decode(model.generate(**tokens, max_new_tokens=20)[0]))
```
"""

_CODE = """\
It contains the code that it runs, as flat copies of Plumbline's sources (each says where it is from, and under which
licence), because no model of transformers computes it. `trust_remote_code=True` runs them: read them first. Plumbline
need not be installed; {requires}.
"""

_LLAMA = """\
It is a Llama: transformers' own code runs it, and so does any other program for Llama models.
"""


def write_card(
    run: FinishedRun,
    record: dict[str, Any],
    *,
    requires: tuple[str, ...],
    evaluation: pd.DataFrame | None,
    capabilities: DecodingCapabilities | None = None,
) -> str:
    """The text of README.md.

    Args:
        record: the export's own record.
        requires: packages that it needs in addition to torch and transformers.
        evaluation: rows of the `scores` frame, of the metrics that count, with the `suite` that they are on.
        capabilities: of a model that brings its own code.
    """
    from plumbline.specs.yaml_files import PRESET_NOTES

    has_code, spec = record["form"] == "code", run.spec
    warning = " **This model is no reproduction of the paper.**"
    if spec.preset == REPRODUCTION:
        own_texts = spec.data.source == DOCUMENTS
        warning = "" if own_texts else f" Its texts, of the source {spec.data.source}, are not the paper's.{warning}"
    packages = "torch and transformers (5 or later)" + "".join(f" and {name}" for name in requires)
    parts = [
        "---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags: [plumbline]\n---",
        f"# {spec.key} at preset {spec.preset}",
        f"Preset: {spec.preset}. {PRESET_NOTES[spec.preset]}{warning}",
        _format_facts(run),
        "## Load it",
        _LOAD.format(trust=", trust_remote_code=True" if has_code else "").rstrip(),
        (_CODE.format(requires=f"{packages} are all that it needs") if has_code else _LLAMA).rstrip(),
        *([_describe_capabilities(capabilities)] if capabilities is not None else []),
        _describe_comparison(record["checked"]),
        "## Evaluation",
        _format_scores(evaluation),
        "## Files",
        f"`{MANIFEST}` is the run's own, with its whole spec and the name of its machine. `{EXPORT_RECORD}` says what "
        "exported it, and has the SHA-256 of every file.",
    ]
    return "\n\n".join(parts) + "\n"


def read_evaluation(path: Path, run: FinishedRun) -> pd.DataFrame:
    """The rows of a run's scores that count: each task's primary metric, and the average; and their `suite`.

    Raises:
        PlumblineError: there are none, they are another run's, or were made with other weights or another tokenizer.
    """
    from plumbline.core import frames

    if not path.is_file():
        raise PlumblineError(f"--card-scores: there is no file {path}")
    fingerprint_file.read_verified(path)
    scores, labels = frames.read(path, "scores"), frames.metadata(path)
    other_runs = sorted(set(scores["run_id"]) - {run.spec.run_id})
    if other_runs:
        raise PlumblineError(f"--card-scores: {path} is of run {other_runs[0]}, and this one is {run.spec.run_id}")
    runs = {"weights_sha256": run.look_up_sha256(MODEL), "tokenizer_sha256": run.manifest.get(TOKENIZER)}
    for name, sha256 in runs.items():
        if sha256 is not None and labels.get(name) not in (None, NOT_RECORDED, sha256):
            raise PlumblineError(
                f"--card-scores: {path} was made with {name} {labels[name]}, and {run.folder} has {sha256}: remove it, "
                "and evaluate the run again"
            )
    suite = labels.get("suite", "not recorded")
    return scores[scores["primary"] | (scores.index == scores.index.max())].assign(suite=suite)


def find_licence_file() -> Path | None:
    """The file with this package's licence, from the repository or the installed distribution; None without one."""
    repository = PACKAGE.parents[1]
    if all((repository / name).is_file() for name in ("pyproject.toml", "LICENSE")):
        return repository / "LICENSE"
    paths = [path.locate() for path in files("plumbline-lm") or () if path.name == "LICENSE"]
    return Path(str(paths[0])) if paths else None


def _format_facts(run: FinishedRun) -> str:
    spec = run.spec
    manifest, outcome = (
        json.loads((run.folder / name).read_text(encoding="utf-8")) for name in ("manifest.json", "outcome.json")
    )
    commit = manifest.get("git_commit")
    loss = outcome.get("validation_loss")
    rows = {
        "study, scale, method": f"{spec.study}, {spec.scale}, {spec.method}",
        "seeds": f"initialisation {spec.init_seed}, order of data {spec.data_seed}",
        "run": f"`{spec.run_id}`",
        "SHA-256 of its spec": f"`{sha256_text(spec.to_json())}`",
        "trained at commit": f"`{commit}`{' with changes' if manifest.get('git_dirty') else ''}" if commit else None,
        "trained on": f"{manifest['tokens']:,} tokens" if "tokens" in manifest else None,
        "corpus": f"{spec.data.corpus}, source: {spec.data.source}",
        "parameters": f"{manifest['parameters']:,}" if "parameters" in manifest else None,
        "context": f"{spec.model.context} tokens",
        "loss on held-out documents": f"{loss:.4f} nats a token" if loss is not None else None,
    }
    lines = [f"| {name} | {text} |" for name, text in rows.items() if text is not None]
    return "\n".join(["| | |", "|---|---|", *lines])


def _describe_capabilities(capabilities: DecodingCapabilities) -> str:
    """Describe which inputs and outputs a model with its own code supports, and which it refuses."""
    gives = ["logits", "the loss of `labels`"]
    refused = ["attention weights", "`position_ids=` (they follow from `attention_mask`)", "another size of vocabulary"]
    refused.append("`generate` from `inputs_embeds`")
    if capabilities.hidden_states:
        gives.append("hidden states (what enters each layer, and last what the head reads)")
    else:
        refused.append("hidden states (its layers pass on more than one stream)")
    if not capabilities.cache:
        refused.append("a cache (`generate` reads the whole again for each token)")
    if not capabilities.padding:
        refused.append("padding (its attention looks at the length of a call)")
    return (
        f"It takes `input_ids` or `inputs_embeds`, and gives {', '.join(gives)}; `get_input_embeddings` and "
        f"`set_input_embeddings` are there. Refused with an error: {', '.join(refused)}."
    )


def _describe_comparison(comparison: dict[str, Any] | None) -> str:
    if comparison is None:
        return "Its logits were not compared with Plumbline's when it was written."
    difference = comparison["largest_difference"]
    agreement = "are Plumbline's, bit for bit"
    if difference:
        largest = comparison["largest_logit"]
        agreement = f"differ from Plumbline's by {difference:.2g} at most, where the largest is {largest:.3g}"
    return (
        f"Loaded by transformers {comparison['transformers']} (torch {comparison['torch']}) in a process without "
        f"Plumbline, its logits on {comparison['tokens']} made-up tokens {agreement}."
    )


def _format_scores(scores: pd.DataFrame | None) -> str:
    if scores is None or not len(scores):
        return "None was available when the folder was written."
    lines = [
        f"| {row.task} | {row.metric} | {row.value:.4f} | {row.items} | {row.task_source} |"
        for row in scores.itertuples(index=False)
    ]
    note = "`proxy` items are made from held-out documents in the form of a task whose own items were missing."
    head = [f"On the suite {scores['suite'].iloc[0]}:", "", "| task | metric | value | items | source |"]
    return "\n".join([*head, "|---|---|---|---|---|", *lines, "", note])
