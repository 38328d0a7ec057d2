// Calls to the server that this page came from. Each carries the key, which other sites and other users do not have.

const STORED = "stacktap-key";
let key = "";
try { key = localStorage.getItem(STORED) || ""; } catch { /* storage may be off: the key then lives as long as the page */ }

export function keep(given) {
  key = given;
  try { localStorage.setItem(STORED, given); } catch { /* as above */ }
}

export class Failure extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

async function call(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: { ...options.headers, "X-Stacktap-Key": key } });
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new Failure(0, "no_server", "The viewer does not answer: is `stacktap view` still running?");
  }
  const body = await response.json();
  if (!response.ok) throw new Failure(response.status, body.error?.code ?? "", body.error?.message ?? "the server refused");
  return body;
}

export function get(path, query = {}, signal = undefined) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined));
  return call(asked.size ? `${path}?${asked}` : path, { signal });
}

export function post(path, value) {
  return call(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(value),
  });
}

export const runPath = (run) => `/api/runs/${encodeURIComponent(run)}`;
