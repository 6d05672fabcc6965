"""Reads a LaTeX file and what it inputs, line by line, without comments; only files of the paper's own folder.

Number of files, their size and how deep they input each other are bounded. What is not read is listed.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from plumbline.core.errors import UsageError

#: Most files, bytes of all of them, files within files, characters of a line, and commands that input a file.
FILES, BYTES, DEPTH, LINE, INPUTS = 200, 4_000_000, 10, 100_000, 1_000

#: What to do without LaTeX.
ONLY_A_PDF = (
    "Only a PDF: arXiv has the LaTeX of most papers; else take pdftotext -layout, and type each table as CSV, cells "
    "parted by commas"
)

#: How files begin that are packed: gzip, zip, bzip2, xz, zstandard, 7z.
_ARCHIVES = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf")

_INPUT = re.compile(
    r"\\(?:(?:sub)?(?:import|inputfrom|includefrom)\*?\s*\{(?P<folder>[^{}]*)\}|(?:input|include|subfile|subfileinclude|InputIfFileExists))"
    r"\s*\{(?P<name>[^{}]*)\}|\\(?:input|include)\s+(?P<bare>[^\s{}\\]+)"
)
_PACKAGE = re.compile(
    r"\\(?:usepackage|RequirePackage|documentclass|LoadClass)\s*(?:\[[^\[\]]*\])?\s*\{(?P<names>[^{}]*)\}"
)
#: How a package sets a switch of \\newif; most bytes and switches of one that are looked at.
_SETS, PACKAGE, SWITCHES = re.compile(r"\\([A-Za-z@]+?)(?:true|false)(?![A-Za-z@])"), 500_000, 200
#: What leaves a switch undecided, or all of them: what is not read may set them.
UNDECIDED = "\\setboolean{%s}{}"
_COMMENT = re.compile(r"(?<!\\)(?:\\\\)*%")
#: Environments whose content is not text of the paper.
_SKIPPED = ("comment", "verbatim", "lstlisting", "minted", "filecontents", "filecontents*")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a file: its text without a comment, and where it stands."""

    file: str
    number: int
    text: str

    @property
    def where(self) -> str:
        """File and line, as messages name them."""
        return f"{self.file}:{self.number}"


@dataclass(kw_only=True)
class Source:
    """The lines of a paper in the order of its text, and what was not read."""

    lines: list[SourceLine] = field(default_factory=list)
    not_read: list[str] = field(default_factory=list)
    files: int = 0
    inputs: int = 0
    size: int = 0


def read_source(path: Path) -> Source:
    """Read a LaTeX file with all that it inputs from its own folder.

    Raises:
        UsageError: there is no such file, or it is a PDF.
    """
    if path.is_dir():
        names = ", ".join(sorted(each.name for each in path.glob("*.tex"))[:8])
        raise UsageError(
            f"--from {path}: is a folder; name the paper's main .tex file in it ({names or 'it has none'})"
        )
    if not path.is_file():
        raise UsageError(f"--from {path}: there is no such file; name the paper's main .tex file")
    with path.open("rb") as handle:
        beginning = handle.read(262)
        if beginning.startswith(_ARCHIVES) or beginning[257:] == b"ustar":
            raise UsageError(
                f"--from {path}: is packed; unpack it (tar -xf, or gunzip where it is a single file), and name the "
                "paper's main .tex file"
            )
        if beginning.startswith(b"%PDF"):
            raise UsageError(f"--from {path}: is a PDF, and LaTeX is read. {ONLY_A_PDF}")
    source, root = Source(), path.resolve().parent
    _read(path.resolve(), root, source, ())
    return source


def _read(path: Path, root: Path, source: Source, above: tuple[Path, ...]) -> None:
    relative = path.relative_to(root).as_posix()
    source.files += 1
    with path.open("rb") as handle:
        content = handle.read(BYTES - source.size + 1)
    source.size += len(content)
    if source.size > BYTES or source.files > FILES:
        source.not_read.append(f"{relative}: with the files before it more than {BYTES // 10**6} MB or {FILES} files")
        return
    skipped = ""
    for number, raw in enumerate(_decode(content).splitlines(), start=1):
        if len(raw) > LINE:
            source.not_read.append(f"{relative}:{number}: a line of {len(raw)} characters")
            continue
        if skipped:
            if f"\\end{{{skipped}}}" in raw:
                skipped = ""
            continue
        text = _without_comment(raw)
        if not above and "\\end{document}" in text:
            source.lines.append(SourceLine(relative, number, text.partition("\\end{document}")[0]))
            return
        environment = next((name for name in _SKIPPED if f"\\begin{{{name}}}" in text), "")
        if environment and f"\\end{{{environment}}}" not in text:
            skipped = environment
            text = text.partition(f"\\begin{{{environment}}}")[0] + "\n"
        _keep_line(text, SourceLine(relative, number, text), path, root, source, above)


def _decode(content: bytes) -> str:
    """The text of a file: UTF-8, or what is written where it is not, UTF-16 with its mark or else Western Latin."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", errors="replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def _without_comment(raw: str) -> str:
    """Remove the comment of a line, which swallows the line's end too."""
    match = _COMMENT.search(raw)
    return raw + "\n" if match is None else raw[: match.end() - 1]


def _keep_line(text: str, line: SourceLine, path: Path, root: Path, source: Source, above: tuple[Path, ...]) -> None:
    """Keep a line, with the files that it inputs in place of their commands."""
    end = 0
    for match in _INPUT.finditer(text):
        source.lines.append(SourceLine(line.file, line.number, text[end : match.start()]))
        end = match.end()
        source.inputs += 1
        if source.inputs > INPUTS:
            if source.inputs == INPUTS + 1:
                source.not_read.append(f"{line.where}: after {INPUTS} times \\input none is followed")
            continue
        name = f"{match['folder'] or ''}{match['name'] or match['bare'] or ''}".strip().strip('"')
        target, why = _find_input(name, root, (*above, path))
        if target is None:
            source.not_read.append(f"{line.where}: \\input of {name!r}: {why}")
            if not any("\\begin{document}" in each.text for each in source.lines):  # text seldom sets a switch
                source.lines.append(SourceLine(line.file, line.number, UNDECIDED % ""))
        else:
            _read(target, root, source, (*above, path))
    source.lines.append(SourceLine(line.file, line.number, text[end:]))
    names = [name.strip() for match in _PACKAGE.finditer(text) for name in match["names"].split(",")]
    source.inputs += len(names)
    for name, ending in product(names if source.inputs < INPUTS else (), (".sty", ".cls")):
        target, _ = _find_input(name + ending, root, (*above, path))
        if target is not None:
            with target.open("rb") as handle:
                switches = sorted(set(_SETS.findall(_decode(handle.read(PACKAGE)))))[:SWITCHES]
            undecided = "".join(UNDECIDED % switch for switch in switches)
            source.lines.append(SourceLine(line.file, line.number, undecided))


def _find_input(name: str, root: Path, above: tuple[Path, ...]) -> tuple[Path | None, str]:
    """The file that is input, or None and why it is not read."""
    if not name or "\0" in name or "\\" in name or "#" in name or len(name) > 300:
        return None, "no plain name"
    why = "there is no such file"
    # As LaTeX takes it, from the main file's folder; or as authors of parts mean it, from that of their own file.
    for folder, ending in product(dict.fromkeys((root, above[-1].parent)), ("", ".tex")):
        try:
            path = (folder / (name + ending)).resolve()
            if not path.is_relative_to(root):
                why = "it lies outside the paper's folder"
                continue
            if not path.is_file():
                continue
        except (OSError, RuntimeError):
            continue
        if path in above:
            return None, "it inputs itself"
        if len(above) >= DEPTH:
            return None, f"files input each other more than {DEPTH} deep"
        return path, ""
    return None, why
