"""Run as a script: what a user of transformers sees of exported folders, in a process that cannot import Plumbline.

    python -P load_without_plumbline.py FOLDERS OUT.safetensors

FOLDERS holds an exported folder for each model; of each, what is computed is kept under ``<model>/<what>``.
"""

import json
import sys
from pathlib import Path


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("plumbline", "tests", "triton"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def compute_outputs(model, tokens_BT, beams):
    """Logits, a loss, padded logits, greedy continuations with and without a cache, and by search where requested."""
    import torch

    length = tokens_BT.shape[1]
    outputs = {"logits": model(tokens_BT).logits, "weight": model.get_input_embeddings().weight}
    embeddings_BTD = model.get_input_embeddings()(tokens_BT)
    outputs["from_embeddings"] = model(inputs_embeds=embeddings_BTD).logits
    outputs["refused_attentions"] = is_refused(lambda: model(tokens_BT, output_attentions=True))
    outputs["refused_size"] = is_refused(lambda: model.resize_token_embeddings(len(outputs["weight"]) + 1))
    try:
        states = model(tokens_BT, output_hidden_states=True).hidden_states
        outputs["hidden"] = torch.stack(states)
    except ValueError:
        outputs["refused_hidden"] = torch.tensor(True)
    labels_BT = tokens_BT.clone()
    labels_BT[0, :3] = -100
    outputs["loss"] = model(tokens_BT, labels=labels_BT).loss
    padded_BT, mask_BT = torch.zeros(2, length + 3, dtype=torch.long), torch.zeros(2, length + 3, dtype=torch.long)
    padded_BT[0, 3:], padded_BT[1, :-3] = tokens_BT[0], tokens_BT[1]
    mask_BT[0, 3:], mask_BT[1, :-3] = 1, 1
    if model.config.takes_padding:
        logits = model(padded_BT, attention_mask=mask_BT).logits
        outputs["padded"] = torch.stack([logits[0, 3:], logits[1, :-3]])
    else:
        outputs["refused_padding"] = is_refused(lambda: model(padded_BT, attention_mask=mask_BT))
    options = {"max_new_tokens": 4, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    outputs["written"] = model.generate(tokens_BT[:, :5], attention_mask=torch.ones(2, 5), **options)
    if model.config.keeps_cache:
        outputs["recomputed"] = model.generate(
            tokens_BT[:, :5], attention_mask=torch.ones(2, 5), use_cache=False, **options
        )
        # Two prompts of unequal length, the shorter one padded on the left.
        prompts_BT, mask_BT = tokens_BT[:, :5].clone(), torch.ones(2, 5, dtype=torch.long)
        mask_BT[1, :2] = 0
        outputs["written_padded"] = model.generate(prompts_BT, attention_mask=mask_BT, **options)
        outputs["written_short"] = model.generate(prompts_BT[1:, 2:], attention_mask=mask_BT[1:, 2:], **options)
        if beams:  # a search puts the rows of a cache in another order
            options |= {"attention_mask": torch.ones(2, 5), "num_beams": 3}
            outputs["beams"] = model.generate(prompts_BT, **options)
            outputs["beams_recomputed"] = model.generate(prompts_BT, use_cache=False, **options)
    else:
        outputs["refused_cache"] = is_refused(lambda: model(tokens_BT, use_cache=True))
    return outputs


def is_refused(call):
    import torch

    try:
        call()
    except ValueError:
        return torch.tensor(True)
    return torch.tensor(False)


def main():
    folders, out = map(Path, sys.argv[1:])
    sys.meta_path.insert(0, Absent())
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, logging

    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    names = json.loads((folders / "models.json").read_text())
    tokens_BT = torch.tensor(json.loads((folders / "tokens.json").read_text()))
    tensors = {}
    with torch.inference_mode():
        for name, again in names.items():
            place = folders / name
            if again:  # what a user saves is a folder that loads
                AutoModelForCausalLM.from_pretrained(place, trust_remote_code=True).save_pretrained(folders / "saved")
                place = folders / "saved"
            model = AutoModelForCausalLM.from_pretrained(place, trust_remote_code=True).eval()
            outputs = compute_outputs(model, tokens_BT, beams=again)
            tensors |= {f"{name}/{key}": value.contiguous() for key, value in outputs.items()}
    save_file(tensors, out)


if __name__ == "__main__":
    main()
