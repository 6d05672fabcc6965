// Draws lines over steps, any number of them over a band: read with the pointer, zoomed by a drag or by keys, kept as
// SVG, PNG or CSV. A figure without a script keeps the picture that the page came with.
"use strict";

const Chart = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const IN_SVG = new Set(["svg", "path", "text", "circle", "title", "rect", "g"]);
  const BOX = { width: 640, height: 270, left: 60, right: 14, above: 24, below: 44 };
  const LOGARITHMIC = 12; // an axis is of powers of ten from so many medians on
  const COLOURS = 8;
  const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font", "text-anchor"];

  function make(name, attributes, ...children) {
    const made = IN_SVG.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function button(text, act, label) {
    const made = make("button", label ? { type: "button", "aria-label": label } : { type: "button" }, text);
    made.addEventListener("click", act);
    return made;
  }

  const finite = (values) => values.filter((value) => value !== null && value !== undefined);

  const cut = (name) => name.length > 28 ? `${name.slice(0, 27)}…` : name;

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

  // The area between the lowest and the highest, in pieces where one has no value.
  function area(band, x, y) {
    const pieces = [[]];
    band.steps.forEach((step, at) => {
      if (band.low[at] === null) pieces.push([]); else pieces[pieces.length - 1].push(at);
    });
    return pieces.filter((piece) => piece.length > 1).map((piece) => {
      const point = (values) => (at) => `${x(band.steps[at]).toFixed(1)} ${y(values[at]).toFixed(1)}`;
      return `M${[...piece.map(point(band.high)), ...[...piece].reverse().map(point(band.low))].join("L")}Z`;
    }).join("");
  }

  // What of a line lies between two steps.
  function within(one, [from, to], keys) {
    const places = one.steps.map((step, at) => [step, at]).filter(([step]) => step >= from && step <= to).map((pair) => pair[1]);
    const part = { ...one, steps: places.map((at) => one.steps[at]) };
    for (const key of keys) if (one[key]) part[key] = places.map((at) => one[key][at]);
    return part;
  }

  // All less the mean of the band: near the end curves lie closer than an axis from their start shows.
  function lessMean(chart) {
    const means = new Map(chart.band.steps.map((step, at) => [step, chart.band.mean[at]]));
    const less = (one, key) => one[key].map((value, at) => value === null || (means.get(one.steps[at]) ?? null) === null ? null : value - means.get(one.steps[at]));
    const band = { ...chart.band };
    for (const key of ["low", "mean", "high"]) band[key] = less(chart.band, key);
    const lines = chart.lines.map((line) => ({ ...line, values: less(line, "values") }));
    return { ...chart, band, lines, y: `${chart.y} less the mean of ${cut(chart.band.name)}` };
  }

  // A picture that says what it has under the pointer. chart: title, x, y, note, band, lines; lines have a class of
  // their own (kind) or a colour by their place, and may be thin (seed), or marked where they diverged.
  function draw(chart) {
    const svg = make("svg", { class: "curve", viewBox: `0 0 ${BOX.width} ${BOX.height}`, role: "img", "aria-label": `${chart.title}, over ${chart.x}`, tabindex: 0 });
    const readout = make("p", { class: "readout" }, chart.note);
    const figure = make("figure", { class: "drawn" }, make("figcaption", {}, chart.title), svg, readout);
    const steps = [...chart.lines, ...(chart.band ? [chart.band] : [])].flatMap((one) => one.steps);
    // One by one: a function does not take as many arguments as hundreds of runs have steps.
    const whole = steps.reduce(([low, high], step) => [Math.min(low, step), Math.max(high, step)], [0, 0]);
    const view = { range: whole, less: Boolean(chart.band && chart.less), x: null, y: null, lines: [], band: null };

    function render() {
      const now = view.less ? lessMean(chart) : chart;
      const lines = now.lines.map((line) => within(line, view.range, ["values"]));
      const band = now.band && within(now.band, view.range, ["low", "mean", "high"]);
      const values = finite([...lines.flatMap((line) => line.values), ...(band ? [...band.low, ...band.high] : [])]);
      if (!values.length) {
        if (view.less) { view.less = false; render(); } // no step is the band's
        return;
      }
      const [from, to] = view.range;
      [view.lines, view.band] = [lines, band];
      view.y = axisOf(values, BOX.height - BOX.below, BOX.above);
      view.x = (step) => BOX.left + (step - from) / (to - from || 1) * (BOX.width - BOX.left - BOX.right);
      const y = view.y;
      const children = y.ticks.flatMap((tick) => [
        make("path", { class: "grid", d: `M${BOX.left} ${y.place(tick).toFixed(1)}H${BOX.width - BOX.right}` }),
        make("text", { class: "y", x: BOX.left - 6, y: (y.place(tick) + 3.5).toFixed(1) }, written(tick, y)),
      ]);
      const every = nice((to - from || 1) / 5);
      for (let at = Math.ceil(from / every - 1e-9); at * every <= to + 1e-9; at++)
        children.push(make("text", { class: "x", x: view.x(at * every).toFixed(1), y: BOX.height - 26 }, Number((at * every).toPrecision(6)).toLocaleString("en")));
      children.push(
        make("path", { class: "base", d: `M${BOX.left} ${BOX.height - BOX.below}H${BOX.width - BOX.right}` }),
        make("text", { class: "x axis", x: (BOX.left + BOX.width - BOX.right) / 2, y: BOX.height - 8 }, chart.x),
      );
      if (now.y) children.push(make("text", { class: "axis", x: 4, y: 12 }, now.y));
      if (band) {
        children.push(make("path", { class: "band", d: area(band, view.x, y.place) }));
        if (band.mean) children.push(make("path", { class: "line one", d: path(band.steps, band.mean, view.x, y.place) }));
      }
      lines.forEach((line) => {
        children.push(make("path", { class: `line ${line.kind}${line.seed ? " seed" : ""}`, d: path(line.steps, line.values, view.x, y.place) }));
        if (line.dots && line.steps.length <= 45) line.steps.forEach((step, at) => {
          if (line.values[at] !== null) children.push(make("circle", { class: line.kind, cx: view.x(step).toFixed(1), cy: y.place(line.values[at]).toFixed(1), r: 2.2 }));
        });
        const at = line.diverged ? line.values.findLastIndex((value) => value !== null) : -1;
        if (at >= 0) children.push(make("text", { class: "ended", x: view.x(line.steps[at]).toFixed(1), y: (y.place(line.values[at]) + 4).toFixed(1), "text-anchor": "middle" }, make("title", {}, "diverged"), "✕"));
      });
      svg.replaceChildren(...children, make("path", { class: "pointer" }), make("rect", { class: "dragged", y: BOX.above, height: BOX.height - BOX.above - BOX.below, width: 0 }));
      back.hidden = view.range === whole;
      if (less) less.textContent = view.less ? "Values" : "Differences";
    }

    const stepAt = (event) => {
      const at = (event.clientX - svg.getBoundingClientRect().left) / svg.getBoundingClientRect().width * BOX.width;
      const share = Math.min(1, Math.max(0, (at - BOX.left) / (BOX.width - BOX.left - BOX.right)));
      return view.range[0] + share * (view.range[1] - view.range[0]);
    };
    const nearest = (one, step) => one.steps.reduce((best, own, at) => Math.abs(own - step) < Math.abs(one.steps[best] - step) ? at : best, 0);

    function tell(step) {
      const [main] = view.lines.filter((line) => line.steps.length).concat(view.band ? [view.band] : []);
      if (!main || !view.x) return;
      const own = main.steps[nearest(main, step)];
      svg.querySelector(".pointer").setAttribute("d", `M${view.x(own).toFixed(1)} ${BOX.above}V${BOX.height - BOX.below}`);
      const readings = view.lines.filter((line) => !line.seed).slice(0, 6).map((line) => {
        const at = line.steps.indexOf(own);
        return `${line.name}: ${at < 0 || line.values[at] === null ? "no value" : line.values[at].toPrecision(4)}`;
      });
      const at = view.band ? view.band.steps.indexOf(own) : -1;
      if (at >= 0 && view.band.low[at] !== null) readings.push(`${view.band.name}: ${view.band.mean[at].toPrecision(4)} (${view.band.low[at].toPrecision(4)} to ${view.band.high[at].toPrecision(4)})`);
      readout.textContent = `${chart.x[0].toUpperCase()}${chart.x.slice(1)} ${own.toLocaleString("en")}. ${readings.join("; ")}.`;
    }

    function zoom(from, to) {
      const [low, high] = [Math.max(whole[0], from), Math.min(whole[1], to)];
      const held = new Set(steps.filter((step) => step >= low && step <= high));
      if (held.size < 3) return;
      view.range = low <= whole[0] && high >= whole[1] ? whole : [low, high];
      render();
    }

    let began = null;
    svg.addEventListener("pointerdown", (event) => { began = event.pointerType === "mouse" ? stepAt(event) : null; });
    svg.addEventListener("pointermove", (event) => {
      tell(stepAt(event));
      if (began === null) return;
      const ends = [view.x(began), view.x(stepAt(event))].sort((one, other) => one - other);
      const box = svg.querySelector(".dragged");
      box.setAttribute("x", ends[0]);
      box.setAttribute("width", ends[1] - ends[0]);
    });
    svg.addEventListener("pointerup", (event) => {
      const ends = began === null ? null : [began, stepAt(event)].sort((one, other) => one - other);
      began = null;
      svg.querySelector(".dragged")?.setAttribute("width", 0);
      if (ends && view.x(ends[1]) - view.x(ends[0]) > 8) zoom(...ends);
    });
    svg.addEventListener("pointerleave", () => { began = null; svg.querySelector(".pointer")?.removeAttribute("d"); readout.textContent = chart.note; });
    svg.addEventListener("dblclick", () => zoom(...whole));
    const closer = (times) => { const [from, to] = view.range, middle = from + (to - from) * 0.75; zoom(middle - (middle - from) * times, middle + (to - middle) * times); };
    svg.addEventListener("keydown", (event) => {
      const [from, to] = view.range, part = (to - from) / 5;
      const act = { "+": () => closer(0.5), "-": () => closer(2), 0: () => zoom(...whole), ArrowLeft: () => from > whole[0] && zoom(from - part, to - part), ArrowRight: () => to < whole[1] && zoom(from + part, to + part) }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
    const back = button("All steps", () => zoom(...whole));
    const less = chart.band?.mean ? button("Differences", () => { view.less = !view.less; render(); }) : null;
    const tools = make("div", { class: "tools" }, ...(less ? [less] : []), button("+", () => closer(0.5), "Zoom in"), button("−", () => closer(2), "Zoom out"), back);
    figure.append(tools);
    keep(figure, chart.file || chart.title, () => rowsOf(chart));
    if (!steps.length) return null;
    render();
    return figure;
  }

  function rowsOf(chart) {
    const rows = [["line", chart.x, chart.y || "value"]];
    for (const line of chart.lines) line.steps.forEach((step, at) => rows.push([line.name, step, line.values[at]]));
    if (chart.band) for (const key of ["low", "mean", "high"]) if (chart.band[key]) chart.band.steps.forEach((step, at) => rows.push([`${chart.band.name}, ${key}`, step, chart.band[key][at]]));
    return rows;
  }

  // The picture as it is seen, without the page's style.
  function standalone(svg) {
    const copy = svg.cloneNode(true);
    const [own, copied] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
    own.forEach((element, at) => {
      const style = getComputedStyle(element);
      if (style.display === "none") copied[at].setAttribute("display", "none");
      copied[at].setAttribute("style", KEPT.map((key) => `${key}:${style.getPropertyValue(key)}`).join(";"));
    });
    const [, , width, height] = svg.getAttribute("viewBox").split(" ");
    for (const [key, value] of Object.entries({ xmlns: SVG, width, height })) copy.setAttribute(key, value);
    copy.prepend(make("rect", { width, height, fill: getComputedStyle(document.body).backgroundColor.replace("rgba(0, 0, 0, 0)", getComputedStyle(document.documentElement).backgroundColor) }));
    return new XMLSerializer().serializeToString(copy);
  }

  function save(name, ending, blob) {
    const link = make("a", { href: URL.createObjectURL(blob), download: `${name.replace(/[^\w-]+/g, "-")}.${ending}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function png(svg, name) {
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const image = new Image();
    image.addEventListener("load", () => {
      const canvas = make("canvas", { width: 3 * width, height: 3 * height });
      canvas.getContext("2d").drawImage(image, 0, 0, 3 * width, 3 * height);
      canvas.toBlob((blob) => save(name, "png", blob));
    });
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(svg))}`;
  }

  // A text that a spreadsheet would take for a formula is marked, as plumbline/core/csv_text.py does it.
  const FORMULA = /^'*(?:[=@＝＠\t\r\n\ufeff]|[+＋－-](?!(?:\.?\p{Nd}[^(!|=@'"]*|inf|nan|[^\p{L}\p{N}_(!|=@'"]*)$))/iu;
  const field = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    const plain = typeof value !== "number" && FORMULA.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  };
  const csv = (rows) => rows.map((row) => row.map(field).join(",")).join("\n") + "\n";

  // Buttons that keep a figure's picture and its numbers.
  function keep(figure, name, rows) {
    let tools = figure.querySelector(":scope > .tools");
    if (!tools) figure.append(tools = make("div", { class: "tools" }));
    const svg = () => tools.parentElement.querySelector("svg"); // a figure of the page takes over what was drawn in another
    tools.append(
      make("span", { class: "keep" }, "Keep as"),
      button("SVG", () => save(name, "svg", new Blob([standalone(svg())], { type: "image/svg+xml" })), `Keep ${name} as SVG`),
      button("PNG", () => png(svg(), name), `Keep ${name} as PNG`),
      button("CSV", () => save(name, "csv", new Blob([csv(rows())], { type: "text/csv" })), `Keep ${name} as CSV`),
    );
  }

  // The lines of a figure, each with a box to take it out and a link to its run.
  function legend(lines, changed) {
    return make("ul", { class: "lines" }, ...lines.map((line) => {
      const box = make("input", { type: "checkbox", "aria-label": `Show ${line.name}` });
      box.checked = true;
      box.addEventListener("change", () => { line.off = !box.checked; changed(); });
      const name = line.href ? make("a", { href: line.href }, line.name) : make("span", {}, line.name);
      return make("li", { class: line.kind }, box, make("span", { class: "swatch" }), name);
    }));
  }

  // A figure of the page whose numbers stand in it.
  function enliven(figure) {
    const chart = JSON.parse(figure.querySelector("script").textContent);
    chart.lines.forEach((line, at) => { line.kind = `c${at % COLOURS}`; });
    const list = chart.lines.length > 1 ? legend(chart.lines, show) : null;
    function show() {
      const drawn = draw({ ...chart, lines: chart.lines.filter((line) => !line.off) });
      if (drawn) figure.replaceChildren(...drawn.childNodes, ...(list ? [list] : []));
    }
    show();
  }

  // Any runs of the page over each other, chosen from a list of what was tried.
  function overlay(form) {
    const data = JSON.parse(document.getElementById("overlay").textContent);
    const drawings = document.querySelector(".drawings");
    const ids = new Map(data.groups.flatMap((group) => group.runs.map((run) => [run.id, group])));
    const request = new URLSearchParams(location.hash.slice(1)).get("show");
    const chosen = new Set((request === null ? data.start : request.split(",")).filter((id) => ids.has(id)));
    const boxes = new Map();
    const redraw = () => {
      const groups = [...new Set([...chosen].map((id) => ids.get(id)))];
      const kinds = new Map(groups.map((group, at) => [group, `c${at % COLOURS}`]));
      for (const [group, item] of items) item.className = kinds.get(group) || "";
      const charts = data.quantities.map((quantity) => draw({
        title: quantity.name, x: "step", y: quantity.name, file: quantity.name, band: quantity.band, less: true,
        note: chosen.size ? `${chosen.size} of ${ids.size} runs. Drag over steps to see them closer.` : "No run is chosen.",
        lines: [...chosen].filter((id) => quantity.lines[id]).map((id) => ({ ...quantity.lines[id], name: ids.get(id).runs.find((run) => run.id === id).name, kind: kinds.get(ids.get(id)) })),
      }));
      drawings.replaceChildren(...charts.filter(Boolean));
      history.replaceState(null, "", `#show=${[...chosen].join(",")}`);
    };
    const set = (run, on) => { if (on) chosen.add(run.id); else chosen.delete(run.id); boxes.get(run.id).checked = on; };
    const items = data.groups.map((group) => {
      const all = make("input", { type: "checkbox", "aria-label": `Show all runs of ${group.name}` });
      all.addEventListener("change", () => { group.runs.forEach((run) => set(run, all.checked)); redraw(); });
      all.checked = group.runs.every((run) => chosen.has(run.id));
      const runs = group.runs.map((run) => {
        const box = make("input", { type: "checkbox" });
        box.checked = chosen.has(run.id);
        box.addEventListener("change", () => { set(run, box.checked); redraw(); });
        boxes.set(run.id, box);
        return make("li", {}, make("label", {}, box, ` ${run.short} `), make("a", { href: run.href }, "its page"));
      });
      const count = `${group.runs.length} run${group.runs.length === 1 ? "" : "s"}`;
      return [group, make("li", {}, all, make("span", { class: "swatch" }), make("details", {}, make("summary", {}, group.name, make("small", {}, ` ${group.word ? `${group.word}, ` : ""}${count}`)), make("ul", {}, ...runs)))];
    });
    const search = make("input", { type: "search", placeholder: "Search", "aria-label": "Search what was tried" });
    search.addEventListener("input", () => {
      const terms = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const [group, item] of items) item.hidden = !terms.every((word) => `${group.name} ${group.word}`.toLowerCase().includes(word));
    });
    const none = button("None", () => { for (const group of data.groups) group.runs.forEach((run) => set(run, false)); for (const [, item] of items) item.firstChild.checked = false; redraw(); });
    form.append(make("div", { class: "tools" }, search, none), make("ul", { class: "lines" }, ...items.map((pair) => pair[1])));
    form.hidden = false;
    redraw();
  }

  function start() {
    for (const figure of document.querySelectorAll("figure.chart")) enliven(figure);
    for (const form of document.querySelectorAll("form.overlay")) overlay(form);
    for (const figure of document.querySelectorAll("figure.progress")) {
      const table = document.getElementById(figure.dataset.table);
      const readout = figure.querySelector(".readout"), note = readout.textContent;
      // A number with all its digits; what is sorted by one but is none, such as an interval, as it is read.
      const kept = (cell, text) => cell.dataset.sort === undefined || isNaN(text) ? text : Number(cell.dataset.sort);
      const rows = () => [...table.querySelectorAll("tr")].map((row) => [...row.cells].map((cell) => kept(cell, cell.textContent.trim())));
      keep(figure, figure.dataset.name, rows);
      for (const link of figure.querySelectorAll("a.try")) {
        for (const event of ["pointerenter", "focus"]) link.addEventListener(event, () => { readout.textContent = link.querySelector("title").textContent; });
        link.addEventListener("pointerleave", () => { readout.textContent = note; });
      }
    }
  }

  return { make, finite, axisOf, written, draw, csv, standalone, start };
})();
Chart.start();
