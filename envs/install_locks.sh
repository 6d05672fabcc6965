#!/bin/sh
# Installs the locked packages, and nothing else: sh envs/install_locks.sh PYTHON [OPTION OF PIP ...], from the folder of
# the locks. Every file is held to a hash of its lock. What a CUDA build of torch needs besides is in a lock of its own,
# and `pip check` tells whether torch is one.
set -eu
python=$1
shift
"$python" -m pip install "$@" --no-deps --require-hashes --requirement requirements.lock
"$python" -m pip check >/dev/null ||
    "$python" -m pip install "$@" --no-deps --require-hashes --requirement requirements-cuda.lock
"$python" -m pip check
