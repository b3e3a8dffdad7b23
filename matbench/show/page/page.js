"use strict";
(() => {
const { columns, views, cases, samples, specs, style, sections, front, verdicts, blocks, maps } =
  JSON.parse(document.getElementById("data").textContent);
const has = new Set(sections), best = new Set(front);
const column = Object.fromEntries(columns.map((c, i) => [c.key, i]));
const section = (name) => document.getElementById(name);

for (const [id, c] of cases.entries()) {
  Object.assign(c, { id, low: c.low ?? 1, high: c.high ?? 1 });
  c.order = c.numbers[column.size];
}

// State: what the reader chose, kept in the URL

const DEFAULTS = {
  view: "0", metric: "rate", base: "", size: "", case: "", q: "", status: "", best: "", sort: "",
  cols: "", theme: "",
};
const state = { ...DEFAULTS };
const only = new Set();  // the kernels that stand out; each is an `only` of its own in the URL

function readState() {
  const told = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  for (const name in DEFAULTS) state[name] = told.get(name) ?? DEFAULTS[name];
  only.clear();
  for (const kernel of told.getAll("only")) if (kernel in series) only.add(kernel);
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

// Series: a colour and a shape for each kernel, the same in every chart

const { palette: PALETTE, shapes: SHAPES, neutral: NEUTRAL } = style;

function makeSeries() {
  const fastest = new Map();
  for (const c of cases) {
    const rate = c.rate == null ? 0 : c.numbers[column.work_per_s];
    const known = fastest.get(c.kernel);
    if (!known || known.rate < rate) fastest.set(c.kernel, { rate, neutral: c.is_baseline });
  }
  const ordered = [...fastest].sort(([, a], [, b]) => b.rate - a.rate);
  const made = Object.create(null);  // a kernel may be called __proto__
  let next = 0;
  for (const [kernel, { neutral }] of ordered) {
    made[kernel] = neutral
      ? { colour: NEUTRAL, shape: "cross" }
      : { colour: PALETTE[next % PALETTE.length],
          shape: SHAPES[(next + Math.floor(next++ / PALETTE.length)) % SHAPES.length] };
  }
  return made;
}
const series = makeSeries();

// Figures

const view = () => views[state.view];
const inView = () => cases.filter((c) => String(c.view) === state.view);
const fastest = () => inView().filter((c) => c.is_fastest && c.rate != null);
const word = (value) => Number(value.toPrecision(3)).toLocaleString("en");

const UNTOLD = ["status", "device", "precision", "timing", "inputs"];

function tip(c) {
  const kept = columns.map((col, i) => [col.title, c.text[i]])
    .filter(([title, text]) => text && !UNTOLD.includes(title));
  return Object.fromEntries(kept);
}

function point(c, value, more = {}) {
  const { colour, shape } = series[c.kernel];
  return {
    kernel: c.kernel, n: c.n, is_baseline: !!c.is_baseline, colour, shape,
    fill: c.has_claims ? "transparent" : colour, value, low: value * c.low, high: value * c.high,
    tip: tip(c), ...more,
  };
}

const METRICS = {
  rate: { title: () => view().unit, of: (c) => c.rate, figure: (c) => word(c.rate), scale: "log" },
  limit: {
    title: () => "share of the limit", of: (c) => c.of_limit, scale: "linear",
    figure: (c) => c.text[column.of_limit],
  },
  cublas: {
    title: () => "share of cuBLAS", of: (c) => c.of_cublas, scale: "linear",
    figure: (c) => c.text[column.of_cublas],
  },
  speedup: {
    title: () => `speedup over ${state.base}`, scale: "log",
    of: (c) => {
      const base = fastest().find((b) => b.kernel === state.base && b.size === c.size);
      return base ? c.rate / base.rate : null;
    },
    figure: (c, value) => word(value) + " ×",
  },
};

// Charts

const drawn = new Map();
const CONFIG = {
  aria: false, background: null, font: "system-ui, sans-serif", view: { stroke: null },
  axis: { labelFontSize: 11, tickColor: "#888", domainColor: "#888", gridColor: "#ddd" },
  mark: { tooltip: null },
};

function clear(place) {
  for (const [chart, result] of drawn) {
    if (place.contains(chart)) { result.view.finalize(); drawn.delete(chart); }
  }
  place.replaceChildren();
}

function panel(place, title, description, { full = false, note = "", within = null } = {}) {
  const chart = element("div", { className: "chart" });
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", description);
  const heading = element("h3", {}, title);
  if (note) heading.append(" ", element("small", { textContent: note }));
  if (within) within.append(heading, chart);
  else place.append(element("div", { className: full ? "full" : "" }, heading, chart));
  return chart;
}

/** Draw a chart into its panel, once all panels of the section have their places. */
async function draw(chart, name, describe) {
  await null;
  const [datasets, params, { height, left = 52, right = 12, top = 12, bottom = 24 }] = describe(chart.clientWidth);
  const spec = structuredClone(specs[name]);
  const isolated = "fixed" in chart.dataset ? [] : [...only];
  const values = { isolated, ticks_up: ticks(params.up),
    ticks_across: ticks(params.across), ...params };
  for (const parameter of spec.params) {
    if (parameter.name in values) parameter.value = values[parameter.name];
  }
  Object.assign(spec, {
    datasets, height, width: Math.max(80, chart.clientWidth - left - right),
    padding: { left, right, top, bottom }, autosize: "none", config: CONFIG,
  });
  const drawing = element("div", { ariaHidden: "true" });  // Vega gives it a role; ours is chart's
  chart.replaceChildren(drawing);
  const result = await vegaEmbed(drawing, spec,
    { actions: false, renderer: "svg", ast: true, tooltip: { offsetX: 14, offsetY: 14 } });
  if (!chart.isConnected) return result.view.finalize();
  drawn.set(chart, result);
  result.view.addEventListener("click", (_, item) => {
    let found = item?.datum;
    while (found?.datum) found = found.datum;
    if (found?.kernel in series) toggle(found.kernel);
  });
}

function extent(values, scale, margin = 1.12) {
  const known = values.filter((v) => Number.isFinite(v) && (scale === "linear" || v > 0));
  if (!known.length) return scale === "log" ? [1, 10] : [0, 1];
  const low = Math.min(...known), high = Math.max(...known);
  return scale === "log" ? [low / margin, high * margin] : [0, high * 1.06 || 1];
}

/** Round values between two others: powers of ten and, where those are few, 2 and 5 times them. */
function ticks([low, high] = [0, 0]) {
  if (!(low > 0)) return evenTicks(low, high);
  const decades = Math.log10(high / low);
  if (decades < 0.7) return evenTicks(low, high);
  const steps = decades > 3.5 ? [1] : [1, 2, 5];
  const found = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); p++) {
    for (const step of steps) found.push(Number(`${step}e${p}`));
  }
  const every = Math.ceil(found.length / 40);
  return found.filter((v, i) => v >= low && v <= high && i % every === 0);
}

function evenTicks(low, high) {
  const rough = (high - low) / 5 || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((s) => s * power >= rough * 0.99);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) =>
    Number(((first + i) * step).toPrecision(12)));
}

/** Names beside the ends of lines, moved apart where they would overlap. */
function labels(ends, [low, high], scale, height) {
  const GAP = 13;
  const [to, from] = scale === "log" ? [Math.log, Math.exp] : [(v) => v, (v) => v];
  const span = (to(high) - to(low)) / height;
  const placed = ends.map((e) => ({ ...e, y: (to(high) - to(e.value)) / span }));
  placed.sort((a, b) => a.y - b.y);
  placed.forEach((e, i) => { if (i) e.y = Math.max(e.y, placed[i - 1].y + GAP); });
  let most = height;
  for (const e of placed.reverse()) { e.y = Math.min(e.y, most); most = e.y - GAP; }
  return placed.map((e) => ({ ...e, label_value: from(to(high) - e.y * span) }));
}

const textWidth = (texts) => 18 + 6.3 * Math.max(...texts.map((t) => t.length));

/** One line a kernel over n. */
const drawCurve = (chart, points, scale) => draw(chart, `curve-${scale}`, (wide) => {
  const names = [...new Set(points.map((p) => p.label ?? p.kernel))];
  const right = Math.min(textWidth(names) + 12, wide * 0.45);
  const height = Math.max(280, names.length * 20 + 40);
  const up = extent(points.flatMap((p) => [p.value, p.low, p.high]), scale);
  const sizes = [...new Set(points.map((p) => p.n))].sort((a, b) => a - b);
  const across = [sizes[0] / 1.05, sizes.at(-1) * 1.05];
  const ends = new Map();
  for (const p of points) if (!(ends.get(p.kernel)?.n > p.n)) ends.set(p.kernel, p);
  const most = Math.floor((right - 24) / 6);
  const short = (text) => text.length > most ? text.slice(0, most - 1) + "…" : text;
  const named = labels([...ends.values()].map((p) => ({ ...p, label: short(p.label ?? p.kernel) })),
    up, scale, height);
  return [{ points, labels: named }, { up, across, sizes }, { height, right }];
});

// Sections

function speed() {
  const place = section("speed").querySelector(".panels");
  clear(place);
  const metric = METRICS[state.metric];
  const rows = fastest().map((c) => [c, metric.of(c)]).filter(([, v]) => v != null);
  const title = metric.title();
  const later = [];
  for (const [precision, found] of grouped(rows, ([c]) => c.precision)) {
    const curve = found.filter(([c]) => c.n != null && c.beside == null);
    if (new Set(curve.map(([c]) => c.n)).size > 1) {
      const points = curve.map(([c, v]) => point(c, v));
      const kernels = new Set(points.map((p) => p.kernel)).size;
      const chart = panel(place, precision, `${title} over n of ${kernels} ${precision} kernels. ` +
        "The table of all results has the figures.",
        { full: kernels > 8, note: `${title} over n` });
      drawCurve(chart, points, metric.scale);
      later.push(...found.filter((row) => !curve.includes(row)));
    } else later.push(...found);
  }
  later.sort(([a, v], [b, w]) => a.order - b.order || w - v);
  if (later.length && later.length < rows.length) {
    place.append(element("h3", { className: "full apart", textContent: "Other sizes" }));
  }
  const cells = {};
  const few = (c) => later.filter(([o]) => o.size === c.size && o.precision === c.precision).length < 3;
  const groups = [...grouped(later, ([c]) => `${c.size} ${few(c) ? "" : c.precision}`).values()];
  groups.sort((a, b) => a[0][0].order - b[0][0].order || b.length - a.length);
  for (const found of groups) {
    const { size, beside } = found[0][0];
    const precisions = [...new Set(found.map(([c]) => c.precision))];
    const name = sizeOf(found[0][0]) +
      (new Set(rows.map(([c]) => c.precision)).size > 1 ? `, ${new Intl.ListFormat("en").format(precisions)}` : "");
    const points = found.map(([c, v]) => {
      const other = rows.find(([o]) => o.kernel === c.kernel && o.n === beside && beside != null);
      return point(c, v, { beside: other?.[1], figure: metric.figure(c, v) });
    });
    const chart = panel(place, name, `${title} of ${points.length} kernels at ${name}: fastest ` +
      `${points[0].kernel}, ${points[0].figure}.`,
      { note: beside ? `${title}; tick: at ${beside.toLocaleString("en")}` : title, within: cells[size] });
    cells[size] ??= chart.parentElement;
    drawBars(chart, points, metric.scale === "linear");
  }
}

const drawBars = (chart, points, share = false) => draw(chart, "bars", (wide) => {
  const left = Math.min(textWidth(points.map((p) => p.kernel)), wide * 0.4);
  const across = [0, Math.max(...points.flatMap((p) => [p.high, p.beside ?? 0]), 1e-9) * 1.02];
  const right = textWidth(points.map((p) => p.figure));
  return [{ points }, { across, share }, { height: points.length * 18 + 6, left, right }];
});

function error() {
  const place = section("error").querySelector(".panels");
  clear(place);
  const rows = fastest().filter((c) => c.error > 0);
  for (const [precision, found] of grouped(rows, (c) => c.precision)) {
    const curve = found.filter((c) => c.n != null && c.beside == null);
    if (new Set(curve.map((c) => c.n)).size < 2) continue;
    const kernels = [...grouped(curve, (c) => c.kernel)];
    const same = grouped(kernels, ([, cs]) =>
      cs.map((c) => `${c.n}:${c.text[column.max_rel_err]}`).sort().join());
    const points = [...same.values()].flatMap((alike) => {
      const names = alike.map(([kernel]) => kernel);
      const label = names[0] + (names.length > 1 ? ` + ${names.length - 1} alike` : "");
      return alike[0][1].map((c) => point(c, c.error, {
        low: c.error, high: c.error, label,
        tip: { ...tip(c), ...(names.length > 1 && { alike: names.slice(1).join(", ") }) },
      }));
    });
    drawCurve(panel(place, precision, `Largest relative error over n of ${kernels.length} ` +
      `${precision} kernels.`, { full: same.size > 8, note: "largest relative error over n" }),
      points, "log");
  }
  const here = rows.filter((c) => c.size === sizeNow());
  if (here.length > 1) {
    const points = here.map((c) => point(c, c.rate, { error: c.error, label: best.has(c.id) ? c.kernel : "" }));
    const line = points.filter((p) => p.label).sort((a, b) => a.error - b.error);
    const chart = panel(place, `Speed against error at ${sizeName()}`,
      `${view().unit} against the largest relative error. On the front: ` +
      line.map((p) => p.kernel).join(", ") + ".", { note: `${view().unit} over the largest relative error`, full: true });
    const up = extent(points.map((p) => p.value), "log", 1.6);
    const across = extent(points.map((p) => p.error), "log", 3);
    draw(chart, "scatter", () => [{ points, front: line }, { up, across }, { height: 320 }]);
  }
}

function roofline() {
  const place = section("roofline").querySelector(".panels");
  clear(place);
  const { copy, peaks, unlimited, scale, unit } = view();
  const rows = fastest().filter((c) => c.intensity != null);
  if (!copy || !peaks.length || !rows.length) return;
  const points = rows.map((c) => point(c, c.rate, { intensity: c.intensity }));
  const top = peaks.at(-1).per_s;
  const left = Math.min(peaks[0].per_s / copy.per_s, ...rows.map((c) => c.intensity)) / 2;
  const right = Math.max(top / copy.per_s, ...rows.map((c) => c.intensity)) * 4;
  const up = extent([...points.map((p) => p.value), top / scale], "log", 1.6);
  const low = Math.max(left, (up[0] * scale) / copy.per_s);
  const roofs = [{ label: copy.label, intensity: low, value: (low * copy.per_s) / scale },
    { label: copy.label, intensity: top / copy.per_s, value: top / scale }];
  const names = [];
  for (const peak of peaks) {
    const value = peak.per_s / scale;
    roofs.push({ label: peak.label, intensity: peak.per_s / copy.per_s, value },
      { label: peak.label, intensity: right, value });
    names.push({ label: peak.label, intensity: right, value });
  }
  const middle = Math.sqrt((low * peaks[0].per_s) / copy.per_s);
  const slope = [{ label: copy.label, intensity: middle, value: (middle * copy.per_s) / scale }];
  const chart = panel(place, `${unit} over operations per byte`,
    `Roofline: ${[copy, ...peaks].map((r) => r.label).join(", ")}; ${points.length} cases.`,
    { full: true, note: unlimited.length ? `no limit is known of ${unlimited.join(", ")}` : "" });
  const apart = labels(names, up, "log", 380).map((n) => ({ ...n, value: n.label_value }));
  const short = (roof) => ({ ...roof, label: roof.label.replace(/,.*/, "") });
  draw(chart, "roofline", (wide) => [
    { points, roofs, names: wide < 600 ? apart.map(short) : apart, slope }, { up, across: [left, right] }, { height: 380 }]);
}

const unpack = (series) => {
  const bytes = Uint8Array.from(atob(series.packed), (c) => c.charCodeAt(0));
  const reader = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / 4 }, (_, i) => reader.getFloat32(4 * i, true))
    .filter(Number.isFinite);
};

/** At most so many places of an array, the first and the last among them. */
const spread = (length, most) => (length <= most ? [...Array(length).keys()]
  : Array.from({ length: most }, (_, i) => Math.round((i * (length - 1)) / (most - 1))));

/** Values with their places; of too many, the smallest and the largest of every few. */
function envelope(values, most = 2000) {
  const all = values.map((value, index) => ({ value, index }));
  if (values.length <= most) return all;
  const few = Math.ceil(values.length / (most / 2));
  return Array.from({ length: Math.ceil(values.length / few) }, (_, i) => {
    const some = all.slice(i * few, (i + 1) * few).sort((a, b) => a.value - b.value);
    return [some[0], some.at(-1)].sort((a, b) => a.index - b.index);
  }).flat();
}

function sampled() {
  const place = section("samples").querySelector(".panels");
  clear(place);
  const here = fastest().filter((c) => c.size === sizeNow() && samples[c.id].length)
    .sort((a, b) => b.rate - a.rate);
  if (here.length > 1) {
    const points = here.flatMap((c) => {
      const all = unpack(samples[c.id][0]).sort((a, b) => a - b);
      return spread(all.length, 250).map((i) => (
        { kernel: c.kernel, colour: series[c.kernel].colour, value: all[i] }));
    });
    const chart = panel(place, `All kernels at ${sizeName()}`,
      `Times of the launches at ${sizeName()}, fastest kernel first.`, { note: "µs a launch" });
    draw(chart, "strip", (wide) => [{ points }, { across: extent(points.map((p) => p.value), "log", 1.05) }, {
      height: here.length * 18 + 6,
      left: Math.min(textWidth(here.map((c) => c.kernel)), wide * 0.4),
    }]);
  }
  const one = cases[Number(caseNow())];
  if (!one) return;
  const kinds = samples[one.id].map((s, k) => (
    { ...s, values: unpack(s), colour: PALETTE[k], every: s.every ?? 1 }));
  const name = `${one.kernel} ${one.text[column.params]}`.trim();
  const count = kinds.reduce((sum, s) => sum + s.values.length, 0);
  const told = kinds.map((s, k) => (kinds.length > 1 ? `${["blue", "orange"][k]}: ${s.mode}` : s.mode)).join(", ");
  const kept = kinds[0].every > 1 ? `; this page holds 1 launch in ${kinds[0].every}` : "";
  const shares = kinds.flatMap(({ mode, colour, values }) => {
    const sorted = [...values].sort((a, b) => a - b);
    return spread(sorted.length, 500).map((i) => (
      { kind: mode, colour, value: sorted[i], share: (i + 1) / sorted.length }));
  });
  const [low, high] = [0, -1].map((i) => shares.map((p) => p.value).sort((a, b) => a - b).at(i));
  const room = (high - low) * 0.03 || high * 0.03;
  const usual = Math.max(...shares.filter((p) => p.share <= 0.995).map((p) => p.value));
  const edge = high - low > 2 * (usual - low) ? usual + (usual - low) * 0.1 : high;  // stragglers
  const beyond = edge < high ? "; the slowest 0.5% may lie beyond the right edge" : "";
  const scale = edge > 4 * low ? "log" : "linear";
  const across = scale === "log" ? [low / 1.05, edge * 1.05] : [low - room, edge + (edge < high ? 0 : room)];
  draw(panel(place, `${name}: distribution`, `Share of ${count} launches of ${name} that took no longer.`,
    { note: `share of launches over µs; ${told}${kept}${beyond}` }), `ecdf-${scale}`,
    () => [{ points: shares }, { across }, { height: 240, right: 20 }]);
  const points = kinds.flatMap(({ values, colour, every }) => envelope(values).map(({ value, index }) => (
    { index: index * every, value, colour })));
  const thinned = points.length < count ? `; drawn: the fastest and the slowest of every ${
    Math.ceil(count / points.length * 2).toLocaleString("en")} launches` : "";
  const chart = panel(place, `${name}: in order`, `Times of ${count} launches of ${name} in order.`,
    { note: `µs, launch by launch; ${told}${kept}${thinned}`, full: true });
  draw(chart, "course", () => [
    { points }, { up: [low - room, high + room] }, { height: 240, left: 64 }]);
  const TOLD = { sm_mhz: "SM clock, MHz", power_w: "power, W", temperature_c: "temperature, °C" };
  for (const [key, title] of Object.entries(TOLD)) {
    const found = (kinds[0][key] ?? []).map((value, index) => ({ index, value, colour: PALETTE[0] }))
      .filter((p) => p.value != null);
    if (!found.length) continue;
    const [least, largest] = [Math.min(...found.map((p) => p.value)), Math.max(...found.map((p) => p.value))];
    const range = least === largest ? word(least) : `${word(least)} to ${word(largest)}`;
    chart.parentElement.append(element("p", { className: "hint", textContent: `${title}: ${range}` }));
    if (found.length < 3 || least === largest) continue;
    const part = element("div", { className: "chart" });
    part.setAttribute("role", "img");
    part.setAttribute("aria-label", `${title} while sampled: ${range}`);
    chart.parentElement.append(part);
    const margin = (largest - least) * 0.1;
    draw(part, "conditions", () => [{ points: found }, { up: [least - margin, largest + margin] },
      { height: 44, left: 64, bottom: 6 }]);
  }
  const throttled = kinds.flatMap((s) => s.throttled ?? []);
  if (throttled.length) {
    chart.parentElement.append(element("p", { className: "warning",
      textContent: `Clocks held down while sampled: ${[...new Set(throttled)].join(", ")}` }));
  }
}

// Comparisons, searches and clocked launches: as they come

const KINDS = {
  FASTER: "#2c9650", SLOWER: "#cf4444", SAME: NEUTRAL, UNDECIDED: "#c08a1b",
  winner: "#2c9650", default: "#d5701c",
};

function drawFinding(place, { spec, title, note, points = [], filling = null }) {
  if (filling) {
    const [datasets, parameters, height] = filling;
    const chart = panel(place, title, `${title}: ${note}.`, { note, full: true });
    chart.dataset.fixed = "";
    return draw(chart, spec, () => [datasets, parameters, { height, top: 22, bottom: 90 }]);
  }
  const colour = spec === "forest" ? NEUTRAL : PALETTE[0];
  const shown = points.map((p) => ({ ...p, colour: KINDS[p.kind] ?? colour,
    fill: KINDS[p.kind] ?? colour,
    shape: p.kind === "winner" ? "diamond" : p.kind === "default" ? "square" : "circle" }));
  const legend = spec === "search" ? "; diamond: winner, square: default" : "";
  const chart = panel(place, title, `${title}: ${points.length} marks.`, { note: note + legend });
  chart.dataset.fixed = "";
  if (spec === "bars") {
    return drawBars(chart, shown.map((p) => ({
      ...p, kernel: p.label, low: p.value, high: p.value, figure: word(p.value) })));
  }
  const values = points.flatMap((p) => [p.value, p.low, p.high, ...(spec === "forest" ? [1] : [])]);
  const rows = spec === "forest" ? points.length : new Set(points.map((p) => p.round)).size;
  return draw(chart, spec, (wide) => [{ points: shown, same: [{ value: 1 }] },
    { across: extent(values, "log") }, {
      height: rows * 26 + 10,
      left: spec === "forest" ? Math.min(textWidth(points.map((p) => p.label)), wide * 0.5) : 52,
    }]);
}

function findings() {
  const verdictPanels = section("verdicts").querySelector(".panels");
  const blockPanels = section("blocks").querySelector(".panels");
  clear(verdictPanels);
  clear(blockPanels);
  for (const found of verdicts) drawFinding(verdictPanels, found);
  const here = fastest().filter((c) => c.size === sizeNow() && c.imbalance != null)
    .sort((a, b) => b.imbalance - a.imbalance);
  section("blocks").querySelector(".controls").hidden = !here.length;
  if (here.length) {
    const points = here.map((c) => point(c, c.imbalance, {
      low: c.imbalance, high: c.imbalance, figure: c.text[column.block_imbalance] }));
    drawBars(panel(blockPanels, `Imbalance at ${sizeName()}`, `Imbalance of ${here.length} kernels.`,
      { note: "busiest multiprocessor above the mean" }), points, true);
  }
  for (const found of blocks) drawFinding(blockPanels, found);
}

/** Where C is wrong, beside the reason of each case. */
function errorMaps() {
  for (const [id, [note, [datasets, parameters, ratio]]] of Object.entries(maps)) {
    const place = section("wrong").querySelector(`article[data-case="${id}"] .map`);
    clear(place);
    const chart = panel(place, "Error map", `Error map: ${note}.`, { note });
    chart.dataset.fixed = "";
    draw(chart, "error-map", (wide) => {
      const left = 60, width = Math.min(wide - left - 12, 250);
      return [datasets, parameters,
        { height: ratio * width, left, right: wide - left - width, bottom: 74 }];
    });
  }
}

// Choices

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

const casesHere = () => inView().filter((c) => c.size === sizeNow() && samples[c.id].length)
  .sort((a, b) => (b.rate ?? 0) - (a.rate ?? 0));

function caseNow() {
  const here = casesHere();
  return String((here.find((c) => String(c.id) === state.case) ?? here[0])?.id ?? "");
}

function choices() {
  const select = (name) => document.querySelectorAll(`select[data-state="${name}"]`);
  for (const s of select("view")) fill(s, views.map((v, i) => [String(i), v.label]), state.view);
  const metrics = Object.entries({
    rate: view().unit, limit: "share of the limit", cublas: "share of cuBLAS", speedup: "speedup",
  }).filter(([name]) => name === "rate" || fastest().some((c) => name === "speedup" ||
    c[name === "limit" ? "of_limit" : "of_cublas"] != null));
  if (!metrics.some(([name]) => name === state.metric)) state.metric = "rate";
  for (const s of select("metric")) fill(s, metrics, state.metric);
  const kernels = [...new Set(fastest().map((c) => c.kernel))].sort();
  if (!kernels.includes(state.base)) {
    state.base = fastest().find((c) => c.is_baseline)?.kernel ?? kernels[0] ?? "";
  }
  for (const s of select("base")) {
    fill(s, kernels.map((k) => [k, k]), state.base);
    s.closest("label").hidden = state.metric !== "speedup";
  }
  for (const s of select("size")) fill(s, sizesHere().map((c) => [c.size, sizeOf(c)]), sizeNow());
  for (const s of select("case")) {
    fill(s, casesHere().map((c) => [String(c.id), `${c.kernel} ${c.text[column.params]}`.trim()]), caseNow());
  }
  for (const s of select("status")) {
    const known = [...new Set(cases.map((c) => c.status))];
    fill(s, [["", "any"], ...known.map((v) => [v, v])], state.status);
    s.closest("label").hidden = known.length < 2;
  }
}

function toggle(kernel) {
  if (!only.delete(kernel)) only.add(kernel);
  setState({});
  highlight();
}

function highlight() {
  for (const [chart, { view }] of drawn) {
    if (!("fixed" in chart.dataset)) view.signal("isolated", [...only]).runAsync();
  }
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
  const SHOWN = { roofline: (c) => c.intensity != null, error: (c) => c.error > 0 };
  for (const place of document.querySelectorAll(".chips")) {
    const shown = fastest().filter(SHOWN[place.closest("section").id] ?? (() => true));
    const kernels = [...new Set(shown.sort((a, b) => b.rate - a.rate).map((c) => c.kernel))];
    const chips = kernels.map((kernel) => {
      const dot = element("i", { className: series[kernel].shape });
      dot.style.background = series[kernel].colour;
      return element("button", { type: "button", value: kernel, onclick: () => toggle(kernel) }, dot, kernel);
    });
    place.replaceChildren(...chips,
      element("button", { type: "button", className: "all", onclick: showAll }, "Show all"));
    (place.closest("details") ?? place).hidden = kernels.length < 2;
  }
  highlight();
}

// The table of all results

const shownColumns = () => {
  const keys = state.cols ? state.cols.split(",") : columns.filter((c) => c.is_shown).map((c) => c.key);
  return columns.map((c, i) => ({ ...c, i })).filter((c) => keys.includes(c.key) &&
    (state.cols || cases.some((row) => row.text[c.i] && !(c.key === "status" && row.text[c.i] === "measured"))));
};

function rowsNow() {
  const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = cases.filter((c) => (!state.status || c.status === state.status) &&
    (!state.best || c.is_fastest) &&
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
  const shown = shownColumns(), rows = rowsNow();
  const [head, body] = section("results").querySelectorAll("thead, tbody");
  const key = state.sort.replace(/^-/, "");
  const focused = document.activeElement?.dataset?.key;
  head.replaceChildren(element("tr", {}, ...shown.map((c) => {
    const way = c.key !== key ? "" : state.sort.startsWith("-") ? "descending" : "ascending";
    const button = element("button", { type: "button", onclick: () => sort(c) }, c.title +
      ({ ascending: " ▲", descending: " ▼" }[way] ?? ""));
    button.dataset.key = c.key;
    const cell = element("th", { scope: "col", className: c.is_number ? "number" : "" }, button);
    if (way) cell.setAttribute("aria-sort", way);
    return cell;
  })));
  if (focused) head.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  body.replaceChildren(...rows.map((row) => element("tr", {}, ...shown.map((c) => element("td", {
    className: c.key === "status" ? `status ${row.status}` : c.key === "remarks" ? "remarks" : c.is_number ? "number" : c.key,
  }, cellText(c, row))))));
  document.getElementById("count").textContent = rows.length === cases.length
    ? `${cases.length} cases` : `${rows.length} of ${cases.length} cases`;
}

const cellText = (c, row) => (c.key === "remarks" || c.key === "params"
  ? element("div", { textContent: row.text[c.i], title: row.text[c.i] }) : row.text[c.i]);

function sort({ key, is_number }) {
  const ways = is_number && key !== "median_ns" && key !== "size" ? ["-" + key, key, ""] : [key, "-" + key, ""];
  setState({ sort: ways[(ways.indexOf(state.sort) + 1) % 3] });
  table();
}

function columnChoices() {
  const shown = new Set(shownColumns().map((c) => c.key));
  section("results").querySelector(".columns div").replaceChildren(
    ...columns.filter((c, i) => cases.some((row) => row.text[i])).map((c) => {
      const box = element("input", { type: "checkbox", checked: shown.has(c.key), value: c.key });
      box.onchange = () => {
        const boxes = [...section("results").querySelectorAll(".columns input:checked")];
        setState({ cols: boxes.map((b) => b.value).join(",") });
        table();
      };
      return element("label", {}, box, " " + c.title);
    }));
}

function markdown() {
  const shown = shownColumns();
  // An invisible space keeps GitHub from linking mentions, references and addresses.
  const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;")
    .replace(/@(?=\w)|[#$]|:(?=\/\/|[\w+-]+:)|(?<=www)\.|(?<=\bGH)-(?=\d)/gi, (c) => `&#${c.charCodeAt()};&#8203;`)
    .replace(/[\\`*|[\]~_]/g, "\\$&").replace(/\n/g, " ");
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(shown.map((c) => c.title)), line(shown.map((c) => (c.is_number ? "---:" : "---"))),
    ...rowsNow().map((row) => line(shown.map((c) => escape(row.text[c.i]))))].join("\n");
}

function csv() {
  const shown = shownColumns();
  // A spreadsheet must not take text of a record for a formula.
  const quote = (text) => /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  const safe = (text) => quote(/^[=+@\t-]/.test(text) ? "'" + text : text);
  const cell = (row, c) => (c.is_number && c.key !== "size" ? String(row.numbers[c.i] ?? "") : safe(row.text[c.i]));
  return [shown.map((c) => c.key).join(","),
    ...rowsNow().map((row) => shown.map((c) => cell(row, c)).join(","))].join("\n");
}

async function copy(button, text) {
  const name = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // no clipboard for files opened from disk
    const area = element("textarea", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = name; }, 1500);
}

// Start

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = state.theme || (dark ? "dark" : "light");
}

function charts() {
  choices();
  legends();
  if (has.has("speed")) speed();
  if (has.has("error")) error();
  if (has.has("roofline")) roofline();
  if (has.has("samples")) sampled();
  findings();
  errorMaps();
}

function all() {
  theme();
  charts();
  for (const input of document.querySelectorAll("input[data-state]")) {
    if (input.type === "checkbox") input.checked = !!state[input.dataset.state];
    else input.value = state[input.dataset.state];
  }
  columnChoices();
  table();
}

document.addEventListener("input", ({ target }) => {
  const name = target.dataset?.state;
  if (!name) return;
  setState({ [name]: target.type === "checkbox" ? (target.checked ? "1" : "") : target.value });
  if (["q", "status", "best"].includes(name)) table(); else charts();
});
document.addEventListener("keydown", ({ key, target }) => {
  if (key === "Escape" && only.size && !target.matches("input, select")) showAll();
});
document.getElementById("theme").onclick = () => {
  setState({ theme: document.documentElement.dataset.theme === "dark" ? "light" : "dark" });
  theme();
};
document.getElementById("copy-markdown").onclick = (e) => copy(e.currentTarget, markdown());
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
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
addEventListener("hashchange", () => { readState(); all(); });
let width = innerWidth, waiting;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => { if (innerWidth !== width) { width = innerWidth; charts(); } }, 200);
});
const plain = location.hash.includes("=") ? "" : location.hash;
readState();
all();
if (plain) document.getElementById(plain.slice(1))?.scrollIntoView();
})();
