"""Compares what the runs of one table were made with: refuses, warns of or notes what they do not share.

Refused, as numbers that cannot be compared: runs that read different packs where their specs name the same one; scores
of another suite, task set, limit, metric policy, harness, precision or task definition; scores of other items, or
through another tokenizer, within a corpus; scores of weights, or through a tokenizer, that are not the run's; values
that probes read of other weights, or on another held-out pack, than the run's; what other code of one probe read,
within a corpus and context. A table of whatever is there (``--expected-runs found``) has
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

#: Labels of scores that must be the same in all runs of a table, with what a sentence calls them.
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

#: What is said where runs were made with different code, torch or device.
ROUNDING = (
    "Another order of sums alone moves a final loss, of small models by up to 0.1 nats "
    "(benchmarks/rounding_of_a_run.md): a smaller difference of such runs is not one of their methods."
)

#: What is said of a run's folder that is not as the others', and what asking again does.
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
    """Scores or probes (`folder`) of a run that were made with something else (`what`) than the run's: both hashes."""

    folder: Literal["scores", "probes"]
    what: str
    key: str
    mine: str
    runs: str


@dataclass(frozen=True, slots=True)
class ComparabilityCheck:
    """Collects what the runs of one table were made with, to find what they do not share.

    A value is a text, or texts by task; None where nothing is recorded.
    """

    work: Path
    refused: dict[ComparedProperty, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    noted: dict[ComparedProperty, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    foreign: list[InputMismatch] = field(default_factory=list)

    def trained(self, key: str, manifest: Mapping[str, Any]) -> None:
        """Record what a run's manifest says of its data and of what it was made with."""
        spec = manifest["spec"]
        held_out = _held_out(manifest)
        pack = f"{spec.get('data', {}).get('pack')}, {held_out}"
        self._refuse("runs", "the training pack", key, manifest.get("data_fingerprint"), pack)
        self._refuse("runs", "the validation pack", key, manifest.get("validation_fingerprint"), held_out)
        code = manifest.get("code") or [{}]
        torch = manifest.get("packages", {}).get("torch")
        device = [str(manifest[name]) for name in ("device", "device_name") if manifest.get(name)]
        self._note("runs", "torch", key, _then(entry.get("torch", torch) for entry in code))
        self._note("runs", "code", key, _then(entry.get("code_sha256", manifest.get("code_sha256")) for entry in code))
        self._note("runs", "device", key, " ".join(device) or None)
        for name, word in (("compiled", "torch.compile"), ("tf32", "TF32")):
            self._note("runs", word, key, _switch(manifest.get(name)))
        attention = manifest.get("attention") or {}
        package = "flash-attn" if attention.get("flash_attn") else None
        self._note("runs", "way of attention", key, attention.get("notice") or package or attention.get("asked"))

    def scored(
        self, key: str, scores: pd.DataFrame, labels: Mapping[str, str], manifest: Mapping[str, Any], average: str
    ) -> None:
        """Record what a run's scores say of how they were made; nothing where there are none.

        Raises:
            PlumblineError: a score is no number, a task or a metric of one is there twice, or a label is damaged.
        """
        if scores.empty:
            return
        self._numbers(key, scores)
        self._once(key, scores)
        tasks = scores[scores["primary"] & (scores["task"] != average)].set_index("task")
        corpus = _corpus(manifest)
        for label, name in LABELS.items():
            self._refuse("scores", name, key, self._label("scores", key, labels, label))
        for label, name in LABELS_OF_CORPUS.items():
            self._refuse("scores", name, key, self._label("scores", key, labels, label), corpus)
        self._refuse("scores", "the tasks and their metrics", key, tasks["metric"].astype(str).to_dict())
        self._refuse("scores", "the number of items", key, tasks["items"].astype(str).to_dict(), corpus)
        self._refuse("scores", "the harness", key, _then(scores["harness_version"].unique()))
        for label, name in NOTED_LABELS.items():
            self._note("scores", name, key, labels.get(label))
        self._of_the_run("scores", "other weights", key, labels.get("weights_sha256"), _weights(manifest))
        tokenizer = labels.get("tokenizer_sha256"), manifest.get("tokenizer_sha256")
        self._of_the_run("scores", "another tokenizer", key, *tokenizer)

    def probed(self, key: str, labels: Mapping[str, str], manifest: Mapping[str, Any]) -> None:
        """Record what a run's probes say of how they were made. Runs need not have the same probes.

        Raises:
            PlumblineError: a label is damaged.
        """
        classes = self._label("probes", key, labels, "probes")
        for probe in manifest["spec"]["probes"]:
            known = classes.get(probe["name"]) if isinstance(classes, Mapping) else None
            self._refuse("probes", f"the code of probe {probe['name']}", key, known)
        pack = labels.get("validation_fingerprint")
        self._of_the_run("probes", "other weights", key, labels.get("weights_sha256"), _weights(manifest))
        self._of_the_run("probes", "another held-out pack", key, pack, manifest.get("validation_fingerprint"))
        self._refuse("probes", "the validation pack", key, pack, _held_out(manifest))
        for name in ("torch", "device"):
            self._note("probes", name, key, labels.get(name))

    def warnings(self) -> list[str]:
        """Write a sentence for each property that keeps runs from being compared, for a table that is wanted all the
        same.
        """
        found = [
            f"Mixed {fact.folder}: {fact}{_of_tasks(values)}: {_spread(values)}."
            for fact, values in self.refused.items()
            if _differ(values)
        ]
        stale: dict[tuple[Folder, str], list[str]] = defaultdict(list)
        for one in self.foreign:
            stale[one.folder, one.what].append(one.key)
        return found + [
            f"{folder.capitalize()} of {what} than the run's: {_named(keys)}." for (folder, what), keys in stale.items()
        ]

    def refuse(self) -> None:
        """Refuse runs that cannot be compared.

        Raises:
            PlumblineError: naming two runs, what differs, both values, and which file to make again.
        """
        for one in self.foreign:
            again = {"scores": "evaluate", "probes": "probe"}[one.folder]
            raise PlumblineError(
                f"the {one.folder} of {one.key} are of {one.what} than the run's ({one.mine[:12]}, not "
                f"{one.runs[:12]}): remove {self.work / one.folder / one.key} and run the command again to {again} it"
            )
        for fact, values in self.refused.items():
            if _differ(values):
                raise PlumblineError(self._refusal(fact, {key: value for key, value in values.items() if value}))

    def notes(self) -> list[str]:
        """Write a sentence for each property that differs, does not keep runs from being compared, and should be
        known.
        """
        found = [
            f"Not all {fact.folder} were made with the same {fact.name}: {_spread(values)}."
            for fact, values in self.noted.items()
            if _differ(values, unknown=True) or any(" then " in (value or "") for value in values.values())
        ]
        if any(fact.folder == "runs" and _differ(values, unknown=True) for fact, values in self.noted.items()):
            found.append(ROUNDING)
        unknown: dict[tuple[Folder, tuple[str, ...]], list[str]] = defaultdict(list)
        for fact, values in self.refused.items():
            without = tuple(key for key, value in values.items() if not value)
            if 0 < len(without) < len(values):
                unknown[fact.folder, without].append(fact.name)
        found += [
            f"Not recorded with the {folder} of {_named(keys)}, so not compared with the others': {', '.join(names)}."
            for (folder, keys), names in unknown.items()
        ]
        return found

    def _refusal(self, fact: ComparedProperty, values: dict[str, Any]) -> str:
        forms = {key: _form(value) for key, value in values.items()}
        counts = Counter(forms.values())
        usual = counts.most_common(1)[0][0]
        one = next(key for key in values if forms[key] == usual)
        other = next(key for key in values if forms[key] != usual)
        more = counts[forms[other]] - 1
        what, again = _OTHERWISE[fact.folder]
        return (
            f"{other}{f' (and {more} more)' if more else ''} and {one} {what}, so they cannot be in one table; "
            f"{fact}: {_against(values[other], values[one])}. Remove {self.work / fact.folder / other} (or the other "
            f"one's, whichever is not meant) and ask again, so that it is {again} again; to make a table of the "
            "existing runs use --expected-runs found"
        )

    def _refuse(self, folder: Folder, name: str, key: str, value: Any, whose: str = "") -> None:
        self.refused[ComparedProperty(folder, name, whose)][key] = value

    def _of_the_run(self, folder: Literal["scores", "probes"], what: str, key: str, mine: Any, runs: Any) -> None:
        """Note what was not made of the run that is there now; nothing where either side is not recorded."""
        if mine not in (None, _NOT_RECORDED) and runs is not None and mine != runs:
            self.foreign.append(InputMismatch(folder, what, key, str(mine), str(runs)))

    def _note(self, folder: Folder, name: str, key: str, value: str | None) -> None:
        self.noted[ComparedProperty(folder, name)][key] = value

    def _label(self, folder: Folder, key: str, labels: Mapping[str, str], name: str) -> Any:
        """A label of a frame: a text, or by task (or probe) what is said of each."""
        value = labels.get(name)
        if not value or not value.startswith("{"):
            return value
        try:
            return json.loads(value)
        except ValueError as error:
            path = self.work / folder / key
            raise PlumblineError(
                f"{path / folder}.parquet is damaged: its label {name!r} is {value[:40]!r}, which is not JSON "
                f"({error}): remove {path} and ask again, so that it is {_OTHERWISE[folder][1]} again"
            ) from error

    def _once(self, key: str, scores: pd.DataFrame) -> None:
        """Of two values of one task a table would show either."""
        twice = scores.duplicated(["task", "metric"]) | (scores["primary"] & scores.duplicated(["task", "primary"]))
        for row in scores[twice].itertuples():
            raise PlumblineError(
                f"the scores of {key}: {row.task} is given more than once ({row.metric}, {row.value:g}), and which of "
                f"its values counts is unknown: remove {self.work / 'scores' / key} and ask again, so that it is "
                "evaluated again"
            )

    def _numbers(self, key: str, scores: pd.DataFrame) -> None:
        """An accuracy beside log-probabilities that are no numbers is none: it is the argmax over them."""
        for row in scores[~scores["value"].map(math.isfinite)].itertuples():
            raise PlumblineError(
                f"the scores of {key}: {row.metric} of {row.task} is {row.value}, and no score next to it means "
                f"anything: remove {self.work / 'scores' / key} and run the command again to evaluate it"
            )


def _weights(manifest: Mapping[str, Any]) -> str | None:
    """The checksum of a run's weights; None where its manifest has none."""
    found: str | None = manifest.get("files", {}).get(_WEIGHTS, {}).get("sha256")
    return found


def _corpus(manifest: Mapping[str, Any]) -> str:
    """Which documents and tokenizer a run's spec asks for."""
    data = manifest["spec"].get("data", {})
    words = [str(data.get(name)) for name in ("corpus", "source", "tokenizer", "tokenizer_vocabulary")]
    return " ".join(words)


def _held_out(manifest: Mapping[str, Any]) -> str:
    """Which validation pack a run's spec asks for."""
    return f"{_corpus(manifest)} at context {manifest['spec'].get('model', {}).get('context')}"


def _switch(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"


def _then(values: Iterable[str | None]) -> str | None:
    """One text for what a run was made with one after the other."""
    return " then ".join(dict.fromkeys(_short(value) for value in values if value)) or None


def _differ(values: Mapping[str, Any], *, unknown: bool = False) -> bool:
    """Whether what is recorded differs; with `unknown`, also whether only some have recorded it."""
    return len({_form(value) for value in values.values() if value or unknown}) > 1


def _form(value: Any) -> str:
    return canonical_json(value)


def _short(value: str) -> str:
    """A hash by its first digits, any other text as it is."""
    return value[:12] if len(value) == 64 else value


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return sha256_text(_form(value))[:12]
    return _short(str(value)) if value else _NOT_RECORDED


def _against(other: Any, one: Any) -> str:
    """``16 against none``; of what is said task by task, for the first task that differs."""
    if not isinstance(other, Mapping) or not isinstance(one, Mapping):
        return f"{_shown(other)} against {_shown(one)}"
    tasks = [task for task in {**one, **other} if one.get(task) != other.get(task)]
    more = f" (and so for {len(tasks) - 1} more tasks)" if len(tasks) > 1 else ""
    given = [_shown(side[tasks[0]]) if tasks[0] in side else "nothing" for side in (other, one)]
    return f"{' against '.join(given)} for {tasks[0]}{more}"


def _of_tasks(values: Mapping[str, Any]) -> str:
    """The tasks for which something differs."""
    given = [value for value in values.values() if isinstance(value, Mapping)]
    tasks = {task: {_form(value.get(task)) for value in given} for value in given for task in value}
    differing = [task for task, forms in tasks.items() if len(forms) > 1]
    return f" of {_named(differing)}" if differing else ""


def _spread(values: Mapping[str, Any]) -> str:
    """``2.13.0 (25 runs), 2.12.1 (transfer/base/softpick/s42)``: the usual value by number, others by their runs."""
    keys: dict[str, list[str]] = defaultdict(list)
    shown = {_form(value): _shown(value) for value in values.values()}
    for key, value in values.items():
        keys[_form(value)].append(key)
    ordered = sorted(keys, key=lambda form: -len(keys[form]))
    usual = len(keys[ordered[0]]) > 1
    said = [f"{shown[form]} ({_named(keys[form])})" for form in ordered[usual:]]
    return ", ".join([f"{shown[ordered[0]]} ({len(keys[ordered[0]])} runs)"] * usual + said)


def _named(names: Iterable[str]) -> str:
    """Some names, and how many more."""
    listed = list(names)
    more = len(listed) - NAMED
    return ", ".join(listed[:NAMED]) + (f" and {more} more" if more > 0 else "")
