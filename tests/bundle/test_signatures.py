"""Signatures of records by SSH keys, checked without asking anybody: unsigned, signed by whom, and not as signed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from plumbline.bundle import archive, ro_crate, signatures, verify
from plumbline.core.files import atomic_write_json, sha256_file
from tests import run_in_process

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
ANN, EVE = "ann@example.org", "eve@example.org"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A record's folder, next to the keys of two people and the file of allowed signers, in which Ann is alone."""
    folder = tmp_path / "records/first"
    folder.mkdir(parents=True)
    about = ro_crate.CrateMetadata(name="a", description="b", date="2026-01-01")
    archive.write(folder / "bundle.tar.xz", {"README.md": b"x"}, about)
    facts = {"words": "all", "commit": "", "products": 1, "sha256": sha256_file(folder / "bundle.tar.xz")}
    atomic_write_json(folder / "record.json", facts)
    for name in (ANN, EVE):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(tmp_path / name)]
        subprocess.run(key, check=True)
    (tmp_path / "signers").write_text(f"{ANN} {(tmp_path / f'{ANN}.pub').read_text()}")
    return folder


def sign(record: Path, name: str, namespace: str = signatures.NAMESPACE) -> None:
    (record / "record.json.sig").unlink(missing_ok=True)
    key = record.parents[1] / name
    command = ["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", str(key), str(record / "record.json")]
    subprocess.run(command, check=True, capture_output=True)


def check(record: Path, *options: object) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code, and each file's status with its reason."""
    process = run_in_process.run(verify.main, record, *options, "--json", cwd=record)
    files = json.loads(process.stdout)["files"] if process.stdout.startswith("{\n") else []
    return process.returncode, {Path(file["path"]).name: (file["status"], file["why"]) for file in files}


def test_a_record_without_a_signature_is_told_so_and_refused_where_one_is_asked_for(record: Path) -> None:
    code, files = check(record)
    assert code == 0 and files["record.json"][0] == "not known" and "not signed" in files["record.json"][1]
    code, files = check(record, "--signers", record.parents[1] / "signers")
    assert code == 10 and files["record.json.sig"] == ("missing", "record.json is not signed")


def test_what_a_signer_signed_is_as_written(record: Path) -> None:
    sign(record, ANN)
    for place in (record, record.parent):
        code, files = check(place, "--signers", record.parents[1] / "signers")
        assert code == 0 and {status for status, _ in files.values()} == {"as written"}
        assert ANN in files["record.json"][1] and "SHA256:" in files["record.json.sig"][1]
    code, files = check(record)
    assert code == 0 and files["record.json.sig"][0] == "not known" and "--signers" in files["record.json.sig"][1]


@pytest.mark.parametrize("with_signers", [True, False])
def test_a_record_that_was_changed_after_signing_is_refused(record: Path, with_signers: bool) -> None:
    sign(record, ANN)
    path = record / "record.json"
    path.write_text(path.read_text().replace('"all"', '"more"'))
    code, files = check(record, *(("--signers", record.parents[1] / "signers") if with_signers else ()))
    assert code == 10 and files["record.json.sig"][0] == "changed" and "record.json" in files["record.json.sig"][1]


def test_an_archive_put_in_the_place_of_a_signed_one_is_refused(record: Path) -> None:
    sign(record, ANN)
    about = ro_crate.CrateMetadata(name="a", description="b", date="2026-01-01")
    archive.write(record / "bundle.tar.xz", {"README.md": b"y"}, about)
    code, files = check(record, "--signers", record.parents[1] / "signers")
    assert code == 10 and files["bundle.tar.xz"][0] == "changed"
    (record / "record.json").unlink()
    (record / "record.json.sig").unlink()
    code, files = check(record, "--signers", record.parents[1] / "signers")
    assert code == 10 and files["bundle.tar.xz.sig"][0] == "missing", "and so is one that nothing names"


@pytest.mark.parametrize("wrong", ["another person", "another purpose", "no signature"])
def test_a_wrong_signature_is_refused(record: Path, wrong: str) -> None:
    if wrong == "no signature":
        (record / "record.json.sig").write_text("-----BEGIN SSH SIGNATURE-----\n\x1b[2J")
    else:
        sign(record, *((EVE,) if wrong == "another person" else (ANN, "git")))
    code, files = check(record, "--signers", record.parents[1] / "signers")
    assert code == 10 and files["record.json.sig"][0] == "changed"
    assert check(record)[0] == (0 if wrong == "another person" else 10), "by whom, nobody said"


def test_signers_that_are_of_no_use_are_refused(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = run_in_process.run(verify.main, record, "--signers", "nobody", cwd=record)
    assert process.returncode == 1 and "nobody" in process.stderr
    (record.parent / "other").mkdir()
    (record.parent / "other/a.txt").write_text("a")
    signers = record.parents[1] / "signers"
    process = run_in_process.run(verify.main, record.parent / "other", "--signers", signers, cwd=record)
    assert process.returncode == 1 and "--signers does nothing" in process.stderr
    sign(record, ANN)
    monkeypatch.setenv("PATH", str(record))
    process = run_in_process.run(verify.main, record, "--signers", signers, cwd=record)
    assert process.returncode == 1 and "ssh-keygen" in process.stderr
    assert check(record)[1]["record.json.sig"][0] == "not known"


def test_a_signer_is_told_by_the_line_that_holds(record: Path) -> None:
    """A line of signers that has expired, is of another purpose or none, makes the others no worse."""
    sign(record, ANN)
    signers = record.parents[1] / "signers"
    _, kind, key, *_ = signers.read_text().split()
    others = {
        "expired": f'{ANN} valid-before="20200101" {kind} {key}',
        "for git": f'old@example.org namespaces="git" {kind} {key}',
        "no key": f"{EVE} removed",
    }
    for name, line in others.items():
        signers.write_text(f"# {name}\n{line}\n")
        code, files = check(record, "--signers", signers)
        status, why = files["record.json.sig"]
        assert (code, status) == (10, "changed") and "\n" not in why, name
        signers.write_text(f'# {name}\n{line}\n"Ann A.,{ANN}" {kind} {key}\n')
        code, files = check(record, "--signers", signers)
        status, why = files["record.json.sig"]
        assert (code, status) == (0, "as written") and why.startswith(("Ann A.", ANN)), (name, why)


def test_an_ssh_keygen_that_knows_no_signatures_says_nothing_of_them(
    record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign(record, ANN)
    old = record.parents[1] / "bin/ssh-keygen"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'unknown option -- Y' >&2\nexit 1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(old.parent))
    code, files = check(record)
    assert code == 0 and files["record.json.sig"][0] == "not known" and "8.2" in files["record.json.sig"][1]
    process = run_in_process.run(verify.main, record, "--signers", record.parents[1] / "signers", cwd=record)
    assert process.returncode == 1 and "ssh-keygen" in process.stderr and "8.2" in process.stderr
