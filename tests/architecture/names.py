"""Counts names that name nothing: ``python -m tests.architecture.names [--list] [PATH ...]``.

Six kinds, of `src`, `studies`, `tests` and `benchmarks`, or of the paths that are named:

- blank variables: what is bound (a variable, a parameter, a field) to a word that holds for anything (`found`, `one`);
- participles: functions that are called by a participle alone (`named`), or by one before what it is of
  (`gated_overhead`); properties and fixtures are nouns, and may;
- adjectives alone: functions that are called by an adjective or a preposition and no noun (`best`, `behind`), except
  those that answer yes or no;
- prepositions: parameters called `of`, `by`, `how`;
- verbs that return something else: a function that counts and returns no number, or lists and returns one text;
- odd words: places in comments, docstrings and messages of a turn that English has a plainer one for.

With `--list` every place is printed by file, line, scope and name, to be worked through.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("src", "studies", "tests", "benchmarks")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words that hold for anything: what is bound to one of them has no name.
BLANK = _words(
    """
    found one given said words known judged asked told kept held named shown drawn made seen taken left meant wanted
    thing things what which there here whole done lost begun gone needed before after apart same alike
    """
)
#: Adjectives and prepositions that name no thing.
ADJECTIVES = _words(
    """
    above after against alone always before behind below best better beyond both common comparable distinct due each
    earlier early elsewhere empty everything exact falling farther few finite generic high higher hybrid inside
    invertible large larger largest last late latest likely local low lower lowest missing more most near nearest newest
    next normal once orthogonal others plain positive present primary random readable relative right rising runnable
    same shared sharp short singular small smallest together unknown unread unreadable unseen unusable usable visible
    where whole why wide within without worst worth
    """
)
PREPOSITIONS = _words("but of by at how what beside")
#: Participles that do not end in -ed.
IRREGULAR = _words(
    """
    found given said known told kept held shown drawn made seen taken left meant written cut done gone chosen
    worn torn sent spent bought brought built caught felt fought got hidden laid led lost paid sold stood struck
    taught thought understood won
    """
)
#: Words that end in -ed and are verbs or nouns.
NOT_PARTICIPLES = _words("embed need seed feed speed read bleed breed exceed proceed succeed shed bed red")

#: First word of a function of several -> what it returns, by its annotation, if the name is not true.
UNTRUE_RETURNS = {
    "count": re.compile(r"None|str|list\[str\]"),
    "list": re.compile("None|str"),
    **dict.fromkeys(("format", "describe", "explain"), re.compile(r"None|list\[\w*(Result|Error)\]")),
    **dict.fromkeys(("is", "has"), re.compile("None|str|int|list.*")),
}

#: Kind of odd words -> their pattern.
ODD = {
    "say, tell": r"\b(says?|said|saying|tells?|told|telling)\b",
    "words for text": r"\bin words\b|\bthe words\b|\bwords of\b|\bits words\b",
    "beside": r"\bbeside\b",
    "is no, are no": r"\b(is|are|was|were|be) no (?!longer\b|more\b|less\b|fewer\b|such\b)\w+",
    "None where, empty of": r"\bNone where\b|\bempty (of one|where)\b",
    "look": r"\blook(s|ed)? at\b|\ba look\b|\blooks\b",
    "of its own": r"\bof (its|one's|their|your|his) own\b|\bof (ours|theirs)\b",
    "worth, asked": r"\basked (of|for)\b|\bis asked\b|\bwas asked\b",
    "at work, but for": r"\bat work\b|\bheld against\b|\bbut for\b|\bcom(e|es|ing) out\b|\breckon\w*\b",
}
ODD_PATTERNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in ODD.items()}


@dataclass(frozen=True, kw_only=True)
class CountedName:
    """A name or turn that is counted, where it stands."""

    kind: str
    path: Path
    line: int
    scope: str
    name: str


def is_participle(word: str) -> bool:
    """Whether a word of a name is a past participle."""
    return word in IRREGULAR or (word.endswith("ed") and word not in NOT_PARTICIPLES and len(word) > 4)


class _Names(ast.NodeVisitor):
    """Gathers the counted names of one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.scopes: list[str] = []
        self.bound: set[tuple[str, str]] = set()
        self.names: list[CountedName] = []

    def add(self, kind: str, line: int, name: str) -> None:
        scope = ".".join(self.scopes)
        self.names.append(CountedName(kind=kind, path=self.path, line=line, scope=scope, name=name))

    def bind(self, line: int, name: str) -> None:
        """Count a blank name once in its scope."""
        bare, scope = name.strip("_"), ".".join(self.scopes)
        if bare in BLANK and (scope, name) not in self.bound:
            self.bound.add((scope, name))
            self.add("blank variables", line, name)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.bind(node.lineno, node.id)

    def visit_arg(self, node: ast.arg) -> None:
        self.bind(node.lineno, node.arg)
        if node.arg in PREPOSITIONS:
            self.add("prepositions", node.lineno, node.arg)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scopes.append(node.name)
        self.generic_visit(node)
        self.scopes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorators = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
        first, *rest = node.name.strip("_").split("_")
        if is_participle(first) and not re.search(r"property|fixture|setter|overload", decorators):
            self.add("participles before a noun" if rest else "participles alone", node.lineno, node.name)
        answers = node.returns is not None and ast.unparse(node.returns) in ("bool", "None")
        if node.name.strip("_") in ADJECTIVES and not answers and not re.search("property|CHECKS", decorators):
            self.add("adjectives alone", node.lineno, node.name)
        pattern = UNTRUE_RETURNS.get(first) if rest and node.returns is not None else None
        if pattern is not None and pattern.fullmatch(ast.unparse(node.returns).strip("'\"")):
            self.add("verbs that return something else", node.lineno, node.name)
        self.scopes.append(node.name)
        self.generic_visit(node)
        self.scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef


def names_of(path: Path) -> Iterator[CountedName]:
    """List the counted names and turns of a file."""
    text = path.read_text(encoding="utf-8")
    visitor = _Names(path)
    visitor.visit(ast.parse(text))
    yield from visitor.names
    kinds = {tokenize.COMMENT, tokenize.STRING} | {getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            for kind, pattern in ODD_PATTERNS.items():
                for match in pattern.finditer(token.string):
                    line = token.start[0] + token.string.count("\n", 0, match.start())
                    yield CountedName(kind=f"odd: {kind}", path=path, line=line, scope="", name=match.group())


def files(paths: list[Path]) -> Iterator[Path]:
    """List the Python files of paths, except what tests keep as other people have it."""
    for path in paths:
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def main() -> None:
    """Print the counts, and with `--list` the places."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders (src, studies, tests, benchmarks)")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository whose places are counted")
    parser.add_argument("--list", action="store_true", help="print every place")
    options = parser.parse_args()
    paths = options.paths or [options.root / place for place in PLACES]
    counts: dict[str, Counter[str]] = {}
    for path in paths:
        counter: Counter[str] = Counter()
        counts[str(path)] = counter
        for name in (name for file in files([path]) for name in names_of(file)):
            counter[name.kind] += 1
            if options.list:
                print(f"{name.path}:{name.line}: {name.kind}: {name.scope}: {name.name}")
    kinds = dict.fromkeys(kind for counter in counts.values() for kind in sorted(counter))
    for kind in sorted(kinds):
        print(f"{kind:28}" + "".join(f"{Path(place).name:>12}:{counter[kind]:6}" for place, counter in counts.items()))


if __name__ == "__main__":
    main()
