"""Changes the spec of a run by words such as ``train.steps=100``, as ``plumbline train --set`` has them."""

from __future__ import annotations

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import PARTS, overlay
from plumbline.specs.yaml_files import parse_yaml


def change_spec(spec: RunSpec, changes: list[str]) -> RunSpec:
    """Change a run's spec by ``part.key=value`` words, checked as the study's YAML is.

    Another component takes its own defaults.

    Raises:
        PlumblineError: a word is not of that form, or asks for something that no study's YAML may contain.
    """
    content = {key: value for key, value in spec.to_dict().items() if key != "components"}
    for change in changes:
        path, equals, text = change.partition("=")
        names = path.split(".")
        if not equals or not all(names):
            raise PlumblineError(f"--set {change!r}: write it as part.key=value, such as train.steps=100")
        if names[0] not in PARTS:
            raise PlumblineError(
                f"--set {change!r}: there is no part {names[0]!r}{nearest(names[0], PARTS)} (there are {list(PARTS)})"
            )
        value = parse_yaml(text, f"--set {change!r}: the value")
        for name in reversed(names):
            value = {name: value}
        content = overlay(content, value)
    try:
        return RunSpec.from_dict(content)
    except PlumblineError as error:
        raise PlumblineError(f"--set: {error}") from error
