// The cluster: its jobs in the order in which they get it, and its nodes with their devices.
class ClusterView {
  constructor() {
    const step = (job) => `${num(job.step)} / ${num(job.spec?.training?.steps)}`;
    this.jobs = new Table([
      {name: "job", kind: "short", cell: (job) => el("a", {href: linkTo(job.id)}, job.id), keep: (job) => job.id + location_().key},
      {name: "state", cell: (job) => el("span", {class: stateClass(state(job.state))}, state(job.state)), keep: (job) => job.state},
      {name: "step", kind: "number", cell: step},
      {name: "done", keep: step, cell: (job) => {
        const steps = num(job.spec?.training?.steps);
        return el("progress", {max: steps || 1, value: num(job.step), "aria-label": `${num(job.step)} of ${steps} steps`});
      }},
      {name: "loss", kind: "number", cell: (job) => (job.last_step ? digits(Number(job.last_step.loss ?? 0)) : "-")},
      {name: "tokens/s", kind: "number", cell: (job) => (job.last_step ? rate(num(job.last_step.tokens_per_second)) : "-")},
      {name: "left", kind: "number", cell: (job) => (/running/.test(state(job.state)) && job.last_step ? duration(num(job.last_step.remaining_seconds)) : "-")},
      {name: "why", kind: "text", cell: (job) => job.reason || ""},
    ], "no jobs yet: motley submit JOB.toml");
    this.nodes = new Table([
      {name: "node", kind: "short", cell: (node) => node.name},
      {name: "state", cell: (node) => el("span", {class: stateClass(node.state)}, node.state), keep: (node) => node.state},
      {name: "devices", kind: "number", cell: (node) => (node.devices || []).length},
      {name: "host memory", kind: "number", cell: (node) => (num(node.host_memory_bytes) ? bytes(num(node.host_memory_bytes)) : "-")},
      {name: "address", cell: (node) => node.address || "-"},
      {name: "why", kind: "text", cell: (node) => [node.reason, ...(node.unused_cards || []).map((c) => `${c.card}: ${c.reason}`)].filter(Boolean).join("; ")},
    ], "no nodes yet: a motley-worker on each machine");
    this.devices = new Table([
      {name: "device", kind: "short", cell: (d) => d.id},
      {name: "model", cell: (d) => d.card?.name || d.model || d.kind},
      {name: "does", cell: (d) => `${d.state || ""}${d.job_id ? ` ${d.job_id}` : ""}`},
      {name: "memory", kind: "number", cell: (d) => (num(d.memory_bytes) ? bytes(num(d.memory_bytes)) : "-")},
      {name: "measured tokens/s", kind: "number", cell: (d) => (num(d.measured_tokens_per_second) ? rate(num(d.measured_tokens_per_second)) : "-")},
      {name: "share", keep: (d) => digits(d.share), cell: (d) => bar([{share: d.share, kind: "busy",
        name: `${percent(d.share)} of what all devices that are here would do`}], 110)},
      {name: "notes", kind: "text", cell: (d) => [d.card?.lost, d.card?.health, d.card?.note, d.measured_model && `measured on ${d.measured_model}`]
        .filter(Boolean).join("; ")},
    ], "no devices");
    this.facts = new Facts();
    this.element = el("div", {}, this.facts.element, el("h2", {}, "Jobs"), this.jobs.element, el("h2", {}, "Nodes"), this.nodes.element,
      el("h2", {}, "Devices"), this.devices.element);
    this.feed = new Feed("cluster", (feed) => this.show(feed.rows));
  }
  end() {
    this.feed.end();
  }
  show(rows) {
    const jobs = [], nodes = [];
    for (const [name, row] of Object.entries(rows)) (name.startsWith("job:") ? jobs : nodes).push(row);
    const over = (job) => /succeeded|failed|stopped/.test(state(job.state)), waits = (job) => /queued|waiting/.test(state(job.state));
    // The one that has the cluster, those that wait for it, then those that ended, the newest first.
    const active = jobs.filter((j) => !over(j)).sort((a, b) => waits(a) - waits(b) || num(a.submitted_unix_ms) - num(b.submitted_unix_ms) ||
      (a.id < b.id ? -1 : 1));
    const ended = jobs.filter(over).sort((a, b) => num(b.finished_unix_ms) - num(a.finished_unix_ms) || (a.id < b.id ? -1 : 1));
    nodes.sort((a, b) => (a.name < b.name ? -1 : 1));
    const here = nodes.flatMap((n) => (n.state === "ready" ? n.devices || [] : []));
    const total = here.reduce((sum, d) => sum + num(d.measured_tokens_per_second), 0);
    const running = active.find((j) => !waits(j));
    this.facts.show([["has the cluster", running ? running.id : "nobody"], ["waiting", String(active.length - (running ? 1 : 0))],
      ["ended", String(ended.length)], ["nodes ready", `${nodes.filter((n) => n.state === "ready").length} of ${nodes.length}`],
      ["devices", String(here.length)], ["tokens/s now", running?.last_step ? rate(num(running.last_step.tokens_per_second)) : ""]]);
    this.jobs.show([...active, ...ended].map((job) => [job.id, job]));
    this.nodes.show(nodes.map((node) => [node.name, node]));
    this.devices.show(nodes.flatMap((node) => (node.devices || []).map((d) =>
      [d.id, {...d, share: total > 0 && node.state === "ready" ? num(d.measured_tokens_per_second) / total : 0}])));
  }
}
