"""What a product is made of, beside files: its code, and the parts of YAML that it shows. One short text each."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from plumbline.files import canonical_json, sha256_text
from plumbline.results import find
from plumbline.specs import code, suites
from plumbline.specs.config import documents

if TYPE_CHECKING:
    from plumbline.specs.corpus import Corpus
    from plumbline.specs.measurement import Measurement
    from plumbline.specs.sheet import Study


class MadeOf:
    """The part of a `plumbline.project.Plan` that tells when a product has to be made anew."""

    preset: dict[str, Any]
    studies: dict[str, Study]
    corpora: dict[str, Corpus]
    root: Path
    evaluation_source: str

    def made_of(self, study: str, kind: str, target: str | None = None) -> str:
        """Changes when a product's code or the parts of the study's YAML that it reads change, and not otherwise.

        `kind` is table, figure, claims, deviations, audit or probes. Its runs, measurements and printed numbers are
        files. For measurements see `of_measurement`.
        """
        if kind == "probes":  # the model's code is the run's
            return code.tree_hash(sorted((code.PACKAGE / "probes").glob("*.py")))
        parts: list[Any] = [self._code(study, kind, target)]
        if kind != "audit":
            parts.append(self._said(study, kind))
        return sha256_text(canonical_json(parts))[:16]

    def _said(self, study: str, kind: str) -> Any:
        """The parts of a study's YAML that a kind of product can show."""
        said = {key: value for key, value in self.studies[study].sheet.items() if key not in ("runs", "targets")}
        if kind != "deviations":
            said.pop("measurements", None)
        said["scales"] = {
            scale: {preset: _without(entry, "size") for preset, entry in presets.items()}
            for scale, presets in said["scales"].items()
        }
        if "suite" in said:
            said["suite"] = self.suite_content(said["suite"])
        if kind == "table":  # it names the rulings in force
            said["rulings"] = [[ruling["id"], ruling.get("presets")] for ruling in said["rulings"]]
        elif kind != "deviations":
            del said["rulings"]
        if kind == "deviations":
            read = msgspec.to_builtins(self.corpora[said["corpus"]])
            return [said, read, self.preset["evaluation"], self.evaluation_source]
        return said

    def _code(self, study: str, kind: str, target: str | None) -> str:
        """Hash over what makes the product: the module of the target with its imports, or the verb's."""
        code_of = self.studies[study].code if study in self.studies else study
        starts = [code.PACKAGE / "results" / "__main__.py"]
        if kind == "table" or kind == "figure":
            assert target is not None
            starts.append(find.file(code_of, f"{kind}s", target))
        elif kind == "claims":
            starts += find.files(code_of, "claims")
        elif kind == "deviations":
            starts = [code.PACKAGE / "results" / "deviations.py"]
        else:
            starts = [code.PACKAGE / "audit" / "__main__.py"]
            starts += [path for name in documents(self.root) for path in find.files(name, "audit")]
        files = {path for start in starts for path in code.product_files(start)}
        return code.tree_hash(files)

    def suite_content(self, name: str) -> Any:
        """What of a suite decides scores and their average: everything but the sizes, which are for plans."""
        suite = suites.suite(name, self.root)
        return [suite.name, suite.average, [_without(asdict(task), "size") for task in suite.tasks]]

    def suite_hash(self, name: str) -> str:
        """Changes with what a suite asks."""
        return sha256_text(canonical_json(self.suite_content(name)))[:16]


def of_measurement(study: Study, name: str) -> str:
    """Changes when what a measurement is made of changes, and not otherwise: its code with what that imports, its
    options, and the specs of the runs that it names (of these all but the data, which it does not read)."""
    one = study.measurements[name]
    specs = [run.spec.to_dict() for run in study.group(*one.runs)]
    read = [{key: value for key, value in spec.items() if key not in ("data", "suite")} for spec in specs]
    return sha256_text(canonical_json([measurement_code(one), one.options, read]))[:16]


def measurement_code(one: Measurement) -> str:
    """Hash of the code of a measurement: its module, and what that imports but for what only reads configuration."""
    return code.tree_hash(code.measurement_files(find.file(one.study, "measurements", one.name)))


def _without(entry: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != key}
