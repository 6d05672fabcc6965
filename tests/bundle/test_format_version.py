"""The number of a bundle's format stands for what is written in it and asked with it."""

from __future__ import annotations

from plumbline.bundle import description, remake

FIRST = {
    "BundleDescription": {
        "format": "int",
        "configuration": "dict[str, Any]",
        "called": "str",
        "results": "_Results",
        "commit": "_Commit | None",
        "committed": "str | None",
        "edited": "bool | None",
        "finished": "str | None",
        "openblas": "str | None",
        "versions": "dict[str, str]",
        "products": "list[BundleEntry]",
    },
    "BundledConfiguration": {"preset": "str", "studies": "list[str]", "work": "_Work"},
    "BundleEntry": {"study": "str", "kind": "str", "target": "str", "path": "_Below", "made_of": "str"},
    "RebuildProcessRequest": {
        "configuration": "dict[str, Any]",
        "work": "str",
        "called": "str",
        "results": "str",
        "products": "list[description.BundleEntry]",
        "any_commit": "bool",
        "answer": "str",
    },
    "RebuildProcessReply": {"package": "str", "other": "list[str]", "failed": "dict[str, str]"},
}
ENTRY = {"study": "str", "kind": "str", "target": "str", "path": "_Below", "fingerprint": "str"}
SECOND = FIRST | {"BundleEntry": ENTRY}
#: Format -> the fields of what bundles of it say, ask and answer.
FIELDS = {1: FIRST, 2: SECOND}


def test_other_fields_are_another_format() -> None:
    structs = (
        description.BundleDescription,
        description.BundledConfiguration,
        description.BundleEntry,
        remake.RebuildProcessRequest,
        remake.RebuildProcessReply,
    )
    here = {each.__name__: dict(each.__annotations__) for each in structs}
    assert FIELDS.get(description.FORMAT) == here, (
        "what bundles say, ask or answer has changed: raise FORMAT in src/plumbline/bundle/description.py and list the "
        "new format here beside the old ones, or take the change back"
    )
