"""Checks the records of a community as they lie in its repository: what they print, their logs, and what follows.

- `rules`: a rules file, each number with its source; `rules/*.toml` are those that travel in the package.
- `bounded_reading`: files and lines that somebody else wrote, within limits of size and time.
- `training_log`: a log: its code, configuration and machine, and the evaluations of each of its runs.
- `table_records`, `submission_records`: records as a README's table lists them, and as submission.json files.
- `counted_runs`, `submission_runs`: which runs count, each once.
- `evidence`: whether a record is what its logs say; its faults.
- `board_reading`: all records of a folder.
- `judgement`: the tests against the goal and the predecessor, with the board's pooled sigma.
- `gate_words`: the eight lines and the JSON object.
"""
