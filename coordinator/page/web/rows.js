// Tables whose rows are told apart by a key, so that what has not changed stays as it is.
class Table {
  // columns: {name, kind? ("number", "short", "text"), cell(row) -> text or element, keep?: the text that tells whether an element is to be made anew}
  constructor(columns, empty) {
    this.columns = columns, this.rows = new Map(), this.shown = 0;
    this.body = el("tbody");
    this.empty = el("p", {class: "soft"}, empty);
    this.table = el("table", {}, el("thead", {}, el("tr", {}, ...columns.map((c) =>
      el("th", {class: c.kind, scope: "col"}, c.name)))), this.body);
    this.more = el("button", {type: "button", hidden: true, onclick: () => (this.most = Infinity, this.show(this.last))});
    this.most = 100;
    this.element = el("div", {class: "scroll"}, this.table, this.empty, this.more);
  }
  // entries: [key, row] in order.
  show(entries) {
    this.last = entries;
    const cut = entries.slice(0, this.most);
    const keys = new Set(cut.map(([key]) => key));
    for (const [key, row] of this.rows) if (!keys.has(key)) row.element.remove(), this.rows.delete(key);
    let at = this.body.firstChild;
    for (const [key, value] of cut) {
      let row = this.rows.get(key);
      if (!row) {
        const cells = this.columns.map((c) => el("td", {class: c.kind}));
        row = {element: el("tr", {"data-key": key}, ...cells), cells, said: []};
        this.rows.set(key, row);
      }
      this.columns.forEach((column, i) => this.fill(row, i, column, value));
      if (at === row.element) at = at.nextSibling;
      else this.body.insertBefore(row.element, at);
    }
    this.table.hidden = entries.length === 0;
    this.empty.hidden = entries.length > 0;
    this.more.hidden = entries.length <= cut.length;
    setText(this.more, `${entries.length - cut.length} more`);
  }
  fill(row, i, column, value) {
    const keep = column.keep ? column.keep(value) : undefined;
    if (keep !== undefined && row.said[i] === keep) return;
    const cell = column.cell(value);
    row.said[i] = keep;
    if (cell instanceof Element) row.cells[i].replaceChildren(cell);
    else setText(row.cells[i], cell === undefined ? "" : String(cell));
  }
}

// Parts of a whole beside each other: [{share, kind, name}].
function bar(parts, width = 150) {
  const picture = el("svg", {width, height: 12, role: "img", "aria-label": parts.map((p) => p.name).join(", ")},
    el("rect", {class: "ground", width, height: 12}));
  let x = 0;
  for (const part of parts) {
    const w = Math.max(0, Math.min(1, part.share)) * width;
    if (w > 0) picture.append(el("rect", {class: part.kind, x, width: w, height: 12}, el("title", {}, part.name)));
    x += w;
  }
  return picture;
}

// A number with what it is.
class Facts {
  constructor() {
    this.element = el("div", {class: "facts"}), this.known = new Map();
  }
  // [name, text, class?]; those without a text are left out.
  show(facts) {
    for (const [name, text, kind] of facts) {
      let fact = this.known.get(name);
      if (!fact) {
        fact = {value: el("b"), element: null};
        fact.element = el("div", {class: "fact", "data-fact": name}, fact.value, el("span", {}, name));
        this.known.set(name, fact), this.element.append(fact.element);
      }
      setText(fact.value, text || "");
      fact.value.className = kind || "";
      fact.element.hidden = !text;
    }
  }
}
