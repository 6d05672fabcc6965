"""Reads what a study's run, as Plumbline's own trainer left it, says of itself, and its corpus of the split."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.data.document import name_key
from plumbline.data.manifest import fingerprint, pack_folder, read_documents, read_pack
from plumbline.verdict.evidence import CRASH, FINISHED, RunEvidence, SharedTexts


def run_evidence(
    folder: Path, outcome: Mapping[str, Any], manifest: Mapping[str, Any], value: float | None
) -> RunEvidence:
    """Collect what a run's `outcome.json` and `manifest.json` say; `value`: its metric, None if it has none.

    The process that trained a model computes its value, and a start that resumes takes no state that lacks a weight.
    """
    is_completed = outcome["outcome"] == "completed"
    return RunEvidence(
        value=value if is_completed else None,
        file=folder / "outcome.json",
        status=FINISHED if is_completed else CRASH,
        word="" if is_completed else str(outcome["outcome"]),
        step=outcome.get("step"),
        started=manifest.get("started"),
        seconds=manifest.get("wall_seconds"),
        tokens=manifest.get("tokens"),
        parameters=manifest.get("parameters"),
        memory_bytes=manifest.get("peak_memory_bytes"),
        whole_model=True if is_completed else None,
        shared_texts=read_shared_texts(folder, manifest),
    )


def read_shared_texts(folder: Path, manifest: Mapping[str, Any]) -> SharedTexts | None:
    """Read how many held-out texts a run's training texts hold, from the files of its corpus beside the runs.

    None where they are not there, are of another split than the run's, or state no copies.
    """
    spec, place = manifest.get("spec"), folder.absolute().parents
    if not isinstance(spec, Mapping) or not {"data", "model"} <= set(spec) or len(place) < 5 or place[3].name != "runs":
        return None
    name = str(spec["data"]["corpus"])
    corpus = place[4] / "corpora" / name
    try:
        documents = read_documents(corpus / "documents" / "documents.json")
        packs = {
            split: read_pack(corpus.parent / pack_folder(name, spec["model"]["context"], split) / f"{pack}.json")
            for split, pack in (("train", spec["data"]["pack"]), ("validation", "validation"))
        }
    except PlumblineError:
        return None
    run_fingerprints = {"train": manifest.get("data_fingerprint"), "validation": manifest.get("validation_fingerprint")}
    for split, pack in packs.items():
        source_sha256 = pack.get("corpus", {}).get("documents_sha256")
        if fingerprint(pack) != run_fingerprints[split] or source_sha256 != documents["splits"][split]["sha256"]:
            return None
    copies = documents.get("copies")
    if not isinstance(copies, Mapping):
        return None
    held_out = copies["validation"]
    unit = next(each for each in held_out if each in ("documents", "pieces"))
    items = _read_item_facts(corpus / "items" / str(spec.get("suite")) / "items.json")
    return SharedTexts(
        held_out=held_out[unit] - held_out["left_out"],
        shared=held_out["also_on_the_other_side"] if copies["rule"] == "keep" else 0,
        unit=unit,
        option=name_key(name, "copies"),
        items=items.get("compared"),
        items_shared=items.get("shared"),
    )


def _read_item_facts(index: Path) -> Mapping[str, int]:
    """What was counted when a suite's items were made; empty if they are not there, or it was not counted."""
    facts = fingerprint_file.read(fingerprint_file.sidecar_path(index)) or {}
    shared_words = facts.get("shared_words")
    return shared_words if isinstance(shared_words, Mapping) else {}
