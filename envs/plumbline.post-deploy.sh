#!/usr/bin/env bash
# Snakemake runs this from the repository root, inside the new environment. The pins are not in plumbline.yaml, since
# Snakemake gives conda a copy of that file elsewhere, where `../requirements.lock` is nothing.
set -euo pipefail
python -m pip install --requirement requirements.lock
python -m pip install --no-deps --no-build-isolation --editable .
