"""The sections in the order of their worth, with the seconds that each has.

A loan of a device is fifteen minutes in all, its start and the transfers included: one call of nine and a half minutes,
and a warm one of two and a half. Time that a section leaves goes to the next one that needs it.

A section's file has a `TITLE`, `rows(setting)` and `page(state)`, and may have `AHEAD`, `ahead_rows` and `LEAST`.

- `rows(setting)`: key -> a function without arguments that measures the row and returns its values. It may import
  torch; what stands at the top of the file may not, since pages are drawn without.
- `AHEAD`: how many processes carry out its rows once, side by side, before they are measured, on a
  GPU; `ahead_rows(setting)`: what they carry out in place of `rows`.
- `LEAST`: seconds that have to be left for a row to be begun.
- `page(state)`: lines of Markdown from what is recorded.
"""

#: Minutes of a call -> its sections and their seconds.
FIRST_MINUTES, SECOND_MINUTES = 9.5, 2.5
FIRST_CALL = {
    "device_ceilings": 20.0,
    "kernel_accuracy": 60.0,
    "baseline_steps": 120.0,
    "compiled_method_steps": 200.0,
    "kernel_block_sizes": 90.0,
}
SECOND_CALL = {"other_block_sizes": 120.0}
#: What only another loan has time for, and only who names it gets.
ANOTHER_LOAN = {"key_norms": 540.0}

SECONDS = FIRST_CALL | SECOND_CALL | ANOTHER_LOAN
ORDER = tuple(SECONDS)
MODULES = {name: f"{__name__}.{name}" for name in ORDER}
