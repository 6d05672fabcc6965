"""YAML files with closed keys: each mistake is reported with file, key and remedy."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from plumbline.core.errors import PlumblineError
from plumbline.specs import corpus, yaml_files
from plumbline.specs.config_files import ConfigFile
from plumbline.specs.study_files import StudyFile


@pytest.fixture
def root(repository: Path, tmp_path: Path) -> Path:
    """A folder that holds a copy of config/ and of the YAML of studies."""
    for file in (
        *repository.glob("config/*.yaml"),
        *repository.glob("config/*/*.yaml"),
        *repository.glob("studies/*/*.yaml"),
    ):
        target = tmp_path / file.relative_to(repository)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(file.read_text())
    return tmp_path


def change(path: Path, dotted: str, value: Any) -> None:
    """Set the key at a dotted path of a YAML file."""
    content = yaml.safe_load(path.read_text())
    *parents, last = dotted.split(".")
    inner = content
    for key in parents:
        inner = inner[key]
    inner[last] = value
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def test_a_profile_may_merge_mappings(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("probe: &gpu\n  mem_mb: 640\n  runtime: 5\nevaluate:\n  <<: *gpu\n  runtime: 10\n")
    assert yaml_files.read_yaml(path)["evaluate"] == {"mem_mb": 640, "runtime": 10}
    path.write_text("gpu: &gpu {mem_mb: 640}\nrules: [{large: &large {<<: *gpu, mem_mb: 9000}}]\nprobe: {<<: *large}\n")
    assert yaml_files.read_yaml(path)["probe"] == {"mem_mb": 9000}
    assert yaml_files.read_yaml(path)["rules"] == [{"large": {"mem_mb": 9000}}]


def test_what_is_in_the_repository_is_valid(repository: Path) -> None:
    assert yaml_files.load_config()["preset"] == "demo"
    for preset in yaml_files.PRESETS:
        assert yaml_files.load_preset(preset)["preset"] == preset
    assert "transfer" in yaml_files.studies() and "transfer" in yaml_files.papers()
    for study in yaml_files.studies():
        assert yaml_files.load_study(study)["study"] == study
    for name in corpus.corpora():
        assert corpus.load(name, "smoke").name == name


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("preste", "demo", r"top level: unknown key 'preste'; did you mean 'preset'\? \(known: \['data', "),
        ("preset", "huge", r"preset: 'huge' .*\['paper', 'mini', 'evening', 'demo', 'smoke'\]"),
        ("studies", "transfer", r"studies: 'transfer'"),
        ("studies", [], r"studies: \[\] is not .* of length >= 1"),
        ("data.sourec", "local", r"data: unknown key 'sourec'; did you mean 'source'\?"),
        ("evaluation.missing", "ignore", r"evaluation.missing: 'ignore' .*\['error', 'proxy'\]"),
    ],
)
def test_config_yaml(root: Path, key: str, value: Any, message: str) -> None:
    path = root / "config/config.yaml"
    change(path, key, value)
    with pytest.raises(PlumblineError, match=rf"^{re.escape(str(path))}: {message}"):
        yaml_files.load_config(path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("study", "report", r"study: 'report' is no name of a study: .*report, verdict"),
        ("study", "demo", "study: 'demo' is no name of a study"),
        ("recipe.train.stepz", 3, "recipe.train: unknown key 'stepz'; did you mean 'steps'"),
        ("scales.base.huge", {}, "scales.base: .*'huge'"),
        ("scales.base.demo.model.widht", 3, "scales.base.demo.model: unknown key 'widht'; did you mean 'width'"),
        ("scales.base.demo.model.width", "128", "scales.base.demo.model.width: '128'"),
        ("methods.softpick.lable", "S", "methods.softpick: unknown key 'lable'; did you mean 'label'"),
        ("methods.softpick.model.mixr", {}, "methods.softpick.model: unknown key 'mixr'; did you mean 'mixer'"),
        ("runs.base", [{"scale": "base", "methods": "some", "seeds": [1]}], "runs.base.0.methods: 'some' is not"),
        ("runs.base", [{"scale": "base", "methods": "all"}], "runs.base.0: 'seeds' is missing; add it"),
        ("runs.base", [], r"runs.base: \[\] is not a list of length >= 1"),
        ("methods.softpick.label", " ", "methods.softpick.label: ' ' is no label"),
        ("methods.softpick.label", "Baseline", "methods: the label 'Baseline' is there twice; change one"),
        ("scales.large.demo.label", "1.2M", "scales: the label at preset demo '1.2M' is there twice; change one"),
        ("seeds", [42], "seeds: is read of a study that `extends` another one; remove it"),
        ("paper.link", "https://x.org/\n)", "paper.link: .* is no link"),
        ("targets.table2.kind", "tabel", r"targets.table2.kind: 'tabel' .*\['table', 'figure'\]"),
    ],
)
def test_a_study(root: Path, key: str, value: Any, message: str) -> None:
    path = root / "studies/transfer/study.yaml"
    change(path, key, value)
    with pytest.raises(PlumblineError, match=rf"^{re.escape(str(path))}: {message}"):
        yaml_files.load_study("transfer", root)


def test_a_preset(root: Path) -> None:
    change(root / "config/presets/smoke.yaml", "evaluation.limt", 3)
    with pytest.raises(PlumblineError, match=r"presets/smoke.yaml: evaluation: .*'limt'.*'limit'"):
        yaml_files.load_preset("smoke", root)


def test_the_same_key_twice(root: Path) -> None:
    path = root / "studies/transfer/study.yaml"
    text = path.read_text().replace("    label: Softpick\n", "    label: Softpick\n    label: Soft pick\n")
    path.write_text(text)
    line = text.splitlines().index("    label: Soft pick") + 1
    with pytest.raises(PlumblineError, match=rf"^{re.escape(str(path))}:{line}: the key 'label' is there twice"):
        yaml_files.load_study("transfer", root)


BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000 + "]" * 100_000, ":1: nested deeper than 50 levels"),
        ("".join(f"{' ' * level}a:\n" for level in range(60)), ":51: nested deeper than 50 levels"),
        ("a0: &a0 [1]\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i}]\n" for i in range(99)), ":50: nested deeper"),
        (BOMB, ":6: .* 200,000 values .*alias"),
        ("a: &a [1, *a]", r":1: \*a contains itself"),
        ("a:\n  rate: .nan", ":2: .nan .* finite"),
        ("a: [1, -.inf]", ":1: -.inf .* finite"),
        ("a: 1e999", ":1: 1e999 .* finite"),
        ("? [a]\n: 1", ":1: a key .* mapping"),
        ("a: 2026-99-99", ":1: '2026-99-99' is not a timestamp; correct it"),
        ("a: " + "9" * 5000, ":1: '9{79} is not a int; correct it"),
        ("a: !!bool maybe", ":1: 'maybe' is not a bool"),
        ("a: !!timestamp maybe", ":1: 'maybe' is not a timestamp"),
        ("a: &a {k: 1}\nb: {<<: *a, <<: {l: 2}}", ":2: the key '<<' is there twice; write one, with a list"),
        ("a: {<<: {k: 1, k: 2}}", ":1: the key 'k' is there twice"),
        ("a: \udcff", r" is not UTF-8 \(byte 3"),
    ],
)
def test_what_no_file_by_hand_holds_is_a_sentence(tmp_path: Path, text: str, message: str) -> None:
    """100,000 brackets ended the process without a word; the others were tracebacks, or numbers in a plan."""
    path = tmp_path / "config.yaml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(PlumblineError, match=f"^{re.escape(str(path))}{message}"):
        yaml_files.read_yaml(path)


def test_not_a_mapping_and_not_a_file(root: Path) -> None:
    path = root / "config/config.yaml"
    path.write_text("- preset: demo\n")
    with pytest.raises(PlumblineError, match=r"config.yaml: top level"):
        yaml_files.load_config(path)
    with pytest.raises(PlumblineError, match=r"config cannot be read: Is a directory"):
        yaml_files.read_yaml(root / "config")


CARRIED = "is no path that Snakemake and a cluster's command lines carry unchanged: no quotation marks"


@pytest.mark.parametrize(
    ("work", "message"),
    [
        *[(work, CARRIED) for work in ("w$(touch X)", "w`id`", "it's", 'w"', "w\\", "w{x}", "w\n", "w\x00", "w\udcff")],
        *[(work, "is no path: it begins with - or ~") for work in ("-w", "~/w", " w", "w ")],
        *[(work, "is not the short form") for work in ("w/", "./w", "w//x", "w/./x", ".", "/", "a/../w")],
        ("", "of length >= 1"),
        (3, "is not a text"),
    ],
)
def test_a_path_that_nobody_carries_is_refused(work: Any, message: str) -> None:
    with pytest.raises(PlumblineError, match=rf"(?s)^config.yaml: work: .*{message}"):
        yaml_files.check(yaml_files.load_config() | {"work": work}, ConfigFile, "config.yaml")


@pytest.mark.parametrize("spelling", ["link", "link/deep", "../{name}/config", "{root}/results", "twice/results/x"])
def test_a_folder_of_the_projects_own_is_known_by_where_it_is(root: Path, spelling: str) -> None:
    """`results` by its name alone was refused: through a link, or spelt out, checkpoints lay among products."""
    (root / "results").mkdir()
    for work in ("results", "studies/mine", "logs/x", ".snakemake"):
        with pytest.raises(PlumblineError, match=f"work: '{work}' is /.*folder of the project's own"):
            yaml_files.require_work(yaml_files.load_config() | {"work": work}, root)
    (root / "link").symlink_to("results")
    (root / "twice").symlink_to(root)
    work = spelling.format(name=root.name, root=root)
    config = yaml_files.load_config() | {"work": work}
    yaml_files.check(config, ConfigFile, "config.yaml")
    with pytest.raises(PlumblineError, match=r"work: '.*' is /.*, and so in (results|config),.*project"):
        yaml_files.require_work(config, root)


def test_work_elsewhere_is_taken_through_a_link_too(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    scratch = tmp_path_factory.mktemp("scratch")
    (root / "work").symlink_to(scratch)
    for work in ("work", "work/deep", str(scratch), "../elsewhere", "workers"):
        yaml_files.require_work(yaml_files.load_config() | {"work": work}, root)
    project = root.rename(root.with_name("demo"))  # where work/<preset> would be the project itself
    with pytest.raises(PlumblineError, match="project's own"):
        yaml_files.require_work(yaml_files.load_config() | {"work": ".."}, project)


@pytest.mark.parametrize("work", ["work", "/scratch/me/w", "../w", "Läufe (zwei) & mehr; #3", "a*b?[c]!"])
def test_other_paths_are_taken(work: str) -> None:
    yaml_files.check(yaml_files.load_config() | {"work": work}, ConfigFile, "config.yaml")


def test_folders_and_names_are_told_in_words(root: Path) -> None:
    config = yaml_files.load_config()
    for key, value, message in (
        ("evaluation", config["evaluation"] | {"folder": "it's"}, f'evaluation.folder: "it\'s" {CARRIED}'),
        ("machine", "h 100", "machine: 'h 100' is no name of a machine"),
        ("main_study", "Transfer\n", "main_study: .* is no name: lower-case letters"),
    ):
        with pytest.raises(PlumblineError, match=f"^config.yaml: {message}"):
            yaml_files.check(config | {key: value}, ConfigFile, "config.yaml")
    change(root / "config/corpora/climbmix.yaml", "local.folder", "-texts")
    with pytest.raises(PlumblineError, match=r"climbmix.yaml: local.folder: '-texts'"):
        corpus.load("climbmix", "smoke", root=root)


@pytest.mark.parametrize(
    ("place", "key", "correct"),
    [
        ((), "titel", "title"),
        ((), "copus", "corpus"),
        ((), "tragets", "targets"),
        (("paper",), "autors", "authors"),
        (("scales", "base"), "dmo", "demo"),
        (("targets", "table1"), "knd", "kind"),
    ],
)
def test_a_misspelt_required_key(place: tuple[str, ...], key: str, correct: str) -> None:
    """The key was told to be missing, and not that another one stands in its place."""
    content = at = copy.deepcopy(yaml_files.load_study("transfer"))
    for name in place:
        at = at[name]
    at[key] = at.pop(correct)
    where = ".".join(place) or "top level"
    with pytest.raises(PlumblineError, match=rf"^study.yaml: {where}: unknown key '{key}'; did you mean '{correct}'\?"):
        yaml_files.check(content, StudyFile, "study.yaml")


def test_files_that_are_not_there_not_yaml_or_misnamed(root: Path) -> None:
    with pytest.raises(PlumblineError, match="study 'transfr'; did you mean 'transfer'"):
        yaml_files.load_study("transfr", root)
    with pytest.raises(PlumblineError, match=r"there is no file .*presets/huge.yaml"):
        yaml_files.load_preset("huge", root)
    studies = root / "studies"
    (studies / "other").mkdir()
    (studies / "other/study.yaml").write_text((studies / "transfer/study.yaml").read_text())
    with pytest.raises(PlumblineError, match=r"other/study.yaml.*'transfer'.*'other'"):
        yaml_files.load_study("other", root)
    (studies / "transfer/study.yaml").write_text("title: of two lines\nstudy: [transfer")
    with pytest.raises(PlumblineError, match=r"study.yaml:2.*YAML.*sequence.*begins.*2$"):
        yaml_files.load_study("transfer", root)


def test_numbers_are_numbers(tmp_path: Path) -> None:
    """YAML 1.1, as PyYAML reads it, takes 1e-5 for a text."""
    (tmp_path / "a.yaml").write_text("[1e-5, 1E5, -2e+3, .5e-1, 1.5e3, 1e, e5, 1-5, 12]")
    assert yaml_files.read_yaml(tmp_path / "a.yaml") == [1e-5, 1e5, -2e3, 0.05, 1500.0, "1e", "e5", "1-5", 12]


@pytest.mark.parametrize("text", ["042", "-010", "00", "+0_1", "1:30", "-1:30:00", "1:30.5"])
def test_a_number_of_another_base_is_refused(tmp_path: Path, text: str) -> None:
    """The seed 042 was 34, and a price of 1:30 was 90."""
    path = tmp_path / "a.yaml"
    for content in (f"a: 1\nb: [42, {text}]", f"a: 1\n{text}: 1" if ":" not in text else f"a: 1\n? {text}\n: 1"):
        path.write_text(content)
        with pytest.raises(PlumblineError, match=rf"a.yaml:2: YAML reads {re.escape(text)} in base (8|60)"):
            yaml_files.read_yaml(path)
    path.write_text(f"['{text}', 0, -0, 0.5, 00.5, 42, 1_000, 12:x]")
    assert yaml_files.read_yaml(path) == [text, 0, 0, 0.5, 0.5, 42, 1000, "12:x"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("presets.smoke.packs.bsae", "some", r"presets.smoke.packs.bsae: "),
        (
            "presets.smoke.tokenizer.vocablary",
            3,
            r"presets.smoke.tokenizer: unknown key 'vocablary'; did you mean 'vocabulary'",
        ),
        ("held_out.percent", 0, r"held_out.percent: "),
        ("corpus", "other", r"corpus: 'other' .* 'climbmix'"),
    ],
)
def test_a_corpus(root: Path, key: str, value: Any, message: str) -> None:
    change(root / "config/corpora/climbmix.yaml", key, value)
    with pytest.raises(PlumblineError, match=rf"corpora/climbmix.yaml: {message}"):
        corpus.load("climbmix", "smoke", root=root)


def test_what_a_corpus_is_asked_for_must_be_there(root: Path) -> None:
    with pytest.raises(PlumblineError, match=r"no .*climbmx.yaml; did you mean 'climbmix'"):
        corpus.load("climbmx", "smoke", root=root)
    with pytest.raises(PlumblineError, match=r"climbmix.yaml: local.folder: missing"):
        corpus.load("climbmix", "smoke", "local", root).require_folder()
