"""RunSpec: everything that decides what a run computes, as one canonical JSON. Imports no torch.

What is not here (micro-batch, number of ranks, checkpoint interval, paths) may differ between machines without
changing the science; what is here is the run's identity.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from plumbline import NUMERICS
from plumbline.cli import PlumblineError
from plumbline.files import canonical_json, sha256_text
from plumbline.specs.components import SLOTS, complete

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ComponentSpec:
    """A choice for one slot: a component's name and all of its options."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSpec:
    """Sizes of a decoder and a component for each of its slots.

    `width` is the residual stream's, `head_width` one head's, `ffn_width` the gated FFN's inner width, `vocabulary`
    the embedding's rows (padding included), `context` the training length in tokens.
    """

    layers: int
    width: int
    heads: int
    key_value_heads: int
    head_width: int
    ffn_width: int
    vocabulary: int
    context: int
    norm_eps: float
    init_std: float
    residual_init_scaling: bool
    tied_embeddings: bool
    slots: dict[str, dict[str, Any]]

    def __post_init__(self) -> None:
        sizes = ("layers", "width", "heads", "key_value_heads", "head_width", "ffn_width", "vocabulary", "context")
        for name in sizes:
            if getattr(self, name) < 1:
                raise PlumblineError(f"model.{name} must be at least 1, not {getattr(self, name)}")
        if self.heads % self.key_value_heads:
            raise PlumblineError(
                f"model.heads ({self.heads}) must be a multiple of model.key_value_heads ({self.key_value_heads})"
            )

    def slot(self, name: str) -> ComponentSpec:
        """The component chosen for a slot."""
        chosen = dict(self.slots[name])
        return ComponentSpec(name=chosen.pop("name"), options=chosen)

    @classmethod
    def from_dict(cls, given: dict[str, Any], where: str = "") -> ModelSpec:
        """From the flat form of a spec or a YAML: sizes and slots side by side.

        Raises:
            PlumblineError: a key is unknown or missing, or a component's option is wrong.
        """
        sizes = {key: value for key, value in given.items() if key not in SLOTS}
        slots = {name: complete(name, given[name], where) for name in SLOTS if name in given}
        missing = sorted(set(SLOTS) - set(slots))
        if missing:
            raise PlumblineError(f"{where}model: no component chosen for {missing}")
        return _strict(cls, sizes | {"slots": slots}, f"{where}model")

    def to_dict(self) -> dict[str, Any]:
        """The flat form, with every option of every component."""
        flat = {item.name: getattr(self, item.name) for item in dataclasses.fields(self) if item.name != "slots"}
        return flat | {name: dict(chosen) for name, chosen in self.slots.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerSpec:
    """An optimizer. Matrices are decayed; `decay_*` say which of the other parameters are."""

    name: str
    learning_rate: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float
    decay_embeddings: bool
    decay_norms: bool
    decay_scalars: bool
    gradient_clip: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleSpec:
    """Linear warm-up over `warmup_steps`, then `name` down to `floor` times the peak."""

    name: str
    warmup_steps: int
    floor: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainSpec:
    """How long, how much at a time (in tokens), at which precision, and when the held-out loss is read."""

    steps: int
    batch_tokens: int
    precision: Precision
    validate_every: int
    validation_sequences: int

    def __post_init__(self) -> None:
        if self.precision not in get_args(Precision):
            raise PlumblineError(f"train.precision: {self.precision!r} is none of {list(get_args(Precision))}")


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSpec:
    """Which pack is read, and the tokenizer's size (its entries without the embedding's padding)."""

    pack: str
    tokenizer_vocabulary: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSpec:
    """One run of pretraining, in full."""

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
    probes: tuple[dict[str, Any], ...] = ()
    numerics: int = NUMERICS

    def __post_init__(self) -> None:
        if self.train.batch_tokens % self.model.context:
            raise PlumblineError(
                f"{self.key}: train.batch_tokens ({self.train.batch_tokens}) is not a multiple of model.context "
                f"({self.model.context}); a batch is a whole number of sequences"
            )
        if self.data.tokenizer_vocabulary > self.model.vocabulary:
            raise PlumblineError(
                f"{self.key}: the tokenizer has {self.data.tokenizer_vocabulary} entries, model.vocabulary only "
                f"{self.model.vocabulary}"
            )

    @property
    def key(self) -> str:
        """Where the run belongs: ``study/scale/method/sSEED``."""
        return f"{self.study}/{self.scale}/{self.method}/s{self.init_seed}"

    @property
    def sequences_per_batch(self) -> int:
        """Sequences in one optimizer step."""
        return self.train.batch_tokens // self.model.context

    @property
    def run_id(self) -> str:
        """First 16 hex digits of the canonical JSON's SHA-256."""
        return sha256_text(self.to_json())[:16]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, every field explicit."""
        plain = dataclasses.asdict(dataclasses.replace(self))
        plain["model"] = self.model.to_dict()
        plain["interventions"] = list(self.interventions)
        plain["probes"] = list(self.probes)
        return plain

    def to_json(self) -> str:
        """The canonical JSON that is the run's identity."""
        return canonical_json(self.to_dict())

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> RunSpec:
        """Read a spec back; unknown or missing keys are errors."""
        where = f"{given.get('study')}/{given.get('scale')}/{given.get('method')}: "
        parts: dict[str, Any] = dict(given)
        kinds = {"optimizer": OptimizerSpec, "schedule": ScheduleSpec, "train": TrainSpec, "data": DataSpec}
        for name, kind in kinds.items():
            if name not in parts:
                raise PlumblineError(f"{where}run spec: {name!r} is missing")
            parts[name] = _strict(kind, parts[name], f"{where}{name}")
        if "model" not in parts:
            raise PlumblineError(f"{where}run spec: 'model' is missing")
        parts["model"] = ModelSpec.from_dict(parts["model"], where)
        parts["interventions"] = tuple(parts.get("interventions", ()))
        parts["probes"] = tuple(parts.get("probes", ()))
        return _strict(cls, parts, f"{where}run spec")

    @classmethod
    def from_json(cls, text_or_path: str) -> RunSpec:
        """From a JSON text, or from the file that holds it."""
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


def _strict(kind: type, given: dict[str, Any], where: str) -> Any:
    """Build a dataclass from a dict with exactly its fields; ints become floats where a float is declared."""
    declared = {item.name: item for item in dataclasses.fields(kind)}
    unknown = sorted(set(given) - set(declared))
    if unknown:
        raise PlumblineError(f"{where}: unknown key {unknown[0]!r} (known: {sorted(declared)})")
    required = {name for name, item in declared.items() if item.default is dataclasses.MISSING}
    missing = sorted(required - set(given))
    if missing:
        raise PlumblineError(f"{where}: {missing[0]!r} is missing")
    values = {}
    for name, value in given.items():
        wanted = str(declared[name].type)
        if wanted == "float" and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        accepted = {"int": int, "float": float, "bool": bool, "str": str}.get(wanted)
        if accepted is not None and (not isinstance(value, accepted) or (accepted is int and isinstance(value, bool))):
            raise PlumblineError(f"{where}.{name}: {value!r} is not {wanted}")
        values[name] = value
    return kind(**values)
