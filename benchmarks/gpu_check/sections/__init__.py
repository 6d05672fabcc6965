"""The sections, in the order of their worth to who has half an hour: whether the kernels are right, whether steps can
be taken, what is to be tuned, a study's runs, and then what is good to know.

A section's file has a `TITLE`, a `SHARE`, `rows(setting)` and `page(state)`, and may have `AHEAD` and `LEAST`.

- `SHARE`: the part of a call's time that it may take; 1 is all that is left.
- `rows(setting)`: key -> a function without arguments that measures the row and returns its values. It may import
  torch; what stands at the top of the file may not, since pages are drawn without.
- `AHEAD`: whether its rows are carried out once side by side before they are measured (`ahead`), on a GPU.
- `LEAST`: seconds that have to be left for a row to be begun.
- `page(state)`: lines of Markdown from what is recorded.
"""

ORDER = (
    "kernel_accuracy",
    "kernel_block_sizes",
    "key_norms",
    "compiled_method_steps",
    "device_ceilings",
    "attention_times",
    "eager_steps",
)
MODULES = {name: f"{__name__}.{name}" for name in ORDER}
