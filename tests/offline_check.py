"""Carries out a study at smoke, and tries of it and of a trainer, under strace: no process asks another machine.

    python -m tests.offline_check [--study premature]

Texts are the documentation's and the code's, so that nothing has to be fetched, and no variable tells a library to stay
offline. What is asked is listed, and is a fault. Needs strace.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.operate.experiments.trainer_folder import TRAINER, change, repository_of
from tests.workflow.project_copy import Project

REPOSITORY = Path(__file__).resolve().parents[1]
STRACE = ("strace", "-f", "--seccomp-bpf", "-qq", "-e", "signal=none")
STRACE += ("-e", "trace=execve,connect,sendto,sendmsg,sendmmsg", "-o")
_ADDRESS = re.compile(r'(?:inet_addr\(|inet_pton\(AF_INET6, )"([^"]+)"')
#: How this machine's own resolver is asked, which asks others: a name that it does not find is looked up all the same.
_RESOLVER = re.compile(r'htons\(53\)|sun_path=@?"[^"]*systemd\.[Rr]esolve')
#: Variables by which a test, or a user, keeps libraries from the hub, or sends them to a proxy (of this machine).
_OFFLINE = re.compile(r"HF_|TRANSFORMERS_|PLUMBLINE_|PYTHON|SLURM_|(?i:\w+_proxy\Z)")


def main() -> None:
    """Carry out all commands, and end with 1 if one of them asked another machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", default="premature", help="the study (default: the one with most kinds of steps)")
    parser.add_argument("--method", default="global_half_lr", help="of the study: what is tried")
    parser.add_argument("--baseline", default="gpt", help="of the study: against what")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root, trainer = make_folders(Path(scratch))
        config = ["--config", "preset=smoke", f"studies=[{options.study}]"]
        config.append(f"data={{source: local, folder: {root / 'texts'}}}")
        config.append(f"evaluation={{source: local, folder: {root / 'items'}, missing: proxy}}")
        verb = [sys.executable, "-m", "plumbline"]
        own = [options.method, "--study", options.study, "--baseline", options.baseline, "--quick"]
        calls = [
            *carry_out([sys.executable, "-m", "snakemake", "all", *config], root, 0),
            *carry_out([*verb, "try", *own, *config], root, 0, 10, 11, 12, 13),
            *carry_out([*verb, "setup-trainer", f"{sys.executable} train.py"], trainer, 0),
        ]
        change(trainer)
        calls += carry_out([*verb, "try", "-m", "a gain"], trainer, 0)
    for call in calls:
        print(call)
    print(f"calls to other machines: {len(calls) or 'none'}")
    sys.exit(bool(calls))


def make_folders(scratch: Path) -> tuple[Path, Path]:
    """Make a copy of the project with texts, and a folder with a trainer."""
    project = Project.copy(REPOSITORY, scratch / "project")
    project.edit("config/presets/smoke.yaml", "proxy_items: 200", "proxy_items: 5")  # of so few texts
    root = project.root
    for name in ("texts", "items"):
        (root / name).mkdir()
    patterns = ("*.md", "docs/**/*.md", "studies/**/*.md", "src/**/*.py")
    pages = [page for pattern in patterns for page in root.glob(pattern)]
    parts = [part for page in sorted(pages) for part in page.read_text().split("\n\n") if len(part) > 60]
    texts = ["\n\n".join(parts[place : place + 4]) for place in range(0, len(parts), 2)]
    (root / "texts/pages.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return root, repository_of(scratch / "trainer", TRAINER)


def carry_out(command: Sequence[str], folder: Path, *expected: int) -> list[str]:
    """Carry out a command and all that it starts, which must end as expected; returns its calls to other machines."""
    trace = folder.parent / "trace.txt"
    environment = {name: value for name, value in os.environ.items() if not _OFFLINE.match(name)}
    environment |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    environment |= {"PYTHONPATH": str(folder / "src"), "HOME": str(folder.parent / "home")}
    environment["SLURM_CONF"] = "/nonexistent"  # a plan asks the controller of a cluster, which is another machine
    begin = time.monotonic()
    process = subprocess.run(
        [*STRACE, str(trace), *command], cwd=folder, env=environment, text=True, capture_output=True
    )
    if process.returncode not in expected:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}: {(process.stdout + process.stderr)[-3000:]}")
    lines = trace.read_text(errors="replace").splitlines()
    programs = sum(" execve(" in line and line.endswith("= 0") for line in lines)
    calls = find_calls(lines)
    print(
        f"{time.monotonic() - begin:.0f} s, {programs} programs, {len(calls)} calls: {' '.join(command[1:])}",
        flush=True,
    )
    return calls


def find_calls(lines: Sequence[str]) -> list[str]:
    """Find the lines of a trace that connect to, or send to, an address that is not this machine's own, or look up a
    name."""
    return [line for line in lines if _RESOLVER.search(line) or any(map(_is_other, _ADDRESS.findall(line)))]


def _is_other(address: str) -> bool:
    own = ipaddress.ip_address(address)
    return not own.is_loopback and not own.is_unspecified


if __name__ == "__main__":
    main()
