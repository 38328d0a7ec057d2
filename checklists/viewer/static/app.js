import { el, fill, plain } from "./dom.js";
import { Failure, get, keep } from "./api.js";
import * as route from "./route.js";
import { learn, meanings } from "./words.js";
import { runsPage } from "./runs.js";
import { runPage } from "./run.js";
import { modelsPage } from "./models.js";
import { startPage } from "./start.js";
import { showHelp } from "./help.js";

const main = document.getElementById("main");
const status = document.getElementById("status");
const help = document.getElementById("help");
let shown = null; // {name, page}: the page now in view, with update(route), key(event) and close()
let facts = null;

export function tell(...children) { fill(status, ...children); }

function problem(failure) {
  const needed = failure instanceof Failure && failure.status === 401;
  const field = el("input", { id: "key", type: "password", autocomplete: "off", "aria-describedby": "key-help" });
  const form = el("form", { class: "narrow", onsubmit: (event) => { event.preventDefault(); keep(field.value.trim()); show(); } },
    el("label", { for: "key" }, "Key"), field, el("button", { type: "submit" }, "Use it"));
  fill(main, el("section", { class: "message", "data-testid": "problem" },
    el("h1", {}, needed ? "This page needs its key" : "That did not work"),
    el("p", { id: "key-help" }, needed
      ? "Recordings are yours alone, so the page wants the key from the link that `stacktap view` printed in the terminal. Open that link, or paste the key."
      : failure.message),
    needed ? form : el("p", {}, el("a", { href: "#/" }, "All runs"))));
}

function pageOf(where) {
  if (where.page === "runs" && where.run) return [`run ${where.run}`, () => runPage(where.run, tell)];
  if (where.page === "models") return ["models", () => modelsPage()];
  if (where.page === "start") return ["start", () => startPage(facts)];
  return ["runs", () => runsPage(facts)];
}

async function show() {
  const where = route.read();
  const given = where.query.get("key");
  if (given) {
    keep(given);
    history.replaceState(null, "", route.address(where.page, where.run, { ...Object.fromEntries(where.query), key: "" }));
    return show();
  }
  try {
    if (!facts) {
      facts = await get("/api/start");
      learn(facts.terms);
    }
    const [name, make] = pageOf(where);
    if (shown?.name !== name) {
      shown?.page.close?.();
      tell();
      const page = make();
      shown = { name, page };
      document.title = plain(where.run ? `${where.run} · stacktap` : "stacktap");
      fill(main, page.element);
      main.className = page.wide ? "wide" : "";
      for (const link of document.querySelectorAll("nav a")) {
        if (link.dataset.page === where.page) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
      }
    }
    await shown.page.update?.(where);
  } catch (failure) {
    if (failure.name === "AbortError") return;
    shown?.page.close?.();
    shown = null;
    problem(failure);
    if (!(failure instanceof Failure)) throw failure;
  }
}

function typing(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.key === "?" && !typing(event.target)) {
    event.preventDefault();
    showHelp(help, meanings());
    return;
  }
  shown?.page.key?.(event, typing(event.target));
});
document.getElementById("help-button").addEventListener("click", () => showHelp(help, meanings()));
window.addEventListener("hashchange", show);
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
show();
