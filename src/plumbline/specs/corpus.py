"""Reads a corpus from config/corpora: where its texts come from under each preset, its held-out share, tokenizer,
packs.

Imports no torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.structs import Absent, ClosedStruct, Fault
from plumbline.specs.field_types import FIRST_AND_LAST, Count, Name, Preset, WholeNumber, require_without
from plumbline.specs.yaml_files import ROOT, read_checked

#: In config.yaml's `data.source`: each corpus as its own file states.
AS_THE_CORPUS_SAYS = "corpus"

#: The source of a corpus that is the paper's own data set, and the preset at which a study is a reproduction of it.
DOCUMENTS, REPRODUCTION = "hub", "paper"

Source = Literal["packaged", "packaged_large", "local", "hub"]
Copies = Literal["keep", "once_in_train", "once_in_validation"]
#: How many, or all there are.
Sequences = Count | Literal["all"]

_GPT2_ENTRIES = 50257


class TokenizerConfig(ClosedStruct, frozen=True, kw_only=True):
    """The tokenizer of a corpus: its `kind`, and the number of entries of its `vocabulary`.

    `byte_level_bpe`: trained on the first `training_megabytes` of the training documents; `gpt2`: from a package;
    `given`: the tokenizer.json next to the token files of the source `local`.
    """

    kind: Literal["byte_level_bpe", "gpt2", "given"]
    vocabulary: Annotated[int, Meta(ge=257)]
    training_megabytes: Count = 0

    def __post_init__(self) -> None:
        if self.kind == "byte_level_bpe" and not self.training_megabytes:
            raise Fault("'training_megabytes' is missing; add it")
        if self.kind == "gpt2" and self.vocabulary != _GPT2_ENTRIES:
            raise Fault(f"{self.vocabulary} is not {_GPT2_ENTRIES}, which gpt2 has", "vocabulary")


class HubSource(ClosedStruct, frozen=True, kw_only=True):
    """A data set of the Hugging Face hub; `configuration` may be empty, `revision` is a commit (empty: the newest)."""

    path: str
    configuration: str
    text_column: str
    revision: str


class Corpus(Struct, frozen=True, kw_only=True):
    """A corpus under one preset.

    `packs`: name -> sequences, or None for all there are; each is a prefix of the largest. `validation`: sequences of
    the held-out pack. `held_out_percent`: share of groups of documents that are held out before anything is cut.
    `copies`: what is done about exact copies, a rule of `plumbline.data.copies`.
    `folder`, `dtype` and `document_end` are those of the source `local`; the last two are about token files.
    """

    name: str
    preset: str
    source: Source
    folder: str
    dtype: str = ""
    document_end: int | None = None
    hub: HubSource
    tokenizer: TokenizerConfig
    packs: dict[str, int | None]
    validation: int | None
    sequences_per_shard: int
    held_out_percent: float
    copies: Copies = "keep"

    @property
    def path(self) -> str:
        """The YAML file that the corpus was read from, as messages name it."""
        return f"config/corpora/{self.name}.yaml"

    def require_folder(self) -> str:
        """The folder of the source `local`.

        Raises:
            PlumblineError: the corpus's file names none.
        """
        if not self.folder:
            raise PlumblineError(
                f"{self.path}: local.folder: missing; data.source `local` reads a folder of texts or of tokens: write "
                "`local: {folder: <where it is>}` there, or give --config "
                "'data={source: local, folder: <where it is>}' (docs/your-own-data.md), or leave "
                "data.source at `corpus`"
            )
        return self.folder

    def require_validation(self, loss_sequences: int, other_sequences: int, where: str) -> None:
        """Refuse a run that reads more held-out sequences than the pack has, where its size is stated.

        Args:
            loss_sequences: how many the validation loss is computed of.
            other_sequences: how many its interventions read behind those.

        Raises:
            PlumblineError: naming the sizes and the file.
        """
        if self.validation is not None and loss_sequences + other_sequences > self.validation:
            addition = f", and {other_sequences} behind them for its interventions" if other_sequences else ""
            raise PlumblineError(
                f"{where}: {loss_sequences}{addition}, but the held-out pack of {self.path} has {self.validation} at "
                f"preset {self.preset}; ask for fewer, or raise presets.{self.preset}.validation there"
            )

    def require_pack(self, pack: str, where: str) -> None:
        """Refuse a pack that the corpus does not have under this preset.

        Raises:
            PlumblineError: naming the pack and the file.
        """
        if pack not in self.packs:
            raise PlumblineError(
                f"{where}: {self.path}: presets.{self.preset}.packs has no {pack!r}{nearest(pack, self.packs)} "
                f"(there are {sorted(self.packs)})"
            )


class HeldOut(ClosedStruct, frozen=True):
    """The share of groups of documents that are held out."""

    percent: Annotated[float, Meta(gt=0, lt=100)]


class LocalSource(ClosedStruct, frozen=True):
    """A folder of texts, or of token files of a type, whose documents end with an id."""

    folder: str
    dtype: Absent[Literal["uint16", "uint32"]] = None
    document_end: Absent[WholeNumber] = None

    def __post_init__(self) -> None:
        require_without((FIRST_AND_LAST,), self.folder, "folder")


class CorpusPreset(ClosedStruct, frozen=True):
    """A corpus under one preset. `held_out`: where it is another share than the corpus's own."""

    source: Source
    tokenizer: TokenizerConfig
    packs: Annotated[dict[Name, Sequences], Meta(min_length=1)]
    validation: Sequences
    sequences_per_shard: Count
    held_out: Absent[HeldOut] = None

    def __post_init__(self) -> None:
        if "validation" in self.packs:
            raise Fault("'validation' is the held-out pack; rename the pack", "packs")


class CorpusFile(ClosedStruct, frozen=True):
    """config/corpora/<corpus>.yaml."""

    corpus: Name
    title: str
    held_out: HeldOut
    local: LocalSource
    hub: HubSource
    presets: Annotated[dict[Preset, CorpusPreset], Meta(min_length=1)]
    copies: Absent[Copies] = None


def corpora(root: Path = ROOT) -> list[str]:
    """Names of the corpora: files of config/corpora."""
    return sorted(path.stem for path in (root / "config" / "corpora").glob("*.yaml"))


def load(name: str, preset: str, source: str = AS_THE_CORPUS_SAYS, root: Path = ROOT, where: str = "") -> Corpus:
    """Read a corpus under a preset.

    Args:
        source: replaces the corpus's own source of texts, unless it is `corpus`.
        where: begins error messages.

    Raises:
        PlumblineError: no such corpus, a preset that it does not have, or a file that cannot be meant.
    """
    path = root / "config" / "corpora" / f"{name}.yaml"
    if not path.exists():
        names = corpora(root)
        raise PlumblineError(f"{where}corpus: there is no {path}{nearest(name, names)} (there are {names})")
    content: dict[str, Any] = read_checked(path, CorpusFile)
    if content["corpus"] != name:
        raise PlumblineError(f"{path}: corpus: {content['corpus']!r} must be the file's name, {name!r}")
    if preset not in content["presets"]:
        raise PlumblineError(f"{path}: presets: nothing for {preset!r} (there are {sorted(content['presets'])})")
    entry = content["presets"][preset]
    chosen_source = entry["source"] if source == AS_THE_CORPUS_SAYS else source
    sizes = {name: _parse_size(size) for name, size in entry["packs"].items()}
    return msgspec.convert(
        {
            "name": name,
            "preset": preset,
            "source": chosen_source,
            **content["local"],
            "hub": content["hub"],
            "tokenizer": entry["tokenizer"],
            "packs": sizes,
            "validation": _parse_size(entry["validation"]),
            "sequences_per_shard": entry["sequences_per_shard"],
            "held_out_percent": entry.get("held_out", content["held_out"])["percent"],
            "copies": content.get("copies", "keep"),
        },
        type=Corpus,
    )


def _parse_size(size: int | str) -> int | None:
    return None if size == "all" else int(size)
