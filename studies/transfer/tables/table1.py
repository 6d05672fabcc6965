"""Makes Table 1: the methods by the module they modify, from the study's YAML next to the printed taxonomy.

Source: transfer study, section 3.1 and Table 1.
"""

from __future__ import annotations

from collections import Counter

from plumbline.published.printed_numbers import PrintedNumbers, read_printed
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import text_column
from plumbline.results.tables.table import Cell, Column, Table
from plumbline.specs.study_config import Study

COLUMNS = [
    Column(name="method", header="id", kind="label"),
    Column(name="label", header="Method", kind="label", narrow=True),
    text_column("category", "Category", narrow=True),
    Column(name="category_published", header="Category", kind="published"),
    text_column("subcategory", "Subcategory"),
    text_column("soft_hard", "soft/hard", narrow=True),
    Column(name="soft_hard_published", header="soft/hard", kind="published"),
    Column(name="components", header="Components", kind="fact"),
    Column(name="matches_published", header="as published", kind="fact", narrow=True),
]


def table1(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each method; `matches_published` says whether category and label are the printed ones."""
    print1 = published.table("table1")
    source = f"studies/{study.name}/study.yaml: methods"
    rows = []
    for method, entry in study.methods.items():
        mixing, category = entry.get("soft_hard", "no label"), entry.get("category", "none")
        category_print, mixing_print = (
            read_printed(print1, method, "category"),
            read_printed(print1, method, "soft_hard"),
        )
        agrees = category_print == category and mixing_print == entry.get("soft_hard", "not printed")
        components = ", ".join(f"{slot}: {chosen['name']}" for slot, chosen in entry.get("model", {}).items())
        rows.append(
            {
                "method": Cell(method),
                "label": Cell(study.label(method)),
                "category": Cell(category, source=source),
                "category_published": Cell(category_print),
                "subcategory": Cell(entry.get("subcategory", "none"), source=source),
                "soft_hard": Cell(mixing, source=source),
                "soft_hard_published": Cell(mixing_print),
                "components": Cell(components or "the recipe's", source=source),
                "matches_published": Cell("yes" if agrees else "no"),
            }
        )
    counts = Counter(entry.get("category", "none") for entry in study.methods.values())
    printed_counts = Counter(print1["category"])
    return Table(
        name="table1",
        title=f"The {len(study.methods)} methods by the module they modify.",
        study=study.name,
        preset=study.preset,
        key="method",
        columns=COLUMNS,
        rows=rows,
        notes=[f"{name}: {count} here, {printed_counts.get(name, 0)} in the paper." for name, count in counts.items()]
        + ["Does not depend on the preset."],
        published=published.format_path("table1"),
    )
