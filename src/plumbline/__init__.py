"""Rebuilds the tables and figures of five studies of Transformer pretraining."""

import sys

from plumbline.core import end_on_ctrl_c

__version__ = "0.1.0"

#: Version of the numerics: part of every RunSpec, bumped by any change that moves a golden loss.
#: Runs made under another number are then known to be old; an innocent refactor never reruns a GPU month.
NUMERICS = 2

if sys.argv[:1] == ["-m"] or (sys.argv[:1] and sys.argv[0].endswith("/plumbline")):  # a program of ours begins
    end_on_ctrl_c.expect()
