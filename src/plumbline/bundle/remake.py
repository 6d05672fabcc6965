"""Makes products of an unpacked bundle again, by the verbs that the rules in workflow/rules/results.smk call.

``python -m plumbline.bundle.remake REQUEST.json``, in the bundle's folder: `plumbline.bundle.rebuild` starts it, and a
later version's `--at-commit` too, with the package of this commit. So request and answer are part of the format of
bundles (`plumbline.bundle.description.FORMAT`). Prints a line for each product, and answers in a JSON file.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import plumbline
from plumbline.bundle import description
from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError, visible

if TYPE_CHECKING:
    from plumbline.project import Project


class RebuildProcessRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request that a rebuild writes for this module: which products of a bundle to make, and where to answer.

    `configuration` to `products` are of `description.BundleDescription`. `any_commit`: make products even where some
    would be made of something else here. `answer`: the file that an `RebuildProcessReply` is written to."""

    configuration: dict[str, Any]
    work: str
    called: str
    results: str
    products: list[description.BundleEntry]
    any_commit: bool
    answer: str


class RebuildProcessReply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a `RebuildProcessRequest`: the folder of the package that ran, products that it would make of
    something else, and errors by product."""

    package: str
    other: list[str]
    failed: dict[str, str]


def main() -> None:
    """Make the products of the request that the command line names, one after the other."""
    from plumbline.project import load

    request = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=RebuildProcessRequest)
    project = load(request.configuration)
    for each in request.products:
        if each.target:
            project.targets.entry(each.study, each.target, each.kind)
    # What each product would be made of here: its code, what it shows of the configuration, and its runs.
    fingerprints = [
        project.fingerprints.product(each.study, each.kind, each.target or None) for each in request.products
    ]
    other_products = [
        str(each) for each, fingerprint in zip(request.products, fingerprints) if each.fingerprint != fingerprint
    ]
    failures = {}
    if request.any_commit or not other_products:
        for each, fingerprint in zip(request.products, fingerprints):
            start = time.monotonic()
            if problem := _run_command(_make_command(request, project, each, fingerprint)):
                failures[str(each)] = problem
            print(
                f"{'failed' if problem else 'made'} {visible(str(each))} ({time.monotonic() - start:.1f} s)", flush=True
            )
    answer = RebuildProcessReply(package=str(Path(plumbline.__file__).parent), other=other_products, failed=failures)
    Path(request.answer).write_bytes(msgspec.json.encode(answer))


def _make_command(
    request: RebuildProcessRequest, project: Project, product: description.BundleEntry, fingerprint: str
) -> list[str]:
    """Return the module of the rule's shell line and its arguments."""
    kind, study, target = product.kind, product.study, product.target
    ending = {"figure": ".png", "interpretations": ".md"}.get(kind, ".csv")
    out = ["--fingerprint", fingerprint, "--out", f"{request.results}/{product.path}{ending}"]
    if kind == "audit":
        return ["plumbline.audit.__main__", *out]
    config = request.configuration
    source = ["--preset", config["preset"], "--documents-source", config["data"]["source"]]
    if kind == "interpretations":
        return ["plumbline.results.interpretations", study, *source, "--items-source", project.evaluation_source, *out]
    runs = project.targets.hash_runs(study, target) if target else project.targets.hash_claimed_runs(study)
    run_options = ["--work", request.work, "--expected-runs-digest", runs]
    if request.called != request.work:
        run_options += ["--work-shown-as", request.called]
    target_options = [target, "--sizes", ",".join(project.sizes)] if target else []
    return ["plumbline.results.__main__", kind, study, *target_options, *source, *run_options, *out]


def _run_command(command: list[str]) -> str:
    """Run a command in this process; return its error, empty if there is none."""
    module, *arguments = command
    sys.argv = [module, *arguments]
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            importlib.import_module(module).main()
    except PlumblineError as error:
        return str(error)
    except Exception as error:  # a product that cannot be made is reported, and the others are made
        print(traceback.format_exc(), file=sys.stderr, flush=True)
        return f"{type(error).__name__}: {error}"
    except SystemExit as stop:
        return f"exit {stop.code}" if stop.code else ""
    return ""


if __name__ == "__main__":
    run(main)
