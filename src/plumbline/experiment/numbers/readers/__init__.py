"""Reads numbers of any program, a module a shape.

- `rows`: a file of rows (.csv, .tsv, .jsonl, .json), with the place of each cell; which shape it has.
- `score_table`: method, seed and a metric; one row a run, or several steps of it.
- `search_log`: the log of a sequential search: commit, a metric, status, in the order of time.
- `submissions`: a folder of submission.json files, as parameter-golf has them.
- `items`: what `lm-eval --log_samples` wrote of one model, by item.
- `statuses`: the words by which loops and trackers say how a run ended.
"""
