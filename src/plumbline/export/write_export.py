"""Writes a finished run as a folder in Hugging Face form: a Llama where it is one, else with its own sources."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from plumbline.core import process_record, provenance
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_bytes, atomic_write_json, atomic_write_text, open_atomically, parse_json
from plumbline.export import capability_check, check_export, model_card, output_folder
from plumbline.export.vendored_source import VendoredSources, sources
from plumbline.model import hf_export
from plumbline.model.decoder import Decoder
from plumbline.model.finished_run import FinishedRun
from plumbline.specs.code_hash import PACKAGE
from plumbline.specs.spec import RunSpec, code_classes


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportedFolder:
    """A written folder.

    Attributes:
        form: "llama" or "code".
        difference: the largest difference of logits; None if they were not compared.
    """

    folder: Path
    form: str
    difference: float | None


def export_hf(
    folder: Path,
    out: Path,
    *,
    tokenizer: Path,
    scores: Path | None = None,
    force: bool = False,
    compare: bool = True,
) -> ExportedFolder:
    """Write a finished run into the folder `out`, which `AutoModelForCausalLM.from_pretrained` loads.

    Args:
        folder: of the run.
        tokenizer: tokenizer.json of the run's corpus.
        scores: scores.parquet of the run, whose numbers go into the model card.
        force: replace an export of another run, or one that was changed.
        compare: load the folder in a process without this package, and compare logits, before it takes its place.

    Raises:
        PlumblineError: no model that could be exported, a tokenizer or scores that are not the run's, a folder in which
            something would be lost, or an export that does not load or gives other logits.
    """
    run = FinishedRun.read(folder)
    if run.outcome != "completed":
        raise PlumblineError(f"{folder}: {run.outcome}; there is no model to export")
    _require_code(run.spec)
    if not tokenizer.is_file():
        raise PlumblineError(f"--tokenizer: there is no file {tokenizer}")
    run.read_tokenizer(tokenizer)
    output_folder.require_free(out, run.spec.run_id, force)
    evaluation = model_card.evaluation(scores, run) if scores is not None else None
    model = run.model().eval()
    form = "code" if hf_export.beyond_llama(run.spec.model) else "llama"
    record: dict[str, Any] = {"form": form, "run": run.spec.key, "preset": run.spec.preset}
    record |= {
        "run_id": run.spec.run_id,
        "exported_with": provenance.list_packages() | provenance.describe_code(),
        "checked": None,
    }
    with output_folder.replace_folder(out, record) as written:
        code_sources = capabilities = None
        if form == "llama":
            hf_export.export(model, tokenizer, written)
        else:
            code_sources, capabilities = write_code(written, model, tokenizer)
        if compare:
            absent = code_sources.packages if code_sources is not None else (PACKAGE.name,)
            code = code_sources is not None
            record["checked"] = check_export.compare_logits(written, model, code=code, absent=absent)
        # Not under its own name: a folder with a manifest.json is taken for a run's.
        manifest = parse_json((folder / "manifest.json").read_bytes())
        atomic_write_json(written / model_card.MANIFEST, process_record.strip_local_facts(manifest))
        requires = code_sources.requires if code_sources is not None else ()
        text = model_card.card(run, record, requires=requires, evaluation=evaluation, capabilities=capabilities)
        atomic_write_text(written / "README.md", text)
    difference = None if record["checked"] is None else record["checked"]["largest_difference"]
    return ExportedFolder(folder=out, form=form, difference=difference)


def write_code(
    folder: Path, model: Decoder, tokenizer: Path
) -> tuple[VendoredSources, capability_check.DecodingCapabilities]:
    """Write configuration, weights, tokenizer and sources of a model that brings its own code.

    Returns:
        The sources, and the model's capabilities.

    Raises:
        PlumblineError: a source that cannot be taken along, or a tokenizer of another model.
    """
    code_sources = sources(model.spec)
    special = hf_export.write_tokenizer(model.spec, tokenizer, folder)
    weights = {f"decoder.{name}": value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    with open_atomically(folder / "model.safetensors") as file:
        save_file(weights, file.name, metadata={"format": "pt"})
    for name, text in code_sources.files.items():
        atomic_write_text(folder / name, text)
    if (licence := model_card.licence_file()) is not None:
        atomic_write_bytes(folder / "LICENSE", licence.read_bytes())
    end = next(iter(special.values()), None)
    capabilities = capability_check.find_capabilities(model)
    ends = {"bos_token_id": end, "eos_token_id": end}
    atomic_write_json(folder / "config.json", _make_configuration(model, capabilities) | ends)
    atomic_write_json(folder / "generation_config.json", ends | {"use_cache": capabilities.cache})
    return code_sources, capabilities


def _make_configuration(model: Decoder, capabilities: capability_check.DecodingCapabilities) -> dict[str, Any]:
    """The content of `config.json` without special tokens."""
    spec, dtype = model.spec, model.embedding.dtype
    return {
        "architectures": ["PlumblineForCausalLM"],
        "auto_map": {
            "AutoConfig": "configuration_plumbline.PlumblineConfig",
            "AutoModelForCausalLM": "modeling_plumbline.PlumblineForCausalLM",
        },
        "model_type": "plumbline",
        "plumbline": spec.to_dict(),
        "vocab_size": spec.vocabulary,
        "hidden_size": spec.width,
        "num_hidden_layers": spec.layers,
        "num_attention_heads": spec.heads,
        "num_key_value_heads": spec.key_value_heads,
        "max_position_embeddings": spec.context,
        "tie_word_embeddings": spec.tied_embeddings,
        "dtype": str(dtype).removeprefix("torch."),
        "keeps_cache": capabilities.cache,
        "use_cache": capabilities.cache,
        "takes_padding": capabilities.padding,
    }


def _require_code(spec: RunSpec) -> None:
    """Refuse a run whose model's components are not the code that is here: it would be exported as another model."""
    now = code_classes(spec)
    other = sorted(key for key in now if key.startswith("model.") and now[key] != spec.components.get(key))
    if other:
        raise PlumblineError(
            f"{spec.key}: the code of {', '.join(other)} is not the code that this run was trained with; check out the "
            "commit in its manifest.json"
        )
