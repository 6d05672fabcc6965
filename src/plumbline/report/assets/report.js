// Sorting, searching, choosing columns, and the runs of a cell without leaving its table. Without it every page reads and links as well.
"use strict";

// A cell's key: numbers as numbers, and what has none last.
function key(cell) {
  if (cell.classList.contains("num")) return cell.dataset.sort === undefined ? null : Number(cell.dataset.sort);
  return cell.textContent.trim().toLowerCase() || null;
}

function compare(one, other, sign) {
  if (one === null || other === null) return (one === null) - (other === null);
  const order = typeof one === "number" ? one - other : one.localeCompare(other, "en", { numeric: true });
  return sign * order;
}

function sortBy(table, head) {
  const descending = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].map((row) => [key(row.cells[head.cellIndex]), row]);
  rows.sort((one, other) => compare(one[0], other[0], descending ? -1 : 1));
  table.tBodies[0].append(...rows.map((pair) => pair[1]));
  table.classList.add("mixed"); // a row away from its group says itself which that is
}

function sortable(table) {
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sortBy(table, head));
    head.append(button);
  }
}

// A line of tools above a table, made when the first of them is.
function toolsOf(table) {
  const box = table.closest(".box");
  if (box.previousElementSibling?.className === "tools") return box.previousElementSibling;
  const tools = document.createElement("div");
  tools.className = "tools";
  box.before(tools);
  return tools;
}

// Few columns first, and all of them on demand.
function shortened(table) {
  const [rest, all] = [table.tHead.querySelectorAll(".rest").length, table.tHead.rows[0].cells.length];
  if (!rest) return;
  const button = document.createElement("button");
  button.type = "button";
  const show = (short) => {
    table.classList.toggle("short", short);
    button.textContent = short ? `Show all ${all} columns` : `Show the main ${all - rest} columns`;
    button.setAttribute("aria-pressed", String(!short));
  };
  button.addEventListener("click", () => show(!table.classList.contains("short")));
  show(true);
  toolsOf(table).append(button);
}

// Whether there is more of a table to the right of its box, and how to get there.
function hinted(table) {
  const box = table.closest(".box");
  const hint = document.createElement("span");
  hint.className = "hint";
  hint.innerHTML = "<span>More columns to the right: </span>scroll →";
  const look = () => {
    const further = box.scrollLeft + box.clientWidth < box.scrollWidth - 2;
    box.classList.toggle("further", further);
    if (box.scrollWidth > box.clientWidth + 2) toolsOf(table).append(hint);
    else hint.remove();
    hint.style.visibility = further ? "" : "hidden";
  };
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(table);
  new ResizeObserver(look).observe(box);
}

function searchable(table) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 5) return;
  const tools = toolsOf(table);
  const input = document.createElement("input");
  const found = document.createElement("span");
  input.type = "search";
  input.placeholder = "Search rows";
  input.setAttribute("aria-label", "Search rows with these words");
  found.setAttribute("role", "status");
  tools.append(input, found);
  const texts = rows.map((row) => row.textContent.toLowerCase());
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, at) => {
      row.hidden = !words.every((word) => texts[at].includes(word));
      shown += !row.hidden;
    });
    table.classList.toggle("searched", words.length > 0);
    found.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  });
}

// The section that is read, in the list of sections.
function followed(list) {
  const links = [...list.querySelectorAll("a")];
  const sections = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
  let current = -1;
  const look = () => {
    let at = 0;
    sections.forEach((section, number) => { if (section && section.getBoundingClientRect().top < 140) at = number; });
    if (at === current) return;
    links[current]?.removeAttribute("aria-current");
    links[(current = at)].setAttribute("aria-current", "true");
    const [inner, outer] = [links[at].getBoundingClientRect(), list.getBoundingClientRect()];
    if (inner.top < outer.top || inner.bottom > outer.bottom) list.scrollTop += inner.top - outer.top - outer.height / 2;
    if (inner.left < outer.left || inner.right > outer.right) list.scrollLeft += inner.left - outer.left - 20;
  };
  addEventListener("scroll", look, { passive: true });
  look();
}

// What an address points into is opened.
function reveal() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const folded = target.querySelector(":scope > details:not(.notes)");
  if (folded) folded.open = true;
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  target.scrollIntoView();
}

function runsBeside(event) {
  const link = event.target.closest('a[href^="#runs-"]');
  const entry = link && document.getElementById(link.hash.slice(1));
  if (!entry || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const dialog = document.createElement("dialog");
  const close = document.createElement("button");
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  const title = document.createElement("p");
  title.append(`${link.textContent.trim()}: ${entry.querySelector("summary").textContent}`);
  dialog.setAttribute("aria-label", "Runs behind this number");
  dialog.append(close, title, entry.querySelector("ul").cloneNode(true));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

// Paper has no folds.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open]):not(.raw)")];
  for (const details of opened) details.open = true;
});
addEventListener("afterprint", () => opened.forEach((details) => (details.open = false)));
addEventListener("hashchange", reveal);
document.addEventListener("click", runsBeside);
for (const table of document.querySelectorAll("table.data")) {
  sortable(table);
  searchable(table);
  shortened(table);
  hinted(table);
}
reveal();
for (const list of document.querySelectorAll(".contents")) followed(list);
