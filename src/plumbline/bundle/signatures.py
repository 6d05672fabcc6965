"""Checks signatures: FILE.sig beside FILE, which ``ssh-keygen -Y sign -n plumbline -f KEY FILE`` makes with an SSH key.

Nobody is asked: who may sign stands in a file of allowed signers, of OpenSSH's form (man ssh-keygen).
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from plumbline.bundle.checksum_records import AS_WRITTEN, CHANGED, MISSING, NOT_KNOWN, Status, VerifiedFile
from plumbline.bundle.records import SAYS
from plumbline.core.errors import PlumblineError
from plumbline.project.paths import BUNDLE

#: What a signature is for (it holds for nothing else), and the ending of its file.
NAMESPACE, ENDING = "plumbline", ".sig"

#: The exit code of `ssh-keygen` for a command line that it does not know; a signature that does not hold has 255.
_USAGE = 1


def check_signatures(files: Mapping[Path, VerifiedFile], signers: Path | None) -> dict[Path, VerifiedFile]:
    """Check every signature of these files, and tell which records have none.

    Args:
        signers: the file of allowed signers. Then what one of them signed is as written, and a record or an archive
            without a signature misses it.

    Raises:
        PlumblineError: with `signers`, `ssh-keygen` is not installed, or nothing could be signed.
    """
    if signers is not None and not signers.is_file():
        raise PlumblineError(f"--signers: there is no file {signers}; it has a line for each signer: NAME KEY")
    checked_files, signatures = dict(files), 0
    for place, file in files.items():
        signature = place.with_name(f"{place.name}{ENDING}")
        path = f"{file.path}{ENDING}"
        if os.path.isfile(signature) and os.path.isfile(place):
            signatures += 1
            status, why = _check_signature(place, signature, signers)
            checked_files[signature] = VerifiedFile(path=path, status=status, why=why)
            if status == AS_WRITTEN and file.status == NOT_KNOWN:
                checked_files[place] = replace(file, status=AS_WRITTEN, why=why)
        elif _must_be_signed(place) and signers is not None:
            signatures += 1
            checked_files[signature] = VerifiedFile(path=path, status=MISSING, why=f"{place.name} is not signed")
        elif _must_be_signed(place) and file.status != CHANGED:
            checked_files[place] = replace(file, why=f"{file.why}; it is not signed")
    if signers is not None and not signatures:
        raise PlumblineError("--signers does nothing here: no record, archive or signature is below; leave it out")
    return checked_files


def _must_be_signed(place: Path) -> bool:
    """Whether a file is the description of a record, which names its archive, or an archive that none names."""
    if place.name == SAYS:
        return place.with_name(BUNDLE).exists()
    return place.name.endswith(".tar.xz") and not (place.name == BUNDLE and place.with_name(SAYS).exists())


def _check_signature(file: Path, signature: Path, signers: Path | None) -> tuple[Status, str]:
    """Decide the status of a signature; without `signers` nobody knows whose it is."""
    try:
        if signers is None:
            code, text, why = _call("check-novalidate", file, signature)
            if code:
                return CHANGED, f"it is not a signature of {file.name} as that is now ({why})"
            return NOT_KNOWN, f"{_find_key(text)} signed {file.name} as it is; whose key that is, --signers FILE says"
        code, text, why = _call("find-principals", file, signature, "-f", str(signers))
        if code:
            return CHANGED, f"none of {signers} made it ({why})"
        # It tells the first line with the key, which may be for another purpose than a later one.
        first, *_ = names = list(dict.fromkeys([*re.split(r"[,\n]", text), *_list_names(signers)]))
        for name in names:
            code, text, failure = _call("verify", file, signature, "-f", str(signers), "-I", name)
            if not code:
                return AS_WRITTEN, f"{name} signed {file.name} with {_find_key(text)}"
            why = failure if name == first else why
    except (FileNotFoundError, _CannotCheckError):
        if signers is None:
            return NOT_KNOWN, "no ssh-keygen of OpenSSH 8.2 or later, which would check it, is installed"
        raise PlumblineError("--signers needs ssh-keygen; install the client of OpenSSH 8.2 or later") from None
    return CHANGED, f"it is not {first}'s signature of {file.name} as that is now ({why})"


class _CannotCheckError(Exception):
    """`ssh-keygen` has no such action."""


def _call(action: str, file: Path, signature: Path, *options: str) -> tuple[int, str, str]:
    """Ask `ssh-keygen` about a signature; returns its exit code, what it prints, and on one line what it finds wrong
    (in other lines of the signers too)."""
    purpose = () if action == "find-principals" else ("-n", NAMESPACE)
    command = ["ssh-keygen", "-Y", action, *purpose, "-s", os.path.abspath(signature), *options]
    with file.open("rb") as content:
        call = subprocess.run(command, stdin=content, capture_output=True, text=True, errors="replace")
    if call.returncode == _USAGE:
        raise _CannotCheckError
    return call.returncode, call.stdout.strip(), "; ".join(f"{call.stderr}\n{call.stdout}".split("\n")).strip("; ")


def _list_names(signers: Path) -> list[str]:
    """The names in a file of allowed signers, those of each line before its options and key."""
    lines = re.findall(r'^[ \t]*(?!#)(?:"([^"\n]*)"|(\S+))', signers.read_text(errors="replace"), re.MULTILINE)
    return [name for line in lines for name in "".join(line).split(",")]


def _find_key(text: str) -> str:
    match = re.search(r"SHA256:\S+", text)
    return match[0] if match else "a key"
