// Curves over steps, by uPlot. Each has its newest number beside it as text.
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// Told apart by the colour-blind (Okabe and Ito), on light and dark ground.
const COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9"];

class Chart {
  // series: [{label, color?, points?, width?, band?: [index, index]}]; options: {wide, log}
  constructor(title, series, options = {}) {
    this.series = series, this.options = options, this.log = false;
    this.output = el("output");
    this.box = el("div");
    this.element = el("section", {class: options.wide ? "chart wide" : "chart", "aria-label": title},
      el("h3", {}, title, this.output), this.box);
    this.resized = new ResizeObserver(() => this.plot && this.plot.setSize(this.size()));
    this.resized.observe(this.element);
  }
  size() {
    return {width: Math.max(200, this.element.clientWidth - 18), height: this.options.wide ? 300 : 190};
  }
  setLog(log) {
    if (this.log === log) return;
    this.log = log;
    this.drop();
    if (this.data) this.show(this.data, this.output.textContent);
  }
  drop() {
    if (this.plot) this.plot.destroy();
    this.plot = null;
  }
  end() {
    this.drop(), this.resized.disconnect();
  }
  // With those of its series that have values.
  make(data) {
    const live = this.series.map((s, i) => ({...s, color: s.color || COLORS[i % COLORS.length], index: i + 1})).filter((s) => this.live.has(s.index));
    const place = (index) => live.findIndex((s) => s.index === index) + 1;
    const axis = {stroke: css("--soft"), grid: {stroke: css("--line"), width: 1}, ticks: {stroke: css("--line"), width: 1}};
    return new uPlot({
      ...this.size(),
      cursor: {sync: {key: "steps"}, drag: {x: true, y: false}},
      scales: {x: {time: false}, y: {distr: this.log ? 3 : 1}},
      axes: [{...axis, incrs: [1, 2, 5].flatMap((n) => [0, 1, 2, 3, 4, 5, 6, 7, 8].map((e) => n * 10 ** e)).sort((a, b) => a - b)}, {...axis, size: 64, values: (_, ticks) => ticks.map((t) => (t === null ? "" : digits(t, 4)))}],
      series: [{label: "step"}, ...live.map((s) => ({
        label: s.label, stroke: s.color, width: s.width ?? 1.5, spanGaps: Boolean(s.points),
        points: {show: Boolean(s.points), size: 5}, value: (_, v) => (v === null || v === undefined ? "-" : digits(v, 5))}))],
      bands: live.flatMap((s) => (s.band ? [{series: s.band.map(place), fill: css("--other") + "55"}] : [])),
    }, this.liveOf(data), this.box);
  }
  // What somebody has zoomed into stays.
  replace(data) {
    const {min, max} = this.plot.scales.x, before = this.plot.data[0], zoomed = min > before[0] || max < before[before.length - 1];
    this.plot.setData(data);
    if (zoomed) this.plot.setScale("x", {min, max});
  }
  liveOf(data) {
    return data.filter((_, i) => i === 0 || this.live.has(i));
  }
  // data: [steps, values...], with null where there is none.
  show(data, text) {
    const clean = this.log ? data.map((values, i) => (i === 0 ? values : values.map((v) => (v > 0 ? v : null)))) : data;
    this.data = data;
    setText(this.output, text);
    this.element.hidden = data[0].length === 0;
    if (this.element.hidden) return;
    const live = new Set(clean.flatMap((values, i) => (i > 0 && values.some((v) => v !== null) ? [i] : [])));
    if (this.plot && [...live].join() !== [...this.live].join()) this.drop();
    this.live = live;
    if (!this.plot) this.plot = this.make(clean);
    else this.replace(this.liveOf(clean));
  }
}

// Exponential mean over about `span` values.
function smooth(values, span) {
  if (span <= 1) return values;
  let mean = null;
  return values.map((v) => {
    if (v !== null && Number.isFinite(v)) mean = mean === null ? v : mean + (v - mean) * 2 / (span + 1);
    return v === null ? null : mean;
  });
}

// A job's curve: buckets of the thinned history before the newest steps, which are whole.
function curveOf(feed) {
  const steps = [];
  for (const step of feed.steps) {
    while (steps.length && num(steps[steps.length - 1].step) >= num(step.step)) steps.pop();  // it went back
    steps.push(step);
  }
  const curve = {step: [], loss: [], least: [], most: [], validation: [], speed: [], seconds: [], predicted: [], norm: [], rate: [],
    newest: steps[steps.length - 1]};
  const finite = (v) => (v === undefined || !Number.isFinite(Number(v)) ? null : Number(v));
  const history = feed.history || {};
  const width = num(history.steps_per_bucket), first = steps.length ? num(steps[0].step) : Infinity;
  (history.loss || []).forEach((loss, i) => {
    const step = Math.min(i * width + (width + 1) / 2, num(history.last_step));
    if (step >= first || (i + 1) * width >= first && first !== Infinity) return;
    const at = (name) => finite(history[name]?.[i]);
    curve.step.push(step), curve.loss.push(finite(loss)), curve.least.push(at("least_loss")), curve.most.push(at("most_loss"));
    curve.validation.push(at("validation_loss")), curve.speed.push(at("tokens_per_second")), curve.seconds.push(at("step_seconds"));
    curve.predicted.push(null), curve.norm.push(at("grad_norm")), curve.rate.push(at("lr"));
  });
  for (const s of steps) {
    const loss = finite(s.loss ?? 0);
    curve.step.push(num(s.step)), curve.loss.push(loss), curve.least.push(loss), curve.most.push(loss);
    curve.validation.push(s.has_validation_loss ? finite(s.validation_loss ?? 0) : null);
    curve.speed.push(finite(s.tokens_per_second)), curve.seconds.push(finite(s.step_seconds));
    curve.predicted.push(num(s.predicted_step_seconds) > 0 ? finite(s.predicted_step_seconds) : null);
    curve.norm.push(finite(s.grad_norm ?? 0)), curve.rate.push(finite(s.lr ?? 0));
  }
  return curve;
}
