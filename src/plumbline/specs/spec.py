"""Defines RunSpec: everything that decides what a run computes, as one canonical JSON. Imports no torch.

What is not here (micro-batch, number of ranks, checkpoint interval, paths, how many machines) may differ between
machines without changing the science; what is here is the run's identity.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from plumbline import NUMERICS
from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, sha256_text
from plumbline.core.structs import convert
from plumbline.specs.components import SLOTS, code_class, complete
from plumbline.specs.field_types import Count, Fraction, NotNegative, Positive, WholeNumber

Precision = Literal["float32", "bfloat16", "bfloat16_products", "bfloat16_inputs"]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ComponentSpec:
    """A choice for one slot: a component's name and all of its options."""

    name: str
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


class ModelSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes of a decoder and a component for each of its slots.

    `width` is the residual stream's, `head_width` one head's, `ffn_width` the gated FFN's inner width, `vocabulary`
    the embedding's rows (padding included), `context` the training length in tokens. `shared_layers`: all layers have
    the same weights.
    """

    layers: Count
    width: Count
    heads: Count
    key_value_heads: Count
    head_width: Count
    ffn_width: Count
    vocabulary: Count
    context: Count
    norm_eps: float
    init_std: float
    residual_init_scaling: bool
    tied_embeddings: bool
    slots: dict[str, dict[str, Any]]
    shared_layers: bool = False

    def slot(self, name: str) -> ComponentSpec:
        """The component chosen for a slot."""
        choice = dict(self.slots[name])
        return ComponentSpec(name=choice.pop("name"), options=choice)

    def resize(self, **sizes: int) -> ModelSpec:
        """A copy of the spec with some of its sizes replaced."""
        return msgspec.structs.replace(self, **sizes)

    @classmethod
    def from_dict(cls, content: dict[str, Any], where: str = "") -> ModelSpec:
        """Read a model from the flat form of a spec or a YAML, where sizes and slots stand side by side.

        Raises:
            PlumblineError: a key is unknown or missing, or a component's option is wrong.
        """
        sizes = {key: value for key, value in content.items() if key not in SLOTS}
        missing = sorted(set(SLOTS) - set(content))
        if missing:
            raise PlumblineError(f"{where}model: no component chosen for {missing}")
        slots = {name: complete(name, content[name], f"{where}model.{name}") for name in SLOTS}
        names = [name for name in cls.__struct_fields__ if name != "slots"]
        spec = convert(cls, sizes | {"slots": slots}, f"{where}model", names)
        if spec.heads % spec.key_value_heads:
            raise PlumblineError(
                f"{where}model.heads ({spec.heads}) must be a multiple of model.key_value_heads "
                f"({spec.key_value_heads})"
            )
        return spec

    def to_dict(self) -> dict[str, Any]:
        """The flat form: sizes and slots side by side, with every option of every component."""
        content = {name: getattr(self, name) for name in self.__struct_fields__ if name != "slots"}
        if not self.shared_layers:  # runs have the ids that they had before there was this key
            del content["shared_layers"]
        return content | {name: dict(choice) for name, choice in self.slots.items()}


class OptimizerSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An optimizer and its options.

    Matrices are always decayed; `decay_embeddings`, `decay_norms` and `decay_scalars` choose which other parameters
    are. `options` are those of the component `name`.
    """

    name: str
    learning_rate: Positive
    weight_decay: NotNegative
    decay_embeddings: bool
    decay_norms: bool
    decay_scalars: bool
    gradient_clip: NotNegative
    options: dict[str, Any] = {}


class ScheduleSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A learning-rate schedule: linear warm-up over `warmup_steps`, then the component `name` with its `options`."""

    name: str
    warmup_steps: WholeNumber
    options: dict[str, Any] = {}


class TrainSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How training runs: number of steps, batch size in tokens, precision, and when the held-out loss is computed."""

    steps: Count
    batch_tokens: Count
    precision: Precision
    validate_every: Count
    validation_sequences: Count


class DataSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which pack of which corpus is read, where the corpus comes from, and with which tokenizer.

    `tokenizer_vocabulary` is the number of the tokenizer's entries, without the embedding's padding.
    """

    corpus: str
    source: str
    pack: str
    tokenizer: str
    tokenizer_vocabulary: Count


class ProbeSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A probe and when it reads the model: at fractions of training from checkpoints (`at`), or every so many steps
    from inside training (`every`); on the first `sequences` of the validation pack."""

    name: str
    at: tuple[Fraction, ...] = ()
    every: WholeNumber = 0
    sequences: Count = 8
    options: dict[str, Any] = {}


class RunSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run of pretraining, described whole; `components` holds the code class of each component it chooses."""

    study: str
    preset: str
    scale: str
    method: str
    init_seed: int
    data_seed: int
    model: ModelSpec
    optimizer: OptimizerSpec
    schedule: ScheduleSpec
    train: TrainSpec
    data: DataSpec
    interventions: tuple[dict[str, Any], ...] = ()
    probes: tuple[ProbeSpec, ...] = ()
    suite: str = ""
    components: dict[str, str] = {}
    numerics: int = NUMERICS

    @property
    def key(self) -> str:
        """The run's place among the runs: ``study/scale/method/sSEED``."""
        return f"{self.study}/{self.scale}/{self.method}/s{self.init_seed}"

    @property
    def sequences_per_batch(self) -> int:
        """Number of sequences in one optimizer step."""
        return self.train.batch_tokens // self.model.context

    @property
    def sequences_apart(self) -> int:
        """Number of held-out sequences that interventions read, of which no validation loss may be computed."""
        return max((intervention.get("sequences", 0) for intervention in self.interventions), default=0)

    @property
    def run_id(self) -> str:
        """The run's id: the first 16 hex digits of the canonical JSON's SHA-256."""
        return sha256_text(self.to_json())[:16]

    def to_dict(self) -> dict[str, Any]:
        """The spec as plain data with every field explicit; a component's options stand next to its name."""
        content = msgspec.to_builtins(self)
        content["model"] = self.model.to_dict()
        content["interventions"], content["probes"] = list(content["interventions"]), list(content["probes"])
        for part in (content["optimizer"], content["schedule"], *content["probes"]):
            part |= part.pop("options")
        for probe in content["probes"]:
            probe["at"] = list(probe["at"])
        return content

    def to_json(self) -> str:
        """The canonical JSON that is the run's identity."""
        return canonical_json(self.to_dict())

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> RunSpec:
        """Read a spec: from its own form, or from a YAML's, where defaults and code classes are still to be filled in.

        Raises:
            PlumblineError: an unknown or missing key, a value that cannot be meant, or a component that is not there.
        """
        if not isinstance(content, dict):
            raise PlumblineError(f"run spec: {content!r:.80} is no mapping")
        where = f"{content.get('study')}/{content.get('scale')}/{content.get('method')}: "
        parts: dict[str, Any] = dict(content)
        for name in ("model", "optimizer", "schedule", "train", "data"):
            if not isinstance(parts.get(name), dict):
                raise PlumblineError(f"{where}run spec: {name!r} is missing")
        parts["model"] = ModelSpec.from_dict(parts["model"], where)
        parts["optimizer"] = _read_part(OptimizerSpec, "optimizer", parts["optimizer"], f"{where}optimizer")
        parts["schedule"] = _read_part(ScheduleSpec, "schedule", parts["schedule"], f"{where}schedule")
        parts["train"] = convert(TrainSpec, parts["train"], f"{where}train")
        parts["data"] = convert(DataSpec, parts["data"], f"{where}data")
        parts["interventions"] = tuple(
            complete("intervention", entry, f"{where}interventions[{number}]")
            for number, entry in enumerate(parts.get("interventions", ()))
        )
        parts["probes"] = tuple(
            _read_probe(entry, f"{where}probes[{number}]") for number, entry in enumerate(parts.get("probes", ()))
        )
        spec = convert(cls, parts, f"{where}run spec")
        _check(spec)
        return spec if spec.components else msgspec.structs.replace(spec, components=code_classes(spec))

    @classmethod
    def from_json(cls, text_or_path: str) -> RunSpec:
        """Read a spec from a JSON text, or from the file that holds it.

        Raises:
            PlumblineError: there is no such file, it is not JSON, or as `from_dict`.
        """
        text = text_or_path
        if not text.lstrip().startswith("{"):
            path = Path(text_or_path)
            if not path.exists():
                raise PlumblineError(f"--spec: there is no file {path}")
            text = path.read_text(encoding="utf-8")
        try:
            return cls.from_dict(json.loads(text))
        except json.JSONDecodeError as error:
            raise PlumblineError(f"--spec is not JSON: {error}") from error


def code_classes(spec: RunSpec) -> dict[str, str]:
    """The class of the present code of every component that a spec chooses; keys are the spec's, such as
    ``model.mixer``.

    A probe that is read offline takes no part in training, so its code is not the run's.
    """
    classes = {f"model.{slot}": code_class(slot, choice["name"]) for slot, choice in spec.model.slots.items()}
    classes["optimizer"] = code_class("optimizer", spec.optimizer.name)
    classes["schedule"] = code_class("schedule", spec.schedule.name)
    for number, choice in enumerate(spec.interventions):
        classes[f"interventions[{number}]"] = code_class("intervention", choice["name"])
    for number, probe in enumerate(spec.probes):
        if probe.every:
            classes[f"probes[{number}]"] = code_class("probe", probe.name)
    return classes


def require_present_code(spec: RunSpec) -> None:
    """Refuse a spec that was made with other code of its components than the present one: its run would not be what it
    says.

    Raises:
        PlumblineError: naming the components.
    """
    classes = code_classes(spec)
    changed_keys = sorted(
        key for key in classes.keys() | spec.components.keys() if classes.get(key) != spec.components.get(key)
    )
    if changed_keys:
        raise PlumblineError(
            f"{spec.key}: the code of {', '.join(changed_keys)} differs from the code that this run was planned with; "
            "plan again, or check out the commit that it was planned at"
        )


def _read_part(kind: Any, component: str, content: dict[str, Any], where: str) -> Any:
    """A part of the spec that names a component: its own fields, and the component's options."""
    field_names = [name for name in kind.__struct_fields__ if name not in ("name", "options")]
    options = complete(component, content, where, field_names)
    name = options.pop("name")
    fields = {key: value for key, value in content.items() if key in field_names}
    return convert(kind, fields | {"name": name, "options": options}, where, field_names)


def _read_probe(content: dict[str, Any], where: str) -> ProbeSpec:
    probe: ProbeSpec = _read_part(ProbeSpec, "probe", content, where)
    if bool(probe.at) == bool(probe.every):
        raise PlumblineError(f"{where}: give either `at` (fractions of training) or `every` (steps), one of the two")
    if list(probe.at) != sorted(set(probe.at)):
        raise PlumblineError(f"{where}.at: {list(probe.at)} must rise")
    return probe


def _check(spec: RunSpec) -> None:
    """Check what no single part can show."""
    if spec.train.batch_tokens % spec.model.context:
        raise PlumblineError(
            f"{spec.key}: train.batch_tokens ({spec.train.batch_tokens}) is not a multiple of model.context "
            f"({spec.model.context}); a batch is a whole number of sequences"
        )
    if spec.data.tokenizer_vocabulary > spec.model.vocabulary:
        raise PlumblineError(
            f"{spec.key}: the tokenizer has {spec.data.tokenizer_vocabulary} entries, model.vocabulary only "
            f"{spec.model.vocabulary}: give the model of this scale and preset that many, or the corpus a smaller "
            f"tokenizer (config/corpora/{spec.data.corpus}.yaml)"
        )
    if spec.schedule.warmup_steps > spec.train.steps:
        raise PlumblineError(
            f"{spec.key}: schedule.warmup_steps ({spec.schedule.warmup_steps}) must lie within the run's "
            f"{spec.train.steps} steps (train.steps)"
        )
    for number, probe in enumerate(spec.probes):
        if probe.sequences > spec.train.validation_sequences:
            raise PlumblineError(
                f"{spec.key}: probes[{number}].sequences ({probe.sequences}) is more than "
                f"train.validation_sequences ({spec.train.validation_sequences})"
            )
        _check_against(spec, number, probe)


def _check_against(spec: RunSpec, number: int, probe: ProbeSpec) -> None:
    """A probe that compares two points (it has an option `against`) needs the other one to be kept."""
    if "against" not in probe.options:
        return
    where, against = f"{spec.key}: probes[{number}]", probe.options["against"]
    if probe.every:
        raise PlumblineError(
            f"{where}: {probe.name!r} compares two points of a run, so it cannot be read while the run trains; give "
            "`at` instead of `every`"
        )
    fractions = {fraction for other in spec.probes for fraction in other.at}
    if against not in fractions:
        raise PlumblineError(
            f"{where}.against: {against:g} is not a probe point of this run (they are {sorted(fractions)}); add it to "
            "the `at` "
            "of a probe"
        )
