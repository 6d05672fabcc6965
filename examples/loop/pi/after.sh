#!/bin/sh
# .auto/hooks/after.sh of pi-autoresearch: tells the agent what was decided, and what that forbids.
python3 -c '
import json
import sys

told = json.load(sys.stdin)
try:
    said = json.load(open(told["cwd"] + "/.auto/plumbline.json"))
except FileNotFoundError:
    sys.exit("plumbline made no decision: do not keep this change; its error is in the output of the run")
if (told["run_entry"]["status"] == "keep") != (said["verdict"] == "keep"):
    print("Logged otherwise than decided: plumbline says " + said["verdict"] + ".")
print(said["sentence"])
if said["verdict"] == "undecided":
    print("Do not try the same code again with more seeds; a bolder version of the idea is a new try.")
'
