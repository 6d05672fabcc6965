"""Runs at the start of every Python on the machine that `tests.gpu_check.bare_image` makes: hides what it lacks.

What is hidden is hidden where the environment has it, and found wherever else it lies: in a folder of wheels, say.
"""

import json
import os
import re
import sys
from importlib.machinery import PathFinder

HIDES = json.loads(os.environ["BARE_IMAGE"])


class Finder(PathFinder):
    """Python's own finder, with some of the environment's packages not there."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if path is None and fullname in HIDES["modules"]:
            path = [entry for entry in sys.path if os.path.realpath(entry) != os.path.realpath(HIDES["site"])]
        return super().find_spec(fullname, path, target)

    @classmethod
    def find_distributions(cls, *context):
        for distribution in super().find_distributions(*context):
            name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
            here = os.path.realpath(distribution.locate_file("")) == os.path.realpath(HIDES["site"])
            if not (here and name in HIDES["names"]):
                yield distribution


def _added_by_the_environment(entry):
    """A folder that an editable install has put there."""
    return os.path.isfile(os.path.join(entry, "plumbline", "__init__.py")) and entry not in _asked_for


_asked_for = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
sys.path[:] = [entry for entry in sys.path if not _added_by_the_environment(entry)]
sys.meta_path[:] = [Finder if finder is PathFinder else finder for finder in sys.meta_path]
