// A list of any length, of which only what is in view exists. Rows are fetched in blocks and forgotten again.
import { badge, term, tone } from "./words.js";
import { bytes, clock, duration, el, fill, plain } from "./dom.js";

const BLOCK = 100;
const KEPT_BLOCKS = 40;
const TALLEST = 8_000_000; // browsers lose precision in taller elements: beyond it, scrolling is scaled
const SPARE = 6;

function cells(row, first) {
  const path = row.target.split("?")[0];
  const tags = row.tags.join(" ");
  return [
    ["n", el("span", {}, row.key)],
    ["when", el("span", { title: row.started_us ? new Date(row.started_us / 1000).toISOString() : undefined }, clock(row.started_us))],
    ["server", el("span", {}, row.stack || row.upstream, row.stack && row.upstream !== row.stack ? el("span", { class: "quiet" }, ` ${row.upstream}`) : "")],
    ["path", el("span", { title: `${row.method} ${row.target}` }, row.method === "POST" ? "" : `${row.method || "not HTTP"} `, path)],
    ["model", el("span", { title: row.model || undefined }, row.model)],
    ["status", el("span", {}, row.status ?? "—")],
    ["outcome", badge(row)],
    ["fault", row.fault && row.fault !== "none" ? term("fault", row.fault) : ""],
    ["took", el("span", {}, row.duration_us === null ? term("end", row.end) : duration(row.duration_us))],
    ["size", el("span", { title: row.tokens_out !== null ? `${row.tokens_in ?? "?"} tokens in, ${row.tokens_out} out; ${row.response_bytes} bytes came` : undefined }, row.tokens_out !== null ? `${row.tokens_out} tok` : bytes(row.response_bytes))],
    ["tags", el("span", { title: tags || undefined }, tags)],
  ];
}

const HEADS = [["n", "#"], ["when", "Begun"], ["server", "Server"], ["path", "Request"], ["model", "Model"], ["status", "Status"], ["outcome", "Outcome"], ["fault", "At fault"], ["took", "Took"], ["size", "Came"], ["tags", "Tags"]];

/** `fetchRows(from, limit)` gives {total, rows, generation}; `opened(row)` is called for the chosen one. */
export function virtualList({ fetchRows, opened, failed }) {
  const narrow = matchMedia("(max-width: 760px)");
  const space = el("div", { class: "space", role: "presentation" });
  const head = el("div", { class: "row head", role: "row", "aria-rowindex": "1" }, HEADS.map(([name, text]) => el("span", { class: `c-${name}`, role: "columnheader" }, text)));
  const rows = el("div", { class: "rows", role: "rowgroup" });
  const grid = el("div", { class: "grid", role: "grid", tabindex: "0", "aria-label": "Exchanges", "data-testid": "list" }, el("div", { role: "rowgroup", class: "head-group" }, head), space, rows);
  const blocks = new Map(); // block number -> {rows, generation} or a promise's mark
  let total = 0, current = -1, version = 0, generation = -1, drawn = "", follow = false, queued = false;

  const height = () => (narrow.matches ? 58 : 28);
  const headHeight = () => (narrow.matches ? 0 : 26);
  const full = () => total * height();
  const scaled = () => full() > TALLEST;
  const view = () => Math.max(1, grid.clientHeight - headHeight());

  function firstInView() {
    if (!scaled()) return Math.floor(grid.scrollTop / height());
    const share = grid.scrollTop / Math.max(1, TALLEST - view());
    return Math.round(share * Math.max(0, total - Math.floor(view() / height())));
  }

  function scrollFor(index) {
    if (!scaled()) return index * height();
    return (index / Math.max(1, total - Math.floor(view() / height()))) * (TALLEST - view());
  }

  function rowAt(index) {
    return blocks.get(Math.floor(index / BLOCK))?.rows?.[index % BLOCK];
  }

  async function need(number) {
    const known = blocks.get(number);
    if (known?.asked === generation || (known?.generation === generation && known.rows)) return;
    const asking = version;
    blocks.set(number, { ...known, asked: generation });
    try {
      const found = await fetchRows(number * BLOCK, BLOCK);
      if (asking !== version) return;
      blocks.delete(number);
      blocks.set(number, { rows: found.rows, generation: found.generation });
      for (const old of blocks.keys()) { if (blocks.size <= KEPT_BLOCKS) break; blocks.delete(old); }
      setTotal(found.total);
      drawn = "";
      draw();
    } catch (failure) {
      if (asking === version) { blocks.delete(number); failed(failure); }
    }
  }

  function setTotal(count) {
    if (count === total) return;
    total = count;
    grid.setAttribute("aria-rowcount", String(total + 1));
    space.style.height = `${Math.min(full(), TALLEST)}px`;
    if (follow) grid.scrollTop = grid.scrollHeight;
  }

  function draw() {
    if (queued || !version) return;
    queued = true;
    requestAnimationFrame(() => { queued = false; paint(); });
  }

  function paint() {
    const first = Math.max(0, firstInView() - SPARE);
    const count = Math.ceil(view() / height()) + 2 * SPARE;
    const last = Math.min(total, first + count);
    for (let block = Math.floor(first / BLOCK); block <= Math.floor(Math.max(first, last - 1) / BLOCK); block += 1) need(block);
    const stamp = `${first} ${last} ${current} ${version} ${narrow.matches}`;
    if (stamp === drawn) return;
    drawn = stamp;
    const items = [];
    for (let index = first; index < last; index += 1) items.push(line(index));
    fill(rows, items);
    const offset = scaled() ? grid.scrollTop - (firstInView() - first) * height() : first * height();
    rows.style.transform = `translateY(${Math.max(0, offset)}px)`;
    const active = rows.querySelector("[aria-selected=true]");
    if (active) grid.setAttribute("aria-activedescendant", active.id);
    else grid.removeAttribute("aria-activedescendant");
  }

  function line(index) {
    const row = rowAt(index);
    const chosen = index === current;
    const element = el("div", { class: `row ${chosen ? "current" : ""} ${row ? "" : "loading"}`, role: "row", id: `row-${index}`, "aria-rowindex": index + 2, "aria-selected": chosen ? "true" : "false", "data-testid": "row", "data-key": row?.key });
    if (!row) element.append(el("span", { class: "c-n", role: "gridcell" }, String(index + 1)));
    else for (const [name, content] of cells(row)) element.append(el("span", { class: `c-${name}`, role: "gridcell" }, content));
    element.addEventListener("click", () => { choose(index); open(); });
    return element;
  }

  function choose(index) {
    if (total <= 0) return;
    current = Math.max(0, Math.min(total - 1, index));
    const top = scrollFor(current), at = grid.scrollTop;
    if (scaled()) {
      const first = firstInView();
      const count = Math.floor(view() / height());
      if (current < first) grid.scrollTop = scrollFor(current);
      else if (current >= first + count) grid.scrollTop = scrollFor(current - count + 1);
    } else if (top < at) grid.scrollTop = top;
    else if (top + height() > at + view()) grid.scrollTop = top + height() - view();
    draw();
  }

  async function open() {
    if (current < 0) return;
    if (!rowAt(current)) { await need(Math.floor(current / BLOCK)); }
    const row = rowAt(current);
    if (row) opened(row, current);
  }

  grid.addEventListener("scroll", () => {
    follow = follow && grid.scrollTop + grid.clientHeight >= grid.scrollHeight - height();
    draw();
  }, { passive: true });
  const observer = new ResizeObserver(draw);
  observer.observe(grid);
  const relayout = () => { space.style.height = `${Math.min(full(), TALLEST)}px`; drawn = ""; draw(); };
  narrow.addEventListener("change", relayout);

  return {
    element: grid,
    get total() { return total; },
    get current() { return current; },
    /** Another filter or order: all is fetched anew. */
    restart() { version += 1; blocks.clear(); total = -1; current = -1; drawn = ""; grid.scrollTop = 0; generation += 1e9; return need(0); },
    /** The index has grown. */
    refresh(now) { if (now === generation) return; generation = now; drawn = ""; draw(); if (!total || follow) need(Math.floor(Math.max(0, total - 1) / BLOCK)); },
    move(by) { choose(current < 0 ? Math.max(0, firstInView()) : current + by); return open(); },
    edge(last) { choose(last ? total - 1 : 0); return open(); },
    show(index) { choose(index); },
    forget() { current = -1; drawn = ""; draw(); },
    follow(on) { follow = on; if (on) grid.scrollTop = grid.scrollHeight; },
    get following() { return follow; },
    focus() { grid.focus({ preventScroll: true }); },
    open,
    close() { observer.disconnect(); narrow.removeEventListener("change", relayout); version += 1; },
  };
}

export { tone, plain };
