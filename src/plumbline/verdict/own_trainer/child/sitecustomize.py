"""Runs at the start of every Python process of a run (it is first in PYTHONPATH): shifts seeds, and reports.

It belongs to the user's Python, of whatever version and packages: it imports nothing of Plumbline and little else, and
what fails in it is told in its report and never to the trainer. In the order of a process:

- modules that the user's own tree is installed from (`pip install -e .`) are looked for in the arm's copy instead;
- functions that set seeds are wrapped when random, numpy and torch are imported, where a shift is requested, and each
  of these modules is given a first seed in the first process of a run, for scripts that set none (workers that are
  started later keep streams of their own);
- the `sitecustomize` that would have run without this one is run;
- at the import of torch and at the end a report is written: versions, how many calls were shifted, the largest memory
  of a GPU, modules that came from the user's tree, and the files that were opened, where that is requested;
- how it ends is noted (`plumbline_process_end`, next to this file), which files it opens outside of the arm's copy
  (`plumbline_outside`), and which of the files that measure it reads (`plumbline_fixed`).

A generator that a script makes for itself (`torch.Generator`, `numpy.random.RandomState`) is left alone: those often
choose the data of an evaluation.
"""

import atexit
import functools
import importlib.machinery
import importlib.util
import json
import operator
import os
import sys
import threading

_HERE = os.path.dirname(os.path.abspath(__file__))
#: Seeds are shifted by multiples of this, so that ranks, whose seeds scripts set apart by 1, stay apart.
_STEP = 1000003
_RANGE = 2**32
_SHIFT = os.environ.get("PLUMBLINE_SHIFT_SEEDS", "")
#: Of each module, the function that gives it a first seed, and those that are wrapped, by the name of their argument.
_TARGETS = {
    "random": ("seed", {"seed": "a"}),
    "numpy": ("random.seed", {"random.seed": "seed", "random.default_rng": "seed"}),
    "torch": (
        "manual_seed",
        dict.fromkeys(("manual_seed", "random.manual_seed", "cuda.manual_seed", "cuda.manual_seed_all"), "seed"),
    ),
}
#: Modules with seeds of their own, which are left alone.
_OTHERS = ("jax", "mlx", "tensorflow")
_state = threading.local()
_TOP, _COPY = (os.environ.get("PLUMBLINE_" + word, os.sep) for word in ("TREE", "COPY"))
_shifted: dict = {}
_problems: list = []
_opened: set = set()
_written: set = set()
_seeded: list = []
_BEGAN = os.getcwd()
_FIRST = not os.environ.get("PLUMBLINE_SEEDED")


def _new(seed):
    """The shifted seed; what is no whole number is left as it is."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        return seed
    return (seed.__index__() + _STEP * (int(_SHIFT) + 1)) % _RANGE


def _make_shifted(function, name, first):
    @functools.wraps(function)
    def shift(*arguments, **keywords):
        if getattr(_state, "inside", False):  # torch.manual_seed calls torch.cuda.manual_seed_all
            return function(*arguments, **keywords)
        seed = arguments[0] if arguments else keywords.get(first)
        if seed is not None and _new(seed) is not seed:
            _shifted[name] = _shifted.get(name, 0) + 1
            if arguments:
                arguments = (_new(seed), *arguments[1:])
            else:
                keywords[first] = _new(seed)
        _state.inside = True
        try:
            return function(*arguments, **keywords)
        finally:
            _state.inside = False

    return shift


def _wrap(module, path, first):
    *way, last = path.split(".")
    for name in way:
        module = getattr(module, name, None)
    function = getattr(module, last, None)
    if function is not None:
        setattr(module, last, _make_shifted(function, f"{module.__name__}.{last}", first))


def _treat_module(name, module):
    try:
        if _SHIFT:
            first, wrapped = _TARGETS[name]
            if _FIRST:
                operator.attrgetter(first)(module)(_new(0))
            for path, argument in wrapped.items():
                _wrap(module, path, argument)
            _seeded.append(name)
        if name == "torch":
            _report()
    except Exception as error:
        _problems.append(f"{name}: {error!r}")


class _Finder:
    """A finder that lets others find, and waits for the end of the import of a few modules."""

    busy = False

    def find_spec(self, name, path=None, target=None):
        if name not in _TARGETS or _Finder.busy:
            return None
        _Finder.busy = True
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            return None
        finally:
            _Finder.busy = False
        execute = getattr(getattr(spec, "loader", None), "exec_module", None)
        if execute is None:
            return spec

        def execute_and_wrap(module):
            execute(module)
            _treat_module(name, module)

        try:
            spec.loader.exec_module = execute_and_wrap
        except AttributeError:
            _problems.append(f"{name}: its loader cannot be wrapped")
        return spec


def _from_the_copy():
    """Look in the arm's copy for what is installed from the user's tree."""

    def move(path):
        if not isinstance(path, str) or not _of_the_tree(path):
            return path
        copied_path = _COPY + os.path.realpath(path)[len(_TOP) :]
        return copied_path if os.path.exists(copied_path) else path

    sys.path[:] = [move(path) for path in sys.path]
    for finder in sys.meta_path:
        mapping = getattr(sys.modules.get(getattr(finder, "__module__", "")), "MAPPING", None)
        if isinstance(mapping, dict):  # an editable install of setuptools
            mapping.update({name: move(path) for name, path in mapping.items()})


def _of_the_tree(path):
    """Whether a path is code of the user's tree: neither of a copy of it, nor of a Python that is installed in it."""
    if not path or os.path.abspath(path).startswith(_COPY + os.sep):  # what is shared is linked into the copy
        return False
    path = os.path.realpath(path)
    if path != _TOP and not path.startswith(_TOP + os.sep):
        return False
    parts = path[len(_TOP) + 1 :].split(os.sep)
    python = any(part.startswith("python") and parts[place - 1 : place] == ["lib"] for place, part in enumerate(parts))
    return ".plumbline" not in parts and "site-packages" not in parts and not python


def _list_borrowed():
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    script = os.path.join(_BEGAN, (getattr(sys, "argv", None) or [""])[0])
    if os.path.isfile(script):  # the script's __file__ is gone when this is called at the end
        files["__main__"] = script
    return sorted(name for name, file in files.items() if isinstance(file, str) and _of_the_tree(file))[:20]


def _watch(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and arguments and len(_opened) < 10000:
        path = arguments[0]
        if isinstance(path, (str, bytes)):
            path = os.path.abspath(os.fsdecode(path))
            if path.startswith(_COPY + os.sep):
                name = path[len(_COPY) + 1 :]
                _opened.add(name)
                if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
                    _written.add(name)


def _report(**fields):
    folder = os.environ.get("PLUMBLINE_REPORT", "")
    try:
        report = {"versions": {}, "shifted": _shifted, "borrowed": _list_borrowed(), "problems": _problems}
        report.update(fields)
        report.update(opened=sorted(_opened), written=sorted(_written), seeded=_seeded)
        report["left_alone"] = [name for name in _OTHERS if name in sys.modules]
        for name in report["left_alone"]:
            report["versions"][name] = str(getattr(sys.modules[name], "__version__", ""))
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "__version__"):
            report["versions"]["torch"] = str(torch.__version__)
            cuda = getattr(torch, "cuda", None)
            if cuda is not None and cuda.is_initialized():
                peaks = [cuda.max_memory_allocated(device) for device in range(cuda.device_count())]
                report["memory_gb"] = max(peaks) / 2**30
        path = os.path.join(folder, _ends.name() + ".json")
        with open(path + ".new", "w") as file:
            json.dump(report, file)
        os.replace(path + ".new", path)
    except Exception:  # a folder that is gone, a process that is ending: nobody is left to tell
        pass


def _report_end():
    try:
        end = _ends.at_exit()
    except Exception as error:
        end = {}
        _problems.append(f"its end: {error!r}")
    _report(**end)


def _next_one():
    """Run the `sitecustomize` that this one stands in front of."""
    folders = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", folders)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if os.environ.get("PLUMBLINE_REPORT"):
    import plumbline_fixed as _fixed
    import plumbline_outside as _outside
    import plumbline_process_end as _ends

    os.environ["PLUMBLINE_SEEDED"] = "1"
    try:
        _ends.begin(os.environ["PLUMBLINE_REPORT"])
    except Exception as _error:  # a folder that is gone
        _problems.append(f"its begin: {_error!r}")
    try:
        _outside.begin(os.environ["PLUMBLINE_REPORT"], _ends.name)
    except Exception as _error:
        _problems.append(f"its files: {_error!r}")
    try:
        _fixed.begin(os.environ["PLUMBLINE_REPORT"], _COPY, _ends.name)
    except Exception as _error:
        _problems.append(f"what measures: {_error!r}")
    _from_the_copy()
    if os.environ.get("PLUMBLINE_WATCH"):
        sys.addaudithook(_watch)
    for _name in _TARGETS:
        if _name in sys.modules:
            _treat_module(_name, sys.modules[_name])
    sys.meta_path.insert(0, _Finder())
    atexit.register(_report_end)
_next_one()
