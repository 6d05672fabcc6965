"""Reads a user's own file that asks for a verdict: methods, what each is compared with, and how,
and results that others printed of them. Imports no torch.

The file says ``extends:`` and is no study: its methods are trained as the runs of a study of the file's name, next to
the runs of the study that it extends, which are used as they are where they are finished.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import make_relative
from plumbline.core.foreign_rows import split_rows
from plumbline.specs import corpus, study_config, sweep
from plumbline.specs.compared_metrics import METRICS
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import Run, Study
from plumbline.specs.study_files import StudyFile, VerdictFile
from plumbline.specs.yaml_files import PRESETS, ROOT, check, load_study, read_yaml, studies

#: What the file need not contain. Five seeds of the reference and three of a method: docs/quick.md has what they find.
DEFAULTS: dict[str, Any] = {
    "larger": "none",
    "seeds": [42, 43, 44],
    "reference_seeds": [42, 43, 44, 45, 46],
    "decides": "validation_loss",
    "last": 0.25,
    "alpha": 0.025,  # one-sided: what a claim is held to
    "minimum_gain": 0.0,
    "paired": False,
    "planned_tries": 0,
    "allow_diverged": 0,
    "parity": 1.0,
    "published": "",
}

#: The groups of its runs.
METHODS, REFERENCES, LARGER = "methods", "references", "larger"


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnMethodsFile:
    """What a user's file asks for, under one preset.

    Attributes:
        path: the file from the project's folder, or as it was named.
        study: the file's methods as a study: runs of the methods, their baselines, and both at the larger scale.
        against: method -> the baseline that it is compared with; both by the names of their runs.
        asked: every other key of the file, with its default where the file does not contain it.
        experiment: `config.experiment`, where no file asks but the command line, for a method of a study that extends
            another (`checked_models.make_own_methods_file`); None of a file.
    """

    path: str
    study: Study
    against: dict[str, str]
    asked: dict[str, Any]
    experiment: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """The name of the user's file, without its ending."""
        return self.study.name

    @property
    def scale(self) -> str:
        """The scale at which methods are compared with their baselines."""
        return self.asked["scale"]

    @property
    def larger(self) -> str | None:
        """The larger scale at which the verdict is checked again; None if the file asks for none."""
        return None if self.asked["larger"] == "none" else self.asked["larger"]

    @property
    def references(self) -> list[str]:
        """The baselines that methods are compared with, each once."""
        return list(dict.fromkeys(self.against.values()))

    @property
    def compared(self) -> list[str]:
        """The methods and then their baselines, each once."""
        return list(dict.fromkeys([*self.against, *self.references]))

    @property
    def own(self) -> list[Run]:
        """The runs of the file's own methods, without those of the study that it extends."""
        return [run for run in self.study.runs.values() if run.spec.study == self.name]

    def read_printed(self, root: Path = ROOT) -> list[dict[str, str]]:
        """The published results of these methods that the file names as a CSV, row by row.

        Raises:
            PlumblineError: as `read_printed_results`.
        """
        scales = [self.scale, *([self.larger] if self.larger else [])]
        return read_printed_results(self.asked["published"], self.path, self.compared, scales, root)

    def runs(self, scale: str, method: str) -> list[Run]:
        """The runs of a method at a scale, in the order of the seeds."""
        all_runs = self.study.runs.values()
        runs = [run for run in all_runs if (run.spec.scale, run.spec.method) == (scale, method)]
        return sorted(runs, key=lambda run: run.spec.init_seed)


def load(path: str, preset: str, root: Path = ROOT, source: str = corpus.AS_THE_CORPUS_SAYS) -> OwnMethodsFile:
    """Read a user's own file, and make the spec of every run that its verdict needs.

    Raises:
        PlumblineError: anything in it that cannot be meant; the message names the key and the file.
    """
    path = str(make_relative(path, root))  # pages name it, and may be published
    content = read_yaml(root / path)
    check(content, VerdictFile, path)
    name = _name(path, root)
    if "extends" in load_study(content["extends"], root):
        raise PlumblineError(f"{path}: extends: {content['extends']!r} extends a study itself; name that one")
    parent = study_config.load(content["extends"], preset, root, source)
    terms = DEFAULTS | {"scale": next(iter(parent.definition["scales"]))} | content
    terms.setdefault("larger_seeds", terms["seeds"][:1])
    own_methods, entries = _split_methods(content["methods"], parent, name, path)
    methods = parent.definition["methods"] | own_methods
    against: dict[str, str] = {}
    for method, entry in entries.items():
        baseline = entry.get("against", content.get("against", parent.reference))
        _require_method(baseline, methods, path, f"methods.{method}.against" if "against" in entry else "against")
        for point in sweep.points(method, methods.get(method, {})) or [method]:
            against[point] = baseline
    if terms["published"]:
        terms["published"] = str(Path(path).parent / terms["published"])
    own_definition = _make_definition(parent, terms, own_methods, against, name, path)
    study = study_config.make_study(own_definition, path, preset, root, source, parent)
    mine = OwnMethodsFile(path=path, study=study, against=against, asked=terms)
    if terms["decides"] != "validation_loss" and "suite" not in study.definition:
        raise PlumblineError(f"{path}: decides: {terms['decides']}, but {parent.name} evaluates nothing; use the loss")
    for method, baseline in against.items():
        if method == baseline:
            raise PlumblineError(f"{path}: methods: {method!r} would be compared with itself; name another `against`")
        for scale in (mine.scale, *([mine.larger] if mine.larger else [])):
            ours, theirs = (mine.runs(scale, name)[0].spec for name in (method, baseline))
            _require_same_data(ours, theirs, path)
        if terms["paired"]:
            _require_pairs(mine, method, baseline)
    mine.read_printed(root)
    return mine


def _name(path: str, root: Path) -> str:
    """What its study is called.

    Raises:
        PlumblineError: a study or preset is called so, or nothing may be.
    """
    name, names = Path(path).stem, studies(root)
    if not name.isascii() or not name.replace("_", "a").isalnum() or name != name.lower():
        raise PlumblineError(f"{path}: its name is that of its runs: lower-case letters, digits and _; rename the file")
    if name in names or name in PRESETS:
        raise PlumblineError(f"{path}: {name!r} is the name of a study or preset ({names}); rename the file")
    return name


def _split_methods(
    content: dict[str, dict[str, Any] | None], parent: Study, name: str, path: str
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The file's own methods as a study's YAML has them, and of all methods what they contain."""
    entries = {method: dict(entry or {}) for method, entry in content.items()}
    for method, entry in entries.items():  # YAML has names that are not text: null, 5, a list
        pairs = [
            ("methods", method),
            *([(f"methods.{method}.against", entry["against"])] if "against" in entry else []),
        ]
        for key, value in pairs:
            if not isinstance(value, str):
                raise PlumblineError(
                    f"{path}: {key}: {value!r} is not the name of a method; write one, in quotes if necessary"
                )
    own_entries = {method: entry for method, entry in entries.items() if set(entry) - {"against"}}
    parent_methods = parent.definition["methods"] | parent.definition.get("arms", {})
    for method in own_entries:
        if method in parent_methods:
            raise PlumblineError(
                f"{path}: methods: {method!r} is a method of {parent.name}; choose another name, or leave its entry "
                f"empty to judge that of {parent.name}"
            )
    for method in entries.keys() - own_entries.keys():
        _require_method(method, parent.definition["methods"], path, "methods", swept=True)
    own_methods = {
        method: {"label": method} | {key: value for key, value in entry.items() if key != "against"}
        for method, entry in own_entries.items()
    }
    if own_methods:
        check({"study": name, "title": name, "extends": parent.name, "methods": own_methods}, StudyFile, path)
    return own_methods, entries


def _require_method(
    method: str | None, methods: dict[str, dict[str, Any]], path: str, key: str, *, swept: bool = False
) -> None:
    """Refuse an unknown method or variant; a swept one without a point, unless all are meant."""
    if method is None:
        raise PlumblineError(f"{path}: {key}: the study has no noise floor, so name the method to compare with")
    name, _, rest = method.partition(".")
    if name not in methods:
        raise PlumblineError(
            f"{path}: {key}: there is no method {method!r}{nearest(name, methods)} (there are {list(methods)})"
        )
    if not swept:
        sweep.require_point(method, methods, f"{path}: {key}")
    if rest and rest not in methods[name].get("variants", {}):
        sweep.find_point(name, methods[name], method, f"{path}: {key}")


def _make_definition(
    parent: Study, terms: dict[str, Any], own_methods: dict[str, Any], against: dict[str, str], name: str, path: str
) -> dict[str, Any]:
    """The YAML of a study that has these methods and their runs, and no target."""
    references = list(dict.fromkeys(against.values()))
    scale, larger = terms["scale"], terms["larger"]
    runs = {
        METHODS: [{"scale": scale, "methods": list(against), "seeds": terms["seeds"]}],
        REFERENCES: [{"scale": scale, "methods": references, "seeds": terms["reference_seeds"]}],
    }
    if larger == scale:
        raise PlumblineError(f"{path}: larger: {larger!r} is the scale itself; name another one, or none")
    if larger != "none":
        larger_methods = list(dict.fromkeys([*against, *references]))
        runs[LARGER] = [{"scale": larger, "methods": larger_methods, "seeds": terms["larger_seeds"]}]
    parts = {key: value for key, value in parent.definition.items() if key != "measurements"}
    return parts | {
        "study": name,
        "title": terms.get("title", name),
        "extends": parent.name,
        "methods": parent.definition["methods"] | own_methods,
        "arms": {},
        "runs": runs,
        "targets": {},
        "interpretations": [],
        "comparison": list(against),
        "inherited": list(parent.definition["methods"]),
        "file": path,
    }


def _require_pairs(mine: OwnMethodsFile, method: str, baseline: str) -> None:
    """Refuse pairs where fewer than two seeds are of both: nothing could be judged once all was trained."""
    ours, theirs = ([run.spec.init_seed for run in mine.runs(mine.scale, name)] for name in (method, baseline))
    if len(shared := set(ours) & set(theirs)) < 2:
        raise PlumblineError(
            f"{mine.path}: paired: {method!r} has the seeds {ours} and {baseline!r} {theirs}, so that {len(shared)} "
            "are of both; give two or more of them in both `seeds` and `reference_seeds`, or leave out `paired`"
        )


def _require_same_data(spec: RunSpec, other: RunSpec, path: str) -> None:
    """Refuse a method that reads other sequences, or more or fewer of them, than what it is compared with: then the
    order of the data is not paired, and a gain may be the data's."""
    facts = [
        ("data_seed", spec.data_seed, other.data_seed),
        ("data", spec.data, other.data),
        ("model.context", spec.model.context, other.model.context),
        ("model.vocabulary", spec.model.vocabulary, other.model.vocabulary),
        *((f"train.{key}", getattr(spec.train, key), getattr(other.train, key)) for key in _TRAIN),
    ]
    for key, mine, theirs in facts:
        if mine != theirs:
            raise PlumblineError(
                f"{path}: methods.{spec.method}: {key} is {mine}, that of {other.method} is {theirs}; they would not "
                f"read the same sequences: take it out, or give {other.method} the same under its own name"
            )


_TRAIN = ("steps", "batch_tokens", "validate_every", "validation_sequences")


PRINTED_COLUMNS = ("method", "metric", "scale", "value")


def read_printed_results(
    published: str, file: str, methods: list[str], scales: list[str], root: Path = ROOT
) -> list[dict[str, str]]:
    """Read the rows of the CSV `published`, in its order; none if no CSV is named.

    It is read before any run is made, so that a slip of the pen is reported before hours of training.

    Args:
        file: the file that names the CSV, for messages.
        methods, scales: what a row may be about.

    Raises:
        PlumblineError: there is no such file, it is not a CSV in UTF-8, or a row names something that these runs do not
            have.
    """
    if not published:
        return []
    path, key = Path(published), f"{file}: published"
    try:
        text = (root / path).read_bytes().decode("utf-8-sig")  # Excel begins UTF-8 with a mark
    except FileNotFoundError:
        raise PlumblineError(f"{key}: there is no file {path}; name it relative to the folder of {file}") from None
    except OSError as error:
        raise PlumblineError(f"{key}: {path} cannot be read ({error.strerror}); name a CSV") from None
    except UnicodeDecodeError as error:
        raise PlumblineError(f"{key}: {path} is not UTF-8 ({error.reason}); save it as UTF-8") from None
    try:
        lines = [(number, cells) for number, cells in split_rows(path, text, ",") if cells]
    except PlumblineError as error:
        raise PlumblineError(f"{key}: {error}") from None
    columns = lines[0][1] if lines else []
    if missing := [name for name in PRINTED_COLUMNS if name not in columns]:
        raise PlumblineError(f"{key}: {path}: the column {missing[0]!r} is missing; it has {columns}")
    numbered_rows = []
    for number, cells in lines[1:]:
        if len(cells) != len(columns):
            raise PlumblineError(f"{key}: {path}, line {number}: {len(cells)} cells under {len(columns)} columns")
        numbered_rows.append((number, dict(zip(columns, cells, strict=True))))
    for number, row in numbered_rows:
        for column, allowed in (("method", methods), ("metric", list(METRICS)), ("scale", scales)):
            if row[column] not in allowed:
                raise PlumblineError(
                    f"{key}: {path}, line {number}: {column}: {row[column]!r} is not here"
                    f"{nearest(row[column], allowed)} (there are {allowed})"
                )
        if not row["value"].strip():
            raise PlumblineError(f"{key}: {path}, line {number}: value: it is empty; give the printed value, or no row")
    return [row for _, row in numbered_rows]
