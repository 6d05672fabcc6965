#!/bin/sh
# Installs the locked packages, and nothing else: sh envs/install_locks.sh PYTHON [OPTION OF PIP ...], from the folder of
# the locks. Every file is held to a hash of its lock. What a CUDA build of torch needs besides is in a lock of its own,
# and `pip check` tells whether torch is one.
set -eu
python=$1
shift
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
# What comes as sources alone is built by the locked setuptools: pip would fetch one that no hash holds, or build as it
# did of old and say so at length.
set -- "$@" --no-build-isolation --use-pep517
sed -n '/^setuptools==/,/[^\\]$/p' requirements.lock >"$files/setuptools.lock"
if test -s "$files/setuptools.lock"; then
    "$python" -m pip install "$@" --no-deps --require-hashes --requirement "$files/setuptools.lock"
fi
# A wheel of torch in a folder that pip looks in goes before the index's CUDA build, which pip would take, since it knows
# the hash of that one before it has the file.
sed -n '/^torch==/,/[^\\]$/p' requirements.lock >"$files/torch.lock"
if ! "$python" -m pip install "$@" --no-index --no-deps --require-hashes --requirement "$files/torch.lock" 2>"$files/error" &&
    grep -q "DO NOT MATCH THE HASHES" "$files/error"; then
    cat "$files/error" >&2
    exit 1
fi
"$python" -m pip install "$@" --no-deps --require-hashes --requirement requirements.lock
"$python" -m pip check >/dev/null ||
    "$python" -m pip install "$@" --no-deps --require-hashes --requirement requirements-cuda.lock
"$python" -m pip check
