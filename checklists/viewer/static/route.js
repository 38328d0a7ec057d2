// The address of what is shown: #/runs/RUN?filter=...&x=ATTEMPT&tab=wire&at=response:10-20. All of it can be linked to.

export function read() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  return { page: parts[0] || "runs", run: parts[0] === "runs" ? parts[1] || "" : "", query: new URLSearchParams(query) };
}

export function address(page, run = "", query = {}) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null));
  const path = run ? `runs/${encodeURIComponent(run)}` : page === "runs" ? "" : page;
  return `#/${path}${asked.size ? `?${asked}` : ""}`;
}

/** Changes some of the query of the address now shown. `replace`: without a step in the history. */
export function change(changes, { replace = false } = {}) {
  const now = read();
  const query = { ...Object.fromEntries(now.query), ...changes };
  const next = address(now.page, now.run, query);
  if (next === location.hash) return;
  if (replace) {
    history.replaceState(null, "", next);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = next;
}
