// One exchange: its verdict, and beneath it the turn, the wire, the prompt, the same turn elsewhere, the record.
import { bytes, clock, counted, duration, el, fill } from "./dom.js";
import { get } from "./api.js";
import { address, change, read } from "./route.js";
import { badge, meaning, term } from "./words.js";
import { wireView } from "./wire.js";
import { turnView, prompt } from "./turn.js";

const TABS = [["turn", "Turn"], ["wire", "Wire"], ["prompt", "Prompt"], ["beside", "Beside"], ["record", "Record"]];

/** "response:10-20" as {direction, start, end}; null where it is none. */
export function place(text) {
  const match = /^(request|response):(\d{1,15})-(\d{1,15})$/.exec(text ?? "");
  return match ? { direction: match[1], start: Number(match[2]), end: Number(match[3]) } : null;
}

const placed = (cited) => `${cited.direction}:${cited.start}-${cited.end}`;

function fact(name, ...value) {
  return [el("dt", {}, name), el("dd", {}, value)];
}

export function detailView({ run, base, signal, gone }) {
  const body = el("div", { class: "detail-body" });
  const element = el("section", { class: "detail", "aria-label": "Exchange", tabindex: "-1", "data-testid": "detail" }, body);
  let key = "", found = null, wire = null, other = null, otherKey = "", seen = -1;

  const link = (more) => { const now = read(); return address(now.page, now.run, { ...Object.fromEntries(now.query), ...more }); };

  async function load(wanted) {
    return get(`${base}/exchanges/${encodeURIComponent(wanted)}`, {}, signal);
  }

  async function show(wanted, query) {
    if (!wanted) { key = ""; found = null; wire = null; fill(body); element.hidden = true; return; }
    element.hidden = false;
    if (wanted !== key) {
      key = wanted;
      wire = null;
      try {
        const loaded = await load(wanted);
        if (key !== wanted) return; // another one was asked for meanwhile
        found = loaded;
      } catch (failure) {
        if (failure.name === "AbortError") throw failure;
        if (key !== wanted) return;
        found = null;
        fill(body, el("div", { class: "message", "data-testid": "exchange-problem" }, el("h2", {}, `Exchange ${wanted}`), el("p", { class: "wrong" }, failure.message), closing()));
        return;
      }
    }
    if (found) await draw(query);
  }

  async function draw(query) {
    const wanted = query.get("tab");
    const at = place(query.get("at"));
    const tab = TABS.some(([name]) => name === wanted) ? wanted : at ? "wire" : "turn";
    const panel = el("div", { class: "panel", role: "tabpanel", id: "panel", "aria-labelledby": `tab-${tab}`, tabindex: "0", "data-testid": `panel-${tab}` });
    fill(body, title(), verdict(query), tabs(tab), panel);
    await fillPanel(panel, tab, at, query);
  }

  function closing() {
    return el("button", { type: "button", class: "close", "data-testid": "close", title: "Close (Esc)", onclick: gone }, "Close");
  }

  function title() {
    const row = found.row;
    return el("div", { class: "detail-head" },
      el("div", { class: "bar" }, el("h2", { "data-testid": "detail-title" }, `Exchange ${row.key}`), badge(row), closing()),
      el("p", { class: "line break" }, el("b", {}, `${row.method || "not HTTP"} `), row.target, " ", el("span", { class: "quiet" }, row.status ? `→ ${row.status}` : "→ no status")),
      el("p", { class: "quiet" }, [row.stack || row.upstream, row.stack && row.upstream, row.model, clock(row.started_us), row.duration_us !== null && `took ${duration(row.duration_us)}`, row.first_byte_us !== null && `first byte after ${duration(row.first_byte_us)}`].filter(Boolean).join(" · "), " · ", term("end", row.end),
        row.tags.map((tag) => [" ", el("span", { class: "chip" }, tag)])));
  }

  function verdict(query) {
    const outcome = found.outcome;
    if (!outcome) return el("div", { class: "verdict" }, el("p", { class: "quiet" }, found.row.end === "open" ? "Still going on: there is no verdict yet." : "Not judged yet: the index is still being made."));
    const at = query.get("at");
    return el("div", { class: "verdict", "data-testid": "verdict" },
      el("p", { class: "meaning" }, outcome.meaning ? `${outcome.meaning[0].toUpperCase()}${outcome.meaning.slice(1)}.` : outcome.name),
      outcome.detail && el("p", { class: "break" }, outcome.detail),
      outcome.remedy && el("p", { class: "remedy break", "data-testid": "remedy" }, el("b", {}, "Change: "), outcome.remedy),
      outcome.decide_by && el("p", { class: "remedy break", "data-testid": "decide-by" }, el("b", {}, "Would decide it: "), outcome.decide_by),
      el("dl", { class: "facts-line" },
        outcome.at_fault !== "none" && fact("at fault", term("fault", outcome.at_fault)),
        fact("model ran", term("ran", outcome.model_ran)),
        outcome.delivery && outcome.delivery !== "unknown" && fact("delivery", term("delivery", outcome.delivery)),
        fact("sure", `${outcome.confidence ?? "high"}, `, term("grade", outcome.grade ?? "observed")),
        outcome.flags?.length > 0 && fact("also seen", outcome.flags.map((flag) => [term("outcome", flag, "chip"), " "]))),
      outcome.evidence?.length > 0 && el("ol", { class: "evidence", "aria-label": "Evidence" }, outcome.evidence.map((cited) => evidence(cited, at))));
  }

  function evidence(cited, at) {
    const here = cited.key === key;
    const to = link(here ? { tab: "wire", at: placed(cited) } : { x: cited.key, tab: "wire", at: placed(cited) });
    return el("li", { class: here && placed(cited) === at ? "current" : "" },
      cited.why && el("span", { class: "why" }, `${cited.why}: `),
      el("mark", { class: "quote break" }, cited.quote || "(nothing came)"), " ",
      cited.end > cited.start
        ? el("a", { href: to, "data-testid": "evidence-link" }, here ? `${cited.direction} bytes ${cited.start}–${cited.end}` : `exchange ${cited.key}, ${cited.direction} bytes ${cited.start}–${cited.end}`)
        : el("span", { class: "quiet" }, `no bytes of the ${cited.direction}`));
  }

  function tabs(shown) {
    const list = el("div", { class: "tabs", role: "tablist", "aria-label": "What is shown" }, TABS.map(([name, text], number) => el("button", {
      type: "button", role: "tab", id: `tab-${name}`, "aria-selected": name === shown ? "true" : "false", "aria-controls": "panel", tabindex: name === shown ? "0" : "-1", "data-testid": `tab-${name}`, title: `${text} (${number + 1})`,
      onclick: () => go(name),
    }, text, name === "beside" && found.beside.length ? ` ${found.beside.length}` : "")));
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      const now = TABS.findIndex(([name]) => name === shown);
      go(TABS[(now + step + TABS.length) % TABS.length][0]);
      setTimeout(() => body.querySelector("[role=tab][aria-selected=true]")?.focus(), 0);
    });
    return list;
  }

  function go(name) { change({ tab: name, at: name === "wire" ? read().query.get("at") ?? "" : "" }); }

  async function fillPanel(panel, tab, at, query) {
    if (tab === "turn") fill(panel, turnView(found));
    if (tab === "prompt") fill(panel, prompt(found.rendered));
    if (tab === "record") fill(panel, record());
    if (tab === "beside") await besidePanel(panel, query.get("beside"));
    if (tab === "wire") {
      wire = wireView({ base, found, signal });
      fill(panel, wire.element);
      await wire.show(at);
    }
  }

  async function besidePanel(panel, wanted) {
    const rows = found.beside;
    if (!rows.length) { fill(panel, el("p", { class: "quiet" }, "No other exchange of this run asks the same question of another server or model, and none with the same tags went to another server. `stacktap compare` and grids record such pairs.")); return; }
    const chosen = rows.find((row) => row.key === wanted) ?? rows[0];
    const choose = el("select", { id: "beside", "data-testid": "beside-choice", onchange: (event) => change({ beside: event.target.value }) }, rows.map((row) => el("option", { value: row.key }, `${row.key}  ${row.stack || row.upstream}  ${row.model}  ${row.outcome}  (${row.why})`)));
    choose.value = chosen.key;
    if (otherKey !== chosen.key) {
      const answer = await load(chosen.key);
      [other, otherKey] = [answer, chosen.key];
    }
    const side = (one) => el("div", { class: "side", "data-testid": "side" }, el("h3", {}, `${one.row.key}: ${one.row.stack || one.row.upstream} `, badge(one.row)),
      el("p", { class: "quiet break" }, [one.row.model, one.row.status && `status ${one.row.status}`, duration(one.row.duration_us), one.row.tokens_out !== null && `${one.row.tokens_out} tokens`].filter(Boolean).join(" · ")),
      one.outcome?.remedy && el("p", { class: "remedy break" }, el("b", {}, "Change: "), one.outcome.remedy), turnView(one, { answer: true }));
    fill(panel, el("p", {}, el("label", { for: "beside" }, "Beside "), choose, " ", el("a", { href: link({ x: chosen.key, tab: "turn", at: "", beside: "" }) }, "open it")), el("div", { class: "sides" }, side(found), side(other)));
  }

  function headers(name, message) {
    if (!message.http) return el("p", { class: "quiet" }, `${name}: ${counted(message.bytes, "byte")}, no HTTP message`);
    return el("div", {}, el("h3", {}, `${name} headers`), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${name} headers` }, el("table", { class: "headers" }, el("tbody", {}, message.headers.map(([field, value]) => el("tr", {}, el("th", { scope: "row" }, field), el("td", { class: "break" }, value)))))),
      message.problems.map((text) => el("p", { class: "note" }, text)));
  }

  function record() {
    const row = found.row;
    return [
      el("dl", { class: "facts-list" }, fact("attempt", String(found.attempt)), fact("connection", `${found.connection}, its exchange ${found.number_on_connection}, client ${found.client || "?"}`), fact("server", row.upstream), fact("ended", term("end", row.end), found.end_detail ? ` (${found.end_detail})` : ""),
        fact("sizes", `${bytes(row.request_bytes)} asked in ${counted(found.request.piece_count, "piece")}, ${bytes(row.response_bytes)} came in ${counted(found.response.piece_count, "piece")}`),
        found.response.coding && fact("coding", `${found.response.coding}: the wire shows it as it was, the turn shows it decoded`)),
      found.damage.map((text) => el("p", { class: "note" }, `the record is damaged: ${text}`)),
      found.relay_answer.text && el("div", {}, el("h3", {}, "The relay itself answered"), el("pre", {}, found.relay_answer.text)),
      headers("Request", found.request), headers("Response", found.response),
      found.notes.length > 0 && el("div", {}, el("h3", {}, "Notes of the recorder"), found.notes.map((note) => el("details", {}, el("summary", {}, note.kind), el("dl", { class: "facts-list" }, Object.entries(note.fields).map(([name, value]) => fact(name, el("pre", {}, value.text))))))),
    ];
  }

  return {
    element,
    show,
    focus: () => element.focus({ preventScroll: true }),
    leave: gone,
    /** Looks again at an exchange that was still going on, or not judged. */
    async refresh(state) {
      if (!found || !key || state.generation === seen || (found.outcome && found.row.end !== "open" && found.row.judged === 2)) return;
      seen = state.generation;
      const again = await load(key);
      if (!found || again.row.key !== key || (again.row.judged === found.row.judged && again.row.response_bytes === found.row.response_bytes && again.row.end === found.row.end)) return;
      found = again;
      await draw(read().query);
    },
    keys(name) {
      if (!found) return null;
      if (/^[1-5]$/.test(name)) return () => go(TABS[Number(name) - 1][0]);
      if (name === "n" || name === "p") return () => step(name === "n" ? 1 : -1);
      return null;
    },
  };

  function step(by) {
    const own = (found.outcome?.evidence ?? []).filter((cited) => cited.key === key && cited.end > cited.start);
    if (!own.length) return;
    const now = own.findIndex((cited) => placed(cited) === read().query.get("at"));
    const next = now < 0 ? (by > 0 ? 0 : own.length - 1) : (now + by + own.length) % own.length;
    change({ tab: "wire", at: placed(own[next]) });
  }
}

export { meaning };
