"""Checks an exported folder: loads it by transformers alone, and compares its logits with the model's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from plumbline.core.errors import PlumblineError
from plumbline.export.capability_check import some_tokens
from plumbline.model.decoder import Decoder
from plumbline.model.numerics import require_float32

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
        done = subprocess.run(
            [sys.executable, "-P", str(Path(__file__).with_name("isolated_loading.py"))],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            env=os.environ | {"HF_MODULES_CACHE": scratch, "HF_HUB_OFFLINE": "1"},
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["there was no message"]
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
    return {"transformers": done.stdout.strip(), "torch": str(torch.__version__), "tokens": tokens_BT.numel(),
            "largest_difference": largest, "largest_logit": ours.abs().max().item()}  # fmt: skip
