#!/usr/bin/env bash
# The one step of action.yml: installs Plumbline from this repository and runs `plumbline gate`. GATE_PYTHON names an
# interpreter that has it already.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# -I, always: a pull request's checkout is the working folder, and Python would take a module of it for its own.
work="${RUNNER_TEMP:-$(mktemp -d)}/plumbline-gate"
mkdir -p "$work"

python="${GATE_PYTHON:-}"
if [ -z "$python" ]; then
    python3 -I -m venv "$work/environment"
    python="$work/environment/bin/python"
    # The wheel's own dependencies: no torch, no pandas.
    "$python" -I -m pip install --quiet --disable-pip-version-check "$here/../.."
fi

words=("$GATE_FOLDER" --rules "$GATE_RULES")
if [ -n "${GATE_RECORD:-}" ]; then
    words+=(--record "$GATE_RECORD")
fi

code=0
"$python" -I -m plumbline gate "${words[@]}" > "$work/comment.md" || code=$?
case "$code" in
    0) verdict="keep" ;;
    10) verdict="discard" ;;
    11) verdict="undecided" ;;
    12) verdict="crashed" ;;
    13) verdict="cannot be judged" ;;
    *) exit "$code" ;; # an error of the gate itself is never a verdict
esac

cat "$work/comment.md"
cat "$work/comment.md" >> "${GITHUB_STEP_SUMMARY:-/dev/null}"
printf 'verdict=%s\ncomment=%s\n' "$verdict" "$work/comment.md" >> "${GITHUB_OUTPUT:-/dev/null}"
case ",${GATE_FAIL_ON:-}," in
    *",$verdict,"*) exit "$code" ;;
esac
