"""Writes a finished run as a folder in Hugging Face form: a Llama where it is one, else with its own sources.

The folder is whole or absent, and never one with other files in it. Before it takes its place, transformers alone loads
it and its logits are compared with the model's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from plumbline.core import fingerprint_file, process_record, provenance, temporary_files
from plumbline.core.errors import PlumblineError
from plumbline.core.files import (
    atomic_write_bytes,
    atomic_write_json,
    atomic_write_text,
    free_name,
    fsync_directory,
    make_folder,
    open_atomically,
    parse_json,
    sha256_file,
)
from plumbline.core.run_files import EXPORT_RECORD, read_export_record
from plumbline.model.decoder import Decoder
from plumbline.model.export import capability_check, hf_export, model_card
from plumbline.model.export.capability_check import some_tokens
from plumbline.model.export.vendored_source import VendoredSources, sources
from plumbline.model.finished_run import FinishedRun
from plumbline.model.numerics import require_float32
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
    if run.spec.model.shared_layers:
        raise PlumblineError(
            f"{folder}: model.shared_layers: what loads an export gives each layer weights of its own; run it with "
            "this package"
        )
    if not tokenizer.is_file():
        raise PlumblineError(f"--tokenizer: there is no file {tokenizer}")
    run.read_tokenizer(tokenizer)
    require_free(out, run.spec.run_id, force)
    evaluation = model_card.read_evaluation(scores, run) if scores is not None else None
    model = run.model().eval()
    form = "code" if hf_export.beyond_llama(run.spec.model) else "llama"
    record: dict[str, Any] = {"form": form, "run": run.spec.key, "preset": run.spec.preset}
    record |= {
        "run_id": run.spec.run_id,
        "exported_with": provenance.list_packages() | provenance.describe_code(),
        "checked": None,
    }
    with replace_folder(out, record) as written:
        code_sources = capabilities = None
        if form == "llama":
            hf_export.export(model, tokenizer, written)
        else:
            code_sources, capabilities = write_code(written, model, tokenizer)
        if compare:
            absent = code_sources.packages if code_sources is not None else (PACKAGE.name,)
            code = code_sources is not None
            record["checked"] = compare_logits(written, model, code=code, absent=absent)
        # Not under its own name: a folder with a manifest.json is taken for a run's.
        manifest = parse_json((folder / "manifest.json").read_bytes())
        atomic_write_json(written / model_card.MANIFEST, process_record.strip_local_facts(manifest))
        requires = code_sources.requires if code_sources is not None else ()
        text = model_card.write_card(run, record, requires=requires, evaluation=evaluation, capabilities=capabilities)
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
    if (licence := model_card.find_licence_file()) is not None:
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
    classes = code_classes(spec)
    keys = sorted(key for key in classes if key.startswith("model.") and classes[key] != spec.components.get(key))
    if keys:
        raise PlumblineError(
            f"{spec.key}: the code of {', '.join(keys)} is not the code that this run was trained with; check out the "
            "commit in its manifest.json"
        )


#: The largest difference of logits that is let pass, as a share of the largest logit: of the model's own code, and of
#: a Llama, whose arithmetic is transformers' own.
OWN_CODE, LLAMA = 1e-6, 1e-4
#: Tokens in a row that is compared.
LENGTH = 64


def compare_logits(folder: Path, model: Decoder, *, code: bool, absent: tuple[str, ...]) -> dict[str, Any]:
    """Compare the logits of an exported folder with those of the model it was made from.

    Args:
        code: whether the folder brings code of its own.
        absent: packages that it must do without.

    Returns:
        What was compared, with the largest difference of logits.

    Raises:
        PlumblineError: the folder cannot be loaded so, or gives other logits.
    """
    require_float32(torch.device("cpu"))
    tokens_BT = some_tokens(model, LENGTH)
    with tempfile.TemporaryDirectory(prefix="plumbline-export-") as scratch:
        out = Path(scratch) / "logits.safetensors"
        request = {"folder": str(folder), "tokens": tokens_BT.tolist(), "absent": [*absent], "code": code}
        request |= {"out": str(out), "threads": torch.get_num_threads()}
        process = subprocess.run(
            [sys.executable, "-P", str(Path(__file__).with_name("isolated_loading.py"))],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            env=os.environ | {"HF_MODULES_CACHE": scratch, "HF_HUB_OFFLINE": "1"},
        )
        if process.returncode:
            lines = process.stderr.strip().splitlines() or ["there was no message"]
            raise PlumblineError(
                f"transformers cannot load what was exported without {', '.join(absent)} ({lines[-1]}); nothing was "
                "left behind. A component that needs another package, or files next to its own source, cannot be "
                "exported"
            )
        theirs = load_file(out)["logits"]
    with torch.inference_mode():
        ours = model(tokens_BT)
    largest, allowed = (theirs - ours).abs().max().item(), (OWN_CODE if code else LLAMA) * ours.abs().max().item()
    if not largest <= allowed:
        raise PlumblineError(
            f"transformers gives other logits for what was exported: by up to {largest:g}, and {allowed:g} is "
            "rounding; nothing was left behind. Please report it, with the run's manifest.json"
        )
    return {"transformers": process.stdout.strip(), "torch": str(torch.__version__), "tokens": tokens_BT.numel(),
            "largest_difference": largest, "largest_logit": ours.abs().max().item()}  # fmt: skip


def require_free(folder: Path, run_id: str, force: bool) -> None:
    """Refuse an output folder in which something would be lost.

    An earlier export of the same run is replaced. With `force` one of another run is replaced too, and one with a file
    that was changed since; a file that no export wrote is never removed.

    Raises:
        PlumblineError: naming what lies there.
    """
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir():
        raise PlumblineError(f"--out: {folder} is not a folder; name another folder")
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not path.is_dir()}
    if not paths:
        return
    record = read_export_record(folder)
    foreign = sorted(set(paths) - set(record.get("files", {})) - {EXPORT_RECORD})
    if not record or foreign:
        raise PlumblineError(
            f"--out: {folder} holds {(foreign or sorted(paths))[0]}, which no export wrote; name another folder"
        )
    if force:
        return
    if record.get("run_id") != run_id:
        raise PlumblineError(
            f"--out: {folder} holds an export of run {record.get('run_id')}, and this is {run_id}; name another "
            "folder, or give --force to replace it"
        )
    changed = [name for name, sha256 in record["files"].items() if name in paths and sha256_file(paths[name]) != sha256]
    if changed:
        raise PlumblineError(
            f"--out: {folder / changed[0]} was changed after it was exported; keep a copy and give --force, or name "
            "another folder"
        )


@contextmanager
def replace_folder(folder: Path, record: dict[str, Any]) -> Iterator[Path]:
    """Yield a temporary folder to write into, which takes the place of `folder` when the block ends without an error.

    The record, with the checksums of all that was written, is added last, together with what the block adds to
    `record`.
    """
    folder = folder.absolute()
    make_folder(folder.parent)
    temporary_files.remove_abandoned(folder.parent)
    temporary = temporary_files.choose_path(folder)
    temporary.mkdir()
    try:
        yield temporary
        files = {path.name: sha256_file(path) for path in sorted(temporary.iterdir())}
        fingerprint_file.write_facts(temporary / EXPORT_RECORD, record | {"files": files})
        old_folder = None
        if folder.exists() and any(folder.iterdir()):
            old_folder = free_name(folder, "replaced")
            os.rename(folder, old_folder)
        os.rename(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    fsync_directory(folder.parent)
    if old_folder is not None:
        shutil.rmtree(old_folder)
