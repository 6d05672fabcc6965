// Draws two methods or runs of a study over each other, from the curves that the page holds. Without it the page has
// its table, and each run its own page.
"use strict";

const { make, finite, axisOf, written } = Chart;
const WIDTH = 640;

const data = JSON.parse(document.getElementById("comparison").textContent);
const form = document.querySelector("form.chosen");
const drawings = document.querySelector(".drawings");

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const signed = (value, digits) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);

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
  const lines = runs.map((run) => ({ name: `${chosen.label} ${run.seed}`, steps: run[steps], values: run[quantity], diverged: run.state === "diverged" }));
  return { label: chosen.label, grid, lines, mean: over(mean), low: over((v) => Math.min(...v)), high: over((v) => Math.max(...v)) };
}

function frame(title, note, description, children, height) {
  const svg = make("svg", { class: "curve", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": description });
  svg.append(...children);
  const readout = make("p", { class: "readout" }, note);
  return make("figure", { class: "drawn" }, make("figcaption", {}, title), svg, readout);
}

// The second over the span of the first; of several seeds their mean too. less: begin with differences from the first.
function lineChart(title, note, [first, second], less = false) {
  const lines = [];
  if (second) {
    const several = second.lines.length > 1;
    if (several) for (const line of second.lines) lines.push({ name: line.name, kind: "two", seed: true, ...line });
    lines.push(several ? { name: second.label, kind: "two", steps: second.grid, values: second.mean, dots: true } : { name: second.label, kind: "two", dots: true, ...second.lines[0] });
  }
  for (const line of first ? first.lines.filter((each) => each.diverged) : []) lines.push({ name: line.name, kind: "one", seed: true, ...line });
  const band = first && { name: first.label, steps: first.grid, low: first.low, mean: first.mean, high: first.high };
  return lines.length || band ? Chart.draw({ title, x: "step", y: title.toLowerCase(), note, band, lines, less: less && Boolean(band && second) }) : null;
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
  const [left, right, line] = [150, WIDTH - 70, 22];
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
  const describe = (chosen) => {
    const finals = finite(chosen.runs.filter((run) => run.state === "completed").map((run) => run.final));
    const gone = chosen.runs.filter((run) => run.state === "diverged").length;
    const more = gone ? `; ${gone} of ${chosen.runs.length} diverged` : "";
    if (!finals.length) return { text: `${chosen.label}: no final validation loss${more}` };
    const span = finals.length > 1 ? `, from ${Math.min(...finals).toFixed(4)} to ${Math.max(...finals).toFixed(4)} over ${finals.length} seeds` : ", one run";
    return { mean: mean(finals), text: `${chosen.label}: ${mean(finals).toFixed(4)}${span}${more}` };
  };
  const [one, two] = [describe(first), describe(second)];
  const apart = one.mean === undefined || two.mean === undefined ? "" : ` Second less first: ${signed(two.mean - one.mean, 4)}.`;
  return `Validation loss at the end. ${two.text}. ${one.text}.${apart}`;
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
  const charts = [
    lineChart("Training loss", note("every", "steps: the mean of their losses"), of("step", "loss")),
    lineChart("Validation loss", note("held_every", "validations: the mean of their losses"), of("held_step", "held"), true),
    lineChart("Gradient norm", note("every", "steps: the largest of their norms"), of("step", "norm")),
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
