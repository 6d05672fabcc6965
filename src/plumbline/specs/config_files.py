"""What config/config.yaml and the presets may say."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from plumbline.core.structs import Absent, ClosedStruct, Fault
from plumbline.specs.field_types import (
    PATH,
    Count,
    Device,
    Name,
    Preset,
    Text,
    WholeNumber,
    require_without,
)

_WORK = (
    *PATH,
    (
        r"//|/\Z|(^|/)\.(/|\Z)|(^|/)(?!\.\.(/|\Z))[^/]+/\.\.(/|\Z)",
        "is not the short form of a path, by which Snakemake tells files apart: no //, no /./, no / at the end, no .. "
        "after a name",
    ),
)

_Method = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9_.-]+\Z",
        description="is no method, or variant or point of one (<method>.<variant>)",
    ),
]
_Machine = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_.-]*\Z",
        description="is no name of a machine: letters, digits, _, . and -",
    ),
]


class DataPart(ClosedStruct, frozen=True, kw_only=True):
    """Where texts come from, `corpus`: as each corpus's own file states; and what is done about exact copies."""

    source: Literal["corpus", "packaged", "packaged_large", "local", "hub"]
    folder: Absent[str] = None
    copies: Absent[Literal["corpus", "keep", "once_in_train", "once_in_validation"]] = None

    def __post_init__(self) -> None:
        require_without(PATH, self.folder, "folder")


class EvaluationPart(ClosedStruct, frozen=True, kw_only=True):
    """Where items come from, what is done about missing ones, and which accuracy counts."""

    source: Literal["preset", "packaged", "local", "hub"]
    folder: str
    missing: Literal["error", "proxy"]
    metric: Literal["acc_norm_where_defined", "acc"]

    def __post_init__(self) -> None:
        require_without(PATH, self.folder, "folder")


class ScreenedArm(ClosedStruct, frozen=True, kw_only=True):
    """An arm of a screen: a method, or in each slot that `levels` names what a method has there."""

    seeds: list[WholeNumber]
    method: Absent[_Method] = None
    levels: Absent[dict[Name, _Method]] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.method is None) == (self.levels is None):
            raise Fault("has one of `method` and `levels`")


class ExperimentPart(ClosedStruct, frozen=True, kw_only=True):
    """Runs that a command asks for: nothing, or all of it but a budget, of which there is nothing or all of it; with
    `arms` neither method nor seeds."""

    study: Absent[Name] = None
    scale: Absent[Name] = None
    method: Absent[_Method] = None
    against: Absent[_Method] = None
    baseline_seeds: Absent[list[WholeNumber]] = None
    seeds: Absent[list[WholeNumber]] = None
    arms: Absent[list[ScreenedArm]] = None
    vary: Absent[Literal["initialisation", "both"]] = None
    pack: Absent[Name] = None
    steps: Absent[Count] = None
    warmup_steps: Absent[WholeNumber] = None
    validation_sequences: Absent[Count] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        budget = ("steps", "warmup_steps", "pack", "validation_sequences")
        present_keys = [name for name in self.__struct_fields__ if getattr(self, name) is not None]
        required_keys = ["study", "scale", "against"] if present_keys else []
        pair_keys = ("method", "baseline_seeds", "seeds")
        if present_keys and self.arms is None:
            required_keys += pair_keys
        elif surplus_keys := [name for name in pair_keys if name in present_keys]:
            raise Fault(f"{surplus_keys[0]!r} is there beside 'arms', which state their own; remove it")
        required_keys += budget if set(budget) & set(present_keys) else ()
        if missing := [name for name in required_keys if name not in present_keys]:
            raise Fault(f"{missing[0]!r} is missing beside {present_keys[-1]!r}; add it")


class ConfigFile(ClosedStruct, frozen=True, kw_only=True):
    """config/config.yaml."""

    preset: Preset
    studies: Literal["all"] | Annotated[list[Name], Meta(min_length=1)]
    sizes: Absent[Literal["all"] | Annotated[list[Name], Meta(min_length=1)]] = None
    main_study: Name
    work: Text
    machine: _Machine
    data: DataPart
    evaluation: EvaluationPart
    mine: Absent[str] = None
    experiment: Absent[ExperimentPart] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_without(PATH, self.mine, "mine")
        require_without(_WORK, self.work, "work")


class PresetEvaluation(ClosedStruct, frozen=True, kw_only=True):
    """Where items come from, how many of each task are scored (0: all), and how many are made for a task whose own are
    not to be had.
    """

    source: Literal["packaged", "local", "hub"]
    limit: WholeNumber
    proxy_items: Count


class PresetFile(ClosedStruct, frozen=True, kw_only=True):
    """config/presets/<preset>.yaml."""

    preset: Preset
    device: Device
    tokenize_shards: Annotated[int, Meta(ge=1, le=9999)]
    evaluation: PresetEvaluation
