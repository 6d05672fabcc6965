"""Shows the audit of a folder: as a page (by the audit's own), on a console, as one object of JSON.

What a paper, a folder or a file names itself is escaped wherever it is shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from plumbline.audit.audit_csv import Row, summary
from plumbline.audit.audit_page import format_recomputed, item, to_markdown
from plumbline.audit.audit_rows import VERDICTS
from plumbline.audit.coverage import AuditCoverage
from plumbline.audit.findings import Finding
from plumbline.audit.paper.lines import PLACES
from plumbline.audit.paper.paper_audit import CONTRADICTS, LIKELY, NOTHING_CHECKED, PaperAudit
from plumbline.audit.paper.paper_table import PaperTable
from plumbline.core.errors import visible
from plumbline.specs.paper import Paper

#: Most contradictions and sentences that the console shows; the page has all.
SHOWN = 12

#: Most numbers that a sentence for a review names.
NAMED = 3

RUNNING_TEXT = (
    "Of running text only what a sentence says by itself, or of a cell that it names, is read; "
    "the rest is checked where audit.toml says it."
)

UNREAD = "no check of the audit file reads them, and no relation to others was found"


def write_page(audit: PaperAudit, not_read: Iterable[str] = ()) -> str:
    """The page: the audit's own, and after it what was examined, dropped and not read."""
    name = _as_code(audit.folder.resolve().name)
    rows = [{key: _format_value(key, value) for key, value in row.items()} | {"study": name} for row in audit.rows]
    findings = [
        Finding(
            id=_as_code(finding.id),
            bears_on=finding.bears_on,
            text=_escape_text(finding.text),
            rows=tuple(map(_as_code, finding.rows)),
        )
        for finding in audit.findings
    ]
    unread = {UNREAD: [("", "", "")] * (audit.printed - audit.read)} if audit.printed > audit.read else {}
    covered = AuditCoverage(printed=audit.printed, listed=unread)
    title = _escape_text(audit.title)
    paper = Paper(title=title, short=title, authors=(), link="", kind="paper") if title else None
    page_content = (rows, [name], {name: findings}, {name: covered}, {name: paper})
    text = to_markdown(*page_content, with_bearings=False) if rows else "# Audit of the printed numbers\n\n"
    head, _, rest = text.partition("\n\n")
    ids = ", ".join(dict.fromkeys(f"`{_as_code(row['finding'])}`" for row in audit.likely))
    answer = f"{write_answer(audit)} {f'Likely: {ids}.' if ids else ''}".strip()
    link = item(f"<{audit.link}>") if audit.link else []
    lines = [head, "", *item(answer), *item(describe_coverage(audit)), *link, ""]
    text = "\n".join([*lines, rest] if rest else lines)
    sections = {
        "Tables": [f"`{_as_code(table.name)}`: {_describe(table, audit.unread[table.name])}" for table in audit.tables],
        "Relations that were found without being told": map(_escape_text, audit.relations),
        "Looked at and not checked": map(_escape_text, audit.dropped),
        "Not read, and why": map(_escape_text, [RUNNING_TEXT, *not_read]),
    }
    for head, entries in sections.items():
        lines = [line for entry in entries for line in item(entry)]
        text += "\n".join(["", f"## {head}", "", *lines, ""]) if lines else ""
    return text


NO_ROWS = "no relation was found among its numbers; tell some in audit.toml."


def describe_coverage(audit: PaperAudit) -> str:
    """What was read of what is there, and what of it a check reads."""
    tables = len(audit.tables)
    share = f"{tables} of {_count(audit.source.tables_there, 'table')}" if audit.source.tables_there else ""
    text = f"{share or _count(tables, 'table')} read; {audit.read} of {_count(audit.printed, 'number')} are in a check"
    if audit.sentences:
        text += f"; {audit.sentences_read} of {_count(audit.sentences, 'sentence')} with a number"
    if audit.rows_after:
        rows = _count(sum(audit.rows_after.values()), "row")
        text += f"; no relation is looked for in {rows} after the {PLACES}th of a table"
    return f"{text}."


def write_author_text(audit: PaperAudit) -> str:
    """A text to send to an author: each number that contradicts, or may, with its place and what gives another.

    Nothing where the audit has nothing to ask.
    """
    if audit.answer not in (CONTRADICTS, LIKELY):
        return ""
    lines = [f"On the printed numbers of {audit.title or 'your paper'}:", ""]
    for rows, head in ((audit.contradictions, ""), (audit.likely, "Perhaps meant otherwise: ")):
        for row in rows:
            reason = re.sub(r"(?<=: )(\d+ of \d+ \w+)\..*", r"\1", str(row.get("explanation", ""))).rstrip(".")
            lines.append(f"- {head}{row['quantity']} ({row['source']}): printed {row['printed']}, "
                         f"{format_recomputed(row)}; {reason}.")  # fmt: skip
    lines += [f"- A question: {entry}. Is something else meant there?" for entry in audit.doubted]
    end = "A printed number is taken for all that rounds to it. Which of the numbers is wrong the audit does not know."
    return "\n".join([*lines, "", end])


def write_review_sentence(audit: PaperAudit) -> str:
    """A sentence for a review: what contradicts, or else what is asked; nothing where there is neither."""
    broken = [
        f"{row['quantity']} is printed as {row['printed']} ({format_recomputed(row)} from the others)"
        for row in audit.contradictions or audit.likely
    ]
    entries = broken or audit.doubted
    text = "; ".join(entries[:NAMED]) + (f"; {len(entries) - NAMED} more" if len(entries) > NAMED else "")
    if audit.contradictions:
        return f"Some printed numbers contradict each other: {text}; please correct or explain them."
    return f"No printed number contradicts the others; please say what is meant by these: {text}." if entries else ""


def format_console(audit: PaperAudit, files: dict[str, str], not_read: list[str]) -> str:
    """Write the audit for a terminal: what was read and checked, each contradiction in two lines, the files."""
    counts = summary(audit.rows, [audit.rows[0]["study"]])["all"] if audit.rows else dict.fromkeys(VERDICTS, 0)
    untold = len(audit.rows) - audit.stated
    lines = [
        f"{audit.folder}: {describe_coverage(audit)}",
        f"{_count(len(audit.rows), 'check')}: {audit.stated} told, {untold} found without being told",
        "  ".join(f"{name} {counts[name]}" for name in VERDICTS),
    ]
    lines += _list_broken(audit.contradictions)
    if audit.likely:
        lines += ["", "Likely, look here; another relation may be meant:", *_list_broken(audit.likely)]
    if audit.answer == NOTHING_CHECKED:
        lines += ["", write_answer(audit)]
    if audit.dropped:
        lines += ["", "Looked at and not checked; a line in audit.toml checks it:"]
        lines += [f"  {entry}" for entry in audit.dropped[:SHOWN]]
        lines += [f"  and {len(audit.dropped) - SHOWN} more on the page"] * (len(audit.dropped) > SHOWN)
    if not_read:
        lines += ["", f"Not read, {_count(len(not_read), 'place')}:", *(f"  {entry}" for entry in not_read[:SHOWN])]
        lines += [f"  and {len(not_read) - SHOWN} more on the page"] * (len(not_read) > SHOWN)
    lines += [""] if audit.answer == NOTHING_CHECKED else ["", write_answer(audit)]
    lines += [*(f"{name:5} {path}" for name, path in files.items())]
    return visible("\n".join(lines))


def _list_broken(broken: Sequence[Row]) -> list[str]:
    """Write rows that do not hold, as the console shows them."""
    lines = []
    for row in broken[:SHOWN]:
        lines += [
            "",
            f"{row['quantity']}  ({row['source']})",
            f"    printed {row['printed']}, {format_recomputed(row)}",
        ]
        lines += [f"    {row['explanation']}"] * bool(row.get("explanation"))
    return lines + ["", f"and {len(broken) - SHOWN} more on the page"] * (len(broken) > SHOWN)


def write_answer(audit: PaperAudit) -> str:
    """Write the audit's result in a sentence or two."""
    if audit.answer == NOTHING_CHECKED:
        return f"Nothing was checked: {NO_ROWS}"
    broken, likely = len(audit.contradictions), len(audit.likely)
    sentence = f"{_count(broken, 'number')} contradict{'s' * (broken == 1)} the others." if broken else ""
    if likely:
        sentence += (
            f" {_count(likely, 'number')} {'does' if likely == 1 else 'do'} not fit; another relation may be meant."
        )
    if audit.doubted and not broken:
        count = len(audit.doubted)
        sentence += (
            f" {_count(count, 'relation')} that a name states {'holds' if count == 1 else 'hold'} in most rows and "
        )
        sentence += f"{'is' if count == 1 else 'are'} not checked: look at the others."
    number_count = f"{audit.read} of {_count(audit.printed, 'number')} that were read"
    return sentence.strip() or f"Nothing contradicts among the {number_count}."


def make_json(audit: PaperAudit, files: dict[str, str], not_read: list[str], code: int) -> dict[str, Any]:
    """The audit as one object."""
    keys = (
        "id",
        "quantity",
        "source",
        "formula",
        "printed",
        "recomputed",
        "recomputed_low",
        "recomputed_high",
        "finding",
    )
    return {
        "folder": str(audit.folder),
        "tables": [
            {
                "name": table.name,
                "rows": len(table.rows),
                "columns": len(table.columns),
                "numbers": len(table.printed),
                "unread": audit.unread[table.name],
            }
            for table in audit.tables
        ],
        "checks": {"told": audit.stated, "found": len(audit.rows) - audit.stated},
        "verdicts": {name: sum(row["verdict"] == name for row in audit.rows) for name in VERDICTS},
        "answer": audit.answer,
        "rows_after": audit.rows_after,
        "tables_there": audit.source.tables_there,
        "tables_unread": [{"where": table.where, "why": table.why} for table in audit.source.unread],
        "sentences": audit.sentences,
        "sentences_read": audit.sentences_read,
        "types": audit.types,
        "contradictions": [{key: row.get(key, "") for key in keys} for row in audit.contradictions],
        "likely": [{key: row.get(key, "") for key in keys} for row in audit.likely],
        "relations": audit.relations,
        "dropped": audit.dropped,
        "doubted": audit.doubted,
        "not_read": not_read,
        "to_the_author": write_author_text(audit),
        "for_a_review": write_review_sentence(audit),
        "printed": audit.printed,
        "read": audit.read,
        "files": files,
        "exit_code": code,
    }


def _describe(table: PaperTable, unread: dict[str, int]) -> str:
    where = f" ({_escape_text(table.source)})" if table.source else ""
    printed_counts = Counter(column for _, _, column in table.printed)
    size = ", ".join((_count(len(table.rows), "row"), _count(len(table.columns), "column")))
    coverage = (
        f"{_count(len(table.printed), 'number')}, of which checks read {len(table.printed) - sum(unread.values())}"
    )
    columns = [
        _escape_text(column) + (f" ({count} of {printed_counts[column]})" if count < printed_counts[column] else "")
        for column, count in unread.items()
    ]
    parts = [
        f"{size}, {coverage}{where}",
        _escape_text(table.title),
        f"Not read: {', '.join(columns)}" if columns else "",
    ]
    return " ".join(f"{part.rstrip('.')}." for part in parts if part)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def _format_value(key: str, value: Any) -> Any:
    """A value of a row as the page shows it."""
    if not isinstance(value, str):
        return value
    return _as_code(value) if key in ("id", "finding") else value if key == "formula" else _escape_text(value)


def _as_code(text: str) -> str:
    """A name as it may stand between backquotes."""
    return visible(text).replace("`", "'").replace("\n", " ").replace("\t", " ")


def _escape_text(text: str) -> str:
    """A text that Markdown and HTML show as it is."""
    plain = escape(visible(text).replace("\n", " ").replace("\t", " "), quote=False)
    return "".join(f"\\{letter}" if letter in "[]`|*\\" else letter for letter in plain)
