// One job: how it does, its curve, its plan, what its ranks do and wait for, and what happened.
const WAITS = ["wait: collective", "wait: hand-over", "wait: bubble", "wait: host", "wait: copy"];

function ranksTable() {
  const use = (r, tier, purpose) => (r.memory?.uses || []).find((u) => u.tier === tier && u.purpose === purpose) || {};
  const seconds = (r, what) => num(r.lanes?.uses?.find((u) => u.what === what)?.seconds);
  const parts = (r) => {
    const step = num(r.lanes?.step_seconds) || 1;
    return [{share: seconds(r, "compute") / step, kind: "busy", name: `computes ${duration(seconds(r, "compute"))}`},
      ...WAITS.map((w) => ({share: seconds(r, w) / step, kind: "wait", name: `${w.replace("wait: ", "waits for ")} ${duration(seconds(r, w))}`}))];
  };
  const longest = (r) => WAITS.map((w) => [seconds(r, w), w]).sort((a, b) => b[0] - a[0])[0];
  return new Table([
    {name: "rank", kind: "number", cell: (r) => r.number},
    {name: "device", kind: "short", cell: (r) => r.device},
    {name: "step", kind: "number", cell: (r) => num(r.lanes?.step) || "-"},
    {name: "computes / waits", keep: (r) => parts(r).map((p) => p.name).join(), cell: (r) => bar(parts(r))},
    {name: "computes", kind: "number", cell: (r) => duration(seconds(r, "compute"))},
    {name: "waits most for", kind: "short", cell: (r) => (longest(r)[0] > 0 ? `${longest(r)[1].replace("wait: ", "")} ${duration(longest(r)[0])}` : "-")},
    {name: "tensors planned", kind: "number", cell: (r) => bytes(num(use(r, "device", "tensors").planned_bytes))},
    {name: "peak", kind: "number", cell: (r) => (use(r, "device", "tensors").measured_bytes ? bytes(num(use(r, "device", "tensors").measured_bytes)) : "-")},
    {name: "of the device", keep: (r) => JSON.stringify(use(r, "device", "tensors")), cell: (r) => bar([{kind: "other",
      share: num(r.memory?.memory_bytes) ? num(use(r, "device", "tensors").measured_bytes) / num(r.memory.memory_bytes) : 0,
      name: `${bytes(num(use(r, "device", "tensors").measured_bytes))} of ${bytes(num(r.memory?.memory_bytes))}`}], 90)},
    {name: "waiting in host memory", kind: "number", cell: (r) => (num(use(r, "host", "waiting").planned_bytes) ? bytes(num(use(r, "host", "waiting").planned_bytes)) : "-")},
  ], "no ranks yet");
}

class JobView {
  constructor(id) {
    this.id = id, this.span = 1, this.drawn = {};
    this.title = el("h1", {}, id);
    this.reason = el("p", {class: "text", id: "reason"});
    this.facts = new Facts();
    this.loss = new Chart("loss", [{label: "least", color: "#9aa5b1", width: 0.5, band: [2, 1]}, {label: "most", color: "#9aa5b1", width: 0.5},
      {label: "loss", color: COLORS[0]}, {label: "validation", color: COLORS[1], points: true}, {label: "other job", color: COLORS[3]}], {wide: true});
    this.speed = new Chart("tokens/s", [{label: "tokens/s"}]);
    this.seconds = new Chart("step seconds", [{label: "measured"}, {label: "predicted", color: COLORS[1]}]);
    this.norm = new Chart("gradient norm", [{label: "norm"}]);
    this.rate = new Chart("learning rate", [{label: "rate"}]);
    this.charts = [this.loss, this.speed, this.seconds, this.norm, this.rate];
    this.ranks = ranksTable();
    this.plan = new PlanPicture();
    this.steps = el("div", {}, ...(report ? [] : [el("button", {type: "button", onclick: () => this.draw("simulated")}, "draw the simulated step"), " ",
      el("button", {type: "button", onclick: () => this.draw("measured")}, "draw a measured step")]));
    this.pictures = {simulated: el("div", {id: "simulated"}), measured: el("div", {id: "measured"})};
    const event = (name, cell) => ({name, cell, kind: name === "" || name === "cause" ? "text" : "short"});
    this.generations = new Table([event("time", (e) => clock(e.unix_ms)), {name: "generation", kind: "number", cell: (e) => num(e.epoch)},
      event("cause", (e) => e.message)], "none was planned again");
    this.checkpoints = new Table([event("time", (e) => clock(e.unix_ms)), event("what", (e) => e.kind.replace(/_/g, " ")),
      event("", (e) => e.message)], "no checkpoint yet");
    this.events = new Table([event("time", (e) => clock(e.unix_ms)), event("what", (e) => e.kind.replace(/_/g, " ")),
      event("where", (e) => e.device || e.node || ""), event("", (e) => e.message)], "nothing happened yet");
    this.logs = el("pre", {id: "logs", tabindex: 0});
    this.spec = el("pre", {id: "spec"});
    const section = (title, ...children) => [el("h2", {}, title), ...children];
    this.element = el("div", {}, this.title, this.reason, this.facts.element, ...section("Curve", this.tools(),
      el("div", {class: "charts"}, ...this.charts.map((c) => c.element))), ...section("Ranks", this.ranks.element),
      ...section("Plan", this.plan.element, this.steps, this.pictures.simulated, this.pictures.measured),
      ...section("Generations", this.generations.element), ...section("Checkpoints", this.checkpoints.element),
      ...section("Events", this.events.element), ...section("Log", this.logs),
      el("details", {}, el("summary", {}, "the job as it was submitted"), this.spec));
    this.feed = new Feed(`job/${id}`, (feed) => this.show(feed));
    if (report) this.show(this.feed), this.draw("simulated");
  }
  tools() {
    const span = el("select", {"aria-label": "smoothing", onchange: () => (this.span = Number(span.value), this.showCurve())},
      ...[["as it is", 1], ["mean of 10", 10], ["mean of 50", 50], ["mean of 200", 200]].map(([name, value]) => el("option", {value}, name)));
    const log = el("input", {type: "checkbox", id: "log", onchange: () => this.loss.setLog(log.checked)});
    this.laid = el("output", {class: "bad"});
    const other = el("input", {type: "text", size: 14, placeholder: "id of a job", "aria-label": "another job's loss",
      onchange: () => this.lay(other.value.trim())});
    return el("div", {class: "tools"}, el("label", {}, "loss ", span), el("label", {}, log, " logarithmic"),
      ...(report ? [] : [el("label", {}, "another job over it ", other), this.laid]));
  }
  // Another job's loss over this one's.
  lay(id) {
    if (this.other) this.other.end();
    this.other = null;
    if (/^[a-z0-9][a-z0-9-]{0,62}$/.test(id)) this.other = new Feed(`job/${id}`, (feed) => {
      setText(this.laid, feed.rows.missing ? "no such job" : "");
      if (feed.rows.missing && !report) feed.end();
      this.showCurve();
    });
    else setText(this.laid, id ? "no job is called so" : "");
    this.showCurve();
  }
  end() {
    for (const feed of [this.feed, this.other, ...Object.values(this.drawn)]) if (feed) feed.end();
    for (const chart of this.charts) chart.end();
  }
  draw(kind) {
    const box = this.pictures[kind];
    if (!report) box.replaceChildren(el("p", {class: "soft"}, kind === "measured" ? "waiting for the ranks" : "asking"));
    if (this.drawn[kind]) this.drawn[kind].end();
    this.drawn[kind] = new Feed(`${kind}/${this.id}`, (feed) => {
      const rows = feed.rows;
      if (rows.trace) box.replaceChildren(timeline(rowsOfTrace(rows.trace), "the step as simulated"));
      else if (rows.missing) box.replaceChildren(el("p", {class: "bad"}, "the job is gone"));
      else if (rows.end?.error) box.replaceChildren(el("p", {class: "bad text"}, rows.end.error));
      else if (rows.end) box.replaceChildren(timeline(rowsOfMeasured(rows, rows.programs || []),
        `step ${num(Object.values(rows).find((r) => r.spans)?.step)} as measured`));
      else if (kind === "measured") return;   // ranks are still to come
      else box.replaceChildren(el("p", {class: "soft"}, "there is no plan yet"));
      if (!report) feed.end();
    });
  }
  show(feed) {
    if (feed.rows.missing) {
      setText(this.reason, `there is no job ${this.id}; it may have been deleted`);
      for (const part of [...this.element.children].slice(2)) part.hidden = true;
      return;
    }
    for (const part of this.element.children) part.hidden = false;
    const job = feed.rows.job || {}, step = job.last_step || {}, spec = feed.rows.spec || {}, total = num(spec.training?.steps);
    setText(document.getElementById("where"), this.id);
    setText(this.reason, job.reason || "");
    const validated = feed.steps.filter((s) => s.has_validation_loss).pop()?.validation_loss ??
      (feed.history?.validation_loss || []).filter((v) => Number.isFinite(Number(v))).pop();
    const now = state(job.state), running = now === "running", saved = feed.events.filter((e) => e.kind === "checkpoint").pop();
    this.facts.show([["state", now, stateClass(now)], ["step", total ? `${num(job.step)} / ${total}` : ""],
      ["left", running ? duration(num(step.remaining_seconds)) : ""], ["loss", job.last_step ? digits(Number(step.loss ?? 0), 5) : ""],
      ["validation loss", validated === undefined ? "" : digits(Number(validated), 5)],
      ["tokens/s", job.last_step ? rate(num(step.tokens_per_second)) : ""],
      ["a step", job.last_step ? duration(num(step.step_seconds)) : ""],
      ["predicted", num(job.predicted_step_seconds) ? duration(num(job.predicted_step_seconds)) : ""],
      ["fullest device", num(step.peak_memory_share) ? percent(num(step.peak_memory_share)) : ""], ["generation", String(num(job.epoch))],
      ["last checkpoint", saved ? clock(saved.unix_ms) : ""],
      ["copies safe up to", job.safe_checkpoint || ""]]);
    this.showCurve();
    const lanes = feed.rows.lanes?.lanes || [], memory = feed.rows.memory?.memory || [];
    const of = new Map(memory.map((m) => [m.device, m]));
    this.ranks.show(lanes.length ? lanes.map((r) => [r.device, {number: num(r.rank), device: r.device, lanes: r, memory: of.get(r.device)}]) :
      memory.map((m) => [m.device, {number: num(m.rank), device: m.device, memory: m}]));
    this.plan.show(feed.rows.plan);
    const events = feed.events.map((e) => [String(e.sequence), e]).reverse();
    this.generations.show(events.filter(([, e]) => e.kind === "replan"));
    this.checkpoints.show(events.filter(([, e]) => e.kind.startsWith("checkpoint")));
    this.events.show(events.filter(([, e]) => e.kind !== "replan" && !e.kind.startsWith("checkpoint")));
    const down = this.logs.scrollTop + this.logs.clientHeight >= this.logs.scrollHeight - 8;
    setText(this.logs, feed.logs.slice(-200).map((l) => `${clock(l.unix_ms)} ${l.source || ""}: ${l.text || ""}`).join("\n"));
    if (down) this.logs.scrollTop = this.logs.scrollHeight;
    setText(this.spec, JSON.stringify(spec, null, 2));
  }
  showCurve() {
    if (!this.feed) return;
    const c = curveOf(this.feed), newest = c.newest || this.feed.rows.job?.last_step;
    const say = (text) => (newest ? text(newest) : "");
    let other = null;
    if (this.other) {
      const theirs = curveOf(this.other), at = new Map(theirs.step.map((s, i) => [s, theirs.loss[i]]));
      const steps = [...new Set([...c.step, ...theirs.step])].sort((a, b) => a - b);
      const place = new Map(c.step.map((s, i) => [s, i]));
      const lay = (values) => steps.map((s) => (place.has(s) ? values[place.get(s)] : null));
      other = {step: steps, loss: lay(c.loss), least: lay(c.least), most: lay(c.most), validation: lay(c.validation),
        theirs: steps.map((s) => at.get(s) ?? null)};
    }
    const l = other || {...c, theirs: c.step.map(() => null)};
    const spread = (values) => values.map((v, i) => (l.least[i] === l.most[i] ? null : v));  // of the thinned part
    this.loss.show([l.step, spread(l.least), spread(l.most), smooth(l.loss, this.span), l.validation, smooth(l.theirs, this.span)],
      say((n) => `${digits(Number(n.loss ?? 0), 5)} at step ${num(n.step)}`));
    this.speed.show([c.step, c.speed], say((n) => rate(num(n.tokens_per_second))));
    this.seconds.show([c.step, c.seconds, c.predicted], say((n) => `${duration(num(n.step_seconds))}, predicted ${duration(num(n.predicted_step_seconds))}`));
    this.norm.show([c.step, c.norm], say((n) => digits(Number(n.grad_norm ?? 0))));
    this.rate.show([c.step, c.rate], say((n) => digits(Number(n.lr ?? 0))));
  }
}
