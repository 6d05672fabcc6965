"""Makes the finished pages of the audit: of each paper its tables as printed, and every row with its verdict."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from plumbline.audit.audit_csv import choose_studies
from plumbline.report.workbench.write_workbench import write_collected

ROOT = Path(__file__).resolve().parents[2]


def build(out: Path) -> None:
    """Audit each paper by itself, and write the pages of all, without the files behind them: they are 0.4 MB."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "audits")
        for study in choose_studies():
            audit = ["audit", "--study", study, "--out", f"{folder}/{study}/audit/audit.csv"]
            subprocess.run([sys.executable, "-m", "plumbline", *audit], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        write_collected(folder, out / "index.html")
    shutil.rmtree(out / "files")
    for page in out.glob("audits/*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r'<p class="along">Files: .*?</p>', "", text), encoding="utf-8")
