"""Reads a model from a folder in Hugging Face form, for every verb that takes one; nothing is fetched or unpickled.

The library builds what `config.json` describes and fills it with what the weights hold: a layer that they lack stays
random, one that they have too many is dropped, both without an error. Here each of these is refused by name. Headers
are compared with the configuration before anything is built, since a size that is wrong takes any amount of memory.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from plumbline.core.errors import PlumblineError
from plumbline.core.files import find_disk_error, parse_json
from plumbline.core.run_files import require_unchanged_export
from plumbline.model.model_folder import WEIGHTS, TensorHeader, read_headers

CONFIG, INDEX, ADAPTER = "config.json", "model.safetensors.index.json", "adapter_config.json"
#: Ends of the names of files that would have to be unpickled.
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
#: Numbers of parts of which the library makes a list; other settings end alike and count nothing (max_window_layers).
_LAYERS = (
    "num_hidden_layers",
    "n_layer",
    "n_layers",
    "num_layers",
    "num_decoder_layers",
    "encoder_layers",
    "decoder_layers",
)
_OTHER_PARTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_labels")
#: Names of masks, positions and frequencies that earlier versions of the library saved, and that are made anew.
_MASK = re.compile(r"\.(attn|attention)\.(attention\.)?(bias|causal_mask)$")
_REBUILT = re.compile(rf"{_MASK.pattern}|\.(attn|attention)\.(attention\.)?masked_bias$|rotary_emb\.inv_freq$")
#: What stands where a mask has zeros is at most this.
_MASKED = -1e3
#: How many times as many parameters a configuration may describe as the weights hold: some are packed, eight in a
#: number.
_PACKED = 8


@contextlib.contextmanager
def library_errors(folder: Path) -> Iterator[None]:
    """Turn whatever transformers raises on the files of a folder into a sentence that names it, and keep it from
    printing reports of its own.

    Raises:
        PlumblineError: in place of the library's error, except that a disk is full or fails.
    """
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()  # of no use in a log
    try:
        yield
    except PlumblineError:
        raise
    except Exception as error:
        if find_disk_error(error) is not None:
            raise
        reason = " ".join(str(error).split()) or "no message"
        raise PlumblineError(
            f"{folder}: transformers cannot read it ({type(error).__name__}: {reason:.400}); save the model again, or "
            "copy its files again"
        ) from error
    finally:
        logging.set_verbosity(verbosity)


def read_model_type(folder: Path) -> str:
    """Read which model of the library a folder's configuration is of; nothing is built.

    Raises:
        PlumblineError: it is no configuration, or names no model type.
    """
    kind = _read_json_object(folder / CONFIG).get("model_type")
    if not isinstance(kind, str):
        raise PlumblineError(f"{folder / CONFIG}: model_type is missing, by which transformers knows a model; save the "
                             "model again")  # fmt: skip
    return kind


def read_config(folder: Path, *, trust_remote_code: bool = False) -> Any:
    """Read the library's configuration from a folder that `save_pretrained` wrote; no weights are read.

    Raises:
        PlumblineError: it is no configuration, or describes more than the weights beside it, if any, can hold.
    """
    from transformers import AutoConfig

    content = _read_json_object(folder / CONFIG)
    if any((folder / name).is_file() for name in (WEIGHTS, INDEX)):
        _require_counts(folder, content, _read_tensor_headers(folder))
    with library_errors(folder):
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=trust_remote_code)


def read_model(folder: Path, *, trust_remote_code: bool = False) -> Any:
    """Read the model of a folder that `save_pretrained` or `plumbline export` wrote, in float32 on the CPU.

    Args:
        trust_remote_code: run the code that the folder brings.

    Raises:
        PlumblineError: weights that are missing, not the model's, of another shape, not finite, or no safetensors; a
            configuration that is none; an export that was changed.
    """
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES

    require_unchanged_export(folder)
    tensors = _read_tensor_headers(folder)
    config = read_config(folder, trust_remote_code=trust_remote_code)
    _require_causal(folder, config)
    kind = transformers.AutoModelForCausalLM
    if config.model_type in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES:
        kind = transformers.AutoModelForSeq2SeqLM
    with library_errors(folder):
        with torch.device("meta"):
            shell = kind.from_config(config, trust_remote_code=trust_remote_code)
        described = sum(value.numel() for value in shell.parameters())
        weight_count = sum(header.shape.numel() for header in tensors.values())
        if described > _PACKED * weight_count:
            raise PlumblineError(
                f"{folder / CONFIG} describes a model of {described:,} parameters, and its weights are "
                f"{weight_count:,} numbers; give the configuration of these weights"
            )
        model, report = kind.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=trust_remote_code,
            dtype=torch.float32,
            use_safetensors=True,
            ignore_mismatched_sizes=True,  # so that they are reported, and refused below
            output_loading_info=True,
        )
    model_names = model.state_dict().keys()
    weight_count = report["unexpected_keys"] | {
        name for name in tensors.keys() - model_names if _REBUILT.search(f".{name}")
    }
    unexpected = {name for name in weight_count if not _is_saved_buffer(folder, name, model, tensors)}
    _require_whole(folder, {**report, "unexpected_keys": unexpected})
    _require_values(folder, model, tensors)
    _require_known_ids(folder, model)
    return model


def _read_json_object(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        if find_disk_error(error) is not None:
            raise
        raise PlumblineError(f"{path} cannot be read as JSON ({error}); copy it again") from error
    if not isinstance(content, dict):
        raise PlumblineError(f"{path} holds no JSON object; copy it again")
    return content


def _read_tensor_headers(folder: Path) -> dict[str, TensorHeader]:
    """What the headers of the files say of all tensors of the folder.

    Raises:
        PlumblineError: there is no safetensors file, or one is not whole, or the index does not fit the files.
    """
    if (folder / ADAPTER).is_file():
        raise PlumblineError(
            f"{folder / ADAPTER}: an adapter to another model, which is not read; merge it into that model, and save "
            "the whole"
        )
    file = _read_json_object(folder / CONFIG).get("transformers_weights")
    if file is None:
        file = WEIGHTS if (folder / WEIGHTS).is_file() or not (folder / INDEX).is_file() else INDEX
    path = folder / _require_plain_name(folder / CONFIG, file)
    if path.name.endswith(".index.json"):
        return _read_sharded(path)
    if path.suffix == ".safetensors" and path.is_file():
        return read_headers(path, "copy it, or save the model again")
    pickles = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(PICKLES))
    if pickles:
        raise PlumblineError(
            f"{folder / pickles[0]} is a pickle, and reading one runs what is in it, so it is not read; if you trust "
            "it, load it with transformers and save it again (save_pretrained writes model.safetensors)"
        )
    raise PlumblineError(f"{folder}: there is no {path.name}, which holds a model's weights; copy the whole folder")


def _require_plain_name(source: Path, name: Any) -> str:
    """A file's name that is one in the same folder."""
    if not isinstance(name, str) or Path(name).name != name or not name.endswith((".safetensors", ".index.json")):
        raise PlumblineError(
            f"{source} names {name!r:.80} as a file of weights; only safetensors files in the same folder are read"
        )
    return name


def _read_sharded(index: Path) -> dict[str, TensorHeader]:
    places = _read_json_object(index).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise PlumblineError(f"{index}: 'weight_map' is missing, which says where each weight is; copy it again")
    names = sorted({_require_plain_name(index, name) for name in places.values()})
    if absent := [name for name in names if not (index.parent / name).is_file()]:
        raise PlumblineError(
            f"{index} names {', '.join(absent)}, of {len(names)} files, which {'is' if len(absent) == 1 else 'are'} "
            "not there; copy the whole folder"
        )
    tensors: dict[str, TensorHeader] = {}
    for name in names:
        headers = read_headers(index.parent / name, "copy it, or save the model again")
        missing_names = sorted(tensor for tensor, place in places.items() if place == name and tensor not in headers)
        repeated_names = sorted(headers.keys() & tensors.keys())
        if missing_names or repeated_names:
            fault = (
                f"lacks {missing_names[0]!r}, which {index.name} puts there"
                if missing_names
                else f"holds {repeated_names[0]!r} once more"
            )
            raise PlumblineError(f"{index.parent / name} {fault}; copy the whole folder")
        tensors |= headers
    return tensors


def _require_counts(folder: Path, content: dict[str, Any], tensors: dict[str, TensorHeader]) -> None:
    """Refuse numbers of layers, experts or labels that the weights cannot have: the library makes a list of each."""
    numbers = sum(header.shape.numel() for header in tensors.values())
    for key, value in content.items():
        if isinstance(value, dict):
            _require_counts(folder, value, tensors)
        most = len(tensors) if key in _LAYERS else numbers
        if key in (*_LAYERS, *_OTHER_PARTS) and isinstance(value, int) and value > most:
            raise PlumblineError(
                f"{folder / CONFIG}: {key}: {value}, and the weights are {len(tensors)} tensors of {numbers:,} "
                "numbers; give the configuration of these weights"
            )


def _require_causal(folder: Path, config: Any) -> None:
    """Refuse an encoder, which sees the tokens that it is asked for: of its kinds the library reads one as a decoder
    only where the configuration says so. (Of others, such as GPT-NeoX, `is_decoder` says nothing.)"""
    from transformers.models.auto import modeling_auto

    masked = modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.keys() | {"bert-generation"}
    encoder_kinds = masked - modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES.keys()
    if config.model_type in encoder_kinds and getattr(config, "is_decoder", None) is False:
        raise PlumblineError(
            f"{folder / CONFIG}: a {config.model_type} that is no decoder (is_decoder: false): it sees the tokens "
            "which it would be asked for, so it neither scores nor writes texts; give a causal language model"
        )


def _is_saved_buffer(folder: Path, name: str, model: Any, tensors: dict[str, TensorHeader]) -> bool:
    """Whether a tensor that is no weight of the model is a buffer of its kind which earlier versions saved, and says
    what the model's own says: a causal mask, the number that is put where it has zeros, or the frequencies of rotary
    positions."""
    prefix = f"{model.base_model_prefix}."
    stored_name = next((key for key in (name, name.removeprefix(prefix), prefix + name) if key in tensors), None)
    if stored_name is None or not _REBUILT.search(f".{name}"):
        return False
    shape = tensors[stored_name].shape
    if _MASK.search(f".{name}"):
        return len(shape) == 4 and shape[0] * shape[1] == 1 and _is_causal(_read_tensor(folder, stored_name)[0, 0])
    if not name.endswith("inv_freq"):
        return shape.numel() == 1 and float(_read_tensor(folder, stored_name)) <= _MASKED
    frequencies = [value for buffer, value in model.named_buffers() if buffer.endswith("inv_freq")]
    return len(shape) == 1 and _are_frequencies(_read_tensor(folder, stored_name), frequencies, model.config)


def _read_tensor(folder: Path, name: str) -> torch.Tensor:
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            if name in file.keys():  # noqa: SIM118 - it is no mapping
                value: torch.Tensor = file.get_tensor(name)
                return value
    raise PlumblineError(f"{folder}: {name!r} is in none of its files; copy the whole folder")


def _is_causal(mask_TT: torch.Tensor) -> bool:
    """Whether a mask lets each position see itself and all before it, or (GPT-Neo) the last so many of these."""
    length = len(mask_TT)
    if not length or mask_TT.shape != (length, length):
        return False
    causal_TT = torch.ones(length, length).tril()
    window = int((mask_TT[-1] != 0).sum())
    return torch.equal(mask_TT.float(), causal_TT - causal_TT.tril(-window))


def _are_frequencies(value: torch.Tensor, frequencies: list[torch.Tensor], config: Any) -> bool:
    """Whether frequencies are the model's; earlier versions saved those of a linear scaling before it."""
    scaling = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    factors = {1.0, float(scaling.get("factor") or 1.0)}
    return any(
        value.shape == buffer.shape and torch.allclose(value.double(), buffer.double() * factor, rtol=1e-2, atol=1e-7)
        for buffer in frequencies
        for factor in factors
    )


def _require_known_ids(folder: Path, model: Any) -> None:
    """Have a model refuse ids of tokens that it has no embedding for, which a tokenizer of another model gives."""

    def compare(embedding: Any, ids: tuple[Any, ...]) -> None:
        rows = embedding.weight.shape[0]
        if ids and ids[0].numel() and (most := int(ids[0].max())) >= rows:
            raise PlumblineError(
                f"{folder}: its tokenizer gives a text the id {most}, and the model has embeddings of {rows} tokens; "
                "give the tokenizer that it was trained with"
            )

    embedding = model.get_input_embeddings()
    if isinstance(getattr(embedding, "weight", None), torch.Tensor):
        embedding.register_forward_pre_hook(compare)


def _require_whole(folder: Path, report: dict[str, Any]) -> None:
    """Refuse a model that is not filled by the folder's weights, all of them."""
    for key, fault in (
        ("missing_keys", "lacks {}, which would be left random"),
        (
            "unexpected_keys",
            "holds {}, which is no weight of the model in its config.json, nor a mask or frequencies as that has them",
        ),
    ):
        if names := sorted(report[key]):
            raise PlumblineError(
                f"{folder} {fault.format(repr(names[0]))} ({len(names)} in all); save the whole model with its own "
                "configuration"
            )
    if mismatches := sorted(report["mismatched_keys"]):
        name, shape, described_shape = mismatches[0]
        raise PlumblineError(
            f"{folder}: {name!r} has the shape {list(shape)}, and config.json describes {list(described_shape)} "
            f"({len(mismatches)} in all differ); save the whole model with its own configuration"
        )
    if report.get("error_msgs"):
        raise PlumblineError(f"{folder}: {report['error_msgs'][0]:.400}; save the model again")


def _require_values(folder: Path, model: Any, tensors: dict[str, TensorHeader]) -> None:
    parameters = dict(model.named_parameters())
    packed = getattr(model.config, "quantization_config", None) is not None
    for name, header in tensors.items():  # which a file may call otherwise than the model calls its parameters
        weight = name in parameters or (name.endswith((".weight", ".bias")) and not _REBUILT.search(f".{name}"))
        if weight and not packed and not header.dtype.startswith(("F", "BF")):
            raise PlumblineError(
                f"{folder}: {name!r} is of {header.dtype}, and config.json states no quantization; save the model again"
            )
    for name, value in parameters.items():
        if not torch.isfinite(value).all():
            raise PlumblineError(f"{folder}: {name!r} has values that are not finite; save the model again")
    first, last = model.get_input_embeddings(), model.get_output_embeddings()
    tied = getattr(model.config, "tie_word_embeddings", False) and last is not None
    if tied and not torch.equal(first.weight, last.weight):
        raise PlumblineError(
            f"{folder}: config.json says tie_word_embeddings, and the weights of the output are others than those of "
            'the input; write `"tie_word_embeddings": false` there, or save the whole model again'
        )
