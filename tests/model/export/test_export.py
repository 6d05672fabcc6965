"""`plumbline export`: what is in the folder, what is refused, and that nothing is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from torch.nn.functional import one_hot

from plumbline.cli import export as verb
from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.core.run_files import EXPORT_RECORD
from plumbline.evaluate import score_models
from plumbline.model.decoder import create
from plumbline.model.export import capability_check, model_card, write_export
from plumbline.model.export.write_export import export_hf
from plumbline.model.finished_run import FinishedRun
from plumbline.specs.spec import RunSpec
from tests.changed_spec import change_spec
from tests.evaluate.conftest import VOCABULARY
from tests.model_specs import BASELINE, run_spec


@pytest.fixture
def softpick(tmp_path: Path, tokenizer_file: Path) -> Path:
    """A finished run that is not a Llama."""
    model = BASELINE | {"vocabulary": VOCABULARY, "context": 64, "layers": 2, "mixer": {"name": "softpick"}}
    spec = run_spec(method="softpick", preset="demo", model=model, data__tokenizer_vocabulary=VOCABULARY)
    folder = tmp_path / "run"
    folder.mkdir()
    save_file(create(spec.model, 3).state_dict(), folder / "model.safetensors")
    manifest = {"run_id": spec.run_id, "spec": spec.to_dict(), "git_commit": "c0ffee", "tokens": 3072}
    manifest["tokenizer_sha256"] = sha256_file(tokenizer_file)
    manifest["starts"] = [{"host": "box", "step": 0, "machine": "box/boot/pid:[1]", "pid": 5, "process_started": "7"}]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    outcome = {"run_id": spec.run_id, "outcome": "completed", "validation_loss": 4.25}
    (folder / "outcome.json").write_text(json.dumps(outcome))
    return folder


def run_id(folder: Path) -> str:
    return json.loads((folder / "manifest.json").read_text())["run_id"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_verb(
    softpick: Path,
    tokenizer_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = {"run_id": run_id(softpick), "task": "piqa", "metric": "acc", "value": 0.5125, "stderr": 0.1, "items": 16}
    rows = pd.DataFrame([row | {"task_source": "proxy", "primary": True, "harness_version": "0"}])
    frames.write(rows, "scores", tmp_path / "scores.parquet", {"suite": "climb12"})
    out = tmp_path / "out"
    args = ["--format", "hf", "--out", out, "--tokenizer", tokenizer_file, "--card-scores", tmp_path / "scores.parquet"]
    monkeypatch.setattr("sys.argv", ["plumbline export", str(softpick), *map(str, args)])
    verb.main()
    output = capsys.readouterr().out
    assert output.startswith(f"{out}: with its own code (trust_remote_code=True), ") and "equal logits" in output
    record = json.loads((out / EXPORT_RECORD).read_text())
    assert record["form"] == "code" and record["checked"]["largest_difference"] == 0.0
    files = contents(out)
    assert record["files"] == {name: sha256_file(out / name) for name in files if name != EXPORT_RECORD}
    assert {"config.json", "model.safetensors", "tokenizer.json", "modeling_plumbline.py", "LICENSE"} <= set(files)
    manifest = json.loads((softpick / "manifest.json").read_text())
    assert json.loads(files["run_manifest.json"]) == manifest | {"starts": [{"host": "box", "step": 0}]}
    output = files["README.md"].decode()
    for text in (
        "# transfer/base/softpick/s42 at preset demo",
        "**This model is no reproduction of the paper.**",
        f"| run | `{run_id(softpick)}` |",
        "| trained at commit | `c0ffee` |",
        "| trained on | 3,072 tokens |",
        "| loss on held-out documents | 4.2500 nats a token |",
        "from_pretrained(folder, trust_remote_code=True)",
        "`trust_remote_code=True` runs them: read them first.",
        "torch and transformers (5 or later) are all that it needs.",
        "Refused with an error: attention weights, `position_ids=`",
        "On the suite climb12:",
        "| piqa | acc | 0.5125 | 16 | proxy |",
        "are Plumbline's, bit for bit",
    ):
        assert text in output, text
    # Once more is the same, byte for byte; and nothing is left next to it.
    monkeypatch.setattr(write_export, "compare_logits", lambda *_, **__: record["checked"])
    verb.main()
    assert contents(out) == files
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "run", "scores.parquet"]


def test_no_card_has_scores_of_other_weights_or_tokenizer(softpick: Path, tmp_path: Path) -> None:
    path, run = tmp_path / "scores.parquet", FinishedRun.read(softpick)
    row = {"run_id": run.spec.run_id, "task": "piqa", "metric": "acc", "value": 0.5, "stderr": 0.1, "items": 16}
    rows = pd.DataFrame([row | {"task_source": "proxy", "primary": True, "harness_version": "0"}])
    own = {"suite": "climb12", "tokenizer_sha256": run.manifest["tokenizer_sha256"]}
    frames.write(rows, "scores", path, own)
    assert len(model_card.read_evaluation(path, run)) == 1
    frames.write(rows, "scores", path, own | {"tokenizer_sha256": "1" * 64})
    with pytest.raises(PlumblineError, match=rf"tokenizer_sha256 1{{64}}, and {softpick}"):
        model_card.read_evaluation(path, run)


def test_a_changed_folder_is_not_scored(
    finished: Path, tokenizer_file: Path, items_folder: Path, tmp_path: Path
) -> None:
    """Another tokenizer in it would change every score."""
    out = tmp_path / "out"
    export_hf(finished, out, tokenizer=tokenizer_file, compare=False)
    content = json.loads((out / "tokenizer.json").read_text())
    (out / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(PlumblineError, match=r"tokenizer\.json .*sha256 \w+, not \w+"):
        score_models.score_folder(out, items_folder, limit=1)


@pytest.mark.parametrize(("source", "sentence"), [("hub", ""), ("local", "Its texts, of the source local, are not")])
def test_a_model_of_the_documents_size_on_other_texts_says_so(finished: Path, source: str, sentence: str) -> None:
    manifest = json.loads((finished / "manifest.json").read_text())
    manifest["spec"] |= {"preset": "paper", "data": manifest["spec"]["data"] | {"source": source}}
    run = replace(FinishedRun.read(finished), spec=RunSpec.from_dict(manifest["spec"]))
    text = model_card.write_card(run, {"form": "llama", "checked": None}, requires=(), evaluation=None)
    assert sentence in text and ("no reproduction of the paper" in text) == bool(sentence)


def test_a_llama_is_written_as_one(finished: Path, tokenizer_file: Path, tmp_path: Path) -> None:
    done = export_hf(finished, tmp_path / "out", tokenizer=tokenizer_file, compare=False)
    assert done.form == "llama" and done.difference is None
    assert json.loads((tmp_path / "out/config.json").read_text())["model_type"] == "llama"
    assert not list((tmp_path / "out").glob("*.py"))
    card = (tmp_path / "out/README.md").read_text()
    assert "from_pretrained(folder)" in card and "were not compared" in card and "None was available" in card
    assert "trust_remote_code" not in card and "Refused" not in card


def test_what_a_model_does_not_bear_is_on_its_card(finished: Path) -> None:
    run, record = FinishedRun.read(finished), {"form": "code", "checked": None}
    for bears in (True, False):
        capable = capability_check.DecodingCapabilities(cache=bears, padding=bears, hidden_states=bears)
        card = model_card.write_card(run, record, requires=(), evaluation=None, capabilities=capable)
        for phrase in ("hidden states (its layers", "a cache (`generate`", "padding (its attention"):
            assert (phrase in card) is not bears, phrase


class Far:
    """A model that reads its whole context otherwise than less of it."""

    spec = SimpleNamespace(vocabulary=7, context=32)

    def __call__(self, tokens_BT: torch.Tensor, **_: object) -> torch.Tensor:
        return one_hot(tokens_BT, 7).float() + (tokens_BT.shape[1] == self.spec.context)


def test_a_model_is_tried_on_a_full_context_too() -> None:
    for bears in (capability_check.keeps_cache, capability_check.takes_padding):
        assert not bears(Far()), "12 tokens do not tell"


def test_an_export_that_gives_other_logits_leaves_all_as_it_was(
    softpick: Path, tokenizer_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    export_hf(softpick, out, tokenizer=tokenizer_file, compare=False)
    before = contents(out)

    def other(folder: Path, model, **options):
        assert (folder / "modeling_plumbline.py").is_file()
        raise PlumblineError("transformers gives other logits")

    monkeypatch.setattr(write_export, "compare_logits", other)
    with pytest.raises(PlumblineError, match="other logits"):
        export_hf(softpick, out, tokenizer=tokenizer_file)
    assert contents(out) == before and sorted(path.name for path in tmp_path.iterdir()) == ["out", "run"]


def test_a_folder_with_something_to_lose(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_export.require_free(out, "a", False)
    out.mkdir()
    write_export.require_free(out, "a", False)
    with write_export.replace_folder(out, {"run_id": "a"}) as written:
        (written / "config.json").write_text("{}")
    write_export.require_free(out, "a", False)
    with pytest.raises(PlumblineError, match=r"export.*--force"):
        write_export.require_free(out, "b", False)
    write_export.require_free(out, "b", True)
    (out / "config.json").write_text("{1}")
    with pytest.raises(PlumblineError, match=r"config\.json.*--force"):
        write_export.require_free(out, "a", False)
    write_export.require_free(out, "a", True)
    (out / "notes").mkdir()
    (out / "notes/mine.txt").write_text("mine")
    for force in (False, True):
        with pytest.raises(PlumblineError, match=r"notes/mine\.txt,.*export"):
            write_export.require_free(out, "a", force)
    (out / "config.json").unlink()
    (out / EXPORT_RECORD).unlink()
    with pytest.raises(PlumblineError, match=r"notes/mine\.txt,.*export"):
        write_export.require_free(out, "a", True)
    with pytest.raises(PlumblineError, match=r"mine\.txt.*folder"):
        write_export.require_free(out / "notes/mine.txt", "a", True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outcome": {"outcome": "diverged"}}, r"diverged; .* export"),
        ({"components": {"model.mixer": "0" * 16}}, r"the code of model\.mixer.*code"),
        ({"model": {"shared_layers": True}}, r"model\.shared_layers:.*run.*package"),
    ],
)
def test_what_is_refused(change: dict, message: str, softpick: Path, tokenizer_file: Path, tmp_path: Path) -> None:
    for part in ("components", "model"):
        change_spec(softpick, lambda spec, part=part: spec[part].update(change.get(part, {})))
    outcome = json.loads((softpick / "outcome.json").read_text())
    (softpick / "outcome.json").write_text(json.dumps(outcome | change.get("outcome", {})))
    with pytest.raises(PlumblineError, match=message):
        export_hf(softpick, tmp_path / "out", tokenizer=tokenizer_file)
    assert not (tmp_path / "out").exists()
