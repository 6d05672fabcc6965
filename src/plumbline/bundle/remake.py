"""Products of an unpacked bundle, made again by the verbs that the rules in workflow/rules/results.smk call.

A process of its own, started by `plumbline.bundle.rebuild` in the bundle's folder with the package of the bundle's
commit on its path, which may be an older one than this file's: what is imported here has been there since 20b5b5a.
Reads a request from a JSON file, tells of each product on standard output, and answers in another JSON file.
"""

import contextlib
import importlib
import io
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any


def main() -> None:
    """The request: {configuration, work, called, results, products, any_commit, answer}."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    import plumbline
    from plumbline.project import load

    planned = load(request["configuration"])
    answer: dict[str, Any] = {"package": str(Path(plumbline.__file__).parent), "other": [], "failed": {}}
    products = request["products"]
    # What each product would be made of here: its code, what it shows of the configuration, and its runs.
    now = [planned.fingerprints.product(each["study"], each["kind"], each["target"] or None) for each in products]
    answer["other"] = [_name(each) for each, made_of in zip(products, now) if each["made_of"] != made_of]
    if request["any_commit"] or not answer["other"]:
        for each, made_of in zip(products, now):
            begun = time.monotonic()
            if said := _make(_command(request, planned, each, made_of)):
                answer["failed"][_name(each)] = said
            print(f"{'failed' if said else 'made'} {_name(each)} ({time.monotonic() - begun:.1f} s)", flush=True)
    Path(request["answer"]).write_text(json.dumps(answer))


def _name(product: dict) -> str:
    return " ".join(word for word in (product["kind"], product["study"], product["target"]) if word)


def _command(request: dict, planned, product: dict, made_of: str) -> list[str]:
    """The module of the rule's shell line, and its words."""
    kind, study, target = product["kind"], product["study"], product["target"]
    ending = {"figure": ".png", "deviations": ".md"}.get(kind, ".csv")
    out = ["--made-of", made_of, "--out", f"{request['results']}/{product['path']}{ending}"]
    if kind == "audit":
        return ["plumbline.audit.__main__", *out]
    config = request["configuration"]
    asked = ["--preset", config["preset"], "--source", config["data"]["source"]]
    if kind == "deviations":
        return ["plumbline.results.deviations", study, *asked, "--evaluation", planned.evaluation_source, *out]
    runs = planned.targets.expected(study, target) if target else planned.targets.study_expected(study)
    read = ["--work", request["work"], "--planned", runs]
    if request["called"] != request["work"]:
        read += ["--called", request["called"]]
    return ["plumbline.results.__main__", kind, study, *[target] * bool(target), *asked, *read, *out]


def _make(command: list[str]) -> str:
    """Carry it out; what went wrong, if anything did."""
    module, *words = command
    sys.argv = [module, *words]
    quiet = io.StringIO()
    try:
        with contextlib.redirect_stdout(quiet):
            importlib.import_module(module).main()
    except Exception as error:  # a product that cannot be made is told of, and the others are made
        print(traceback.format_exc(), file=sys.stderr, flush=True)
        return f"{type(error).__name__}: {error}"
    except SystemExit as stop:
        return f"exit {stop.code}" if stop.code else ""
    return ""


if __name__ == "__main__":
    main()
