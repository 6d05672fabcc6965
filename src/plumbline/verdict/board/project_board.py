"""Makes a board of a project's own records and verdicts: bundles that were kept, and pages of verdicts.

A verdict's page stands for what it says, and no log of it is read: it is claimed. So is a bundle whose files are not
those that it lists.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import math
import os
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plumbline.core import run_files
from plumbline.core.errors import PlumblineError
from plumbline.core.files import refuse_repeated_keys, sha256_file
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.board.board_rows import Board, BoardRow
from plumbline.verdict.comparability import every_check
from plumbline.verdict.sources.bounded_reading import list_files_below, read_text, resolve_inside

RECORD, BUNDLE = "record.json", "bundle.tar.xz"
#: What "logs checked" means of one's own: nothing is computed again here.
CHECKED = (
    "a bundle's archive is the one that was recorded, and each file of its runs has the hash that the bundle lists "
    "(plumbline rebuild makes its products again); of a verdict no log is read here"
)
#: Files that are named among those that are no verdict.
NAMED = 3


def read_project_board(folder: Path) -> Board:
    """Read the `record.json` and the verdicts below a folder.

    Raises:
        PlumblineError: there is none.
    """
    rows, left_out = gather_rows(folder)
    if not rows:
        raise PlumblineError(
            f"{folder}: neither a {RECORD} nor a verdict (a page with its .json) is below it; the records of another "
            "community are read with --rules"
        )
    return make_project_board(folder, rows, left_out)


def make_project_board(folder: Path, rows: Sequence[BoardRow], left_out: Sequence[str]) -> Board:
    """Make the board of a folder's rows, the newest last."""
    return Board(
        title=f"Records and verdicts of {folder.resolve().name}",
        headline="what",
        rows=rows,
        checked=CHECKED,
        left_out=left_out,
    )


def gather_rows(folder: Path) -> tuple[list[BoardRow], list[str]]:
    """Read what is below a folder as rows, the newest last, and say of each that is none why.

    Raises:
        PlumblineError: there is no such folder.
    """
    if not folder.is_dir():
        raise PlumblineError(f"{folder}: no such folder; name the one that holds records or verdicts")
    rows, left_out, other_files = list[BoardRow](), list[str](), list[str]()
    for path in list_files_below(folder, (".json",)):
        is_record = path.name == RECORD
        if not is_record and not path.with_suffix(".md").is_file():
            continue
        try:
            data = json.loads(read_text(path), object_pairs_hook=refuse_repeated_keys)
            row = (_read_record if is_record else _read_verdict)(path, folder, data) if isinstance(data, dict) else None
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError, PlumblineError):
            left_out.append(f"{path.relative_to(folder)} cannot be read as a record or a verdict.")
            continue
        if row is not None:
            rows.append(row)
        else:
            other_files.append(str(path.relative_to(folder)))
    if other_files:
        names = ", ".join(other_files[:NAMED]) + (
            f" and {len(other_files) - NAMED} more" if len(other_files) > NAMED else ""
        )
        left_out.append(f"No record and no verdict, though a page stands beside: {names}.")
    rows.sort(key=lambda row: (row.date, row.name))
    return rows, left_out


def _read_record(path: Path, folder: Path, data: dict[str, Any]) -> BoardRow:
    """A bundle: checked where its archive is the one that was recorded, and holds the files that it lists."""
    unlike = find_difference(path.parent / BUNDLE, data.get("sha256"))
    lines = (
        str(data.get("words", ""))[:400],
        f"Bundle of {data.get('products')} targets at commit {str(data.get('commit', ''))[:12]}: "
        f"{unlike or 'the archive is the recorded one, and its files have the hashes that it lists'}.",
    )
    return BoardRow(
        name=path.parent.name,
        description=lines[0],
        shown=f"{data.get('products')} targets",
        tier="claimed" if unlike else "logs checked",
        faults=("archive",) if unlike else (),
        lines=lines,
    )


def _read_verdict(path: Path, folder: Path, data: dict[str, Any]) -> BoardRow | None:
    """A page of an experiment, or of `plumbline verdict`, by its numbers; None of anything else."""
    sentence: Any
    verdict: Any
    if "shape" in data and "ledger" in data:
        part = data.get("items") or data.get("search") or {}
        outcomes = data.get("outcomes") or {"": part.get("outcome", "")}
        sentence = _first_sentence(path.with_suffix(".md"))
        verdict = ", ".join(dict.fromkeys(map(str, outcomes.values())))
    else:
        sentence, verdict = data.get("sentence"), data.get("verdict", "")
    if not isinstance(sentence, str):
        return None
    runs = data.get("runs")
    bound, faults = _check_ledger(path.with_suffix(".md"), folder)
    return BoardRow(
        name=path.stem.removesuffix(".verdict"),
        description=sentence[:400],
        date=str(data.get("at", ""))[:10],
        runs=len(runs) if isinstance(runs, list) else 0,
        verdict=verdict[:100] if isinstance(verdict, str) else "",
        p_predecessor=_read_p(data),
        faults=faults,
        page=path.with_suffix(".md").relative_to(folder).as_posix(),
        lines=tuple(line for line in (sentence[:2000], *_list_told(data.get("comparability")), bound) if line),
    )


def _list_told(answers: Any) -> list[str]:
    """The sentences that the checks of comparability put next to a verdict: on one thing, or by method."""
    answers = answers or {}
    by_method = {"": answers} if all("answer" in each for each in answers.values()) else answers
    sentences = every_check.list_told_of_methods(
        {method: every_check.answers_from_json(each) for method, each in by_method.items()}
    )
    return [sentence[:2000] for sentence in sentences]


def _first_sentence(page: Path) -> str | None:
    """What a page of `plumbline verdict` says first, below its heading."""
    parts = [part.strip() for part in read_text(page).split("\n\n")]
    return next((part for part in parts if part and not part.startswith("#")), None)


def _read_p(data: Mapping[str, Any]) -> float | None:
    """The p of a verdict on one thing, times its tries; None of several."""
    methods = data.get("methods")
    judgements = [*methods.values()] if isinstance(methods, dict) else [data.get("items") or data.get("search") or data]
    if len(judgements) != 1 or not isinstance(judgements[0], dict):
        return None
    value = judgements[0].get("p_corrected", judgements[0].get("p"))
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _check_ledger(page: Path, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Whether a page's ledger is the one that it was made with, as text, and the kind of fault where it is not."""
    try:
        state = ledgers.read_statement(page)
        if state is None:
            return "", ()
        path = resolve_inside(folder, os.path.relpath(page.parent / state.name, folder))
        if path is None:
            return "Its ledger lies outside of this folder, and was not read.", ()
        if path.is_file() and not read_text(path).endswith("\n"):
            return "The last line of its ledger is not whole; it was not read.", ()
        added = ledgers.count_new_entries(ledgers.read(path), page, state)
    except PlumblineError as error:
        return f"Its ledger is not the one that it was made with: {str(error).replace(f'{folder}/', '')}", ("ledger",)
    addition = f", to which {added} entries were added since: make the page again" if added else ""
    return f"Its ledger is the one that it was made with{addition}.", ()


#: The archive's first file, which lists the others; the most bytes of it, and of all files together.
LIST, LIST_BYTES, BYTES = "bundle/ro-crate-metadata.json", 32 << 20, 4 << 30
#: What a run of training leaves in a bundle.
RUN = "manifest.json"


def find_difference(archive: Path, recorded: Any) -> str:
    """What keeps a bundle from being checked, as text: empty if the archive has the recorded SHA-256, every file in
    it has the size and the SHA-256 that its list has, and there are runs among them.
    """
    if not archive.is_file():
        return "the archive is not there"
    if sha256_file(archive) != recorded:
        return "the archive is another one than the recorded"
    try:
        with tarfile.open(archive, "r|xz") as tar:
            return _compare_with_list(tar)
    except (tarfile.TarError, lzma.LZMAError, EOFError, ValueError, RecursionError, PlumblineError) as error:
        return f"the archive is no bundle ({str(error)[:100]})"


def _compare_with_list(tar: tarfile.TarFile) -> str:
    members = iter(tar)
    first = next(members, None)
    if first is None or first.name != LIST or not first.isreg() or first.size > LIST_BYTES:
        return f"the archive does not begin with {LIST}"
    listed = _read_list(json.loads(_read_member(tar, first), object_pairs_hook=refuse_repeated_keys))
    total_size, runs = 0, 0
    for member in members:
        name = member.name.removeprefix("bundle/")
        size, sha256 = listed.pop(name, (-1, ""))
        total_size += member.size
        if not member.isreg() or member.size != size or total_size > BYTES:
            return f"{name[:200]} is not the file that the bundle's list has"
        content = _read_member(tar, member)
        if hashlib.sha256(content).hexdigest() != sha256:
            return f"{name[:200]} has another hash than the bundle's list has"
        if name.endswith(f"/{RUN}"):
            manifest = json.loads(content, object_pairs_hook=refuse_repeated_keys)
            if not isinstance(manifest, dict) or not {"run_id", "spec"} <= manifest.keys():
                return f"{name[:200]} is no manifest of a run: it has no run_id and spec"
            run_files.require_manifest(Path(name), manifest)
            runs += 1
    if listed:
        return f"{next(iter(listed))[:200]} is in the bundle's list and not in the archive"
    return "" if runs else "no run is in it"


def _read_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    return file.read() if file is not None else b""


def _read_list(document: Any) -> dict[str, tuple[int, str]]:
    graph = document.get("@graph") if isinstance(document, Mapping) else None
    if not isinstance(graph, list):
        raise ValueError(f"{LIST} lists no files")
    return {
        str(each["@id"]): (int(each["contentSize"]), each["sha256"])
        for each in graph
        if isinstance(each, Mapping) and "sha256" in each and str(each.get("contentSize", "")).isdecimal()
    }
