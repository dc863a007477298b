// Draws the charts of a report: reads the numbers in #data, and makes a uPlot of every element with data-chart.
"use strict";
(() => {
  const runs = JSON.parse(document.getElementById("data").textContent).runs;
  const said = document.getElementById("said");
  const charts = []; // {place, plot, group, points}
  const DASHES = [[], [6, 4], [2, 3], [10, 3, 2, 3]];

  // Numbers for people.
  const digits = v => (Math.abs(v) >= 99.995 ? v.toFixed(1) : Math.abs(v) >= 9.9995 ? v.toFixed(2) : v.toFixed(3)).replace(/\.0+$/, "");
  const scaled = (v, steps) => { for (const [factor, unit] of steps) if (Math.abs(v) >= factor * 0.9995) return digits(v / factor) + " " + unit; return digits(v) + " " + steps[steps.length - 1][1]; };
  const pps = v => scaled(v, [[1e9, "Gpps"], [1e6, "Mpps"], [1e3, "kpps"], [1, "pps"]]);
  const ns = v => scaled(v, [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]]);
  const percent = v => v === 0 ? "0 %" : v < 0.0001 ? "<0.0001 %" : v < 100 && v > 99.9999 ? ">99.9999 %" : +v.toFixed(4) + " %";
  const seconds = v => +v.toFixed(6) + " s";
  // On an axis `1.5 kpps`, where a value would be `1.500 kpps`.
  const short = show => v => show(v).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
  // With as many digits as tell it from all.
  const share = x => x <= 1 ? "0 %" : +(100 * (1 - 1 / x)).toFixed(Math.max(7, Math.ceil(Math.log10(x)))) + " %";

  const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const faint = c => c + "38";
  // A legend has no values while nobody points.
  const blank = i => i === null || i === undefined ? "" : "-";
  const idle = u => u.root.classList.toggle("idle", !known(u.cursor.idx));
  const known = v => v !== null && v !== undefined;
  const log = values => values.map(v => known(v) && v > 0 ? v : null);

  // Lines of several runs on one time axis: uPlot joins them, and where one has no point there is no gap.
  function lines(specs, show, isLog) {
    const tables = [], series = [{ label: "time", value: (u, v) => known(v) ? seconds(v) : "" }], bands = [];
    const shape = isLog ? log : v => v;
    let last = null, at = 0;
    for (const { run, name, label, hue, dash, hidden } of specs) {
      const values = run.series.channels[name];
      if (!values) continue;
      if (last !== run) { tables.push([run.series.time]); last = run; }
      const isThin = values.min !== undefined, mean = ++at, stroke = colour(hue);
      tables[tables.length - 1].push(shape(values.mean));
      series.push({
        label, stroke, dash: DASHES[dash], width: 1.6, show: !hidden, thin: isThin,
        value: (u, v, s, i) => !known(v) ? blank(i) : isThin && known(i) && known(u.data[mean + 1][i]) ? `${show(v)} (${show(u.data[mean + 1][i])} to ${show(u.data[mean + 2][i])})` : show(v),
      });
      if (!isThin) continue;
      tables[tables.length - 1].push(shape(values.min), shape(values.max));
      // The edges of a band have no strokes: these would lie over all other lines. But of loss a single interval among a
      // million is what is to be seen: its spike is one pixel wide, and must not be faint.
      for (const edge of ["min", "max"]) series.push({ label: `${label} ${edge}`, class: "edge", ...(name === "loss" && edge === "max" ? { stroke, width: 1.4 } : { width: 0 }), show: !hidden, points: { show: false }, value: () => "" });
      bands.push({ series: [mean + 2, mean + 1], fill: faint(stroke) });
      at += 2;
    }
    const retained = tables.map(table => table.map(() => 2));
    return { data: tables.length > 1 ? uPlot.join(tables, retained) : tables[0] || [[]], series, bands };
  }

  // The border of a line's box in the legend is dashed as the line is.
  const border = (u, i) => { const dash = u.series[i].dash; return !dash || !dash.length ? "solid" : dash[0] < 4 ? "dotted" : "dashed"; };
  const named = (run, what) => runs.length > 1 ? `${run.name} ${what}` : what;
  const hue = (at, alone) => "c" + (runs.length > 1 ? at % 7 : alone);
  const timed = runs.filter(run => run.series);
  // From where the first interval of all runs begins to where the last one ends, or further.
  const stretch = (low, high) => timed.reduce(([a, b], { series: { start, time } }) => [Math.min(a, start), Math.max(b, time[time.length - 1])], [low, high]);

  function overTime(kind, names, show, isLog) {
    const specs = timed.flatMap(run => names.map(([name, label, alone, hidden], i) =>
      ({ run, name, label: named(run, label), hue: hue(runs.indexOf(run), alone), dash: runs.length > 1 ? i : i % 2, hidden: hidden && runs.length > 1 })));
    const { data, series, bands } = lines(specs, show, isLog);
    return { data, group: "time", options: { series, bands, ...axes(show, isLog, "time") } };
  }

  function axes(show, isLog, x) {
    const decades = (u, axis, min, max) => { const all = []; for (let e = Math.ceil(Math.log10(min) - 1e-9); 10 ** e <= max * 1.0001; e++) all.push(10 ** e); return all.length > 1 ? all : [min, max]; };
    // uPlot would leave some of them without words; here those do that have no room for them.
    const every = { splits: decades, filter: (u, ticks) => ticks };
    const apart = 62;
    const roomy = (u, ticks) => { let last = -Infinity; return ticks.map(v => { const at = u.valToPos(v, "x"); if (at - last < apart) return null; last = at; return v; }); };
    const style = () => ({ stroke: colour("dim"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1 } });
    const bottom = x === "time"
      ? { ...style(), values: (u, ticks) => ticks.map(seconds), space: 90 }
      : { ...style(), ...every, filter: roomy, values: (u, ticks) => ticks.map(v => known(v) ? share(v) : ""), space: 60 };
    const left = { ...style(), size: 88, ...(isLog ? every : {}), values: (u, ticks) => ticks.map(short(show)) };
    const y = isLog ? { distr: 3, log: 10, range: (u, low, high) => known(low) ? [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(high * 1.01))] : [1, 10] }
      : { range: (u, low, high) => [0, high > 0 ? high * 1.08 : 1] };
    return { axes: [bottom, left], scales: { x: x === "time" ? { time: false } : { time: false, distr: 3, log: 10 }, y } };
  }

  function curve(key, asked) {
    const with_ = runs.filter(run => run[key].x.length > 1);
    const series = [{ label: "packets not above", value: (u, v) => known(v) ? share(v) : "" }];
    for (const run of with_) {
      const at = runs.indexOf(run);
      series.push({ label: named(run, key), stroke: colour(hue(at, 0)), dash: DASHES[runs.length > 1 ? at % 4 : 0], width: 1.8, value: (u, v, s, i) => known(v) ? ns(v) : blank(i) });
    }
    const tables = with_.map(run => [run[key].x, log(run[key].ns)]);
    const data = tables.length > 1 ? uPlot.join(tables) : tables[0] || [[]];
    const hooks = !asked ? {} : { draw: [u => with_.forEach(run => {
      if (!known(run.gap_asked_ns)) return;
      const y = u.valToPos(run.gap_asked_ns, "y", true), { left, width, top, height } = u.bbox;
      if (y < top || y > top + height) return;
      u.ctx.save(); u.ctx.strokeStyle = colour("dim"); u.ctx.fillStyle = colour("dim"); u.ctx.setLineDash([4, 4]);
      u.ctx.beginPath(); u.ctx.moveTo(left, y); u.ctx.lineTo(left + width, y); u.ctx.stroke();
      u.ctx.font = `${12 * devicePixelRatio}px system-ui`; u.ctx.textAlign = "right"; u.ctx.fillText("asked " + ns(run.gap_asked_ns), left + width - 6, y - 6); u.ctx.restore();
    })] };
    return { data, group: key, options: { series, hooks, ...axes(ns, true, "share") } };
  }

  // A point a stall, and a bar down to the axis; what cost packets is filled.
  function stalls() {
    const [, end] = stretch(Infinity, 0);
    const all = runs.flatMap((run, at) => run.stalls.map(stall => ({ stall, at })))
      .filter(({ stall: [time, , , , lost], at }) => lost || !runs[at].series || time <= end).sort((a, b) => a.stall[0] - b.stall[0]);
    const times = all.map(({ stall }) => stall[0]);
    // The chart begins and ends with the others, whenever the first stall was.
    const [first, last] = stretch(Math.min(Infinity, ...times.slice(0, 1)), Math.max(0, ...times.slice(-1)));
    const words = ([, length, core, cause, lost]) => `${ns(length)} on core ${core}${cause ? ", " + cause : ""}${lost ? `, ${lost} packets missed` : ""}`;
    // A line of the legend for each run; its points are drawn above.
    const of = runs.map((run, at) => at).filter(at => runs[at].stalls.length);
    const paint = u => {
      const { ctx } = u, { top, height } = u.bbox, ratio = devicePixelRatio;
      ctx.save(); ctx.beginPath(); ctx.rect(u.bbox.left, top, u.bbox.width, height); ctx.clip();
      for (const { stall: [time, length, , , lost], at } of all) {
        if (time < u.scales.x.min || time > u.scales.x.max || !u.series[1 + of.indexOf(at)].show) continue;
        const x = u.valToPos(time, "x", true), y = u.valToPos(length, "y", true);
        ctx.fillStyle = ctx.strokeStyle = lost ? colour("bad") : colour(hue(at, 0));
        ctx.globalAlpha = lost ? 1 : 0.55; ctx.lineWidth = ratio;
        ctx.beginPath(); ctx.moveTo(x, top + height); ctx.lineTo(x, y); ctx.stroke();
        if (lost) { const r = 3.5 * ratio; ctx.fillRect(x - r, y - r, 2 * r, 2 * r); } else { ctx.beginPath(); ctx.arc(x, y, 2 * ratio, 0, 7); ctx.fill(); }
      }
      ctx.restore();
    };
    const series = [{ label: "time", value: (u, v) => known(v) ? seconds(v) : "" }, ...of.map(at => ({
      label: named(runs[at], "stall"), stroke: colour(hue(at, 0)), paths: () => null, points: { show: false },
      value: (u, v, s, i) => known(v) && known(i) && all[i - 1] ? words(all[i - 1].stall) : blank(i),
    }))];
    const values = of.map(at => [null, ...all.map(one => one.at === at ? one.stall[1] : null), null]);
    const { axes: a, scales } = axes(ns, true, "time");
    return { data: [[first, ...times, last], ...values], group: "time", options: { series, axes: a, scales, hooks: { draw: [paint] } } };
  }

  const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  function heat(at) {
    const { edges, lowest_ns, bands, a_doubling, levels } = runs[at].heat;
    const slices = edges.length - 1, edge = band => lowest_ns * 2 ** (band / a_doubling);
    const level = (slice, band) => LETTERS.indexOf(levels[slice * bands + band]);
    const paint = u => {
      const { ctx } = u, isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
      ctx.save(); ctx.beginPath(); ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height); ctx.clip();
      for (let slice = 0; slice < slices; slice++) {
        const x = u.valToPos(edges[slice], "x", true), width = Math.max(u.valToPos(edges[slice + 1], "x", true) - x, 1) + 0.6;
        for (let band = 0; band < bands; band++) {
          const l = level(slice, band);
          if (!l) continue;
          const y = u.valToPos(edge(band + 1), "y", true);
          ctx.fillStyle = ramp(l / 63, isDark);
          ctx.fillRect(x, y, width, Math.max(u.valToPos(edge(band), "y", true) - y, 1) + 0.6);
        }
      }
      ctx.restore();
    };
    const time = edges.slice(1), peak = time.map((_, slice) => { for (let band = bands; band--;) if (level(slice, band)) return edge(band + 1); return null; });
    const most = time.map((_, slice) => { let best = 0, where = null; for (let band = 0; band < bands; band++) if (level(slice, band) > best) { best = level(slice, band); where = edge(band + 0.5); } return where; });
    const quiet = { paths: () => null, points: { show: false } };
    const series = [{ label: "time", value: (u, v) => known(v) ? seconds(v) : "" },
      { ...quiet, label: "most packets near", stroke: colour("c0"), value: (u, v, s, i) => known(v) ? ns(v) : blank(i) },
      { ...quiet, label: "none above", stroke: colour("c1"), value: (u, v, s, i) => known(v) ? ns(v) : blank(i) }];
    const { axes: a, scales } = axes(ns, true, "time");
    scales.y.range = () => [lowest_ns, edge(bands)];
    a.forEach(axis => { axis.grid = { show: false }; });
    return { data: [time, most, peak], group: "time", options: { series, axes: a, scales, hooks: { drawClear: [paint] } } };
  }
  // From the page's colour to a strong one; lightness alone carries the meaning.
  function ramp(part, isDark) {
    const stops = isDark ? [[38, 52, 74], [41, 98, 146], [86, 180, 233], [240, 228, 66]] : [[214, 230, 242], [120, 178, 214], [0, 114, 178], [8, 36, 74]];
    const place = part * 3, low = Math.min(Math.floor(place), 2), rest = place - low;
    return `rgb(${stops[low].map((c, i) => Math.round(c + (stops[low + 1][i] - c) * rest)).join()})`;
  }

  function chart(kind) {
    if (kind === "rates") return overTime(kind, [["sent", timed[0].series.out, 0], ["received", "received", 1]], pps);
    if (kind === "loss") return overTime(kind, [["loss", timed.every(run => run.series.drops) ? "dropped" : "loss", 1]], percent);
    if (kind === "latency") return overTime(kind, timed.some(run => run.series.channels.p99)
      ? [["p50", "p50", 2, true], ["p99", "p99", 0], ["p999", "p99.9", 3, true], ["max", "slowest", 1, true], ["mean", "mean", 6, true]] : [["mean", "mean", 0]], ns, true);
    if (kind === "percentiles") return curve("latency");
    if (kind === "pacing") return curve("pacing", true);
    if (kind === "stalls") return stalls();
    return heat(+kind.split("-")[1]);
  }

  // Charts of one group show the same stretch, at first that of all of them.
  const whole = group => charts.filter(chart => chart.group === group)
    .reduce(([low, high], { ends }) => [Math.min(low, ends[0]), Math.max(high, ends[1])], [Infinity, -Infinity]);
  let isZooming = false;
  function zoomed(me, min, max) {
    if (isZooming) return;
    isZooming = true;
    const all = whole(me.group), isDoubleClick = min === me.values[0] && max === me.values[1];
    const isAll = isDoubleClick || (min <= all[0] && max >= all[1]), [low, high] = isAll ? all : [min, max];
    for (const other of charts) {
      if (other.group !== me.group) continue;
      other.plot.setScale("x", { min: low, max: high });
      other.reset.hidden = isAll;
    }
    isZooming = false;
  }
  function toggled(plot, at) {
    if (at === null || !plot.series[at].thin) return;
    for (const edge of [at + 1, at + 2]) if (plot.series[edge].show !== plot.series[at].show) plot.setSeries(edge, { show: plot.series[at].show }, false);
  }

  // Paper is narrower than a window, and nobody tells its width beforehand: this fits A4 and letter.
  const PAPER = 690;
  let isPrinting = false;
  const room = place => isPrinting ? Math.min(PAPER, place.clientWidth || PAPER) : place.clientWidth;

  // Beside a longer run the pointer can be where a run has ended: its last value is none of that moment.
  const reach = new WeakMap();
  const near = (u, at, index) => {
    const values = u.data[at];
    if (!reach.has(values)) reach.set(values, [values.findIndex(v => v !== undefined), values.findLastIndex(v => v !== undefined)]);
    const [first, last] = reach.get(values);
    return index < first || index > last ? 8 : Infinity;
  };

  function draw(place) {
    const { data, group, options } = chart(place.dataset.chart);
    const me = { place, group }, shown = [];
    me.ends = [data[0][0], data[0][data[0].length - 1]];
    // A double click shows from the first to the last value of the chart: of others that may be a part.
    me.values = me.ends;
    if (group === "time") me.ends = stretch(...me.ends);
    me.reset = document.createElement("button");
    Object.assign(me.reset, { type: "button", className: "reset", textContent: "Show all", hidden: true, onclick: () => reset(me) });
    options.hooks = { ...options.hooks,
      ready: [idle], setCursor: [idle],
      setScale: [(u, key) => { if (key === "x" && me.plot) zoomed(me, u.scales.x.min, u.scales.x.max); }],
      setSeries: [(u, at) => { toggled(u, at); shown.forEach(tell => tell()); }] };
    const isFlat = place.dataset.chart.startsWith("heat") || place.dataset.chart === "stalls";
    me.plot = new uPlot({
      padding: [null, 46, null, null], width: room(place), height: (isFlat ? 190 : 250) - (isPrinting ? 60 : 0), ...options, legend: { live: true, isolate: false, markers: { dash: border, fill: (u, i) => border(u, i) === "solid" && u.series[i].stroke ? u.series[i].stroke(u, i) : null } },
      cursor: { drag: { x: true, y: false }, hover: { prox: near }, focus: { prox: 24 }, ...(group === "time" ? { sync: { key: "time", scales: ["x", null] } } : {}) }, focus: { alpha: 0.35 },
    }, data, place);
    place.append(me.reset);
    // Its legend tells values only: a picture has no lines to hide.
    if (group === "time" && place.dataset.chart.startsWith("heat")) place.querySelector(".u-legend").style.pointerEvents = "none";
    else for (const row of place.querySelectorAll(".u-legend tr:not(.edge) th")) {
      if (row.closest("tr") === place.querySelector(".u-legend tr")) continue;
      row.tabIndex = 0; row.setAttribute("role", "button"); row.title = "show or hide";
      const pressed = () => row.setAttribute("aria-pressed", !row.closest("tr").classList.contains("u-off"));
      pressed(); shown.push(pressed);
      row.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { row.click(); event.preventDefault(); } event.stopPropagation(); });
    }
    charts.push(me);
  }
  const reset = me => { const [min, max] = whole(me.group); zoomed(me, min, max); };
  function drawAll() {
    document.querySelectorAll("[data-chart]").forEach(draw);
    for (const me of charts.filter((chart, at) => charts.findIndex(other => other.group === chart.group) === at)) reset(me);
  }

  function key(event) {
    const me = charts.find(chart => chart.place === event.currentTarget);
    if (!me || event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    const { plot } = me, x = plot.data[0], { min, max } = plot.scales.x;
    const first = x.findIndex(v => v >= min), last = x.findLastIndex(v => v <= max);
    const step = event.shiftKey ? 10 : 1, at = plot.cursor.idx;
    const move = { ArrowRight: known(at) ? at + step : first, ArrowLeft: known(at) ? at - step : last, Home: first, End: last }[event.key];
    if (move !== undefined) {
      const to = Math.max(first, Math.min(last, move));
      plot.setCursor({ left: plot.valToPos(x[to], "x"), top: plot.over.clientHeight / 2 }, true, true);
      said.textContent = [...me.place.querySelectorAll(".u-series:not(.edge):not(.u-off)")].map(row => [...row.children].map(cell => cell.textContent).join(" ").trim()).join(", ");
    } else if (event.key === "+" || event.key === "=" || event.key === "-") {
      const factor = event.key === "-" ? 2 : 0.5, isLog = plot.scales.x.distr === 3;
      const [f, g] = isLog ? [Math.log, Math.exp] : [v => v, v => v];
      const middle = f(known(at) ? x[at] : g((f(min) + f(max)) / 2)), half = (f(max) - f(min)) / 2 * factor, all = whole(me.group).map(f);
      plot.setScale("x", { min: g(Math.max(all[0], middle - half)), max: g(Math.min(all[1], middle + half)) });
    } else if (event.key === "0" || event.key === "Escape") {
      reset(me);
    } else return;
    event.preventDefault();
  }

  function redraw() {
    const before = charts.map(({ plot, place }) => [place, plot.scales.x.min, plot.scales.x.max, plot.series.map(line => line.show)]);
    for (const { plot, reset } of charts.splice(0)) { plot.destroy(); reset.remove(); }
    drawAll();
    for (const [place, min, max, shown] of before) {
      const me = charts.find(chart => chart.place === place), all = whole(me.group);
      shown.forEach((show, at) => { if (show !== me.plot.series[at].show) me.plot.setSeries(at, { show }); });
      if (min > all[0] || max < all[1]) zoomed(me, min, max);
    }
  }

  const root = document.documentElement, theme = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  theme.hidden = false;
  theme.onclick = () => { root.dataset.theme = getComputedStyle(root).colorScheme === "dark" ? "light" : "dark"; redraw(); };
  dark.addEventListener("change", redraw);
  let before;
  addEventListener("beforeprint", () => { before = root.dataset.theme; root.dataset.theme = "light"; isPrinting = true; redraw(); });
  addEventListener("afterprint", () => { isPrinting = false; if (before) root.dataset.theme = before; else delete root.dataset.theme; redraw(); });

  document.querySelectorAll("[data-chart]").forEach(place => place.addEventListener("keydown", key));
  drawAll();
  const seen = new ResizeObserver(() => { for (const { plot, place } of charts) if (Math.abs(plot.width - room(place)) > 1 && place.clientWidth > 0) plot.setSize({ width: room(place), height: plot.height }); });
  document.querySelectorAll("[data-chart]").forEach(place => seen.observe(place));
  root.dataset.drawn = charts.length;
})();
