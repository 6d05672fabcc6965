"""Makes proxy items: questions in a task's form from held-out documents, for tasks whose items are not at hand.

A proxy asks what a language model can be asked of any prose: which sentence comes next, how a sentence ends, which
word is missing. It is *not* the benchmark whose form it borrows, and is called `proxy` wherever its score is shown.
A task's file names the maker (`MAKERS`), and how an item is made of what that gives. Everything is drawn from a
generator seeded by the task's name: the same documents give the same items.
"""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.evaluate import field_mapping
from plumbline.evaluate.item_fields import Item
from plumbline.evaluate.proxy_makers import MAKERS
from plumbline.evaluate.proxy_material import ProxyMaterial, SentenceInContext
from plumbline.specs.tasks import ProxyItems, Task


def items(task: Task, documents: ProxyMaterial, count: int) -> list[Item]:
    """`count` proxy items of `task`.

    Raises:
        PlumblineError: the task's file names no maker or gives it other options than it takes, or the documents do not
            give as many.
    """
    if task.proxy is None:
        raise PlumblineError(
            f"{task.file}: proxy: the file names no maker, and items are to be made; add `proxy`, or give the items "
            f"(--items-source local with {task.name}.jsonl, --items-source hub)"
        )
    make = _maker(task, task.proxy)
    rng = random.Random(f"plumbline proxy {task.name}")
    spots = rng.sample(documents.spots, len(documents.spots))
    found: list[Item] = []
    for spot in spots:
        if len(found) == count:
            break
        given = make(spot, documents, rng)
        if given is not None:
            found.append(_item(task, task.proxy, given))
    if len(found) < count:
        raise PlumblineError(
            f"the held-out documents give {len(found)} proxy items for {task.name}, {count} are asked for; "
            "lower --proxy-items (evaluation.proxy_items of the preset's file) or hold out more documents "
            "(held_out.percent of the corpus's file)"
        )
    return found


def _maker(
    task: Task, proxy: ProxyItems
) -> Callable[[SentenceInContext, ProxyMaterial, random.Random], dict[str, Any] | None]:
    make = MAKERS[proxy.maker]
    parameters = list(inspect.signature(make).parameters.values())
    takes = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    needs = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    if set(proxy.options) - set(takes) or set(needs) - set(proxy.options):
        raise PlumblineError(
            f"{task.file}: proxy: maker {proxy.maker!r} takes {takes or 'no options'}"
            f"{f' and needs {needs}' if needs else ''}, not {sorted(proxy.options)}"
        )
    return functools.partial(make, **proxy.options)


def _item(task: Task, proxy: ProxyItems, given: dict[str, Any]) -> Item:
    try:
        return field_mapping.fields(proxy.fields, given, f"what the maker {proxy.maker!r} gives")
    except PlumblineError as problem:
        raise PlumblineError(f"{task.file}: proxy.fields.{problem}") from problem
