"""Holds the code of studies: `plumbline.studies.<study>` is found by its folder, in the project or in a package."""

import sys

from plumbline.specs.study_parts import FINDER

sys.meta_path.append(FINDER)
