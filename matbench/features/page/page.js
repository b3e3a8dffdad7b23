"use strict";
(() => {
const { columns, views, cases, specs, looks, config, sections, findings, maps } =
  JSON.parse(document.getElementById("data").textContent);
const has = new Set(sections);
const column = Object.fromEntries(columns.map((c, i) => [c.key, i]));
const section = (name) => document.getElementById(name);

for (const [id, c] of cases.entries()) {  // each figure by the key of its column
  columns.forEach(({ key, is_number }, i) => { c[key] = is_number ? c.numbers[i] : c.text[i]; });
  Object.assign(c, { id, low: c.low ?? 1, high: c.high ?? 1 });
  Object.assign(c, { order: c.size, size: c.text[column.size] });
}

// State: what the reader chose, kept in the URL

const DEFAULTS = {
  view: "0", metric: "rate", base: "", size: "", case: "", q: "", best: "", every: "", sort: "",
};
const state = { ...DEFAULTS };
const only = new Set();  // the kernels that stand out; each is an `only` of its own in the URL

function readState() {
  const told = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  for (const name in DEFAULTS) state[name] = told.get(name) ?? DEFAULTS[name];
  only.clear();
  for (const kernel of told.getAll("only")) if (kernel in looks) only.add(kernel);
  if (!views[state.view]) state.view = "0";
}

function setState(changes) {
  Object.assign(state, changes);
  const kept = Object.entries(state).filter(([name, value]) => value !== DEFAULTS[name]);
  for (const kernel of only) kept.push(["only", kernel]);
  const url = kept.length ? "#" + new URLSearchParams(kept) : " ";
  try { history.replaceState(null, "", url); } catch { /* a viewer without a URL */ }
}

// Elements: text is never parsed as HTML

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function fill(select, options, value) {
  select.replaceChildren(...options.map(([v, text]) =>
    element("option", { value: v, textContent: text, selected: v === value })));
  const label = select.closest("label");
  if (label) label.hidden = options.length < 2;
}

// Figures

const view = () => views[state.view];
const inView = () => cases.filter((c) => String(c.view) === state.view);
const isHere = (numbers) => !numbers.length || numbers.map(String).includes(state.view);
const fastest = () => inView().filter((c) => c.is_fastest && c.rate != null);
const word = (value) => Number(value.toPrecision(3)).toLocaleString("en");

const UNTOLD = ["status", "device", "precision", "timing", "inputs"];

function tip(c) {
  const kept = columns.map((col, i) => [col.title, c.text[i]])
    .filter(([title, text]) => text && !UNTOLD.includes(title));
  return Object.fromEntries(kept);
}

const point = (c, value, more = {}) => ({
  kernel: c.kernel, n: c.n, is_baseline: !!c.is_baseline, hollow: !!c.has_claims,
  value, low: value * c.low, high: value * c.high, beside: value, tip: tip(c), ...more,
});

const share = (title, key) => ({
  title: () => title, of: (c) => c[key], is_share: true, figure: (c) => c.text[column[key]],
});
const METRICS = {
  rate: { title: () => view().unit, of: (c) => c.rate, figure: (c) => word(c.rate) },
  limit: share("share of the limit", "of_limit"),
  cublas: share("share of cuBLAS", "of_cublas"),
  speedup: {
    title: () => `speedup over ${state.base}`,
    of: (c) => {
      const base = fastest().find((b) => b.kernel === state.base && b.size === c.size);
      return base ? c.rate / base.rate : null;
    },
    figure: (c, value) => word(value) + " ×",
  },
};

// Charts

const drawn = new Map();
function clear(place) {
  for (const [chart, result] of drawn) {
    if (place.contains(chart)) { result.view.finalize(); drawn.delete(chart); }
  }
  place.replaceChildren();
}

function panel(place, title, description, { full = false, note = "" } = {}) {
  const chart = element("div", { className: "chart" });
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", description);
  const heading = element("h3", {}, title);
  if (note) heading.append(" ", element("small", { textContent: note }));
  place.append(element("div", { className: full ? "full" : "" }, heading, chart));
  return chart;
}

/** Draw a chart as wide as its panel, once all panels of the section have their places. */
async function draw(chart, spec, values = null, renderer = "svg") {
  await null;
  const drawing = element("div", { ariaHidden: "true" });  // Vega gives it a role; ours is chart's
  chart.replaceChildren(drawing);
  const filled = { width: "container", ...structuredClone(spec), config,
    autosize: { type: spec.width ? "pad" : "fit-x", contains: "padding" },
    params: [{ name: "isolated", value: [...only] }] };
  if (values) filled.data = { values };
  const result = await vegaEmbed(drawing, filled,
    { actions: false, renderer, ast: true, tooltip: { offsetX: 14, offsetY: 14 } });
  if (!chart.isConnected) return result.view.finalize();
  drawn.set(chart, result);
  result.view.addEventListener("click", (_, item) => {
    let found = item?.datum;
    while (found?.datum) found = found.datum;
    if (found?.kernel in looks) toggle(found.kernel);
  });
}

// Sections

const order = Object.keys(looks);
/** The fastest kernels last, so that their lines are on top. */
const onTop = ([a], [b]) => order.indexOf(b.kernel) - order.indexOf(a.kernel);

/** A chart over n for each precision that has several; returns the rows at other sizes. */
function curves(place, rows, title, spec) {
  const rest = [];
  for (const [precision, found] of grouped(rows, ([c]) => c.precision)) {
    const regular = found.filter(([c]) => c.n != null && c.beside == null);
    const curve = new Set(regular.map(([c]) => c.n)).size > 1 ? regular : [];
    rest.push(...found.filter((row) => !curve.includes(row)));
    if (!curve.length) continue;
    const kernels = new Set(curve.map(([c]) => c.kernel)).size;
    const chart = panel(place, precision, `${title} over n of ${kernels} ${precision} kernels. ` +
      "The table of results has the figures.", { full: true, note: `${title} over n` });
    draw(chart, { ...specs[spec], height: 300 },
      curve.sort(onTop).map(([c, value, more]) => point(c, value, more)));
  }
  return rest;
}

function speed() {
  const place = section("speed").querySelector(".panels");
  clear(place);
  const metric = METRICS[state.metric];
  const rows = fastest().map((c) => [c, metric.of(c)]).filter(([, v]) => v != null);
  const title = metric.title();
  const later = curves(place, rows, title, metric.is_share ? "shares" : "curve")
    .sort(([a, v], [b, w]) => a.order - b.order || w - v);
  if (later.length && later.length < rows.length) {
    place.append(element("h3", { className: "full apart", textContent: "Other sizes" }));
  }
  for (const found of grouped(later, ([c]) => `${c.size} ${c.precision}`).values()) {
    const { beside, precision } = found[0][0];
    const name = `${sizeOf(found[0][0])}, ${precision}`;
    const points = found.map(([c, v]) => {
      const other = rows.find(([o]) => o.kernel === c.kernel && o.n === beside && beside != null);
      return point(c, v, { beside: other?.[1] ?? v, figure: metric.figure(c, v) });
    });
    const tick = points.some((p) => p.beside !== p.value) ? `; tick: at ${beside.toLocaleString("en")}` : "";
    const leading = found.filter(([c]) => c.leads).map(([c]) => c.kernel);
    const chart = panel(place, name, `${title} of ${points.length} kernels at ${name}: fastest ` +
      `${leading.join(", ") || points[0].kernel}, ${points[0].figure}.`, { note: title + tick });
    drawBars(chart, specs[metric.is_share ? "bars-of-shares" : "bars"], points);
  }
}

const drawBars = (chart, spec, points) =>
  draw(chart, { ...spec, height: 10 + 20 * points.length }, points);

function error() {
  const place = section("error").querySelector(".panels");
  clear(place);
  const known = fastest().filter((c) => c.max_rel_err > 0);
  const rows = known.map((c) => [c, c.max_rel_err, { low: c.max_rel_err, high: c.max_rel_err }]);
  curves(place, rows, "largest relative error", "errors");
  const here = known.filter((c) => c.size === sizeNow());
  if (here.length > 1) {
    const chart = panel(place, `Speed against error at ${sizeName()}`,
      `${view().unit} against the largest relative error. On the front: ` +
      here.filter((c) => c.on_front).map((c) => c.kernel).join(", ") + ".",
      { note: `${view().unit} over the largest relative error`, full: true });
    draw(chart, specs.scatter,
      here.map((c) => point(c, c.rate, { error: c.max_rel_err, on_front: !!c.on_front })));
  }
}

function roofline() {
  const place = section("roofline").querySelector(".panels");
  clear(place);
  const { roofline: spec, roofline_note: note, unit } = view();
  const rows = fastest().filter((c) => c.intensity != null);
  if (!spec || !rows.length) return;
  const chart = panel(place, `${unit} over operations per byte`,
    `Roofline of ${rows.length} cases.`, { full: true, note });
  draw(chart, spec, rows.map((c) => point(c, c.rate, { intensity: c.intensity })));
}

function energy() {
  const place = section("energy").querySelector(".panels");
  clear(place);
  const { unit, scale } = view();
  const here = fastest().filter((c) => c.size === sizeNow() && c.sustained_work_per_j > 0);
  if (!here.length) return;
  const best = here.reduce((a, b) => (a.sustained_work_per_j > b.sustained_work_per_j ? a : b));
  const perJoule = `G${unit.slice(1).replace("/s", "/J")}`;
  const chart = panel(place, `Sustained speed against energy at ${sizeName()}`,
    `Sustained ${unit} over ${perJoule} of ${here.length} kernels. The most work for a joule: ` +
    `${best.kernel}.`, { note: `sustained ${unit} over ${perJoule}`, full: true });
  draw(chart, specs.energy, here.map((c) =>
    point(c, c.sustained_per_s / scale, { work_per_j: c.sustained_work_per_j / 1e9 })));
}

function sampled() {
  const place = section("samples").querySelector(".panels");
  clear(place);
  const here = fastest().filter((c) => c.size === sizeNow() && c.series)
    .sort((a, b) => b.rate - a.rate);
  if (here.length > 1) {
    draw(panel(place, `All kernels at ${sizeName()}`,
      `Times of the launches at ${sizeName()}, fastest kernel first.`, { note: "µs a launch" }),
      { ...specs.strip, height: 10 + 20 * here.length }, here.flatMap((c) => c.series[0].values
        .map((value) => ({ kernel: c.kernel, value }))), "canvas");
  }
  const one = caseNow();
  if (!one) return;
  const kinds = one.series;
  const name = `${one.kernel} ${one.params}`.trim();
  const count = kinds.reduce((sum, s) => sum + s.values.length, 0);
  const shares = kinds.flatMap(({ mode, values }) => [...values].sort((a, b) => a - b)
    .slice(0, Math.ceil(0.995 * values.length))  // stragglers would hide the shape of the rest
    .map((value, i) => ({ kind: mode, value, share: (i + 1) / values.length })));
  const beyond = shares.length < count ? "; without the slowest 0.5%, which are in the next chart" : "";
  draw(panel(place, `${name}: distribution`, `Share of ${count} launches of ${name} that took no longer.`,
    { note: `share of launches over µs${beyond}` }), specs.ecdf, shares);
  const chart = panel(place, `${name}: in order`, `Times of ${count} launches of ${name} in order.`,
    { note: "µs, launch by launch", full: true });
  draw(chart, specs.course, kinds.flatMap(({ mode, values }) =>
    values.map((value, index) => ({ kind: mode, index, value }))), "canvas");
  const TOLD = { sm_mhz: "SM clock, MHz", power_w: "power, W", temperature_c: "temperature, °C" };
  for (const [key, title] of Object.entries(TOLD)) {
    const found = kinds[0].conditions[key].map((value, index) => ({ index, value }))
      .filter((p) => p.value != null);
    if (!found.length) continue;
    const [least, largest] = [Math.min(...found.map((p) => p.value)), Math.max(...found.map((p) => p.value))];
    const range = least === largest ? word(least) : `${word(least)} to ${word(largest)}`;
    const part = panel(place, title, `${title} while sampled: ${range}`, { note: range, full: true });
    if (least < largest) draw(part, specs.condition, found); else part.remove();
  }
  const throttled = kinds.flatMap((s) => s.throttled);
  if (throttled.length) {
    chart.parentElement.append(element("p", { className: "warning",
      textContent: `Clocks held down while sampled: ${[...new Set(throttled)].join(", ")}` }));
  }
}

// Comparisons, searches and clocked launches: as they come

const drawFinding = (place, { spec, title, note, full }, renderer) =>
  draw(panel(place, title, `${title}: ${note}.`, { note, full }), spec, null, renderer);

function drawFindings() {
  const blockPanels = section("blocks").querySelector(".panels");
  for (const [name, charts] of Object.entries(findings)) {
    const panels = section(name).querySelector(".panels");
    clear(panels);
    for (const found of charts) if (isHere(found.views)) drawFinding(panels, found);
  }
  const here = fastest().filter((c) => c.size === sizeNow() && c.block_imbalance != null)
    .sort((a, b) => b.block_imbalance - a.block_imbalance);
  section("blocks").querySelector(".controls").hidden = !here.length;
  if (here.length) {
    const points = here.map((c) => point(c, c.block_imbalance, {
      low: c.block_imbalance, high: c.block_imbalance, figure: c.text[column.block_imbalance] }));
    drawBars(panel(blockPanels, `Imbalance at ${sizeName()}`, `Imbalance of ${here.length} kernels.`,
      { note: "busiest multiprocessor above the mean" }), specs["bars-of-shares"], points);
  }
}

/** Where C is wrong, beside the reason of each case. */
function errorMaps() {
  for (const [id, map] of Object.entries(maps)) {
    const place = section("wrong").querySelector(`article[data-case="${id}"] .map`);
    clear(place);
    if (String(cases[id].view) === state.view) drawFinding(place, map, "canvas");
  }
}

// Choices

/** Show what is said of this view only, and no section that has nothing to show of it. */
function followView() {
  for (const part of document.querySelectorAll("[data-views]")) {
    part.hidden = !isHere(part.dataset.views.split(" ").filter(Boolean));
  }
  document.title = section("summary").querySelector("[data-views]:not([hidden]) h1").textContent;
  for (const name of sections) {
    if (["summary", "results"].includes(name)) continue;
    const shown = section(name).querySelector(".panels > *, [data-views]:not([hidden])");
    section(name).hidden = !shown;
    document.querySelector(`nav a[href="#${name}"]`).hidden = !shown;
  }
}

function grouped(values, key) {
  const found = new Map();
  for (const value of values) {
    const k = key(value);
    if (found.has(k)) found.get(k).push(value); else found.set(k, [value]);
  }
  return found;
}

function sizesHere() {
  const found = new Map(fastest().map((c) => [c.size, c]));
  return [...found.values()].sort((a, b) => a.order - b.order);
}

function sizeNow() {
  const here = sizesHere();
  if (here.some((c) => c.size === state.size)) return state.size;
  return (here.filter((c) => c.n != null && c.beside == null).at(-1) ?? here.at(-1))?.size ?? "";
}

const sizeOf = (c) => (c.n == null ? c.size : `n = ${c.n.toLocaleString("en")}`);
const sizeName = () => sizeOf(cases.find((c) => c.size === sizeNow()) ?? {});

const casesHere = () => inView().filter((c) => c.size === sizeNow() && c.series)
  .sort((a, b) => (b.rate ?? 0) - (a.rate ?? 0));

function caseNow() {
  const here = casesHere();
  return here.find((c) => String(c.id) === state.case) ?? here[0];
}

function choices() {
  const select = (name) => document.querySelectorAll(`select[data-state="${name}"]`);
  for (const s of select("view")) fill(s, views.map((v, i) => [String(i), v.label]), state.view);
  section("results").querySelector(".every").hidden = views.length < 2;
  const kernels = [...new Set(fastest().map((c) => c.kernel))].sort();
  if (!kernels.includes(state.base)) {
    state.base = fastest().find((c) => c.is_baseline)?.kernel ?? kernels[0] ?? "";
  }
  const metrics = Object.entries(METRICS).filter(([, m]) => fastest().some((c) => m.of(c) != null))
    .map(([name, m]) => [name, m.title()]);
  if (!metrics.some(([name]) => name === state.metric)) state.metric = "rate";
  for (const s of select("metric")) fill(s, metrics, state.metric);
  for (const s of select("base")) {
    fill(s, kernels.map((k) => [k, k]), state.base);
    s.closest("label").hidden = state.metric !== "speedup";
  }
  for (const s of select("size")) fill(s, sizesHere().map((c) => [c.size, sizeOf(c)]), sizeNow());
  for (const s of select("case")) {
    fill(s, casesHere().map((c) => [String(c.id), `${c.kernel} ${c.params}`.trim()]), String(caseNow()?.id));
  }
}

function toggle(kernel) {
  if (!only.delete(kernel)) only.add(kernel);
  setState({});
  highlight();
}

function highlight() {
  for (const { view } of drawn.values()) view.signal("isolated", [...only]).runAsync();
  for (const chip of document.querySelectorAll(".chips button")) {
    if (chip.value) chip.setAttribute("aria-pressed", only.has(chip.value));
    else chip.disabled = !only.size;
  }
}

function showAll() {
  only.clear();
  setState({});
  highlight();
}

/** Every legend: a button for each kernel of its section, which highlights it in all charts. */
function legends() {
  const SHOWN = { roofline: (c) => c.intensity != null, error: (c) => c.max_rel_err > 0 };
  for (const place of document.querySelectorAll(".chips")) {
    const shown = fastest().filter(SHOWN[place.closest("section").id] ?? (() => true));
    const kernels = [...new Set(shown.sort((a, b) => b.rate - a.rate).map((c) => c.kernel))];
    const chips = kernels.map((kernel) => {
      const dot = element("i", { className: looks[kernel].shape });
      dot.style.background = looks[kernel].colour;
      return element("button", { type: "button", value: kernel, onclick: () => toggle(kernel) }, dot, kernel);
    });
    place.replaceChildren(...chips,
      element("button", { type: "button", className: "all", onclick: showAll }, "Show all"));
    (place.closest("details") ?? place).hidden = kernels.length < 2;
  }
  highlight();
}

// The table of results

const shownColumns = columns.map((c, i) => ({ ...c, i }))
  .filter((c) => cases.some((row) => row.text[c.i]));

function rowsNow() {
  const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = (state.every ? [...cases] : inView()).filter((c) => (!state.best || c.is_fastest) &&
    words.every((w) => c.text.some((text) => text.toLowerCase().includes(w))));
  const key = state.sort.replace(/^-/, "");
  if (!(key in column)) return rows;
  const i = column[key], sign = state.sort.startsWith("-") ? -1 : 1;
  const { is_number } = columns[i];
  const empty = (c) => (is_number ? c.numbers[i] == null : !c.text[i]);
  const compare = is_number
    ? (a, b) => a.numbers[i] - b.numbers[i] : (a, b) => a.text[i].localeCompare(b.text[i], "en", { numeric: true });
  return rows.sort((a, b) => empty(a) - empty(b) || (empty(a) ? 0 : sign * compare(a, b)));
}

function table() {
  const rows = rowsNow();
  const [head, body] = section("results").querySelectorAll("thead, tbody");
  const key = state.sort.replace(/^-/, "");
  const focused = document.activeElement?.dataset?.key;
  head.replaceChildren(element("tr", {}, ...shownColumns.map((c) => {
    const way = c.key !== key ? "" : state.sort.startsWith("-") ? "descending" : "ascending";
    const button = element("button", { type: "button", onclick: () => sort(c) }, c.title +
      ({ ascending: " ▲", descending: " ▼" }[way] ?? ""));
    button.dataset.key = c.key;
    const cell = element("th", { scope: "col", className: c.is_number ? "number" : "" }, button);
    if (way) cell.setAttribute("aria-sort", way);
    return cell;
  })));
  if (focused) head.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  body.replaceChildren(...rows.map((row) => element("tr", {}, ...shownColumns.map((c) => element("td", {
    className: c.key === "status" ? `status ${row.status}` : c.key === "remarks" ? "remarks" : c.is_number ? "number" : c.key,
  }, cellText(c, row))))));
  const all = state.every ? cases.length : inView().length;
  const others = all < cases.length ? `; ${cases.length - all} more in other views` : "";
  document.getElementById("count").textContent =
    (rows.length === all ? "" : `${rows.length} of `) + (all === 1 ? "1 case" : `${all} cases`) + others;
}

const cellText = (c, row) => (c.key === "remarks" || c.key === "params"
  ? element("div", { textContent: row.text[c.i], title: row.text[c.i] }) : row.text[c.i]);

function sort({ key, is_number }) {
  const ways = is_number && key !== "median_ns" && key !== "size" ? ["-" + key, key, ""] : [key, "-" + key, ""];
  setState({ sort: ways[(ways.indexOf(state.sort) + 1) % 3] });
  table();
}

function csv() {
  // A spreadsheet must not take text of a record for a formula.
  const quote = (text) => /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  const safe = (text) => quote(/^[=+@\t-]/.test(text) ? "'" + text : text);
  const cell = (row, c) => (c.is_number && c.key !== "size" ? String(row.numbers[c.i] ?? "") : safe(row.text[c.i]));
  return [shownColumns.map((c) => c.key).join(","),
    ...rowsNow().map((row) => shownColumns.map((c) => cell(row, c)).join(","))].join("\n");
}

async function copy(button, text) {
  const name = button.textContent;
  await navigator.clipboard.writeText(text);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = name; }, 1500);
}

// Wide tables say that they scroll

const widths = new ResizeObserver((entries) => {
  for (const { target: { parentElement: wide } } of entries) {
    wide.classList.toggle("scrolls", wide.scrollWidth > wide.clientWidth + 1);
  }
});
for (const inner of document.querySelectorAll(".wide > table")) widths.observe(inner);

// Start

function charts() {
  choices();
  legends();
  if (has.has("speed")) speed();
  if (has.has("error")) error();
  if (has.has("roofline")) roofline();
  if (has.has("energy")) energy();
  if (has.has("samples")) sampled();
  drawFindings();
  errorMaps();
  followView();
  table();
}

function all() {
  charts();
  for (const input of document.querySelectorAll("input[data-state]")) {
    if (input.type === "checkbox") input.checked = !!state[input.dataset.state];
    else input.value = state[input.dataset.state];
  }
}

document.addEventListener("input", ({ target }) => {
  const name = target.dataset?.state;
  if (!name) return;
  setState({ [name]: target.type === "checkbox" ? (target.checked ? "1" : "") : target.value });
  if (["q", "best", "every"].includes(name)) table(); else charts();
});
document.addEventListener("keydown", ({ key, target }) => {
  if (key === "Escape" && only.size && !target.matches("input, select")) showAll();
});
document.getElementById("copy-csv").onclick = (e) => copy(e.currentTarget, csv());
for (const link of document.querySelectorAll('a[href^="#"]')) {
  link.onclick = (event) => {  // the hash holds the state
    event.preventDefault();
    const target = document.querySelector(link.getAttribute("href"));
    target.tabIndex = -1;
    target.focus({ preventScroll: true });
    target.scrollIntoView();
  };
}
addEventListener("hashchange", () => { readState(); all(); });
const plain = location.hash.includes("=") ? "" : location.hash;
readState();
all();
if (plain) document.getElementById(plain.slice(1))?.scrollIntoView();
})();
