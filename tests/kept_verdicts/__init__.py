"""The one place where sentences of verdicts are nailed: some 60 small inputs over all doors, each with what it gives.

An input is a few small files and the command lines that are run on them, one after the other, in an empty folder.
`expected/NAME.txt` has, for each command line, its exit code, what it prints, and the files that it leaves, with
what truly changes from run to run taken out (`normalise.py` has the whole list). Doors: `plumbline verdict`, `try`,
`confirm`, `noise`, `log`, `page`, `setup-trainer`, `gate`, `board`, `verify`, the report's pages of verdicts, and
the page of `mine=`. Nothing is trained: trainers are scripts of milliseconds, and made-up runs stand in for others.

Tests elsewhere match what a message must name (a file, a key, a value, a remedy); whole sentences stand here. Who
changes a sentence on purpose writes the expectations anew, reads the difference, and commits both:

    python -m tests.kept_verdicts.write                    # all
    python -m tests.kept_verdicts.write verdict_improves   # or those that are named; ends with 1 where one changed

A new door or a new kind of verdict gets its own input: in `numbers_inputs.py`, `trainer_inputs.py`,
`study_inputs.py`, `record_inputs.py` or `own_method_inputs.py`.
"""
