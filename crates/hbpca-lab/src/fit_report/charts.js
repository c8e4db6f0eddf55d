"use strict";
(function () {
  const data = JSON.parse(document.getElementById("chart-data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const tip = document.getElementById("tip");

  function make(name, attributes, parent, text) {
    const element = document.createElementNS(SVG, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.appendChild(element);
    return element;
  }

  // Numbers as people read them.
  function short(x) {
    if (x === null || !isFinite(x)) return "–";
    if (x === 0) return "0";
    const size = Math.abs(x);
    if (size >= 1e6 || size < 1e-4) return x.toExponential(2).replace(/\.?0*e\+?/, "e");
    return String(Number(x.toPrecision(4)));
  }
  const percent = share => (100 * share).toFixed(share < 0.0995 ? 2 : 1) + " %";

  // Round positions from low to high, about `count` of them.
  function ticks(low, high, count) {
    const raw = (high - low) / Math.max(count, 1);
    const power = Math.pow(10, Math.floor(Math.log10(raw)));
    const step = [1, 2, 2.5, 5, 10].map(x => x * power).find(x => x >= raw * 0.999);
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9) + (Math.abs(step / power - 2.5) < 1e-9 ? 1 : 0));
    const large = Math.max(Math.abs(low), Math.abs(high)) >= 1e6 || step < 1e-5;
    return found.map(at => ({ at, text: large ? short(at) : at.toFixed(Math.min(digits, 8)).replace(/^-(0(\.0*)?)$/, "$1") }));
  }
  const superscripts = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  function power(exponent) {
    if (exponent === 0) return "1";
    const digits = String(Math.abs(exponent)).split("").map(c => superscripts[Number(c)]).join("");
    return "10" + (exponent < 0 ? "⁻" : "") + digits;
  }
  function powers(low, high, count) {
    const every = Math.max(1, Math.ceil((high - low) / Math.max(count, 1)));
    const found = [];
    for (let e = Math.ceil(low - 1e-9); e <= high + 1e-9; e++) if (e % every === 0) found.push({ at: e, text: power(e) });
    return found;
  }

  // On paper charts are drawn for its width, so that their letters keep their size.
  const PAPER = 680;
  let printing = false;
  const widthOf = place => printing ? PAPER : Math.max(260, place.clientWidth);

  // A pair of axes that fills the width of its place. `content` draws into it and may return points to hover over.
  function plot(place, options, content) {
    const width = widthOf(place);
    const height = options.height(width);
    place.replaceChildren();
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, place);
    const room = Object.assign({ left: 58, right: 14, top: 12, bottom: 46 }, options.room);
    const [x0, x1, y0, y1] = [room.left, width - room.right, height - room.bottom, room.top];
    const scale = (domain, from, to) => value => from + (value - domain[0]) / (domain[1] - domain[0] || 1) * (to - from);
    const sx = scale(options.x.domain, x0, x1), sy = scale(options.y.domain, y0, y1);
    const grid = make("g", { class: "grid" }, svg), words = make("g", { class: "axis" }, svg);
    const xTicks = options.x.ticks || (options.x.log ? powers : ticks)(...options.x.domain, (x1 - x0) / 90);
    const yTicks = (options.y.log ? powers : ticks)(...options.y.domain, (y0 - y1) / 48);
    for (const tick of yTicks) {
      make("line", { x1: x0, x2: x1, y1: sy(tick.at), y2: sy(tick.at) }, grid);
      make("text", { x: x0 - 8, y: sy(tick.at) + 4, "text-anchor": "end" }, words, tick.text);
    }
    for (const tick of xTicks) {
      if (!options.x.ticks) make("line", { x1: sx(tick.at), x2: sx(tick.at), y1: y0, y2: y1 }, grid);
      make("text", { x: sx(tick.at), y: y0 + 18, "text-anchor": "middle" }, words, tick.text);
    }
    make("line", { class: "base", x1: x0, x2: x1, y1: y0, y2: y0 }, grid);
    make("text", { class: "title", x: (x0 + x1) / 2, y: height - 8, "text-anchor": "middle" }, words, options.x.title);
    make("text", { class: "title", transform: `translate(14 ${(y0 + y1) / 2}) rotate(-90)`, "text-anchor": "middle" }, words, options.y.title);
    const layer = make("g", {}, svg);
    hover(svg, content(layer, sx, sy, { x0, x1, y0, y1, width }) || [], width);
  }

  // The point nearest to the pointer, within reach, speaks.
  function hover(svg, points, width) {
    const mark = make("circle", { class: "hovered", r: 7 }, svg);
    function leave() { tip.hidden = true; mark.removeAttribute("data-on"); }
    svg.addEventListener("pointermove", event => {
      const box = svg.getBoundingClientRect(), factor = width / box.width;
      const x = (event.clientX - box.left) * factor, y = (event.clientY - box.top) * factor;
      let best = null, least = 24 * 24;
      for (const point of points) {
        const inside = point.box && x >= point.box[0] && x <= point.box[2] && y >= point.box[1] && y <= point.box[3];
        const distance = inside ? 0 : point.box ? Infinity : (point.x - x) ** 2 + (point.y - y) ** 2;
        if (distance < least) { least = distance; best = point; }
      }
      if (!best) return leave();
      tip.replaceChildren(...best.text().map((line, i) => {
        const element = document.createElement(i ? "div" : "b");
        element.textContent = line;
        return element;
      }));
      tip.hidden = false;
      if (!best.box) { mark.setAttribute("cx", best.x); mark.setAttribute("cy", best.y); mark.setAttribute("data-on", ""); }
      else mark.removeAttribute("data-on");
      const at = [event.clientX + 14, event.clientY + 14];
      if (at[0] + tip.offsetWidth > document.documentElement.clientWidth - 8) at[0] = event.clientX - tip.offsetWidth - 14;
      if (at[1] + tip.offsetHeight > window.innerHeight - 8) at[1] = event.clientY - tip.offsetHeight - 14;
      tip.style.transform = `translate(${Math.max(4, at[0])}px, ${Math.max(4, at[1])}px)`;
    });
    svg.addEventListener("pointerleave", leave);
  }

  const range = values => values.reduce((r, x) => x === null ? r : [Math.min(r[0], x), Math.max(r[1], x)], [Infinity, -Infinity]);
  function padded([low, high]) {
    if (!(low <= high)) return [0, 1];
    const room = 0.05 * (high - low) || Math.abs(low) * 0.1 || 1;
    return [low - room, high + room];
  }

  function scree(place) {
    const shares = data.scree.shares, k = shares.length;
    let sum = 0;
    const cumulative = shares.map(x => sum += x);
    const every = Math.ceil(k / Math.max(4, Math.floor((widthOf(place) - 80) / 26)));
    const named = shares.map((_, i) => ({ at: i + 1, text: String(i + 1) })).filter((_, i) => i % every === 0);
    plot(place, {
      height: width => Math.min(380, Math.max(240, width * 0.5)),
      x: { domain: [0.5, k + 0.5], ticks: named, title: "component" },
      y: { domain: [0, 100 * Math.min(1, Math.max(sum * 1.08, 0.02))], title: "% of the variance" },
    }, (layer, sx, sy) => {
      const wide = Math.min(0.76 * (sx(2) - sx(1)), 64);
      const points = [];
      shares.forEach((share, i) => {
        const x = sx(i + 1), top = sy(100 * share);
        make("rect", { class: "bar", x: x - wide / 2, y: top, width: wide, height: Math.max(0, sy(0) - top), rx: Math.min(2, wide / 6) }, layer);
      });
      make("polyline", { class: "cumulative", points: cumulative.map((y, i) => `${sx(i + 1)},${sy(100 * y)}`).join(" ") }, layer);
      cumulative.forEach((share, i) => {
        const x = sx(i + 1), y = sy(100 * share);
        if (k <= 60) make("circle", { class: "cumulative-dot", cx: x, cy: y, r: 3.5 }, layer);
        points.push({ box: [x - (sx(2) - sx(1)) / 2, 0, x + (sx(2) - sx(1)) / 2, sy(0)],
          text: () => [`Component ${i + 1}`, `${percent(shares[i])} of the variance`, `${percent(share)} up to here`, `eigenvalue ${short(data.scree.eigenvalues[i])}`] });
      });
      return points;
    });
  }

  // Loadings: red for negative, blue for positive entries, paper for none.
  const shade = value => `color-mix(in srgb, var(--${value < 0 ? "negative" : "positive"}) ${Math.round(100 * Math.min(1, Math.abs(value)))}%, var(--cell))`;
  function heat(place) {
    const { features, values, largest } = data.loadings, k = values.length;
    const width = widthOf(place), row = 20, top = 26;
    const longest = Math.max(...features.map(x => x.length));
    const left = Math.min(Math.max(60, 7.2 * longest + 14), 0.4 * width), letters = Math.max(4, Math.floor((left - 14) / 7.2));
    const cell = Math.min(160, (width - left - 4) / k), height = top + row * features.length + 4;
    place.replaceChildren();
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, place);
    const words = make("g", { class: "axis" }, svg), layer = make("g", { class: "cells" }, svg), points = [];
    const every = Math.ceil(24 / cell);
    for (let c = 0; c < k; c++) if (c % every === 0)
      make("text", { x: left + (c + 0.5) * cell, y: 16, "text-anchor": "middle" }, words, String(c + 1));
    features.forEach((name, j) => {
      const shown = name.length > letters ? name.slice(0, letters - 1) + "…" : name;
      make("text", { x: left - 8, y: top + j * row + 14, "text-anchor": "end" }, words, shown);
      for (let c = 0; c < k; c++) {
        const x = left + c * cell, y = top + j * row, value = values[c][j];
        make("rect", { x: x + 0.5, y: y + 0.5, width: Math.max(0.5, cell - 1), height: row - 1, style: `fill:${shade(value / largest)}` }, layer);
        points.push({ box: [x, y, x + cell, y + row], text: () => [name, `component ${c + 1}: ${short(value)}`] });
      }
    });
    hover(svg, points, width);
  }

  const hidden = new Set();
  const rowName = i => data.rows.names ? data.rows.names[i] : `row ${data.rows.numbers[i]}`;
  const colouring = data.rows && data.rows.colours;
  function colour(i) {
    if (!colouring) return "var(--k0)";
    if (colouring.categories) return `var(--k${colouring.of[i] % 10})`;
    const at = colouring.values[i];
    return at === null ? "var(--soft)" : `color-mix(in oklab, var(--scale-high) ${Math.round(100 * (at - colouring.low) / (colouring.high - colouring.low || 1))}%, var(--scale-low))`;
  }
  const visible = i => !(colouring && colouring.categories && hidden.has(colouring.of[i]));
  function about(i) {
    if (!colouring) return [];
    return [`${colouring.name}: ${colouring.categories ? colouring.categories[colouring.of[i]] : short(colouring.values[i])}`];
  }
  function scores(place) {
    const choose = id => Number(document.getElementById(id).value);
    const [a, b] = [choose("score-x"), choose("score-y")], n = data.rows.numbers.length;
    const [x, y] = [data.rows.scores[a], data.rows.scores[b]];
    const share = c => `component ${c + 1} (${percent(data.scree.shares[c])})`;
    plot(place, {
      height: width => Math.min(620, Math.max(320, width * 0.62)),
      x: { domain: padded(range(x)), title: share(a) }, y: { domain: padded(range(y)), title: share(b) },
    }, (layer, sx, sy) => {
      const points = [], r = n > 2000 ? 2.6 : n > 400 ? 3.2 : 4;
      layer.setAttribute("class", n > 2000 ? "dots many" : "dots");
      for (let i = 0; i < n; i++) {
        if (!visible(i)) continue;
        const at = { x: sx(x[i]), y: sy(y[i]), text: () => [rowName(i), ...about(i), `component ${a + 1}: ${short(x[i])}`, `component ${b + 1}: ${short(y[i])}`] };
        make("circle", { cx: at.x.toFixed(1), cy: at.y.toFixed(1), r, style: `fill:${colour(i)}` }, layer);
        points.push(at);
      }
      return points;
    });
  }

  function outliers(place) {
    const { score, orthogonal, score_cutoff, orthogonal_cutoff } = data.distances, n = score.length;
    const top = list => 1.06 * Math.max(list.reduce((m, x) => Math.max(m, x), 0), 1e-300);
    const x = [0, Math.max(top(score), 1.1 * score_cutoff)];
    const y = [0, Math.max(top(orthogonal), 1.1 * (orthogonal_cutoff || 0)) || 1];
    plot(place, {
      height: width => Math.min(480, Math.max(300, width * 0.5)),
      x: { domain: x, title: "score distance" }, y: { domain: y, title: "orthogonal distance" },
    }, (layer, sx, sy, frame) => {
      make("line", { class: "cutoff", x1: sx(score_cutoff), x2: sx(score_cutoff), y1: frame.y0, y2: frame.y1 }, layer);
      if (orthogonal_cutoff) make("line", { class: "cutoff", x1: frame.x0, x2: frame.x1, y1: sy(orthogonal_cutoff), y2: sy(orthogonal_cutoff) }, layer);
      const points = [];
      for (let i = 0; i < n; i++) {
        const out = score[i] > score_cutoff || (orthogonal_cutoff && orthogonal[i] > orthogonal_cutoff);
        const at = { x: sx(score[i]), y: sy(orthogonal[i]), text: () => [rowName(i), ...about(i),
          `score distance ${short(score[i])}`, `orthogonal distance ${short(orthogonal[i])}`] };
        make("circle", { class: out ? "outlier" : "regular", cx: at.x.toFixed(1), cy: at.y.toFixed(1), r: 3 }, layer);
        points.push(at);
      }
      return points;
    });
  }

  function convergence(place) {
    const { passes, residuals, tol } = data.convergence;
    const logs = residuals.map(x => x > 0 ? Math.log10(x) : null);
    const limits = range(tol > 0 ? logs.concat([Math.log10(tol)]) : logs);
    const y = [Math.floor(limits[0] - 0.2), Math.ceil(limits[1] + 0.2)];
    plot(place, {
      height: width => Math.min(340, Math.max(240, width * 0.45)),
      x: { domain: [0, 1.04 * Math.max(...passes, 1)], title: "passes over the data" },
      y: { domain: isFinite(y[0]) ? y : [-1, 1], log: true, title: "largest relative residual" },
    }, (layer, sx, sy, frame) => {
      if (tol > 0) {
        const at = sy(Math.log10(tol));
        make("line", { class: "cutoff", x1: frame.x0, x2: frame.x1, y1: at, y2: at }, layer);
        make("text", { class: "note", x: frame.x0 + 8, y: at - 6 }, layer, `tolerance ${short(tol)}`);
      }
      const points = logs.map((log, i) => log === null ? null : { x: sx(passes[i]), y: sy(log),
        text: () => [`${short(passes[i])} ${passes[i] === 1 ? "pass" : "passes"}`, `residual ${short(residuals[i])} of its eigenvalue`] }).filter(x => x);
      make("polyline", { class: "curve", points: points.map(p => `${p.x.toFixed(1)},${p.y.toFixed(1)}`).join(" ") }, layer);
      for (const p of points) make("circle", { class: "curve-dot", cx: p.x, cy: p.y, r: points.length > 80 ? 2 : 3.5 }, layer);
      return points;
    });
  }

  const charts = { scree, heat, scores, outliers, convergence };
  const places = [...document.querySelectorAll("[data-chart]")];
  const draw = place => charts[place.dataset.chart](place);
  const widths = new Map();
  const redraw = () => places.forEach(place => { widths.set(place, place.clientWidth); draw(place); });
  const watch = new ResizeObserver(entries => entries.forEach(({ target }) => {
    if (!printing && widths.get(target) !== target.clientWidth) { widths.set(target, target.clientWidth); draw(target); }
  }));
  redraw();
  places.forEach(place => watch.observe(place));
  document.querySelectorAll("#score-x, #score-y").forEach(input =>
    input.addEventListener("change", () => draw(document.querySelector("[data-chart=scores]"))));
  document.querySelectorAll("button.category").forEach(button => button.addEventListener("click", () => {
    const category = Number(button.value), on = hidden.has(category);
    hidden[on ? "delete" : "add"](category);
    button.setAttribute("aria-pressed", String(on));
    draw(document.querySelector("[data-chart=scores]"));
  }));
  window.addEventListener("beforeprint", () => { printing = true; redraw(); });
  window.addEventListener("afterprint", () => { printing = false; redraw(); });
  document.documentElement.dataset.ready = "yes";
})();
