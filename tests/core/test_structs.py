"""What a user wrote, compared with a struct: the place that is wrong, by its keys, and what is meant."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from plumbline.core.errors import PlumblineError
from plumbline.core.structs import Absent, ClosedStruct, Fault, convert

Name = Annotated[str, Meta(pattern=r"^[a-z]+\Z", description="is no name")]


class Part(ClosedStruct, frozen=True):
    size: Annotated[int, Meta(ge=1)]
    seeds: Absent[list[int]] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size == 13:
            raise Fault("13 brings bad luck", "size")


class Whole(ClosedStruct, frozen=True):
    title: str
    parts: dict[Name, Part]
    by_preset: Absent[dict[Literal["mini", "demo"], int | Literal["all"]]] = None
    names: Literal["all"] | list[Name] = "all"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"titel": "t"}, r"top level: unknown key 'titel'; did you mean 'title'\? \(known: \['by_preset', 'names'"),
        ({"title": None}, "title: None .*text"),
        ({"parts": {"a": {"size": 1}, "b": {"size": 0}}}, "parts.b.size: 0 .* >= 1"),
        ({"parts": {"a": {"size": True}}}, "parts.a.size: True .*whole"),
        ({"parts": {"a": {"size": 13}}}, "parts.a.size: 13 brings bad luck"),
        ({"parts": {"a": {"size": 1, "seeds": None}}}, "parts.a.seeds: None .*list"),
        ({"parts": {"a": {"size": 1, "seeds": [4, 5, 4]}}}, "parts.a.seeds: 4 is there twice"),
        ({"parts": {"a": {"seeds": [1]}}}, "parts.a: 'size' is missing; add it"),
        ({"parts": {"A": {"size": 1}}}, "parts: the key 'A'"),
        ({"parts": {5: {"size": 1}}}, "parts: the key 5 is not a text"),
        ({"parts": []}, r"parts: \[\] is not a mapping"),
        ({"by_preset": {"mni": 3}}, "by_preset: unknown key 'mni'; did you mean 'mini'"),
        (
            {"by_preset": {"mini": "al"}},
            r"by_preset.mini: 'al' .* one of \['all'\]; did you mean",
        ),
        ({"names": ["a", "B"]}, "names.1: 'B' is no name"),
        ({"names": 3}, r"names: 3 is not one of \['all'\] or a list"),
        ({5: 1}, "top level: unknown key 5"),
    ],
)
def test_a_mistake_is_named_with_its_keys(change: dict[Any, Any], message: str) -> None:
    sound = {"title": "t", "parts": {"a": {"size": 1}}}
    assert convert(Whole, sound, "a.yaml:").parts["a"].size == 1
    with pytest.raises(PlumblineError, match=f"^a.yaml: {message}"):
        convert(Whole, sound | change, "a.yaml:")
    with pytest.raises(PlumblineError, match=r"^a.toml: part\.size: 'x'.*number"):
        convert(Part, {"size": "x"}, "a.toml: part")
