"""Runs the cells of a notebook in order, without Jupyter, and compares what they print with the outputs that it holds.

python examples/run_notebook.py examples/read_a_record.ipynb            # ends with 1 where a cell prints otherwise
python examples/run_notebook.py examples/read_a_record.ipynb --write    # puts what cells print and draw into it
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Output = dict[str, Any]


def join_text(outputs: list[Output]) -> str:
    """What a cell's outputs say in text."""
    return "".join("".join(output["text"]) for output in outputs if output["output_type"] == "stream")


def run(cell: Output, number: int, names: dict[str, Any]) -> list[Output]:
    """The outputs of a cell: what it prints, and each figure that it leaves open."""
    printed_text = io.StringIO()
    with contextlib.redirect_stdout(printed_text):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    text = printed_text.getvalue()
    stream = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
    return [*([stream] if text else []), *map(encode_figure, plt.get_fignums())]


def encode_figure(number: int) -> Output:
    """A figure as a notebook keeps it."""
    image = io.BytesIO()
    plt.figure(number).savefig(image, format="png", dpi=80, bbox_inches="tight", metadata={"Software": None})
    plt.close(number)
    content = base64.b64encode(image.getvalue()).decode()
    return {"data": {"image/png": content}, "metadata": {}, "output_type": "display_data"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--write", action="store_true", help="keep the outputs in the notebook")
    options = parser.parse_args()
    notebook = json.loads(options.notebook.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    failed = 0
    for number, cell in enumerate(notebook["cells"], start=1):
        if cell["cell_type"] != "code":
            continue
        outputs = run(cell, number, names)
        if options.write:
            cell["outputs"] = outputs
            continue
        expected, got = (join_text(output) for output in (cell["outputs"], outputs))
        pictures = [
            sum(output["output_type"] == "display_data" for output in each) for each in (cell["outputs"], outputs)
        ]
        if expected != got or pictures[0] != pictures[1]:
            failed += 1
            print(f"cell {number} holds\n{expected}and now it prints\n{got}", file=sys.stderr)
    if options.write:
        options.notebook.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
