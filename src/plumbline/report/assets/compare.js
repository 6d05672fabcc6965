// Draws two methods or runs of a study over each other, from the curves that the page holds. Without it the page has
// its table, and each run its own page.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const BOX = { width: 640, height: 250, left: 60, right: 14, above: 12, below: 32 };
const LOGARITHMIC = 12; // an axis is of powers of ten from so many medians on

const data = JSON.parse(document.getElementById("comparison").textContent);
const form = document.querySelector("form.chosen");
const drawings = document.querySelector(".drawings");

function make(name, attributes, ...children) {
  const made = name === "svg" || SVG_NAMES.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
const SVG_NAMES = new Set(["path", "text", "circle", "title", "rect", "line"]);

const finite = (values) => values.filter((value) => value !== null && value !== undefined);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const signed = (value, digits) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);

function nice(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return power * [1, 2, 5, 10].reduce((best, times) =>
    Math.abs(times * power - step) < Math.abs(best * power - step) ? times : best);
}

// An axis of values: linear, or of powers of ten where few values are far above the others.
function axisOf(values, from, to) {
  const ordered = [...values].sort((one, other) => one - other);
  let [low, high] = [ordered[0], ordered[ordered.length - 1]];
  const powers = low > 0 && high / ordered[ordered.length >> 1] > LOGARITHMIC;
  if (powers) [low, high] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  else {
    const room = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
    [low, high] = [low - room, high + room];
  }
  const place = (value) => from + ((powers ? Math.log10(value) : value) - low) / (high - low) * (to - from);
  const ticks = [];
  const step = powers ? Math.max(1, Math.round((high - low) / 4)) : nice((high - low) / 5);
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at++)
    ticks.push(powers ? 10 ** (at * step) : at * step);
  return { place, ticks, digits: powers ? null : Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

const written = (value, axis) => axis.digits === null ? String(Number(value.toPrecision(3))) :
  (Math.abs(value) < 1e-12 ? 0 : value).toLocaleString("en", { minimumFractionDigits: axis.digits, maximumFractionDigits: axis.digits });

// A method's curves of one quantity: each run's, and over the runs of one grid of steps their mean, lowest and highest.
function curvesOf(chosen, steps, quantity) {
  const runs = chosen.runs.filter((run) => finite(run[quantity]).length);
  if (!runs.length) return null;
  const grid = runs[0][steps];
  const same = runs.filter((run) => run[steps].length === grid.length && run[steps].every((step, at) => step === grid[at]));
  const over = (what) => grid.map((_, at) => {
    const values = finite(same.map((run) => run[quantity][at]));
    return values.length === same.length ? what(values) : null;
  });
  const lines = runs.map((run) => ({ steps: run[steps], values: run[quantity], diverged: run.state === "diverged" }));
  return { grid, lines, seeds: same.length, mean: over(mean), low: over((v) => Math.min(...v)), high: over((v) => Math.max(...v)) };
}

function path(steps, values, x, y) {
  let drawn = "", pen = false;
  steps.forEach((step, at) => {
    const value = values[at];
    if (value === null || value === undefined) { pen = false; return; }
    drawn += `${pen ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = true;
  });
  return drawn;
}

// The area between the lowest and the highest seed, in pieces where a seed has no value.
function band(curves, x, y) {
  const pieces = [];
  let piece = [];
  curves.grid.forEach((step, at) => {
    if (curves.low[at] === null) { pieces.push(piece); piece = []; } else piece.push(at);
  });
  return [...pieces, piece].filter((one) => one.length > 1).map((one) => {
    const point = (values) => (at) => `${x(curves.grid[at]).toFixed(1)} ${y(values[at]).toFixed(1)}`;
    return `M${[...one.map(point(curves.high)), ...one.reverse().map(point(curves.low))].join("L")}Z`;
  }).join("");
}

function frame(title, note, description, children, height) {
  const svg = make("svg", { class: "curve", viewBox: `0 0 ${BOX.width} ${height}`, role: "img", "aria-label": description });
  svg.append(...children);
  const said = make("p", { class: "readout" }, note);
  return make("figure", { class: "drawn" }, make("figcaption", {}, title), svg, said);
}

function lineChart(title, note, first, second) {
  const both = [first, second].filter(Boolean);
  const values = both.flatMap((one) => one.lines.flatMap((line) => finite(line.values)));
  if (!values.length) return null;
  const last = Math.max(...both.flatMap((one) => one.lines.map((line) => line.steps[line.steps.length - 1])));
  const y = axisOf(values, BOX.height - BOX.below, BOX.above);
  const x = (step) => BOX.left + step / last * (BOX.width - BOX.left - BOX.right);
  const children = y.ticks.flatMap((tick) => [
    make("path", { class: "grid", d: `M${BOX.left} ${y.place(tick).toFixed(1)}H${BOX.width - BOX.right}` }),
    make("text", { class: "y", x: BOX.left - 6, y: (y.place(tick) + 3.5).toFixed(1) }, written(tick, y)),
  ]);
  const every = nice(last / 5);
  for (let step = 0; step <= last + 1e-9; step += every)
    children.push(make("text", { class: "x", x: x(step).toFixed(1), y: BOX.height - 12 }, step.toLocaleString("en")));
  children.push(make("path", { class: "base", d: `M${BOX.left} ${BOX.height - BOX.below}H${BOX.width - BOX.right}` }));
  if (first && first.seeds > 1) children.push(make("path", { class: "band", d: band(first, x, y.place) }));
  for (const [name, one] of [["one", first], ["two", second]]) {
    if (!one) continue;
    const several = one.lines.length > 1;
    if (several && name === "two")
      for (const line of one.lines) children.push(make("path", { class: `line ${name} seed`, d: path(line.steps, line.values, x, y.place) }));
    const shown = several ? { steps: one.grid, values: one.mean } : one.lines[0];
    children.push(make("path", { class: `line ${name}`, d: path(shown.steps, shown.values, x, y.place) }));
    if (shown.steps.length <= 45) shown.steps.forEach((step, at) => {
      if (shown.values[at] !== null) children.push(make("circle", { class: name, cx: x(step).toFixed(1), cy: y.place(shown.values[at]).toFixed(1), r: 2.2 }));
    });
    for (const line of one.lines.filter((each) => each.diverged)) {
      const at = line.values.findLastIndex((value) => value !== null);
      if (at >= 0) children.push(make("text", { class: "ended", x: x(line.steps[at]).toFixed(1), y: (y.place(line.values[at]) + 4).toFixed(1), "text-anchor": "middle" }, make("title", {}, "diverged"), "✕"));
    }
  }
  const figure = frame(title, note, `${title} over steps`, children, BOX.height);
  readable(figure, first, second, x, y, note);
  return figure;
}

// What both have at the step under the pointer.
function readable(figure, first, second, x, y, note) {
  const [svg, said] = [figure.querySelector("svg"), figure.querySelector(".readout")];
  const grid = (second || first).grid;
  const line = make("path", { class: "pointer" });
  svg.append(line);
  svg.addEventListener("pointermove", (event) => {
    const at = (event.clientX - svg.getBoundingClientRect().left) / svg.clientWidth * BOX.width;
    const step = grid.reduce((best, one) => Math.abs(x(one) - at) < Math.abs(x(best) - at) ? one : best);
    line.setAttribute("d", `M${x(step).toFixed(1)} ${BOX.above}V${BOX.height - BOX.below}`);
    const told = (one, name) => {
      const place = one ? one.grid.indexOf(step) : -1;
      if (place < 0 || one.mean[place] === null) return `${name}: no value`;
      const span = one.seeds > 1 ? ` (${one.low[place].toPrecision(4)} to ${one.high[place].toPrecision(4)})` : "";
      return `${name}: ${one.mean[place].toPrecision(4)}${span}`;
    };
    said.textContent = `Step ${step.toLocaleString("en")}. ${told(first, "First")}; ${told(second, "second")}.`;
  });
  svg.addEventListener("pointerleave", () => { line.removeAttribute("d"); said.textContent = note; });
}

// Both less the mean of the first: near the end curves lie closer than an axis from their start shows.
function differences(first, second) {
  const less = (one) => {
    const minus = (steps, values) => steps.map((step, at) => {
      const place = first.grid.indexOf(step);
      return place < 0 || first.mean[place] === null || values[at] === null ? null : values[at] - first.mean[place];
    });
    const of = (values) => minus(one.grid, values);
    const lines = one.lines.map((line) => ({ ...line, values: minus(line.steps, line.values) }));
    return { ...one, lines, mean: of(one.mean), low: of(one.low), high: of(one.high) };
  };
  return [less(first), less(second)];
}

function tasks(first, second) {
  const names = [...new Set([...first.runs, ...second.runs].flatMap((run) => Object.keys(run.tasks)))];
  const rows = names.map((name) => {
    const [one, two] = [first, second].map((chosen) => finite(chosen.runs.map((run) => run.tasks[name])));
    if (!one.length || !two.length) return null;
    const base = mean(one);
    return { name, low: Math.min(...one) - base, high: Math.max(...one) - base, value: mean(two) - base };
  }).filter(Boolean);
  if (!rows.length) return null;
  const [left, right, line] = [150, BOX.width - 70, 22];
  const height = rows.length * line + 44;
  const x = axisOf(rows.flatMap((row) => [row.low, row.high, row.value, 0]), left, right);
  const points = (value) => written(100 * value, { digits: 1 });
  const children = x.ticks.flatMap((tick) => [
    make("path", { class: Math.abs(tick) < 1e-12 ? "base" : "grid", d: `M${x.place(tick).toFixed(1)} 8V${height - 30}` }),
    make("text", { class: "x", x: x.place(tick).toFixed(1), y: height - 12 }, points(tick)),
  ]);
  rows.forEach((row, at) => {
    const y = 8 + at * line + line / 2;
    const [low, high] = [x.place(row.low), x.place(row.high)];
    children.push(
      make("text", { class: "y", x: left - 8, y: y + 3.5 }, row.name),
      make("rect", { class: "band", x: (low - 1).toFixed(1), y: y - 7, width: (high - low + 2).toFixed(1), height: 14 }),
      make("path", { class: "line two", d: `M${x.place(0).toFixed(1)} ${y}H${x.place(row.value).toFixed(1)}` }),
      make("circle", { class: "two", cx: x.place(row.value).toFixed(1), cy: y, r: 3.6 }),
      make("text", { class: "value", x: right + 10, y: y + 3.5 }, signed(100 * row.value, 1)),
    );
  });
  const note = "Points: 100 times the score. Of the second less the first, means over their runs.";
  return frame("Score by task, second less first", note, "differences of scores by task", children, height);
}

function outcome(first, second) {
  const told = (chosen) => {
    const finals = finite(chosen.runs.filter((run) => run.state === "completed").map((run) => run.final));
    const gone = chosen.runs.filter((run) => run.state === "diverged").length;
    const more = gone ? `; ${gone} of ${chosen.runs.length} diverged` : "";
    if (!finals.length) return { words: `${chosen.label}: no final validation loss${more}` };
    const span = finals.length > 1 ? `, from ${Math.min(...finals).toFixed(4)} to ${Math.max(...finals).toFixed(4)} over ${finals.length} seeds` : ", one run";
    return { mean: mean(finals), words: `${chosen.label}: ${mean(finals).toFixed(4)}${span}${more}` };
  };
  const [one, two] = [told(first), told(second)];
  const apart = one.mean === undefined || two.mean === undefined ? "" : ` Second less first: ${signed(two.mean - one.mean, 4)}.`;
  return `Validation loss at the end. ${two.words}. ${one.words}.${apart}`;
}

const scaleNow = () => data.scales.find((one) => one.name === form.elements.scale.value);

// What a name of the address or a list means: a method with all of its runs, or one run of it.
function chosenBy(name) {
  const [method, seed] = name.split("/");
  const entry = scaleNow().methods.find((one) => one.name === method);
  const runs = seed ? entry.runs.filter((run) => run.seed === seed) : entry.runs;
  return { label: seed ? `${entry.label} ${seed}` : entry.label, runs };
}

function draw() {
  const [first, second] = [chosenBy(form.elements.a.value), chosenBy(form.elements.b.value)];
  const of = (steps, quantity) => [first, second].map((one) => curvesOf(one, steps, quantity));
  const note = (every, of) => {
    const most = Math.max(...[...first.runs, ...second.runs].map((run) => run[every]));
    return most > 1 ? `A point is of ${most} ${of}.` : "Point at a step to read its values.";
  };
  const held = of("held_step", "held");
  const charts = [
    lineChart("Training loss", note("every", "steps: the mean of their losses"), ...of("step", "loss")),
    lineChart("Validation loss", note("held_every", "validations: the mean of their losses"), ...held),
    held[0] && held[1] ? lineChart("Validation loss, less the mean of the first", "Below zero the second is lower.", ...differences(...held)) : null,
    lineChart("Gradient norm", note("every", "steps: the largest of their norms"), ...of("step", "norm")),
    tasks(first, second),
  ];
  const key = make("p", { class: "keys" }, make("span", { class: "key-two" }, `${second.label}${second.runs.length > 1 ? `, mean and each of ${second.runs.length} seeds` : ", one run"}`), make("span", { class: "key-one" }, `${first.label}${first.runs.length > 1 ? `, mean and span of ${first.runs.length} seeds` : ", one run"}`));
  drawings.replaceChildren(key, ...charts.filter(Boolean));
  document.querySelector(".outcome").textContent = outcome(first, second);
  const address = new URLSearchParams({ scale: form.elements.scale.value, a: form.elements.a.value, b: form.elements.b.value });
  history.replaceState(null, "", `#${address.toString().replaceAll("%2F", "/")}`);
}

function fill(select, wanted, otherwise) {
  select.replaceChildren(...scaleNow().methods.flatMap((method) => [
    make("option", { value: method.name }, method.runs.length > 1 ? `${method.label}, ${method.runs.length} seeds` : method.label),
    ...(method.runs.length > 1 ? method.runs.map((run) => make("option", { value: `${method.name}/${run.seed}` }, `${method.label}, ${run.seed}`)) : []),
  ]));
  const names = [...select.options].map((option) => option.value);
  const known = [wanted, (wanted || "").split("/")[0]].find((name) => names.includes(name));
  select.value = known || (names.includes(otherwise) ? otherwise : names[0]);
}

function choose(wanted) {
  const names = scaleNow().methods.map((one) => one.name);
  const base = names.includes(data.reference) ? data.reference : names[0];
  fill(form.elements.a, wanted.a, base);
  const other = names.find((name) => name !== form.elements.a.value.split("/")[0]);
  fill(form.elements.b, wanted.b, other || names[0]);
  draw();
}

function fromAddress() {
  const wanted = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  if (!wanted.scale && !wanted.a && !wanted.b && form.elements.a.value) return;
  if (data.scales.some((one) => one.name === wanted.scale)) form.elements.scale.value = wanted.scale;
  choose(wanted);
  if (wanted.b) form.scrollIntoView({ block: "nearest" });
}

form.elements.scale.append(...data.scales.map((one) => make("option", { value: one.name }, `${one.name}, ${one.label}`)));
form.elements.scale.addEventListener("change", () => choose({ a: form.elements.a.value, b: form.elements.b.value }));
for (const name of ["a", "b"]) form.elements[name].addEventListener("change", draw);
form.querySelector("button").addEventListener("click", () => {
  [form.elements.a.value, form.elements.b.value] = [form.elements.b.value, form.elements.a.value];
  draw();
});
addEventListener("hashchange", fromAddress);
for (const part of [form, document.querySelector(".outcome"), drawings]) part.hidden = false;
fromAddress();
