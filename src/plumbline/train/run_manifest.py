"""Describes a finished run: its spec, the code and machine that made it, and what it took."""

from __future__ import annotations

from typing import Any

from plumbline.core import process_record
from plumbline.runtime import provenance
from plumbline.train.loop import TrainingLoop
from plumbline.train.monitoring import peak_memory


def manifest(loop: TrainingLoop, starts: list[dict[str, Any]], how: dict[str, Any]) -> dict[str, Any]:
    """Compose the content of ``manifest.json``.

    Args:
        starts: the entries of ``starts.json``.
        how: the settings as they came out (micro-batch, compilation and so on).
    """
    parts = loop.parts
    here = {
        **provenance.code(),
        **provenance.machine(parts.ranks.device),
        "packages": provenance.packages(),
        "lock_sha256": provenance.lock_sha256(),
        **how,
    }
    # A finished run's outputs may be given again elsewhere, under other code and settings: its start knows.
    begun = here | {key: value for key, value in starts[-1].items() if key in here}
    return {
        "run_id": parts.spec.run_id,
        "spec": parts.spec.to_dict(),
        **begun,
        "code": provenance.code_of(starts),
        "code_sha256": provenance.one_code(starts),
        "data_fingerprint": parts.pack.fingerprint,
        "validation_fingerprint": parts.validation.fingerprint,
        "tokenizer_sha256": parts.pack.tokenizer_sha256,
        "precision": parts.spec.train.precision,
        "started": starts[0]["time"],
        "finished": process_record.now(),
        "wall_seconds": round(loop.state.seconds, 3),
        **peak_memory.of_starts(starts),
        "attempts": len(starts),
        "resumed_from": [entry["step"] for entry in starts if entry["resumed"]],
        "starts": starts,
        "parameters": sum(value.numel() for value in parts.model.parameters()),
        "tokens": loop.tokens,
    }
