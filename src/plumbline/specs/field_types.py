"""Types of the fields of configuration files, and what a message states of a text that is not as its type requires."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from msgspec import Meta

from plumbline.core.structs import Fault

Preset = Literal["paper", "mini", "evening", "demo", "smoke"]
#: How large a run is: on one device, on those of a node, or on two nodes.
Size = Literal["one_gpu", "node", "two_nodes"]
Device = Literal["cpu", "gpu"]

Count = Annotated[int, Meta(ge=1)]
WholeNumber = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Fraction = Annotated[float, Meta(ge=0, le=1)]

Text = Annotated[str, Meta(min_length=1)]
#: What tables and pages call something, or tell things apart by.
Label = Annotated[
    str, Meta(pattern=r"^\S(.*\S)?\Z", description="is no label: one line of text, without spaces around it")
]
Name = Annotated[str, Meta(pattern=r"^[a-z0-9_]+\Z", description="is no name: lower-case letters, digits and _")]
#: A name that may be one of Python's.
Identifier = Annotated[
    str,
    Meta(
        pattern=r"^[a-z][a-z0-9_]*\Z",
        description="is no name: lower-case letters, digits and _, of which the first is a letter",
    ),
]
Seeds = Annotated[list[WholeNumber], Meta(min_length=1)]

#: What begins or ends no path.
FIRST_AND_LAST = (
    r"^[-~\s]|\s\Z",
    "is no path: it begins with - or ~, or begins or ends with a space; write the folder out in full",
)
#: What Snakemake, a shell, and the command line of a SLURM job all carry unchanged. Spaces, umlauts, brackets and the
#: like are: every rule quotes what it is given.
PATH = (
    (
        r"""[\x00-\x1f\x7f\ud800-\udfff'"\\$`{}]""",
        "is no path that Snakemake and a cluster's command lines carry unchanged: no quotation marks, backslash, $, "
        "braces, or line breaks; rename the folder, or make a link to it and name that",
    ),
    FIRST_AND_LAST,
)


def require_once(names: Iterable[str], noun: str, *place: Any) -> None:
    """Refuse a name that is there twice; `noun`: what it is.

    Raises:
        Fault: naming the key, `place`.
    """
    name, times = max(Counter(names).items(), key=lambda item: item[1], default=("", 0))
    if times > 1:
        raise Fault(f"the {noun} {name!r} is there twice; change one", *place)


def require_without(patterns: tuple[tuple[str, str], ...], text: str | None, key: str) -> None:
    """Refuse a text that has one of the patterns, each with its message.

    Raises:
        Fault: naming the key.
    """
    for pattern, message in patterns:
        if text is not None and re.search(pattern, text):
            raise Fault(f"{text!r} {message}", key)
