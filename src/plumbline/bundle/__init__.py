"""Packs release bundles: one archive from which every table and figure of a configuration is made again elsewhere.

`python -m plumbline.bundle` packs, `plumbline rebuild` makes again and compares; docs/bundle.md.
"""
