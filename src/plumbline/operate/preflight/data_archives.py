"""Checks that each pinned package still to be fetched can be had: from its index, or with Debian's tools."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import urllib.request

from plumbline.data.pinned_packages import PINS, PinnedArchive
from plumbline.operate.preflight.check_result import OK, STOP, UNKNOWN, CheckResult, State, at_once
from plumbline.operate.preflight.dry_run import DryRun

#: Seconds to wait for an index, and for Debian's server.
PATIENCE = 5
_OF_DEBIAN = "config/corpora/<corpus>.yaml: source `packaged_large` (preset mini) reads five packages of Debian"


def check(dry_run: DryRun) -> list[CheckResult]:
    """Check that the packages still to be fetched can be had.

    There is one finding for each index, or one for all packages that fail for one reason.
    """
    lacking = check_tools(dry_run)
    pins = [PINS[name] for (name,) in dry_run.values("fetch", "package")]
    python = [pin for pin in pins if pin.index == "python"]
    debian = [] if lacking else [pin for pin in pins if pin.index == "debian"]
    replies = at_once(_ask_pip, python), at_once(_ask_apt, debian)
    results = list(lacking)
    for label, archives, answers in (("Python packages", python, replies[0]), ("Debian packages", debian, replies[1])):
        faults = [answer for answer in answers if isinstance(answer, CheckResult)]
        refused: dict[str, list[PinnedArchive]] = {}
        for pin, answer in zip(archives, answers, strict=True):
            if isinstance(answer, str):
                refused.setdefault(answer, []).append(pin)
        results += [*faults, *(_report_failure(dry_run, label, pins, why) for why, pins in refused.items())]
        if archives and not faults and not refused:
            results.append(_report_success(dry_run, label, archives))
    return results


def check_tools(dry_run: DryRun) -> list[CheckResult]:
    """Find programs of Debian that are missing here and that fetching and reading its packages needs."""
    debian = [PINS[name] for (name,) in dry_run.values("fetch", "package") if PINS[name].index == "debian"]
    messages = []
    if debian and shutil.which("apt-get") is None:
        names = " ".join(pin.requirement for pin in debian)
        messages.append(
            f"{_OF_DEBIAN}, which apt-get fetches, and apt-get is not installed. On a Debian machine or in its "
            f"container: apt-get download {names}; then put each at {dry_run.project.paths.work}/packages/<name>.deb, "
            "or name a folder of your own (docs/your-own-data.md)"
        )
    reads = any(
        dry_run.project.corpora[name].source == "packaged_large" for (name,) in dry_run.values("documents", "corpus")
    )
    if reads and shutil.which("dpkg-deb") is None:
        messages.append(f"{_OF_DEBIAN}, which dpkg-deb unpacks, and there is none here; install the package dpkg")
    if dry_run.runs_on_other_machines:
        messages = [f"{message}. (The system of compute nodes was not checked.)" for message in messages]
    state: State = UNKNOWN if dry_run.runs_on_other_machines else STOP
    return [CheckResult(state=state, subject="Debian packages", message=message) for message in messages]


def _ask_pip(pin: PinnedArchive) -> CheckResult | str | None:
    """What is wrong with a package of Python's, as text why it cannot be fetched: by pip itself, whose configuration
    states which index that is."""
    command = [sys.executable, "-m", "pip", "index", "versions", pin.name, "--ignore-requires-python", "--no-input"]
    command += ["--disable-pip-version-check", "--timeout", str(PATIENCE), "--retries", "0"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return f"pip did not answer ({type(problem).__name__})"
    versions = re.findall(r"^Available versions: (.*)$", process.stdout, re.MULTILINE)
    if process.returncode or not versions:
        errors = [line for line in process.stderr.splitlines() if line.startswith("ERROR")] or ["no answer"]
        if "unknown command" in errors[0]:
            return CheckResult(
                state=UNKNOWN, subject="Python packages", message=f"this pip cannot list versions: {errors[0]}"
            )
        return f"pip says: {errors[-1].replace(f' for {pin.name}', '')}"  # the same for all of them
    if pin.version not in versions[0].split(", "):
        return f"the index of pip has {versions[0]}"
    return None


def _ask_apt(pin: PinnedArchive) -> CheckResult | str | None:
    """What is wrong with one of Debian's, likewise: whether apt knows it as it is pinned, and its server answers."""
    command = ["apt-get", "download", "--print-uris", pin.requirement]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return f"apt-get did not answer ({type(problem).__name__})"
    errors = [line for line in process.stderr.splitlines() if line.startswith("E:")]
    match = re.search(r"^'([^']+)' \S+ \d+ SHA256:([0-9a-f]+)", process.stdout, re.MULTILINE)
    if process.returncode or match is None:
        reason = errors[-1] if errors else "no answer"
        return f"apt-get says: {reason} (apt-get update renews its lists)"
    if match[2] != pin.sha256:
        return f"apt knows another archive of that name, with sha256 {match[2]}"
    fault = _explain_silence(match[1])
    if fault is None:
        return None
    if _has_own_proxy():
        message = f"apt knows {pin.requirement}; whether its proxy serves it was not checked ({fault})"
        return CheckResult(state=UNKNOWN, subject="Debian packages", message=message)
    return f"{'/'.join(match[1].split('/')[:3])}: {fault}"


def _explain_silence(url: str) -> str | None:
    """Why a server gives nothing; None if it does."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=PATIENCE):
            return None
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def _has_own_proxy() -> bool:
    """Whether apt has a proxy of its own, which nothing else here knows how to use."""
    process = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, timeout=60)
    return re.search(r"^Acquire::\w+::Proxy\S* \"[^\"]+\"", process.stdout, re.MULTILINE) is not None


def _report_failure(dry_run: DryRun, label: str, pins: list[PinnedArchive], why: str) -> CheckResult:
    names = ", ".join(pin.requirement for pin in pins)
    places = ", ".join(f"{dry_run.project.paths.package(pin.name)} (sha256 {pin.sha256[:12]}...)" for pin in pins)
    files = "the file at" if len(pins) == 1 else "the files at"
    otherwise = " and ".join(dict.fromkeys(pin.without for pin in pins))
    message = (
        f"{names} cannot be fetched: {why}. Check the network and the index, or put {files} {places}, or {otherwise}"
    )
    return CheckResult(state=STOP, subject=label, message=message)


def _report_success(dry_run: DryRun, label: str, pins: list[PinnedArchive]) -> CheckResult:
    names = ", ".join(pin.requirement for pin in pins)
    if not dry_run.runs_on_other_machines:
        return CheckResult(state=OK, subject=label, message=f"{names}: served by the index")
    message = f"{names}: served here; compute nodes were not checked (docs/on-your-cluster.md, step 6)"
    return CheckResult(state=UNKNOWN, subject=label, message=message)
