#!/bin/sh
# Installs the locked packages, and nothing else: sh envs/install_locks.sh PYTHON [OPTION OF PIP ...], from the folder of
# the locks; the options are those that pip's `install` and `download` both know. Every file is held to a hash of its
# lock. What a CUDA build of torch needs besides is in a lock of its own, and `pip check` tells whether torch is one.
set -eu
python=$1
shift
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
# Where hashes are asked for, pip takes an index's CUDA build of torch before a CPU wheel in a folder of this machine,
# since it knows the hash of the first before it has the file. So it chooses without them, and the choice is held to them.
sed -n '/^torch==/,/[^\\]$/p' requirements.lock >"$files/torch.lock"
if [ -s "$files/torch.lock" ]; then
    "$python" -m pip download "$@" --no-deps --dest "$files" "$(sed -n 's/^\(torch==[^ ]*\).*/\1/p' "$files/torch.lock")"
    "$python" -m pip install "$@" --no-deps --require-hashes --no-index --find-links "$files" --requirement "$files/torch.lock"
fi
"$python" -m pip install "$@" --no-deps --require-hashes --requirement requirements.lock
"$python" -m pip check >/dev/null ||
    "$python" -m pip install "$@" --no-deps --require-hashes --requirement requirements-cuda.lock
"$python" -m pip check
