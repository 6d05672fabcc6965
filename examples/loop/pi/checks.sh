#!/bin/sh
# .auto/checks.sh of pi-autoresearch: a change may be kept only where plumbline kept it.
python3 - <<'PYTHON'
import json
import sys

said = json.load(open(".auto/plumbline.json"))
if said["verdict"] != "keep":
    sys.exit(f"{said['verdict']}: {said['sentence']}")
PYTHON
