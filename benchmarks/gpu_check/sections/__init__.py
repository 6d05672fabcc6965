"""The sections, in their order. A section's file has a `TITLE`, a `SHARE`, `rows(setting)` and `page(state)`.

- `SHARE`: the part of a call's time that it may take; 1 is all that is left.
- `rows(setting)`: key -> a function without arguments that measures the row and returns its values. It may import
  torch; what stands at the top of the file may not, since pages are drawn without.
- `page(state)`: lines of Markdown from what is recorded.
"""

ORDER = ("ceilings", "kernels", "ranks", "late", "saving", "attention", "training", "beside", "table2")
MODULES = {name: f"{__name__}.{name}" for name in ORDER}
