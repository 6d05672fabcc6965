"""Finds a run by its name or its folder, with what the workflow made for it: ``transfer/base/qknorm/s42``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import read_json
from plumbline.data.manifest import pack_folder
from plumbline.project.project import Project, load
from plumbline.specs.yaml_files import load_config

#: The help of an argument that a run is named by, and of `--preset` next to it.
HELP = "such as transfer/base/qknorm/s42 (plumbline ls runs), or the folder of one"
PRESET_HELP = "of a run by its name (default: config/config.yaml's)"
#: The file that a finished run ends with.
_OUTCOME = "outcome.json"


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run's folder, with the tokenizer, the scores, the folder of items and the manifest of the held-out pack that
    the workflow made for the run (None if they are not known, or not there).
    """

    folder: Path
    tokenizer: Path | None = None
    scores: Path | None = None
    items: Path | None = None
    validation_pack: Path | None = None


def find(run: str | Path, preset: str | None, suite: str | None = None) -> NamedRun:
    """Find a run by its folder, or by its name such as ``transfer/base/qknorm/s42``.

    A name is that of a run of the studies, or of any run that is there: those of `plumbline try` and of files of one's
    own are under ``work/PRESET/runs`` too. A folder there has the workflow's tokenizer and items as well.

    Args:
        suite: the suite whose items are wanted (default: the run's own).

    Raises:
        PlumblineError: it is neither, or the run has not finished.
    """
    folder = Path(run)
    if folder.is_dir():
        if preset:
            raise PlumblineError(
                f"--preset: {folder} is a folder, whose manifest states its preset; leave out --preset"
            )
        return _add_files(folder, suite)
    name = str(run).rstrip("/")
    config = load_config()
    project = load(config | {"preset": preset or config["preset"]})
    work = project.root / project.paths.work
    if (work / "runs" / name / _OUTCOME).is_file():
        return _add_files(work / "runs" / name, suite)
    if name in project.every_run:
        outcome = project.paths.run(project.every_run[name], _OUTCOME)
        raise PlumblineError(
            f"{run} has not finished at preset {project.name}; "
            f"snakemake {outcome} --config preset={project.name} makes it"
        )
    similar = nearest(name, [*project.every_run, *_list_finished(work)])
    hint = _describe_elsewhere(project, name)
    raise PlumblineError(
        f"{run} is no folder, and no run at preset {project.name} (plumbline ls runs lists them){hint or similar}"
    )


def _add_files(folder: Path, suite: str | None) -> NamedRun:
    """A folder with the workflow's files for its run, where it is one of the workflow's: ``work/PRESET/runs/...``."""
    where = folder.resolve()
    manifest = read_json(folder / "manifest.json")
    spec = manifest.get("spec") if isinstance(manifest, dict) else None
    if len(where.parents) < 5 or where.parents[3].name != "runs" or not isinstance(spec, dict):
        return NamedRun(folder)
    work = folder.parents[4] if len(folder.parents) > 4 else where.parents[4]
    data, model = (part if isinstance(part := spec.get(name), dict) else {} for name in ("data", "model"))
    corpus = work / "corpora" / str(data.get("corpus"))
    files = (
        corpus / "tokenizer" / "tokenizer.json",
        work / "scores" / where.relative_to(where.parents[3]) / "scores.parquet",
        corpus / "items" / (suite or str(spec.get("suite"))) / "items.json",
        Path(pack_folder(str(corpus), str(model.get("context")), "validation")) / "validation.json",
    )
    tokenizer, scores, items, pack = (path if path.is_file() else None for path in files)
    return NamedRun(folder, tokenizer, scores, items.parent if items else None, pack)


def _list_finished(work: Path) -> list[str]:
    """Names of the finished runs of a preset's folder of work."""
    return [path.parent.relative_to(work / "runs").as_posix() for path in work.glob(f"runs/*/*/*/*/{_OUTCOME}")]


def _describe_elsewhere(project: Project, name: str) -> str:
    """The presets at which a run of this name is there, as the end of a message."""
    work = (project.root / project.paths.work).parent
    presets = sorted(path.name for path in work.glob("*") if (path / "runs" / name / _OUTCOME).is_file())
    return f"; it is there at preset {presets[0]}: --preset {presets[0]}" if presets else ""
