// One run: filter, counts, the list of its exchanges, and the exchange that is open.
import { addText, brief, counted, duration, el, fill } from "./dom.js";
import { get, runPath } from "./api.js";
import { change, read } from "./route.js";
import { meaning, meanings } from "./words.js";
import { virtualList } from "./list.js";
import { detailView } from "./detail.js";

const FACETS = [["layer", "Layer", "layer"], ["outcome", "Outcome", "outcome"], ["fault", "At fault", "fault"], ["ran", "Model ran", "ran"], ["stack", "Stack", ""], ["model", "Model", ""], ["upstream", "Server", ""], ["tag", "Tag", ""], ["end", "Ended", "end"], ["status", "Status", ""]];
const ORDERS = [["first", "in order"], ["last", "latest first"], ["slowest", "slowest first"], ["longest", "largest first"]];

function quoted(value) { return /[\s",]/.test(value) ? `"${value.replaceAll('"', "")}"` : value; }

/** The filter line with `field:value` put in, or taken out where it stands already. */
function toggled(line, field, value) {
  const term = `${field}:${quoted(value)}`;
  const parts = line.match(/(?:"[^"]*"?|\S)+/g) ?? [];
  return (parts.includes(term) ? parts.filter((part) => part !== term) : [...parts, term]).join(" ");
}

export function runPage(run, tell) {
  const base = runPath(run);
  const going = new AbortController();
  const filter = el("input", { type: "search", id: "filter", placeholder: "layer:gate  fault:stack  tag:task=agg  any words", autocomplete: "off", spellcheck: "false", "data-testid": "filter", "aria-describedby": "found", title: `Words are looked for in ${meanings().searched}. Fields: ${Object.keys(meanings().filters ?? {}).join(", ")} (? explains them).` });
  const order = el("select", { id: "order", "data-testid": "order" }, ORDERS.map(([value, text]) => el("option", { value }, text)));
  const found = el("span", { id: "found", class: "quiet", role: "status", "data-testid": "found" });
  const progress = el("p", { class: "progress", "data-testid": "index-progress" });
  const notes = el("div", { class: "notes", "data-testid": "run-notes" });
  const facetBox = el("div", { class: "facets", "data-testid": "facets" });
  const facetPanel = el("details", { class: "facet-panel", "data-testid": "facet-panel" }, el("summary", {}, "Counts"), facetBox);
  facetPanel.open = matchMedia("(min-width: 1000px)").matches;
  const facts = el("div", { class: "facts" });
  const follow = el("button", { type: "button", "aria-pressed": "false", hidden: true, "data-testid": "follow", title: "Stay at the newest exchange." }, "Follow");
  const empty = el("div", { class: "empty", hidden: true, "data-testid": "empty" });
  let shownFilter = null, shownOrder = null, state = null, typed = 0, facetsFor = "", facetsAt = 0, facetTimer = 0, alive = true;

  const list = virtualList({
    fetchRows: async (from, limit) => {
      const wanted = shownFilter;
      const answer = await get(`${base}/exchanges`, { filter: wanted, order: shownOrder, from, limit }, going.signal);
      if (wanted === shownFilter) showFound(answer); // a slow answer says nothing of the filter typed since
      return answer;
    },
    opened: (row) => change({ x: row.key, at: "" }),
    failed: (failure) => { if (failure.name !== "AbortError") { fill(found, el("span", { class: "wrong" }, failure.message)); } },
  });
  const detail = detailView({ run, base, signal: going.signal, gone: () => { list.forget(); change({ x: "", at: "", tab: "", beside: "" }); list.focus(); } });
  const split = el("div", { class: "split" }, el("div", { class: "list-side" }, empty, list.element), detail.element);
  const element = el("section", { class: "run", "aria-label": `Run ${run}` },
    el("div", { class: "run-head" }, el("h1", { class: "run-name" }, run), facts, notes, progress),
    el("div", { class: "bar", role: "search" }, el("label", { class: "unlabelled", for: "filter" }, "Filter exchanges"), filter,
      el("label", { class: "unlabelled", for: "order" }, "Order"), order, follow, found),
    facetPanel, split);

  function showFound(answer) {
    const of = state && answer.total !== state.total ? ` of ${state.total.toLocaleString("en")}` : "";
    fill(found, el("span", {}, `${counted(answer.total, "exchange")}${of}`));
    found.title = answer.terms.length ? `as understood: ${answer.terms.join("; ")}` : "";
    empty.hidden = answer.total > 0;
    list.element.classList.toggle("without", answer.total === 0);
    if (!answer.total) fill(empty, el("p", {}, shownFilter ? "No exchange passes this filter." : state?.complete ? "Nothing was recorded: no request reached the relay." : state?.live ? "Recording; no exchange yet." : "Reading ..."));
  }

  function showState(next) {
    state = next;
    const parts = [];
    if (next.live) parts.push(el("span", { class: "live" }, "recording"));
    if (next.gone) parts.push(el("span", { class: "wrong" }, "this run was removed"));
    fill(progress);
    if (!next.complete && !next.gone) {
      const share = next.total ? Math.floor((100 * next.judged) / next.total) : 0;
      addText(progress, next.total ? `${next.judged.toLocaleString("en")} of ${next.total.toLocaleString("en")} exchanges judged (${share} %); outcomes, models and counts are not whole yet` : "reading the journal");
    }
    progress.hidden = progress.textContent === "";
    tell(...parts);
    follow.hidden = !next.live;
    fill(notes, [...next.problems.map((text) => ["note", text]), ...(next.index_problem ? [["wrong", next.index_problem]] : [])].map(([kind, text]) => el("p", { class: kind }, text)));
  }

  async function facets(force) {
    if (!facetPanel.open) return;
    const wanted = `${shownFilter} ${state?.generation}`;
    if (wanted === facetsFor) return;
    const wait = 1500 - (performance.now() - facetsAt);
    clearTimeout(facetTimer);
    if (!force && wait > 0) { facetTimer = setTimeout(() => facets(true), wait); return; }
    facetsFor = wanted;
    facetsAt = performance.now();
    try {
      const answer = await get(`${base}/facets`, { filter: shownFilter }, going.signal);
      fill(facetBox, FACETS.map(([name, title, kind]) => facet(name, title, kind, answer.facets[name] ?? [])));
    } catch (failure) { if (failure.name !== "AbortError") fill(facetBox, el("p", { class: "wrong" }, failure.message)); }
  }

  function facet(name, title, kind, values) {
    if (!values.length || (values.length === 1 && !shownFilter && ["upstream", "status", "end", "ran"].includes(name))) return null;
    const parts = shownFilter.match(/(?:"[^"]*"?|\S)+/g) ?? [];
    return el("div", { class: "facet", role: "group", "aria-label": title }, el("h2", {}, title), el("ul", {}, values.slice(0, 14).map(([value, count]) => {
      const on = parts.includes(`${name}:${quoted(value)}`);
      return el("li", {}, el("button", { type: "button", "aria-pressed": on ? "true" : "false", title: kind ? meaning(kind, value) : undefined, "data-testid": "facet", "data-facet": `${name}:${value}`, onclick: () => change({ filter: toggled(shownFilter, name, value) }) },
        el("span", { class: "value" }, value), el("span", { class: "count" }, count.toLocaleString("en"))));
    })));
  }

  async function watch() {
    while (alive) {
      try {
        const next = await get(`${base}/changes`, { generation: state?.generation ?? -1 }, going.signal);
        showState(next);
        list.refresh(next.generation);
        detail.refresh(next);
        facets(false);
        if (next.gone) return;
        if (next.complete && !next.live) await new Promise((done) => setTimeout(done, 5000));
      } catch (failure) {
        if (failure.name === "AbortError") return;
        tell(el("span", { class: "wrong" }, failure.message));
        if (failure.status === 404) return;
        await new Promise((done) => setTimeout(done, 2000));
      }
    }
  }

  async function find(key) {
    const answer = await get(`${base}/exchanges`, { filter: shownFilter, order: shownOrder, limit: 0, find: key }, going.signal);
    if (answer.position !== null) list.show(answer.position);
  }

  async function update(where) {
    if (!state) {
      const first = await get(base, {}, going.signal);
      showFacts(first);
      showState(first);
      watch();
      if (first.live && !where.query.get("x")) setFollow(true);
    }
    const line = where.query.get("filter") ?? "", by = where.query.get("order") || "first";
    const anew = line !== shownFilter || by !== shownOrder;
    if (anew) {
      shownFilter = line;
      shownOrder = by;
      if (document.activeElement !== filter) filter.value = line;
      order.value = by;
      await list.restart();
      if (list.following) setFollow(true);
      facets(true);
    }
    const key = where.query.get("x") ?? "";
    split.classList.toggle("opened", Boolean(key));
    await detail.show(key, where.query);
    if (key && (anew || list.current < 0)) await find(key);
  }

  function showFacts(first) {
    const pieces = first.servers.map((server) => el("span", { class: "server break" }, el("b", {}, brief(server.stack || server.name)), server.version ? ` ${brief(server.version)}` : "", el("span", { class: "quiet" }, ` ${brief(server.url)}`)));
    fill(facts, pieces, first.command.length ? el("code", { class: "command", title: first.command.join(" ") }, first.command.slice(1).join(" ").slice(0, 300)) : "");
    element.title = "";
  }

  function setFollow(on) {
    list.follow(on);
    follow.setAttribute("aria-pressed", String(on));
  }

  filter.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => change({ filter: filter.value.trim() }, { replace: true }), 90);
  });
  order.addEventListener("change", () => change({ order: order.value === "first" ? "" : order.value }));
  follow.addEventListener("click", () => setFollow(follow.getAttribute("aria-pressed") !== "true"));
  facetPanel.addEventListener("toggle", () => { facetsFor = ""; facets(true); });

  return {
    element,
    wide: true,
    update,
    close() { alive = false; going.abort(); list.close(); clearTimeout(typed); clearTimeout(facetTimer); },
    key(event, typing) {
      if (typing) {
        if (event.key === "Escape") { filter.blur(); list.focus(); }
        if (event.key === "Enter" && event.target === filter) { filter.blur(); list.focus(); }
        return;
      }
      const keys = { j: () => list.move(1), k: () => list.move(-1), g: () => list.edge(false), G: () => list.edge(true), "/": () => { filter.focus(); filter.select(); } };
      if (event.target === list.element) Object.assign(keys, { ArrowDown: keys.j, ArrowUp: keys.k, Home: keys.g, End: keys.G, Enter: () => list.open().then(() => detail.focus()), " ": () => list.open() });
      if (event.key === "Escape" && read().query.get("x")) keys.Escape = () => detail.leave();
      const action = keys[event.key] ?? detail.keys(event.key);
      if (action) { event.preventDefault(); action(); }
    },
  };
}

export { duration };
