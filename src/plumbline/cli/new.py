"""Writes the files of your own method or study, with their tests: `plumbline new method NAME`, `plumbline new
study NAME`.

Both run as they are written, and are meant to be changed. No file is ever overwritten.
"""

from __future__ import annotations

import ast
import keyword
import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from plumbline.core import command_line, package_data
from plumbline.core.errors import PlumblineError, UsageError, nearest, visible
from plumbline.core.files import make_folder
from plumbline.specs import components, study_folders
from plumbline.specs.study_files import RESERVED
from plumbline.specs.yaml_files import PRESETS, load_study

TEMPLATES = Path(__file__).with_name("new_files")
#: What a template's name ends with, and what stands in it for the name that is given.
ENDING, STAND_IN = ".jinja", "NAME"
#: The study whose baseline a method is compared with, and where its package goes.
EXTENDS, OWN = "transfer", "my"
LONGEST = 30
#: What the option `initial` of a slot's first version is.
INITIAL = {"norm": 0.0, "positions": 500000.0}

Texts = dict[Path, str]


def render_method(name: str, slot: str, root: Path, *, built_in: bool = False) -> Texts:
    """Make the files of a method: their paths in the project `root`, and their texts.

    Args:
        name: of the method, its component and its study.
        slot: the slot of the model that the component fills.
        built_in: the component goes into the package's own source instead of a package of its own.

    Raises:
        PlumblineError: the name is none, or taken; there is no such slot.
    """
    _require_slot(slot)
    _require_name("method", name, root)
    _require_free_for_method(name, slot, root, importable=not built_in)
    package = Path(OWN) / name
    tests = Path("tests/model") / f"test_{name}.py" if built_in else package / "tests" / f"test_{name}.py"
    values = {
        "name": name,
        "class_name": "".join(part.capitalize() for part in name.split("_")),
        "label": _format_label(name),
        "slot": slot,
        "folder": components.folder(slot),
        "initial": INITIAL.get(slot, 1.0),
        "tests": tests.as_posix(),
        "commands": method_commands(name, built_in=built_in),
    }
    component = _render(TEMPLATES / "components" / f"{slot}.py{ENDING}", values)
    _require_other_class(component, str(values["class_name"]), name)
    if built_in:
        texts = {Path("src/plumbline") / components.KINDS[slot] / f"{name}.py": component}
    else:
        texts = _render_folder(TEMPLATES / "package", package, values)
        texts[package / "src" / name / f"{slot}.py"] = component
    texts[tests] = _render(TEMPLATES / f"method_test.py{ENDING}", values)
    study = Path(study_folders.STUDIES) / name / study_folders.YAML
    return texts | {study: _render(TEMPLATES / f"method_study.yaml{ENDING}", values)}


def render_study(name: str, root: Path) -> Texts:
    """Make the files of a study: their paths in the project `root`, and their texts.

    Raises:
        PlumblineError: the name is none, or taken.
    """
    _require_name("study", name, root)
    folder = Path(study_folders.STUDIES) / name
    values = {
        "name": name,
        "label": _format_label(name),
        "tests": (folder / "tests").as_posix(),
        "commands": study_commands(name),
    }
    return _render_folder(TEMPLATES / "study", folder, values)


def method_commands(name: str, *, built_in: bool = False) -> list[str]:
    """List the commands that come next for a method."""
    folder = f"{OWN}/{name}"
    install = [] if built_in else [f"pip install --no-deps --no-build-isolation --editable {folder}"]
    tests = f"tests/model/test_{name}.py" if built_in else f"{folder}/tests"
    return [*install, f"python -m pytest {tests}", f"plumbline try {name} --study {name} --dry-run"]


def study_commands(name: str) -> list[str]:
    """List the commands that come next for a study."""
    return [
        f"python -m pytest {study_folders.STUDIES}/{name}/tests",
        f"plumbline audit --study {name}",
        f"snakemake -n results/demo/{name}/table1.csv",
    ]


def write(texts: Texts, root: Path) -> None:
    """Write files into a project, all of them or none.

    Raises:
        PlumblineError: a file of that name is there; it is named.
    """
    for path in texts:
        _require_absent(root / path)
    created: list[Path] = []
    try:
        for path, text in texts.items():
            for folder in reversed([parent for parent in path.parents if not (root / parent).exists()]):
                make_folder(root / folder)
                created.append(root / folder)
            with open(root / path, "x", encoding="utf-8") as file:
                created.append(root / path)
                file.write(text)
    except BaseException:
        for path in reversed(created):
            path.unlink() if path.is_file() else path.rmdir()
        raise


def _require_absent(path: Path) -> None:
    existing_path = next((parent for parent in (path, *path.parents) if parent.is_symlink() or parent.exists()), None)
    if existing_path == path:
        raise PlumblineError(f"{path} is there, and nothing is ever written over; choose another name, or move it away")
    if existing_path is not None and not existing_path.is_dir():
        raise PlumblineError(
            f"{existing_path} is a file where a folder has to be; choose another name, or move it away"
        )


def _require_project(folder: Path) -> Path:
    if not package_data.is_project(folder):
        raise PlumblineError(
            f"{folder} is no project (it has no config/ and studies/); go to one and run the command there, or write "
            "one first: plumbline init FOLDER"
        )
    return folder


def _require_slot(slot: str) -> None:
    if slot not in components.SLOTS:
        if slot in components.KINDS:
            raise PlumblineError(
                f"--slot: {slot!r} is no slot of the model (these are {list(components.SLOTS)}); a component of "
                f"training is a file of src/plumbline/{components.KINDS[slot]}: docs/own-training.md takes one "
                "from its file to a verdict"
            )
        raise PlumblineError(
            f"--slot: there is no slot {slot!r}{nearest(slot, components.SLOTS)} (there are {list(components.SLOTS)})"
        )


def _require_name(kind: str, name: str, root: Path) -> None:
    """Refuse what is no name in Python and YAML alike, and what a study or preset is called."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name) or len(name) > LONGEST:
        suggestion = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:LONGEST]
        suggestion = f"my_{suggestion}" if keyword.iskeyword(suggestion) or not suggestion[:1].isalpha() else suggestion
        raise PlumblineError(
            f"NAME: {name!r} cannot be the name of a {kind}: lower-case letters, digits and _, a letter first, at most "
            f"{LONGEST} in all, and no word of Python's own; did you mean {suggestion!r}?"
        )
    if name in PRESETS:
        raise _name_taken_error(name, "a preset", f"--preset {name}")
    if name in RESERVED:
        raise _name_taken_error(name, "something beside the studies in results/", "plumbline ls targets")
    if name in study_folders.folders(root):
        raise _name_taken_error(name, "a study", f"plumbline ls methods --study {name}")


def _require_free_for_method(name: str, slot: str, root: Path, *, importable: bool) -> None:
    parent = load_study(EXTENDS, root)
    if name in parent["methods"]:
        raise _name_taken_error(name, f"a method of {EXTENDS}", f"plumbline try {name}")
    if name in parent.get("arms", {}):
        raise _name_taken_error(name, f"an arm of {EXTENDS}", f"plumbline ls runs --study {EXTENDS}")
    if name in components.available(slot):
        raise _name_taken_error(name, f"a component of the slot {slot}", f"model: {{{slot}: {{name: {name}}}}}")
    if importable and find_spec(name) is not None:
        raise PlumblineError(
            f"NAME: {name!r} is a module that Python can import, and the package would hide it or be hidden; choose "
            f"another name, such as {_suggest_name(name)!r}"
        )


def _require_other_class(text: str, class_name: str, name: str) -> None:
    """Refuse a name whose class would be called like one that its own file imports."""
    imported = {
        alias.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    if class_name in imported:
        raise PlumblineError(
            f"NAME: {name!r} would make a class {class_name}, as its base class is called; choose another name, "
            f"such as {_suggest_name(name)!r}"
        )


def _name_taken_error(name: str, owner: str, command: str) -> PlumblineError:
    return PlumblineError(
        f"NAME: {name!r} is the name of {owner}; did you mean `{command}`? For your own choose another name, such as "
        f"{_suggest_name(name)!r}"
    )


def _suggest_name(name: str) -> str:
    return f"my_{name}"[:LONGEST]


def _format_label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _render_folder(templates: Path, folder: Path, values: dict[str, object]) -> Texts:
    return {folder / path: _render(file, values) for file, path in _list_templates(templates, str(values["name"]))}


def _list_templates(folder: Path, name: str) -> Iterator[tuple[Path, Path]]:
    """Every template below a folder, and the path that its file gets."""
    for file in sorted(folder.rglob(f"*{ENDING}")):
        yield file, Path(file.relative_to(folder).as_posix().removesuffix(ENDING).replace(STAND_IN, name))


def _render(template: Path, values: dict[str, object]) -> str:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    return environment.from_string(template.read_text(encoding="utf-8")).render(values)


def arguments() -> command_line.Parser:
    """Build the command-line parser of `plumbline new`."""
    parser = command_line.Parser(__doc__)
    kinds = parser.add_subparsers(dest="what", required=True, metavar="method|study")
    method_parser = kinds.add_parser(
        "method", help="write a component, its test, and a study that compares it with the baseline"
    )
    method_parser.add_argument("name", metavar="NAME", help="name of the method, its component and its study")
    method_parser.add_argument(
        "--slot",
        default="mixer",
        metavar="SLOT",
        completer=lambda **_: components.SLOTS,
        help=f"one of {', '.join(components.SLOTS)}",
    )
    method_parser.add_argument(
        "--built-in",
        action="store_true",
        help="in a clone: write the component into src/plumbline, not into a package",
    )
    study_parser = kinds.add_parser(
        "study", help="write a folder of studies/ that runs: published numbers, table, figure, claims"
    )
    study_parser.add_argument("name", metavar="NAME", help="name of the study and its folder")
    return parser


def main() -> None:
    """Run `plumbline new`: write the files of a method or a study, and say what comes next."""
    options = arguments().parse_args()
    root = _require_project(Path.cwd())
    if options.what == "method":
        if options.built_in and package_data.source_tree() != root:
            raise UsageError(
                "--built-in is for a clone of the repository that is installed editable, in its folder; leave it out, "
                "and the component becomes a package"
            )
        texts = render_method(options.name, options.slot, root, built_in=options.built_in)
        commands = method_commands(options.name, built_in=options.built_in)
    else:
        texts, commands = render_study(options.name, root), study_commands(options.name)
    write(texts, root)
    lines = [
        *(f"wrote {path}" for path in texts),
        "Then:",
        *(f"  {shlex.join(command.split())}" for command in commands),
    ]
    print(visible("\n".join(lines)))


if __name__ == "__main__":
    command_line.run(main)
