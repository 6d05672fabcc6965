"""Nothing is unpickled: reading a pickle runs what whoever wrote it wanted."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
SAFE = ("allow_pickle", False)
#: What would read one, and the word with which it does not.
READERS = {"torch.load": None, "read_pickle": None, "np.load": SAFE, "numpy.load": SAFE}


def unpickling(source: str) -> Iterator[str]:
    """What in a module's source could read a pickle."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (name for name in names if name.partition(".")[0] in MODULES)
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            name = next((reader for reader in READERS if called == reader or called.endswith(f".{reader}")), None)
            if name is not None:
                safe, keywords = READERS[name], {word.arg: ast.unparse(word.value) for word in node.keywords}
                if safe is None or keywords.get(safe[0]) != str(safe[1]):
                    yield called


def test_no_module_reads_a_pickle(repository: Path) -> None:
    attack = "import pickle; torch.load(a); np.load(b); pd.read_pickle(c); np.load(d, allow_pickle=False)"
    assert sorted(unpickling(attack)) == ["np.load", "pd.read_pickle", "pickle", "torch.load"]
    files = [path for folder in ("src", "studies") for path in (repository / folder).rglob("*.py")]
    assert len(files) > 300
    assert not {path: calls for path in files if (calls := [*unpickling(path.read_text(encoding="utf-8"))])}
