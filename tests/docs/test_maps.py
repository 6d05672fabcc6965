"""Maps are true: what pages, docstrings, comments and messages name in backticks is there, and lists are complete."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture import rooms

FILE = re.compile(r"(?<![\w/.$<>{}*~-])(?:[\w-]+/)*(?:[\w.-]+\.(?:py|smk|md|yaml|toml)|[\w-]+/)(?![\w/])")
#: With a folder of this repository, a file needs no backticks.
ROOTED = re.compile(
    r"(?<![\w/.{}<>*-])(?:docs|src|tests|benchmarks|workflow|config|studies|profiles|envs|examples|records|slurm|actions)"
    r"/[\w./-]*\w\.(?:py|smk|md|yaml|toml|sh)\b(?!\.\w)"
)
MODULE = re.compile(r"(?:^|python -m )((?:plumbline|benchmarks|tests)(?:\.\w+)+)(?![\w-])")
FLAG = re.compile(r"(?:^|^plumbline .* )--(?:no-)?([a-z][\w-]+)")
#: As `list_code_versions`, `CheckpointSaver.save`, `re.search(...)`. What another library has is written with its name
#: (`torch.nn.Linear`), as `argument=`, or without backticks.
IDENTIFIER = re.compile(r"^(\w*[a-z]_\w+|[A-Z]+[a-z]+[A-Z]\w*|[A-Za-z_]\w+(?:\.\w+)+)(?:\(.*\))?$")
#: What a reader makes (`cooler` is the tutorial's study), or puts in the place of a word in capitals.
OWN = re.compile(r"(^|[/_])(my|mine|cooler|work|results|review|[A-Z]+)([/_]|\.yaml|$)")
#: What a changelog states was there before.
WAS = re.compile(r"\((?:was|were)\s[^)]*\)")
#: A line of a list of files: "- `file`:", "| `file` |", "file.py  ".
ROW = re.compile(r"^ *(?:[-|] )?(`[a-z_]+/?`(?:, `[a-z_]+/?`)*(?= *[|:])|[a-z_]+(?:\.py|/)(?= ))", re.MULTILINE)


@pytest.fixture(scope="module")
def texts(repository: Path) -> dict[str, str]:
    """The text of each file that is kept."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=repository, check=True, capture_output=True, text=True)
    files = [name for name in listed.stdout.split("\0") if (repository / name).is_file()]
    read = {name: (repository / name).read_text(encoding="utf-8", errors="ignore") for name in files}
    return read | {"CHANGELOG.md": WAS.sub("", read["CHANGELOG.md"])}


@pytest.fixture(scope="module")
def code(texts: dict[str, str]) -> str:
    return code_of(texts)


def code_of(texts: dict[str, str]) -> str:
    """What stands outside of backticks in files that are not pages."""
    code = [text for file, text in texts.items() if not file.endswith((".md", ".csv", ".tex", ".svg"))]
    return "\n".join(re.sub(r"`[^`\n]+`", "", text) for text in code)


def mentions(texts: dict[str, str], name: re.Pattern[str], *suffixes: str) -> Iterator[tuple[str, str]]:
    """Each file with each name in its backticks."""
    for file, text in texts.items():
        if file.endswith(suffixes):
            for span in re.findall(r"`+([^`\n]+)`+", text):
                yield from ((file, match) for match in name.findall(span))


def test_files_and_folders_are_there(texts: dict[str, str], code: str) -> None:
    """In the repository, by the end of the path, or made by a program that spells it."""
    paths = [path for file in texts for path in (Path(file), *Path(file).parents)]
    there = {"/".join(path.parts[start:]) for path in paths for start in range(len(path.parts))}
    for name in set(re.findall(r"""(?<=["'/])[\w./-]+(?=["'])""", code)):
        there |= {name, *name.split("/")}
    file_names = set(mentions(texts, FILE, ".py", ".smk", ".md"))
    file_names |= {
        (file, name) for file, text in texts.items() if "tests/" not in file for name in ROOTED.findall(text)
    }
    tree = texts["CONTRIBUTING.md"].partition("## Where things are")[2].partition("\n##")[0]
    file_names |= {("CONTRIBUTING.md", name) for name in re.findall(r"(?<![\w/>])[\w/-]+/(?=\s)", tree)}
    gone = {(file, name) for file, name in file_names if name.rstrip("/") not in there and not OWN.search(name)}
    assert gone == set()


def test_modules_and_what_they_define_are_there(texts: dict[str, str], code: str) -> None:
    """`plumbline.core.errors` is a module, a name in one, a file, or a string of the code."""
    spelt = {Path(file).name for file in texts} | set(re.findall(r"""(?<=["'])\w+(?:\.\w+)+(?=["'])""", code))
    modules = {
        re.sub(r"^src/|(/__init__)?\.py$", "", file).replace("/", "."): text
        for file, text in (texts | {f"plumbline/{file}": text for file, text in texts.items()}).items()
        if file.endswith(".py")
    }
    gone = set()
    for file, name in set(mentions(texts, MODULE, ".py", ".smk", ".md")):
        module = max((module for module in modules if f"{name}.".startswith(f"{module}.")), key=len, default="")
        rest = set(name.removeprefix(module).split(".")) - {""}
        if not rest <= set(re.findall(r"\w+", modules.get(module, ""))) and name not in spelt:
            gone.add((file, name))
    assert gone == set()


def test_identifiers_and_flags_are_in_the_code(texts: dict[str, str], code: str) -> None:
    code_words = set(re.findall(r"\w+", code))
    foreign = set(re.findall(r"^ *(?:import|from) (\w+)", code, re.MULTILINE)) - {"plumbline", "tests", "benchmarks"}
    identifiers = set(mentions(texts, IDENTIFIER, ".py"))
    gone = {(file, name) for file, name in identifiers if not code_words.issuperset(name.split("."))}
    assert {each for each in gone if each[1].partition(".")[0] not in foreign} == set()
    flags = set(re.findall(r"--([a-z][\w-]+)", code))
    assert {each for each in mentions(texts, FLAG, ".py", ".md") if each[1] not in flags} == set()


def test_a_package_lists_all_of_its_files_or_none(texts: dict[str, str]) -> None:
    """What its docstring names is one of its files, or in its code."""
    wrong = {}
    for file in (file for file in texts if file.endswith("/__init__.py")):
        doc = ast.get_docstring(ast.parse(texts[file])) or ""
        folder = f"{Path(file).parent}/" if re.search("[`\n]", doc) else "none"
        inside = {path: text for path, text in texts.items() if path.startswith(folder)}
        files = {path.removeprefix(folder).partition("/")[0].removesuffix(".py") for path in inside}
        rows = {name for row in ROW.findall(doc) for name in re.findall(r"[a-z_]{3,}", row)}
        known_names = {*Path(file).parts, *files, *re.findall(r"\w+", code_of(inside))}
        if untrue := {*re.findall(r"`([a-z_]+)/?`", doc)} - known_names | (rows and rows ^ (files - {"__init__"})):
            wrong[file] = untrue
    assert wrong == {}


def test_the_list_of_packages_is_the_contract(repository: Path) -> None:
    listed = (repository / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\nsrc/plumbline/")[2]
    rows = re.findall(r"^  ((?:\w+/ +)+)", listed.partition("```")[0], re.MULTILINE)
    folders = [layer for layer in reversed(rooms.order()) if (repository / "src/plumbline" / layer).is_dir()]
    assert " ".join(rows).replace("/", "").split() == folders
