"""What a study.yaml may say, and a file of one's own that asks for a verdict.

What components take is checked against the components themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args

from msgspec import Meta, Struct, defstruct
from msgspec.structs import fields

from plumbline.core.errors import PlumblineError
from plumbline.core.formats import parse_duration
from plumbline.core.structs import Absent, ClosedStruct, Fault
from plumbline.specs import spec
from plumbline.specs.components import SLOTS
from plumbline.specs.field_types import (
    Count,
    Device,
    Fraction,
    Label,
    Name,
    NotNegative,
    Positive,
    Preset,
    Seeds,
    Size,
    Text,
    WholeNumber,
    require_once,
)
from plumbline.specs.paper import Paper

#: What stands under results/ or is asked for by its name beside the studies, whose folders are there, too.
RESERVED = ("all", "audit", "bundle", "experiment", "plan", "report", "verdict")


class Choice(Struct):
    """A component by its name, with options next to it; without a name those of the component that is there."""

    name: Absent[str] = None


class NamedChoice(Struct):
    """A component by its name, with options next to it."""

    name: str


def _partial(kind: type[Struct]) -> Any:
    """A part of a run's spec of which nothing has to be there; components stand next to the sizes of a model.

    A model that is trained has narrower bounds than one that is only read.
    """
    parts = {field.name: field.type for field in fields(kind)}
    if parts.pop("slots", None):
        trained = {"context": Annotated[int, Meta(ge=2)], "norm_eps": Positive, "init_std": Positive}
        parts |= trained | dict.fromkeys(SLOTS, Choice)
    return defstruct(kind.__name__, [(name, field, None) for name, field in parts.items()], bases=(ClosedStruct,))


if TYPE_CHECKING:
    Model: TypeAlias = Any
    Train: TypeAlias = Any
else:
    Model, Train = _partial(spec.ModelSpec), _partial(spec.TrainSpec)


class Data(ClosedStruct, frozen=True):
    """Which pack of the corpus is read."""

    pack: Absent[Name] = None


class Parts(ClosedStruct, frozen=True, kw_only=True):
    """What a recipe, scale, method, variant or arm may say of runs."""

    data_seed: Absent[int] = None
    model: Absent[Model] = None
    optimizer: Absent[Choice] = None
    schedule: Absent[Choice] = None
    train: Absent[Train] = None
    data: Absent[Data] = None
    interventions: Absent[list[NamedChoice]] = None
    probes: Absent[list[NamedChoice]] = None


class ScaleEntry(Parts, frozen=True, kw_only=True):
    """A scale under a preset."""

    label: Label
    size: Absent[Size] = None


class Variant(Parts, frozen=True, kw_only=True):
    """A method or arm with other options. `same_as`: what it repeats under this name, which is meant. `presets`: those
    that have it; all where none is named."""

    note: Absent[str] = None
    same_as: Absent[str] = None
    presets: Absent[Annotated[list[Preset], Meta(min_length=1)]] = None


class Axis(ClosedStruct, frozen=True):
    """A path into the merged YAML, and the values that it gets: the method is run at every point."""

    sets: str
    values: Annotated[list[float], Meta(min_length=1)]


class Method(Parts, frozen=True, kw_only=True):
    """A method. `same_as`: a method, variant, point or arm that it repeats under this name, which is meant."""

    label: Label
    category: Absent[str] = None
    subcategory: Absent[str] = None
    soft_hard: Absent[Literal["soft", "hard"]] = None
    same_as: Absent[str] = None
    variants: Absent[dict[Name, Variant]] = None
    sweep: Absent[Annotated[dict[Name, Axis], Meta(min_length=1)]] = None


class Arm(Parts, frozen=True, kw_only=True):
    """A run next to the comparison; what it says for one preset stands under that one's name."""

    label: Label
    variant_of: str
    note: str
    presets: Absent[list[Preset]] = None
    variants: Absent[dict[Name, Variant]] = None
    paper: Absent[Parts] = None
    mini: Absent[Parts] = None
    evening: Absent[Parts] = None
    demo: Absent[Parts] = None
    smoke: Absent[Parts] = None


class RunsEntry(ClosedStruct, frozen=True):
    """Runs of a group. `presets`: those that have them; all where none is named."""

    scale: str
    methods: Literal["all", "variants"] | Annotated[list[str], Meta(min_length=1)]
    seeds: Seeds
    presets: Absent[Annotated[list[Preset], Meta(min_length=1)]] = None


class NoiseFloor(ClosedStruct, frozen=True):
    """The method that others are compared with, and other references."""

    reference: str
    others: list[str]


class MeasurementOptions(Struct):
    """Options of the function, and `duration`: an estimate for plans and time limits."""

    duration: Absent[Text] = None

    def __post_init__(self) -> None:
        try:
            parse_duration(self.duration or "1s")
        except PlumblineError as error:
            raise Fault(str(error), "duration") from None


class MeasurementEntry(ClosedStruct, frozen=True):
    """What targets need that no run gives: options by preset of a function of the study's code.

    `runs`: groups of runs whose specs (not results) the function reads.
    """

    device: Absent[Device] = None
    runs: Absent[list[str]] = None
    paper: Absent[MeasurementOptions] = None
    mini: Absent[MeasurementOptions] = None
    evening: Absent[MeasurementOptions] = None
    demo: Absent[MeasurementOptions] = None
    smoke: Absent[MeasurementOptions] = None


class PrintedColumn(ClosedStruct, frozen=True):
    """A column of a paper's table: how its cells are written, from our table's columns (`here`) and from those of the
    file of printed numbers (`paper`).

    Both are texts with names of columns in braces, such as `{loss}±{loss_sd}|{loss}`: of alternatives between bars the
    first counts whose columns all have something. After a name `:+` writes a sign, of all but a zero, `:,` groups
    digits, `:.3f` rounds, and `:+.3f` does so and writes every sign.

    Attributes:
        here: absent where nothing here stands for the column.
        paper: absent where our table repeats what the paper prints, and has nothing else there.
        bold: rows (first column of the file) whose number the paper prints bold.
        marks: row -> what the paper puts after the cell, such as a dagger.
        words: what stands in a column -> what the paper prints for it; where that is nothing, as if it were empty.
        once: true where the paper prints what rows below one another share in the first of them alone.
    """

    here: Absent[Text] = None
    paper: Absent[Text] = None
    words: Absent[dict[Text, str]] = None
    once: Absent[bool] = None
    bold: Absent[list[str]] = None
    marks: Absent[dict[str, Text]] = None


class PrintedTable(ClosedStruct, frozen=True):
    """The table as the paper prints it, from the file of printed numbers that has the target's name.

    Attributes:
        columns: heading -> column, in the paper's order and words.
        rows: how a row of the file is called in our column `by`; absent: by its first column.
        by: absent: the column that names our rows.
        transposed: true where the paper has these columns as rows, with the names of our rows above them.
        notes: what the paper's signs mean, in our words.
    """

    columns: dict[str, PrintedColumn]
    rows: Absent[Text] = None
    by: Absent[Name] = None
    transposed: Absent[bool] = None
    notes: Absent[list[Text]] = None


class Target(ClosedStruct, frozen=True):
    """A table or figure, and what it reads.

    Attributes:
        reads: `examples` is what each item of a task gave, next to its scores; `packs` are the manifests of the packs
            that the runs of the study train and are validated on, for which nothing is trained.
        published: files of printed numbers that it shows, without their ending.
        measurements: names under `measurements`.
        claims: false where no claim looks at what it needs; claims do not wait for runs that are its alone.
        on_request: true where it is made by its own name alone: neither `all` nor a claim, and no price of a whole
            study, asks for runs that are its alone.
        printed: the paper's own columns, of a table that a paper prints.
    """

    kind: Literal["table", "figure"]
    runs: list[str]
    reads: list[Literal["scores", "examples", "probes", "packs"]]
    published: list[str]
    measurements: Absent[list[str]] = None
    claims: Absent[bool] = None
    on_request: Absent[bool] = None
    printed: Absent[PrintedTable] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.printed is not None and self.kind != "table":
            raise Fault("only a table is printed in columns; remove it", "printed")


class Limit(Struct, forbid_unknown_fields=True):
    """A limit that claims are judged by: its value, what it is, and which others would do as well."""

    value: float | list[float]
    what: Text
    instead: Annotated[list[float | str | list[float]], Meta(min_length=1)]


class Interpretation(ClosedStruct, frozen=True):
    """What a paper leaves open, and what was chosen.

    Attributes:
        limits: those that the paper does not print, by constant of the study's claims.
        about: components that it speaks of, such as mixers.differential.
        not_run: why alternatives that name no variant and no arm are no runs.
    """

    id: Name
    source: str
    text: str
    choice: str
    alternatives: list[str]
    not_run: Absent[Text] = None
    limits: Absent[dict[Annotated[str, Meta(pattern=r"^[a-z0-9_]+\.[A-Z0-9_]+\Z")], Limit]] = None
    presets: Absent[list[Preset]] = None
    about: Absent[Annotated[list[Annotated[str, Meta(pattern=r"^[a-z_]+\.[a-z0-9_]+\Z")]], Meta(min_length=1)]] = None


class StudyFile(ClosedStruct, frozen=True):
    """studies/<study>/study.yaml. A study that extends another one takes from it what it does not say itself.

    Attributes:
        paper: the published document that is reproduced; a study of one's own may have none.
        seeds: with `extends`, those of the study's own methods.
        m: with `extends`, how many methods a correction counts, if not all of its own.
    """

    study: Annotated[
        str,
        Meta(
            pattern=rf"^(?!({'|'.join((*get_args(Preset), *RESERVED))})\Z)[a-z0-9_]+\Z",
            description="is no name of a study: lower-case letters, digits and _, not the name of a preset, and none "
            f"of {', '.join(RESERVED)}",
        ),
    ]
    title: str
    methods: dict[Name, Method]
    paper: Absent[Paper] = None
    extends: Absent[Name] = None
    seeds: Absent[Seeds] = None
    m: Absent[Count] = None
    corpus: Absent[Name] = None
    suite: Absent[Name] = None
    recipe: Absent[Parts] = None
    scales: Absent[dict[Name, Annotated[dict[Preset, ScaleEntry], Meta(min_length=1)]]] = None
    arms: Absent[dict[Name, Arm]] = None
    runs: Absent[dict[Name, Annotated[list[RunsEntry], Meta(min_length=1)]]] = None
    noise_floor: Absent[NoiseFloor] = None
    measurements: Absent[dict[Name, MeasurementEntry]] = None
    targets: Absent[dict[Name, Target]] = None
    interpretations: Absent[list[Interpretation]] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        keys = ("corpus", "recipe", "scales", "runs", "targets", "interpretations") if self.extends is None else ()
        if missing := [name for name in keys if getattr(self, name) is None]:
            raise Fault(f"{missing[0]!r} is missing; add it")
        if self.extends is None and (unread := [name for name in ("seeds", "m") if getattr(self, name) is not None]):
            raise Fault("is read of a study that `extends` another one; remove it", unread[0])
        for preset in get_args(Preset):
            labels = [presets[preset].label for presets in (self.scales or {}).values() if preset in presets]
            require_once(labels, f"label at preset {preset}", "scales")
        labels = [each.label for each in self.methods.values()] + [each.label for each in (self.arms or {}).values()]
        require_once(labels, "label", "methods")
        require_once([each.id for each in self.interpretations or ()], "id", "interpretations")
        if self.paper and self.paper.kind != "summary" and not self.paper.authors:
            raise Fault("'authors' is missing; add it", "paper")


class VerdictFile(ClosedStruct, frozen=True):
    """A file of one's own that asks for a verdict (--config mine=my/cosine.yaml).

    Attributes:
        extends: the study whose recipe, scales, corpus and finished runs are used.
        methods: as a study's, and `against`; an empty entry is a method of the study itself, whose own runs are judged.
        against: the method that the others are compared with; else the reference of the study's noise floor.
        larger: a scale at which the order is checked again, or `none`.
        reference_seeds: two at least, for the noise is theirs.
        decides: named before the runs.
        alpha: one-sided.
        allow_diverged: runs of the method compared with that may diverge; a method may then lose as many.
        parity: percent by which parameters or operations may differ from the baseline's.
        published: a CSV of what somebody prints, from this file's folder: method, metric, scale, value.
    """

    extends: str
    methods: Annotated[dict[Any, dict[Any, Any] | None], Meta(min_length=1)]
    title: Absent[str] = None
    against: Absent[str] = None
    scale: Absent[str] = None
    larger: Absent[str] = None
    seeds: Absent[Seeds] = None
    reference_seeds: Absent[Annotated[list[WholeNumber], Meta(min_length=2)]] = None
    larger_seeds: Absent[Seeds] = None
    decides: Absent[Literal["validation_loss", "bits_per_byte", "logprob", "accuracy"]] = None
    last: Absent[Fraction] = None
    alpha: Absent[Annotated[float, Meta(gt=0, lt=0.5)]] = None
    minimum_gain: Absent[NotNegative] = None
    paired: Absent[bool] = None
    planned_tries: Absent[WholeNumber] = None
    allow_diverged: Absent[WholeNumber] = None
    parity: Absent[NotNegative] = None
    published: Absent[str] = None
