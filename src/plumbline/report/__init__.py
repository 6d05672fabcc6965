"""Builds the report: a folder of static pages that shows what was tried and made, and can be carried anywhere.

Jinja2 makes the pages (it escapes by default, and Snakemake brings it anyway), markdown-it the parts that results have
as Markdown (it stands below rich already, and takes nothing for HTML). A table is plain HTML: great_tables and itables
draw one as well, but neither knows that a cell has runs behind it, nor names a colour's meaning, and itables
is a blank without its script. A curve is SVG that is drawn here, a few KiB: Plotly's script alone is megabytes, and
uPlot (51 KB) draws on a canvas, which neither links, nor turns dark with its page, nor is saved as SVG. What a script
adds (sorting, searching, columns on demand, showing a cell's runs without leaving the table) is
`assets/report.js`; without it every page still reads, links and prints. `assets/chart.js` draws any lines over each
other, which are zoomed and saved; `assets/compare.js` chooses two methods of a study for it.

One file a kind of page, named by it.
"""
