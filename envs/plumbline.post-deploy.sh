#!/usr/bin/env bash
# Snakemake runs this from the project's root, inside the new environment. The pins are not in plumbline.yaml, since
# Snakemake gives conda a copy of that file elsewhere, where `../requirements.lock` is nothing.
set -euo pipefail
sh envs/install_locks.sh python
if [ -f pyproject.toml ]; then
    python -m pip install --no-deps --no-build-isolation --editable .
else # a project that `plumbline init` wrote; PLUMBLINE_WHEEL names a file where no package index has it
    python -m pip install --no-deps "${PLUMBLINE_WHEEL:-plumbline-lm}"
fi
