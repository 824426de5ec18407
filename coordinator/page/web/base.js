// Elements whose texts are texts, numbers for people, and what the coordinator says.

// Attributes by name; on... are listeners. Children are elements or texts: nothing is ever read as markup.
function el(tag, attributes, ...children) {
  const svg = ["svg", "rect", "title", "line", "text", "g"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((c) => c !== undefined && c !== null).map((c) => (c instanceof Node ? c : clean(c))));
  return element;
}
// As the coordinator cleans its messages; plans and programs come as they are. What would turn a line around is written out.
const clean = (text) => String(text).replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (c) => `\\u${c.charCodeAt(0).toString(16)}`);
// Changes nothing that is the same already: selections and focus stay.
function setText(element, text) {
  if (element.textContent !== (text = clean(text))) element.textContent = text;
}

// Of the API's JSON: 64-bit numbers are strings there, and what is 0 is left out.
const num = (value) => (value === undefined || value === null ? 0 : Number(value));
function digits(value, n = 4) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : String(value);
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3)) return value.toExponential(Math.max(0, n - 2));
  return String(Number(value.toPrecision(n)));
}
function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (Math.abs(value) >= 1024 && i < units.length - 1) value /= 1024, i++;
  return `${i === 0 ? value : value.toFixed(value < 10 ? 2 : 1)} ${units[i]}`;
}
const rate = (value) => (value >= 1e12 ? `${digits(value / 1e12, 3)} T` : value >= 1e9 ? `${digits(value / 1e9, 3)} G` :
  value >= 1e6 ? `${digits(value / 1e6, 3)} M` : value >= 1e4 ? `${digits(value / 1e3, 3)} k` : digits(value, 3));
function duration(seconds) {
  if (!Number.isFinite(seconds) || seconds < 0) return "-";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${digits(seconds, 3)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} h ${Math.round(seconds % 3600 / 60)} min` : `${digits(seconds / 86400, 3)} days`;
}
const percent = (part) => `${digits(part * 100, 3)} %`;
function clock(ms) {
  const time = new Date(num(ms)), today = time.toDateString() === new Date().toDateString();
  return today ? time.toLocaleTimeString([], {hour12: false}) : time.toLocaleString([], {hour12: false, dateStyle: "short", timeStyle: "medium"});
}
const state = (name) => (name || "").replace(/^JOB_STATE_/, "").toLowerCase().replace(/_/g, " ");
const stateClass = (name) => (/failed|lost|refused|wrong/.test(name) ? "bad" : /running|succeeded|ready|training/.test(name) ? "good" : "soft");

const meta = (name) => document.querySelector(`meta[name=${name}]`)?.content || "";
const report = meta("report");
const reportData = report ? JSON.parse(document.getElementById("data").textContent) : null;

// "#KEY" or "#KEY/job/ID"; of a report "#".
function location_() {
  const [key, kind, id] = location.hash.slice(1).split("/");
  return {key: key || "", job: report || (kind === "job" ? id || "" : "")};
}
const linkTo = (job) => `#${location_().key}${job ? `/job/${job}` : ""}`;

function say(text, lost) {
  const element = document.getElementById("connection");
  setText(element, text);
  element.classList.toggle("lost", Boolean(lost));
}

// What the coordinator says of one thing, kept up to date: asks each second for what is new, and nothing while the page is hidden.
class Feed {
  constructor(topic, onNews) {
    this.topic = topic, this.onNews = onNews;
    this.reset();
    this.cursor = 0, this.life = "", this.ended = false;
    if (report) {
      if (reportData[topic]) this.take(reportData[topic]);
      return;
    }
    this.wake = () => document.hidden || this.ask();
    document.addEventListener("visibilitychange", this.wake);
    this.ask();
  }
  reset() {
    this.rows = {}, this.steps = [], this.events = [], this.logs = [], this.history = null;
  }
  end() {
    this.ended = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.wake);
  }
  async ask() {
    clearTimeout(this.timer);
    if (this.ended || this.asking || document.hidden) return;
    this.asking = true;
    const answer = await this.get().catch(() => null);
    this.asking = false;
    if (this.ended) return;
    let pause = 1000;
    if (answer === null) say("the coordinator does not answer; trying again", true);
    else {
      try {
        pause = this.hear(answer);
      } catch (error) {
        pause = 5000;
        say(`the page cannot show what came: ${error.message}`, true);
        reportError(error);
      }
    }
    if (pause > 0 && !this.ended) this.timer = setTimeout(() => this.ask(), pause);
  }
  // What was answered: {status, and what it says}.
  async get() {
    const response = await fetch(`data/${this.topic}?after=${this.cursor}&life=${this.life}`,
      {headers: {"Motley-Key": location_().key}, cache: "no-store", signal: AbortSignal.timeout(60000)});
    const json = (response.headers.get("content-type") || "").startsWith("application/json");
    return {status: response.status, ...(json ? await response.json() : {error: (await response.text()).trim()})};
  }
  // Returns after how many milliseconds to ask again; 0: not.
  hear(answer) {
    if (answer.status !== 200) {
      say(`no data: ${answer.error || answer.status}`, true);
      return answer.status >= 500 ? 5000 : 0;
    }
    if (answer.again) return 100;
    if (answer.page !== meta("page") && sessionStorage.getItem("page") !== answer.page) {
      sessionStorage.setItem("page", answer.page);   // once: should something between give old pages, this one goes on
      return location.reload(), 0;
    }
    say("live");
    this.take(answer);
    return 1000;
  }
  take(answer) {
    if (answer.from === 0) this.reset();
    const anew = answer.from === 0;
    this.cursor = answer.cursor, this.life = answer.life;
    Object.assign(this.rows, answer.rows);
    for (const name of answer.gone || []) delete this.rows[name];
    if (answer.history) this.history = answer.history;
    for (const name of ["steps", "events", "logs"]) this[name].push(...answer[name] || []);
    if (this.logs.length > 1000) this.logs.splice(0, this.logs.length - 1000);
    if (this.events.length > 2000) this.events.splice(0, this.events.length - 2000);
    if (this.steps.length > 20000) this.cursor = 0;  // from the thinned history and the newest steps again
    if (!anew && !["rows", "gone", "steps", "events", "logs"].some((name) => answer[name])) return;
    this.onNews(this, anew);
  }
}
