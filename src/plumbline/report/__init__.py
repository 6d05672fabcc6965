"""Builds the report: a folder of static pages that shows what a preset's results are, and can be carried anywhere.

Jinja2 makes the pages (it escapes by default, and Snakemake brings it anyway), markdown-it the parts that results have
as Markdown (it stands below rich already, and takes nothing for HTML). A table is plain HTML: great_tables and itables
draw one as well, but neither knows that a cell has runs behind it, nor names a colour's meaning, and itables
is a blank without its script. A curve is SVG that is drawn here, a few KiB: Plotly's script alone is megabytes. What a
script adds (sorting, searching, columns on demand, showing a cell's runs without leaving the table) is
`assets/report.js`; without it every page still reads, links and prints. `assets/compare.js` draws two runs over each
other.

One file a kind of page, named by it.
"""
