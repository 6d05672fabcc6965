#!/bin/sh
# .auto/measure.sh of pi-autoresearch: decides on the change in the working tree, and prints its mean as METRIC lines.
# A decision is also in .auto/plumbline.json, which checks.sh and hooks/after.sh read. Give run_experiment the argument
# timeout_seconds: 0, since a decision takes several runs.
set -u
rm -f .auto/plumbline.json
change=$(git diff HEAD | git hash-object --stdin | cut -c1-7)
plumbline try --json -m "change $change" "$@" > .auto/plumbline.json.new
code=$?
case $code in
0 | 10 | 11 | 12 | 14) mv .auto/plumbline.json.new .auto/plumbline.json ;;
*)
  rm -f .auto/plumbline.json.new
  echo "no decision (exit code $code): nothing is known of the change" >&2
  exit "$code"
  ;;
esac
python3 - <<'PYTHON'
import json

said = json.load(open(".auto/plumbline.json"))
print(said["sentence"])
own = [run["value"] for run in said["runs"] if run["arm"] != "baseline" and run["value"] is not None]
if own:
    print(f"METRIC {said['terms']['metric']}={sum(own) / len(own):.6g}")
    print(f"METRIC runs={len(own)}")
PYTHON
[ "$code" -ne 12 ]
