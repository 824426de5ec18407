// The plan as a picture: who computes which layers of how many samples, and who stores what; and steps as timelines.
function ranksOf(plan) {
  const ranks = [];
  (plan.pipelines || []).forEach((pipeline, p) => pipeline.stages.forEach((stage, s) => stage.units.forEach((unit) =>
    unit.ranks.forEach((rank) => ranks.push({
      number: ranks.length, device: rank.device, model: rank.device_model || "", place: `${p}.${s}`, layers: stage.ministages,
      microbatches: unit.microbatches || [], batch: (unit.microbatches || []).reduce((a, b) => a + b, 0), part: rank.tp_share ?? 1,
      recompute: rank.recompute || "none", offload: rank.offload || [], predicted: rank.predicted || {},
      stores: ["parameters", "gradients", "optimizer"].reduce((sum, name) => sum + num(rank.predicted?.memory?.[name]), 0)})))));
  return ranks;
}

function layersPicture(rank, layers) {
  const width = 170, text = rank.layers.map(([a, b]) => (a === b ? a : `${a}-${b}`)).join(", ");
  const picture = el("svg", {width, height: 12, role: "img", "aria-label": `layers ${text}`},
    el("rect", {class: "ground", width, height: 12}), el("title", {}, `layers ${text}`));
  for (const [first, last] of rank.batch > 0 ? rank.layers : []) {
    picture.append(el("rect", {class: "busy", x: first / layers * width, width: Math.max(1, (last - first + 1) / layers * width),
      height: 12, "fill-opacity": Math.max(0.25, Math.min(1, rank.part))}));
  }
  return picture;
}

function microbatchText(sizes) {
  const runs = [];
  for (const size of sizes) {
    if (runs.length && runs[runs.length - 1][1] === size) runs[runs.length - 1][0]++;
    else runs.push([1, size]);
  }
  return runs.length > 4 ? `${sizes.length} microbatches` : runs.map(([n, size]) => `${n}x${size}`).join(" + ");
}

class PlanPicture {
  constructor() {
    const bars = (share, name, kind) => bar([{share, kind, name}], 90);
    const cell = (make) => ({cell: make, keep: (r) => JSON.stringify([r.rank, r.layerCount, r.mostBatch, r.mostStored])});
    this.table = new Table([
      {name: "rank", kind: "number", cell: (r) => r.rank.number},
      {name: "device", kind: "short", cell: (r) => `${r.rank.device} ${r.rank.model}`},
      {name: "stage", cell: (r) => r.rank.place},
      {name: "computes layers", ...cell((r) => layersPicture(r.rank, r.layerCount))},
      {name: "of samples", ...cell((r) => bars(r.rank.batch / r.mostBatch, `${r.rank.batch} samples`, "busy"))},
      {name: "", cell: (r) => (r.rank.batch ? `${r.rank.batch} = ${microbatchText(r.rank.microbatches)}` : "none")},
      {name: "stores", ...cell((r) => bars(r.rank.stores / r.mostStored, bytes(r.rank.stores), "other"))},
      {name: "", kind: "number", cell: (r) => bytes(r.rank.stores)},
      {name: "computes again", cell: (r) => r.rank.recompute},
      {name: "waits in host memory", cell: (r) => r.rank.offload.join(", ") || "-"},
    ], "no plan yet");
    this.head = el("p", {class: "text"});
    this.explanation = el("pre", {});
    this.element = el("div", {}, this.head, this.table.element,
      el("details", {}, el("summary", {}, "why this plan"), this.explanation));
  }
  show(row) {
    const plan = row?.plan;
    if (!plan) return setText(this.head, ""), this.table.show([]);
    const ranks = ranksOf(plan), predicted = plan.predicted || {};
    const last = Math.max(0, ...ranks.flatMap((r) => r.layers.map(([, b]) => b)));
    setText(this.head, `generation ${row.epoch}: ${plan.strategy}, ${plan.schedule}, batch ${plan.global_batch}, ` +
      `predicted ${duration(num(predicted.step_seconds))} a step, ${rate(num(predicted.tokens_per_second))} tokens/s; ` +
      `bound by ${predicted.binding_constraint || "-"}`);
    const mostBatch = Math.max(1, ...ranks.map((r) => r.batch)), mostStored = Math.max(1, ...ranks.map((r) => r.stores));
    this.table.show(ranks.map((rank) => [rank.device, {rank, layerCount: last + 1, mostBatch, mostStored}]));
    setText(this.explanation, row.explanation || "");
  }
}

const KINDS = [["forward", "#4c78a8"], ["recompute", "#9ecae9"], ["backward", "#f58518"], ["backward_input", "#e6762f"],
  ["backward_weight", "#ffbf79"], ["optimizer", "#b279a2"], ["gather", "#54a24b"], ["reduce_scatter", "#a3cf8b"],
  ["all_reduce", "#439894"], ["scalars", "#83bcb6"], ["send", "#d1495b"], ["offload", "#8c6d31"], ["prefetch", "#eeca3b"],
  ["wait", "#c7c7c7"]];
const MOST_ROWS = 64, ROW = 14, NAME = 170;

// From a trace (Chrome's form): [{name, lanes: [{name, spans: [[begin, end, kind, label]]}]}], in seconds.
function rowsOfTrace(trace) {
  const processes = new Map();
  for (const event of trace.traceEvents || []) {
    if (!processes.has(event.pid)) processes.set(event.pid, {name: "", lanes: new Map()});
    const process = processes.get(event.pid);
    const lane = () => process.lanes.get(event.tid) || process.lanes.set(event.tid, {name: "", spans: []}).get(event.tid);
    if (event.name === "process_name") process.name = event.args.name;
    else if (event.name === "thread_name") lane().name = event.args.name;
    else if (event.ph === "X") lane().spans.push([event.ts / 1e6, (event.ts + event.dur) / 1e6, event.cat, event.name]);
  }
  return [...processes.values()].map((p) => ({name: p.name, lanes: [...p.lanes.values()].filter((l) => l.spans.length)}));
}

// From what ranks measured, with the operations of their programs.
const LANE_OF = {forward: 0, recompute: 0, backward: 0, backward_input: 0, backward_weight: 0, zero_grad: 0, optimizer_step: 0, gather: 1,
  broadcast: 1, reduce_scatter: 1, all_reduce: 1, reduce_scalars: 1, all_reduce_activation: 1, broadcast_activation: 1,
  send_activation: 2, send_gradient: 2, receive_activation: 3, receive_gradient: 3, offload_activation: 4, prefetch_activation: 4,
  prefetch_parameters: 4, offload_gradients: 4, prefetch_optimizer: 4, offload_optimizer: 4};
const LANES = ["compute", "collective", "send", "receive", "copy"];
const kindOf = (op) => (op === "optimizer_step" ? "optimizer" : op === "reduce_scalars" ? "scalars" : op.startsWith("receive") ? "send" :
  op.startsWith("all_reduce") ? "all_reduce" : op.startsWith("broadcast") ? "gather" : op.startsWith("offload") ? "offload" :
  op.startsWith("prefetch") ? "prefetch" : op.startsWith("send") ? "send" : op);
function rowsOfMeasured(rows, programs) {
  const ranks = Object.values(rows).filter((r) => r && r.spans).sort((a, b) => num(a.rank) - num(b.rank));
  return ranks.map((rank) => {
    const operations = (programs[num(rank.rank)] || "").split("\n").filter((line) => /^\d/.test(line));
    const lanes = LANES.map((name) => ({name, spans: []}));
    let begin = 0;
    (rank.spans.begin_ns || []).forEach((delta, i) => {
      begin += Number(delta);
      const words = (operations[i] || "? ?").split(" "), lane = LANE_OF[words[1]];
      const seconds = Number(rank.spans.duration_ns[i]) / 1e9;
      if (lane !== undefined && seconds > 0) lanes[lane].spans.push([begin / 1e9, begin / 1e9 + seconds, kindOf(words[1]), words.slice(1, 4).join(" ")]);
    });
    return {name: `${rank.device_id}`, lanes: lanes.filter((l) => l.spans.length)};
  });
}

// A step drawn: a row a lane. Returns the element.
function timeline(rows, title) {
  const shown = rows.slice(0, MOST_ROWS);
  let end = 1e-9;
  for (const row of shown) for (const lane of row.lanes) for (const span of lane.spans) end = Math.max(end, span[1]);
  const lines = shown.flatMap((row) => row.lanes.map((lane, i) => ({name: i === 0 ? row.name : "", lane})));
  const text = el("p", {class: "soft"}, `${title}: ${duration(end)}` +
    (rows.length > shown.length ? `; ${shown.length} of ${rows.length} rows are drawn` : ""));
  const canvas = el("canvas", {role: "img", tabindex: 0, "aria-label": `${title}, ${duration(end)}; arrow keys go from task to task`});
  const box = el("div", {class: "scroll"}, canvas);
  const under = el("output", {class: "soft"}, "\u00a0");
  const draw = () => {
    const width = Math.max(600, box.clientWidth || 900), height = lines.length * ROW + 4, scale = window.devicePixelRatio || 1;
    canvas.width = width * scale, canvas.height = height * scale;
    canvas.style.width = `${width}px`, canvas.style.height = `${height}px`;
    const c = canvas.getContext("2d"), colors = Object.fromEntries(KINDS), x = (t) => NAME + t / end * (width - NAME - 4);
    c.scale(scale, scale);
    c.font = "11px system-ui, sans-serif";
    lines.forEach((line, i) => {
      c.fillStyle = css("--fore");
      if (line.name) c.fillText(line.name, 0, i * ROW + 11, NAME - 60);
      c.fillStyle = css("--soft");
      c.fillText(line.lane.name, NAME - 56, i * ROW + 11, 54);
      c.fillStyle = css("--line");
      c.fillRect(NAME, i * ROW + 1, width - NAME - 4, ROW - 2);
      for (const [from, to, kind] of line.lane.spans) {
        c.fillStyle = colors[kind] || "#888";
        c.fillRect(x(from), i * ROW + 1, Math.max(0.5, x(to) - x(from)), ROW - 2);
      }
    });
    const tell = (line, span) => setText(under, span ? `${line.lane.name}: ${span[3]}: ${duration(span[1] - span[0])} at ${duration(span[0])}` : "\u00a0");
    canvas.onpointermove = (event) => {
      const line = lines[Math.floor(event.offsetY / ROW)], t = (event.offsetX - NAME) / (width - NAME - 4) * end;
      tell(line, line?.lane.spans.find(([from, to]) => from <= t && t <= to));
    };
    let row = 0, at = -1;
    canvas.onkeydown = (event) => {
      const [down, right] = {ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1]}[event.key] || [0, 0];
      if (!down && !right) return;
      event.preventDefault();
      row = Math.max(0, Math.min(lines.length - 1, row + down));
      at = down ? 0 : Math.max(0, Math.min(lines[row].lane.spans.length - 1, at + right));
      tell(lines[row], lines[row].lane.spans[at]);
    };
  };
  const used = new Set(lines.flatMap((line) => line.lane.spans.map((s) => s[2])));
  const legend = el("div", {class: "legend"}, ...KINDS.filter(([kind]) => used.has(kind)).map(([kind, color]) =>
    el("span", {}, el("svg", {width: 12, height: 12}, el("rect", {width: 12, height: 12, fill: color})), ` ${kind.replace(/_/g, " ")}`)));
  requestAnimationFrame(draw);
  return el("div", {}, text, box, legend, under);
}
