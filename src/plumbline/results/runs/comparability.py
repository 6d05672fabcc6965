"""Compares what the runs of one table were made with: refuses, warns of or notes what they do not share.

Refused, as numbers that cannot be compared: runs that read different packs where their specs name the same one; scores
of another suite, task set, limit, metric policy, harness, precision or task definition; scores of other items, or
through another tokenizer, within a corpus; scores of weights, or through a tokenizer, that are not the run's; values
that probes read of other weights, or on another held-out pack, than the run's; what other code of one probe read,
within a corpus and context. A table of the runs on disk (``--expected-runs found``) has
them as warnings. What can change numbers and often has to differ (torch, device, code, compilation) is a note; so is
what some runs have recorded and others have not.

Runs of different corpora, contexts or packs differ by their specs, so their packs, tokenizers and items are theirs.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, sha256_text

Folder = Literal["runs", "scores", "probes"]
_WEIGHTS = "model.safetensors"
_NOT_RECORDED = "not recorded"

#: Runs that a sentence names; of more it gives the number.
NAMED = 3

#: Labels of scores that must be the same in all runs of a table, with their names in sentences.
LABELS = {
    "suite": "the suite",
    "metric_policy": "the metric policy",
    "limit": "the limit of items",
    "precision": "the precision of evaluation",
    "task_yaml_sha256": "the task definition",
}

#: And those that must be within a corpus.
LABELS_OF_CORPUS = {"tokenizer_sha256": "the tokenizer", "items_sha256": "the items"}

#: Those that are noted where they differ.
NOTED_LABELS = {"torch": "torch", "device": "device", "fingerprint": "code"}

#: The note on runs that were made with different code, torch or device.
ROUNDING = (
    "Another order of sums alone moves a final loss, of small models by up to 0.1 nats "
    "(benchmarks/rounding_of_a_run.md): a smaller difference of such runs is not one of their methods."
)

#: Folder of a run -> how a message describes one that differs from the others, and what makes it again.
_OTHERWISE: dict[Folder, tuple[str, str]] = {
    "runs": ("were trained on other data", "pretrained"),
    "scores": ("were scored differently", "evaluated"),
    "probes": ("were probed differently", "probed"),
}


@dataclass(frozen=True, slots=True)
class ComparedProperty:
    """A property of runs that is compared: its name, and `whose` it is, such as the pack ``base of climbmix``.

    `whose` is empty for a property of all runs.
    """

    folder: Folder
    name: str
    whose: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.whose})" if self.whose else self.name


@dataclass(frozen=True, slots=True)
class InputMismatch:
    """Scores or probes (`folder`) of a run that were made with another `source` (weights, pack) than the run's.

    `recorded`: the hash of what they were made with; `expected`: that of the run's.
    """

    folder: Literal["scores", "probes"]
    source: str
    key: str
    recorded: str
    expected: str


@dataclass(frozen=True, slots=True)
class ComparabilityCheck:
    """Collects what the runs of one table were made with, to find what they do not share.

    A value is a text, or texts by task; None if nothing is recorded.
    """

    work: Path
    refused: dict[ComparedProperty, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    noted: dict[ComparedProperty, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    foreign: list[InputMismatch] = field(default_factory=list)

    def record_run(self, key: str, manifest: Mapping[str, Any]) -> None:
        """Record a run's data, code, torch and device, from its manifest."""
        spec = manifest["spec"]
        held_out = _describe_validation_pack(manifest)
        pack = f"{spec.get('data', {}).get('pack')}, {held_out}"
        self._record_required("runs", "the training pack", key, manifest.get("data_fingerprint"), pack)
        self._record_required("runs", "the validation pack", key, manifest.get("validation_fingerprint"), held_out)
        code = manifest.get("code") or [{}]
        torch = manifest.get("packages", {}).get("torch")
        device = [str(manifest[name]) for name in ("device", "device_name") if manifest.get(name)]
        self._record_noted("runs", "torch", key, _join_in_order(entry.get("torch", torch) for entry in code))
        self._record_noted(
            "runs", "code", key, _join_in_order(entry.get("code_sha256", manifest.get("code_sha256")) for entry in code)
        )
        self._record_noted("runs", "device", key, " ".join(device) or None)
        for name, label in (("compiled", "torch.compile"), ("tf32", "TF32")):
            self._record_noted("runs", label, key, _format_switch(manifest.get(name)))
        attention = manifest.get("attention") or {}
        flash = str(attention.get("kernel")).replace("_", "-")  # flash-attn or flash-attn-3
        packages = [label for name, label in (("flash_attn", flash), ("cudnn", "cuDNN")) if attention.get(name)]
        self._record_noted(
            "runs", "way of attention", key, attention.get("notice") or ", ".join(packages) or attention.get("asked")
        )

    def record_scores(
        self, key: str, scores: pd.DataFrame, labels: Mapping[str, str], manifest: Mapping[str, Any], average: str
    ) -> None:
        """Record how a run's scores were made; nothing if it has none.

        Raises:
            PlumblineError: a score is not a number, a task or a metric of one occurs twice, or a label is damaged.
        """
        if scores.empty:
            return
        self._require_finite(key, scores)
        self._require_one_value(key, scores)
        rows = zip(*(scores[name] for name in ("task", "primary", "metric", "items")))
        tasks = [
            (task, str(metric), str(items)) for task, primary, metric, items in rows if primary and task != average
        ]
        corpus = _describe_corpus(manifest)
        for label, name in LABELS.items():
            self._record_required("scores", name, key, self._read_label("scores", key, labels, label))
        for label, name in LABELS_OF_CORPUS.items():
            self._record_required("scores", name, key, self._read_label("scores", key, labels, label), corpus)
        self._record_required("scores", "the tasks and their metrics", key, {task: metric for task, metric, _ in tasks})
        self._record_required("scores", "the number of items", key, {task: items for task, _, items in tasks}, corpus)
        self._record_required("scores", "the harness", key, _join_in_order(scores["harness_version"].unique()))
        for label, name in NOTED_LABELS.items():
            self._record_noted("scores", name, key, labels.get(label))
        self._of_the_run("scores", "other weights", key, labels.get("weights_sha256"), _weights_digest(manifest))
        tokenizer = labels.get("tokenizer_sha256"), manifest.get("tokenizer_sha256")
        self._of_the_run("scores", "another tokenizer", key, *tokenizer)

    def record_probes(self, key: str, labels: Mapping[str, str], manifest: Mapping[str, Any]) -> None:
        """Record how a run's probes were made. Runs need not have the same probes.

        Raises:
            PlumblineError: a label is damaged.
        """
        classes = self._read_label("probes", key, labels, "probes")
        for probe in manifest["spec"]["probes"]:
            code = classes.get(probe["name"]) if isinstance(classes, Mapping) else None
            self._record_required("probes", f"the code of probe {probe['name']}", key, code)
        pack = labels.get("validation_fingerprint")
        self._of_the_run("probes", "other weights", key, labels.get("weights_sha256"), _weights_digest(manifest))
        self._of_the_run("probes", "another held-out pack", key, pack, manifest.get("validation_fingerprint"))
        self._record_required("probes", "the validation pack", key, pack, _describe_validation_pack(manifest))
        for name in ("torch", "device"):
            self._record_noted("probes", name, key, labels.get(name))

    def warnings(self) -> list[str]:
        """Write a sentence for each property that keeps runs from being compared, for a table that is wanted all the
        same.
        """
        mixed = [
            f"Mixed {fact.folder}: {fact}{_name_differing_tasks(values)}: {_format_values(values)}."
            for fact, values in self.refused.items()
            if _differ(values)
        ]
        stale: dict[tuple[Folder, str], list[str]] = defaultdict(list)
        for mismatch in self.foreign:
            stale[mismatch.folder, mismatch.source].append(mismatch.key)
        return mixed + [
            f"{folder.capitalize()} of {source} than the run's: {_format_names(keys)}."
            for (folder, source), keys in stale.items()
        ]

    def refuse(self) -> None:
        """Refuse runs that cannot be compared.

        Raises:
            PlumblineError: naming two runs, what differs, both values, and which file to make again.
        """
        for mismatch in self.foreign:
            again = {"scores": "evaluate", "probes": "probe"}[mismatch.folder]
            raise PlumblineError(
                f"the {mismatch.folder} of {mismatch.key} are of {mismatch.source} than the run's "
                f"({mismatch.recorded[:12]}, not {mismatch.expected[:12]}): remove "
                f"{self.work / mismatch.folder / mismatch.key} and run the command again to {again} it"
            )
        for fact, values in self.refused.items():
            if _differ(values):
                raise PlumblineError(self._refusal(fact, {key: value for key, value in values.items() if value}))

    def notes(self) -> list[str]:
        """Write a sentence for each property that differs, does not keep runs from being compared, and should be
        known.
        """
        notes = [
            f"Not all {fact.folder} were made with the same {fact.name}: {_format_values(values)}."
            for fact, values in self.noted.items()
            if _differ(values, unknown=True) or any(" then " in (value or "") for value in values.values())
        ]
        if any(fact.folder == "runs" and _differ(values, unknown=True) for fact, values in self.noted.items()):
            notes.append(ROUNDING)
        unknown: dict[tuple[Folder, tuple[str, ...]], list[str]] = defaultdict(list)
        for fact, values in self.refused.items():
            unrecorded = tuple(key for key, value in values.items() if not value)
            if 0 < len(unrecorded) < len(values):
                unknown[fact.folder, unrecorded].append(fact.name)
        notes += [
            f"Not recorded with the {folder} of {_format_names(keys)}, so not compared with the others': "
            f"{', '.join(names)}."
            for (folder, keys), names in unknown.items()
        ]
        return notes

    def _refusal(self, fact: ComparedProperty, values: dict[str, Any]) -> str:
        forms = {key: _canonical_form(value) for key, value in values.items()}
        counts = Counter(forms.values())
        usual = counts.most_common(1)[0][0]
        usual_key = next(key for key in values if forms[key] == usual)
        odd_key = next(key for key in values if forms[key] != usual)
        more = counts[forms[odd_key]] - 1
        difference, again = _OTHERWISE[fact.folder]
        return (
            f"{odd_key}{f' (and {more} more)' if more else ''} and {usual_key} {difference}, so they cannot be in one "
            f"table; {fact}: {_describe_difference(values[odd_key], values[usual_key])}. Remove "
            f"{self.work / fact.folder / odd_key} (or the other one's, whichever is not meant) and run the command "
            f"again, so that it is {again} again; to make a table of the existing runs use --expected-runs found"
        )

    def _record_required(self, folder: Folder, name: str, key: str, value: Any, whose: str = "") -> None:
        self.refused[ComparedProperty(folder, name, whose)][key] = value

    def _of_the_run(
        self, folder: Literal["scores", "probes"], source: str, key: str, recorded: Any, expected: Any
    ) -> None:
        """Record a mismatch if scores or probes were not made of the present run; nothing if a hash is missing."""
        if recorded not in (None, _NOT_RECORDED) and expected is not None and recorded != expected:
            self.foreign.append(InputMismatch(folder, source, key, str(recorded), str(expected)))

    def _record_noted(self, folder: Folder, name: str, key: str, value: str | None) -> None:
        self.noted[ComparedProperty(folder, name)][key] = value

    def _read_label(self, folder: Folder, key: str, labels: Mapping[str, str], name: str) -> Any:
        """Read a label of a frame: a text, or a text by task (or probe)."""
        value = labels.get(name)
        if not value or not value.startswith("{"):
            return value
        try:
            return json.loads(value)
        except ValueError as error:
            path = self.work / folder / key
            raise PlumblineError(
                f"{path / folder}.parquet is damaged: its label {name!r} is {value[:40]!r}, which is not JSON "
                f"({error}): remove {path} and run the command again, so that it is {_OTHERWISE[folder][1]} again"
            ) from error

    def _require_one_value(self, key: str, scores: pd.DataFrame) -> None:
        """Refuse two values of one task, of which a table could show either."""
        earlier: set[tuple[str, str | bool]] = set()
        for task, metric, primary, value in zip(*(scores[name] for name in ("task", "metric", "primary", "value"))):
            values = {(task, metric), (task, True)} if primary else {(task, metric)}
            if values & earlier:
                raise PlumblineError(
                    f"the scores of {key}: {task} is given more than once ({metric}, {value:g}), and which of "
                    f"its values counts is unknown: remove {self.work / 'scores' / key} and run the command again to "
                    "evaluate it"
                )
            earlier |= values

    def _require_finite(self, key: str, scores: pd.DataFrame) -> None:
        """Refuse scores that are not finite; an accuracy next to them is wrong too, since it is their argmax."""
        for task, metric, value in zip(scores["task"], scores["metric"], scores["value"]):
            if not math.isfinite(value):
                raise PlumblineError(
                    f"the scores of {key}: {metric} of {task} is {value}, and no score next to it means "
                    f"anything: remove {self.work / 'scores' / key} and run the command again to evaluate it"
                )


def _weights_digest(manifest: Mapping[str, Any]) -> str | None:
    """Return the checksum of a run's weights; None if its manifest has none."""
    digest: str | None = manifest.get("files", {}).get(_WEIGHTS, {}).get("sha256")
    return digest


def _describe_corpus(manifest: Mapping[str, Any]) -> str:
    """Name the documents and tokenizer that a run's spec requests."""
    data = manifest["spec"].get("data", {})
    parts = [str(data.get(name)) for name in ("corpus", "source", "tokenizer", "tokenizer_vocabulary")]
    return " ".join(parts)


def _describe_validation_pack(manifest: Mapping[str, Any]) -> str:
    """Name the validation pack that a run's spec requests."""
    return f"{_describe_corpus(manifest)} at context {manifest['spec'].get('model', {}).get('context')}"


def _format_switch(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"


def _join_in_order(values: Iterable[str | None]) -> str | None:
    """Join the values that a run was made with one after the other, such as two versions of torch."""
    return " then ".join(dict.fromkeys(_shorten_hash(value) for value in values if value)) or None


def _differ(values: Mapping[str, Any], *, unknown: bool = False) -> bool:
    """Return whether recorded values differ; with `unknown`, also whether only some runs recorded one."""
    return len({_canonical_form(value) for value in values.values() if value or unknown}) > 1


def _canonical_form(value: Any) -> str:
    return canonical_json(value)


def _shorten_hash(value: str) -> str:
    """Shorten a hash to its first digits; any other text stays as it is."""
    return value[:12] if len(value) == 64 else value


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return sha256_text(_canonical_form(value))[:12]
    return _shorten_hash(str(value)) if value else _NOT_RECORDED


def _describe_difference(odd: Any, usual: Any) -> str:
    """Write two values as ``16 against none``; of values by task, those of the first task that differs."""
    if not isinstance(odd, Mapping) or not isinstance(usual, Mapping):
        return f"{_format_value(odd)} against {_format_value(usual)}"
    tasks = [task for task in {**usual, **odd} if usual.get(task) != odd.get(task)]
    more = f" (and so for {len(tasks) - 1} more tasks)" if len(tasks) > 1 else ""
    values = [_format_value(side[tasks[0]]) if tasks[0] in side else "nothing" for side in (odd, usual)]
    return f"{' against '.join(values)} for {tasks[0]}{more}"


def _name_differing_tasks(values: Mapping[str, Any]) -> str:
    """Name the tasks whose values differ, as the end of a phrase."""
    by_task = [value for value in values.values() if isinstance(value, Mapping)]
    tasks = {task: {_canonical_form(value.get(task)) for value in by_task} for value in by_task for task in value}
    differing = [task for task, forms in tasks.items() if len(forms) > 1]
    return f" of {_format_names(differing)}" if differing else ""


def _format_values(values: Mapping[str, Any]) -> str:
    """List values as ``2.13.0 (25 runs), 2.12.1 (transfer/base/softpick/s42)``: the usual one by number of runs."""
    keys: dict[str, list[str]] = defaultdict(list)
    texts = {_canonical_form(value): _format_value(value) for value in values.values()}
    for key, value in values.items():
        keys[_canonical_form(value)].append(key)
    ordered = sorted(keys, key=lambda form: -len(keys[form]))
    usual = len(keys[ordered[0]]) > 1
    other_texts = [f"{texts[form]} ({_format_names(keys[form])})" for form in ordered[usual:]]
    return ", ".join([f"{texts[ordered[0]]} ({len(keys[ordered[0]])} runs)"] * usual + other_texts)


def _format_names(names: Iterable[str]) -> str:
    """List the first names, and how many more there are."""
    listed = list(names)
    more = len(listed) - NAMED
    return ", ".join(listed[:NAMED]) + (f" and {more} more" if more > 0 else "")
