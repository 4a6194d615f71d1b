"use strict";
// The page's own script: it unpacks the document and the sections, draws the percentile curves and offers the download.
(() => {
  const text = (id) => document.getElementById(id).textContent.trim();

  async function unzip(base64) {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  // unpack turns columns back into the document's lists and objects.
  function unpack(v) {
    if (v === null || typeof v !== "object") return v;
    if (v.m) return Object.fromEntries(Object.entries(v.m).map(([k, x]) => [k, unpack(x)]));
    if (v.u) return v.u.map(unpack);
    if (v.d) { let sum = 0; return v.d.map((x) => (sum += x)); }
    if (v.p) { const [a, b] = v.p.map(unpack); return a.flatMap((x, i) => [x, b[i]]); }
    if (v.l) {
      const all = unpack(v.v);
      let at = 0;
      return v.l.map((n) => all.slice(at, (at += n)));
    }
    const out = Array.from({ length: v.n }, () => ({}));
    for (const [name, [absent, column]] of Object.entries(v.o)) {
      const gone = new Set(absent), values = unpack(column);
      let at = 0;
      out.forEach((x, i) => { if (!gone.has(i)) x[name] = values[at++]; });
    }
    return out;
  }

  // groups are the rows that may be compared, in the order of their first row.
  function groups(doc) {
    const out = new Map();
    for (const r of doc.rows) {
      if (r.kind !== "measured") continue;
      const key = [r.case, r.phase, r.concurrency].join("|");
      if (!out.has(key)) out.set(key, []);
      out.get(key).push(r);
    }
    return [...out.values()];
  }

  // curve gives the latency in µs at each x, where x = -log10(1 - p).
  function curve(row, xs) {
    const h = row.histogram;
    if (!h || !h.count) return xs.map(() => null);
    const most = Math.log10(h.count);
    let i = 0, seen = h.buckets_ns[0][1];
    return xs.map((x) => {
      if (x > most) return null;
      const rank = Math.max(1, Math.ceil((1 - 10 ** -x) * h.count - 1e-9));
      while (seen < rank && i < h.buckets_ns.length - 1) seen += h.buckets_ns[++i][1];
      return Math.min(h.buckets_ns[i][0], h.max_ns) / 1000;
    });
  }

  const nines = (x) => (x <= 0 ? "0 %" : +(100 * (1 - 10 ** -x)).toFixed(Math.max(0, Math.ceil(x) - 2) + (x < 1 ? 0 : 1)) + " %");
  const figure = (v) => (v == null ? "–" : v < 10 ? v.toFixed(2) : v < 100 ? v.toFixed(1) : v.toFixed(0));
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const label = (r) => r.contender.name + ({ baseline: " = 1", control: " (A/A)", floor: " (socket)", null: " (lab's own)" }[r.role] || "");

  function draw(figureElement, rows) {
    const box = figureElement.querySelector(".uplot-here"), reading = figureElement.querySelector(".reading");
    const most = Math.max(...rows.map((r) => (r.histogram ? Math.log10(r.histogram.count) : 0)));
    const xs = Array.from({ length: 161 }, (_, i) => (i / 160) * most);
    const shown = rows.filter((r) => r.histogram);
    const quiet = (r) => r.role === "floor" || r.role === "null";
    const colour = (r) => (quiet(r) ? style("--quiet") : style("--c" + (colours[r.contender.name] % 10)));
    const axis = { stroke: style("--soft"), grid: { stroke: style("--grid"), width: 1 }, ticks: { stroke: style("--grid") }, font: "12px system-ui, sans-serif" };
    const options = {
      width: Math.max(box.clientWidth, 260), height: innerWidth < 720 ? 260 : 320,
      scales: { x: { time: false, range: [0, most] }, y: { distr: 3, log: 10 } },
      axes: [
        { ...axis, splits: () => [0, ...[.5, .9, .99, .999, .9999, .99999, .999999].map((p) => -Math.log10(1 - p)).filter((x) => x <= most)], values: (_, v) => v.map((x) => (x ? nines(x) : innerWidth < 720 ? "" : "min")) },
        { ...axis, size: 58, values: (_, v) => v.map((x) => (x == null ? "" : x >= 1000 ? x / 1000 + " ms" : x + " µs")) },
      ],
      series: [{ label: "percentile", value: (_, x) => (x == null ? "–" : nines(x)) },
        ...shown.map((r) => ({ label: label(r), stroke: colour(r), width: r.role === "baseline" ? 3 : 1.75, dash: r.role === "control" ? [6, 4] : quiet(r) ? [2, 3] : undefined, points: { show: false }, value: (_, v) => figure(v) }))],
      cursor: { points: { size: 7 }, drag: { x: false, y: false } },
    };
    box.replaceChildren();
    const plot = new uPlot(options, [xs, ...shown.map((r) => curve(r, xs))], box);
    box.plot = plot;
    let at = Math.round((160 * 2) / most);
    const move = (to) => {
      at = Math.max(0, Math.min(160, to));
      plot.setCursor({ left: plot.valToPos(xs[at], "x"), top: 10 });
      reading.textContent = nines(xs[at]) + ": " + shown.map((r, i) => label(r) + " " + figure(plot.data[i + 1][at]) + " µs").join(", ");
    };
    box.onkeydown = (e) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -16, PageDown: 16, Home: -1000, End: 1000 }[e.key];
      if (!step) return;
      e.preventDefault();
      move(at + step);
    };
    box.onfocus = () => move(at);
    return plot;
  }

  async function main() {
    const more = text("packed-sections");
    if (more) document.getElementById("more").innerHTML = await unzip(more);
    const doc = unpack(JSON.parse(await unzip(text("packed"))));
    const all = groups(doc), drawn = new Map();
    const paint = (f) => { drawn.get(f)?.destroy(); drawn.set(f, draw(f, all[+f.dataset.group])); };
    const seen = new IntersectionObserver((entries) => {
      for (const e of entries) if (e.isIntersecting && !drawn.has(e.target)) paint(e.target);
    }, { rootMargin: "400px" });
    const figures = [...document.querySelectorAll("figure.curve")];
    figures.forEach((f) => seen.observe(f));
    const again = () => drawn.forEach((_, f) => paint(f));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    addEventListener("beforeprint", () => figures.forEach(paint));
    let width = innerWidth, wait;
    addEventListener("resize", () => {
      if (innerWidth === width) return;
      width = innerWidth;
      clearTimeout(wait);
      wait = setTimeout(again, 150);
    });
    const button = document.getElementById("download");
    button.disabled = false;
    button.onclick = () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([JSON.stringify(doc) + "\n"], { type: "application/json" }));
      link.download = doc.benchmark + "-" + doc.started.replace(/[:-]/g, "") + ".json";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      document.getElementById("downloaded").textContent = link.download;
    };
    if (location.hash) document.querySelector(CSS.escape ? "#" + CSS.escape(location.hash.slice(1)) : location.hash)?.scrollIntoView();
    document.documentElement.dataset.ready = "true";
  }
  main().catch((e) => {
    console.error(e);
    document.documentElement.dataset.failed = String(e);
  });
})();
