"""Spells every path below work/ and results/, relative to the project's folder as Snakemake sees them."""

from __future__ import annotations

from plumbline.data.manifest import pack_folder
from plumbline.data.pinned_packages import PINS
from plumbline.project.configuration import Configuration
from plumbline.specs.measurement import Measurement
from plumbline.specs.study_config import Run

#: Where products are; below it one folder a preset, and copies of the requested preset.
RESULTS = "results"

#: The folder of verdicts below results/ and below a preset's folder of results; that of the pages of experiments there,
#: and of their bank below a preset's folder of work; and that of the report.
VERDICTS = "verdict"
EXPERIMENTS = "experiment"
REPORT = "report"

#: The report's first page.
REPORT_INDEX = f"{REPORT}/index.html"

#: The release bundle's name below a preset's folder of results.
BUNDLE = "bundle.tar.xz"


class WorkflowPaths:
    """Spells the path of everything that a configuration reads and writes."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration

    @property
    def work(self) -> str:
        """The folder of this preset's heavy files."""
        return f"{self.configuration.config['work']}/{self.configuration.name}"

    @property
    def results(self) -> str:
        """The folder of this preset's products."""
        return f"{RESULTS}/{self.configuration.name}"

    @property
    def logs(self) -> str:
        """The folder of the logs of Snakemake's jobs."""
        return f"logs/{self.configuration.name}"

    @property
    def counts(self) -> str:
        """The file of the models' counted parameters and operations, one for all presets."""
        return f"{self.configuration.config['work']}/counts.json"

    def corpus(self, name: str) -> str:
        """Spell the path of the folder with a corpus's documents, tokenizer, packs and items."""
        return f"{self.work}/corpora/{name}"

    def tokenizer(self, name: str) -> str:
        """Spell the path of a corpus's tokenizer."""
        return f"{self.corpus(name)}/tokenizer/tokenizer.json"

    def packs(self, name: str, context: int | str, split: str) -> str:
        """Spell the path of the folder of a corpus's packs: one side (`split`), cut at one context length."""
        return pack_folder(self.corpus(name), context, split)

    def pack_manifest(self, run: Run) -> str:
        """Spell the path of the manifest of the pack that a run trains on."""
        data, context = run.spec.data, run.spec.model.context
        return f"{self.packs(data.corpus, context, 'train')}/{data.pack}.json"

    def validation_manifest(self, run: Run) -> str:
        """Spell the path of the manifest of the held-out pack that a run is validated on."""
        context = run.spec.model.context
        return f"{self.packs(run.spec.data.corpus, context, 'validation')}/validation.json"

    def items(self, name: str, suite: str) -> str:
        """Spell the path of the index of a suite's items; proxies among them are made from held-out documents."""
        return f"{self.corpus(name)}/items/{suite}/items.json"

    def run(self, run: Run, file: str = "") -> str:
        """Spell the path of the folder of a run's outputs, or one `file` of them."""
        return f"{self.work}/runs/{run.key}" + (f"/{file}" if file else "")

    def retraining(self, run_id: str, code: str) -> str:
        """Spell the path of what is made of a record's run by code of one hash (`plumbline verify --retrain`)."""
        return f"{self.work}/retrained/{code[:12]}/{run_id}"

    def scores(self, run: Run) -> str:
        """Spell the path of the frame of a run's scores."""
        return f"{self.work}/scores/{run.scores_key}/scores.parquet"

    def examples(self, run: Run) -> str:
        """Spell the path of the frame with a run's result on each evaluation item."""
        return f"{self.work}/scores/{run.scores_key}/examples.parquet"

    def probes(self, run: Run) -> str:
        """Spell the path of the frame with the values that probes read of a run."""
        return f"{self.work}/probes/{run.key}/probes.parquet"

    def package(self, name: str) -> str:
        """Spell the path of the archive of a pinned package."""
        return f"{self.work}/packages/{name}{PINS[name].suffix}"

    def measurement(self, measurement: Measurement, ending: str = "parquet") -> str:
        """Spell the path of a measurement's frame, or of the file that states what it was made with (`ending`
        ``json``).
        """
        return f"{self.work}/{measurement.key}.{ending}"

    @property
    def report(self) -> str:
        """The report's first page; the others, style, script and copied files lie next to it."""
        return f"{self.results}/{REPORT_INDEX}"

    @property
    def bundle(self) -> str:
        """The archive of the release bundle."""
        return f"{self.results}/{BUNDLE}"

    @property
    def verdict_ledger(self) -> str:
        """The ledger of every comparison that was tried at this preset."""
        return f"{self.results}/{VERDICTS}/ledger.jsonl"

    @property
    def verdict_checks(self) -> str:
        """The file of what the checks before training found of the user's own file."""
        mine = self.configuration.mine
        return f"{self.work}/{VERDICTS}/{mine.name if mine else ''}/checks.json"
