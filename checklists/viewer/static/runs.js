// The list of runs.
import { brief, bytes, counted, day, el, fill } from "./dom.js";
import { get } from "./api.js";
import { address } from "./route.js";

function servers(run) {
  if (!run.servers.length) return el("span", { class: "quiet" }, "no manifest");
  return run.servers.map((server) => el("span", { class: "server" },
    el("b", {}, brief(server.stack || server.name)), server.version ? ` ${brief(server.version)}` : "",
    server.model ? el("span", { class: "quiet break" }, ` ${brief(server.model)}`) : "",
    el("span", { class: "quiet break" }, ` ${brief(server.url)}`)));
}

function row(run) {
  return el("tr", { "data-testid": "run", "data-run": run.run },
    el("th", { scope: "row" }, el("a", { href: address("runs", run.run), "data-testid": "run-link" }, run.run)),
    el("td", {}, day(run.created)),
    el("td", {}, run.live && el("span", { class: "live" }, "recording"), run.kind === "grid" && el("span", { class: "chip", title: "A run of a grid: many episodes, recorded one after the other." }, "grid"),
      run.lost > 0 && el("span", { class: "chip warn", title: "The recorder could not write these lines (a full disk?)." }, counted(run.lost, "line") + " lost")),
    el("td", { class: "number" }, run.exchanges === null ? "" : run.exchanges.toLocaleString("en")),
    el("td", { class: "number" }, bytes(run.bytes)),
    el("td", {}, servers(run)),
    el("td", { class: "command" }, run.command.length ? el("code", { title: run.command.join(" ") }, run.command.slice(1).join(" ").slice(0, 200)) : ""));
}

export function runsPage(facts) {
  const body = el("tbody");
  const title = el("h1", {}, "Runs");
  const note = el("p", { class: "quiet", "data-testid": "runs-note" });
  const filter = el("input", { type: "search", id: "runs-filter", placeholder: "run, server, model, command", autocomplete: "off", spellcheck: "false", "data-testid": "runs-filter" });
  const table = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Runs" },
    el("table", { class: "runs" }, el("thead", {}, el("tr", {}, ["Run", "Begun", "State", "Exchanges", "Size", "Servers", "Command"].map((name) => el("th", { scope: "col" }, name)))), body));
  let runs = [];
  let timer = 0;

  function draw() {
    const wanted = filter.value.toLowerCase();
    const kept = runs.filter((run) => !wanted || JSON.stringify(run).toLowerCase().includes(wanted));
    fill(body, kept.slice(0, 1000).map(row));
    table.hidden = !runs.length;
  }

  async function load() {
    const found = await get("/api/runs");
    runs = found.runs;
    const where = found.folder ? ` in ${found.folder}` : "";
    fill(note, el("span", {}, runs.length ? counted(runs.length, "run") + where
      : `No run yet${where}. Record one: stacktap wrap --upstream http://localhost:8080 -- YOUR-AGENT` + (facts.read_only ? "" : ", or see Start.")));
    draw();
  }

  filter.addEventListener("input", draw);
  timer = setInterval(() => { if (document.visibilityState === "visible") load().catch(() => {}); }, 3000);
  return {
    element: el("section", { class: "page" }, el("div", { class: "bar" }, title, el("label", { class: "unlabelled", for: "runs-filter" }, "Filter runs"), filter), note, table),
    update: load,
    close: () => clearInterval(timer),
    key(event, typing) {
      if (event.key === "/" && !typing) { event.preventDefault(); filter.focus(); }
      if (typing) { if (event.key === "Escape") { filter.blur(); } return; }
      const links = [...body.querySelectorAll("a")];
      const at = links.indexOf(document.activeElement);
      if (event.key === "j") links[Math.min(links.length - 1, at + 1)]?.focus();
      if (event.key === "k") links[Math.max(0, at - 1)]?.focus();
    },
  };
}
