// Which view is shown: the address says it.
let view = null, shown = null;
function route() {
  const {key, job} = location_();
  document.getElementById("home").href = linkTo("");
  const wanted = `${key}/${job}`;
  if (wanted === shown) return;
  shown = wanted;
  if (view) view.end();
  document.title = job ? `${job} - motley` : "motley";
  setText(document.getElementById("where"), job);
  const box = document.getElementById("view");
  if (!report && !key) {
    view = null;
    say("no key", true);
    return box.replaceChildren(el("p", {}, "The address has no key behind its #. `motley open` prints the whole address."));
  }
  say(report ? "a report; it does not change" : "");
  view = job ? new JobView(job) : new ClusterView();
  box.replaceChildren(view.element);
}
window.addEventListener("hashchange", route);
// Colours of charts follow the ground.
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const chart of view?.charts || []) chart.drop();
  if (view?.showCurve) view.showCurve();
});
route();
