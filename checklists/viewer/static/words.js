// Words of ours with their meaning on hover, and the signs that go with them.
import { el } from "./dom.js";

let terms = {};
export function learn(given) { terms = given; }
export const meanings = () => terms;

export function meaning(kind, word) {
  return terms[kind]?.[word] ?? "";
}

/** A word of ours: its meaning is in its title. */
export function term(kind, word, className = "") {
  if (!word) return "";
  const title = kind === "outcome" ? outcomeTitle(word) : meaning(kind, word);
  return el("span", { class: `term ${className}`, title: title || undefined }, word);
}

function outcomeTitle(name) {
  const layer = name.split(".")[0];
  return [meaning("outcome", name), meaning("layer", layer) && `${layer}: ${meaning("layer", layer)}`].filter(Boolean).join("\n");
}

const TONE = { ok: "good", model: "model", task: "model", transport: "stack", gate: "config", request: "config" };

/** The class that colours an outcome: by its layer. */
export function tone(layer) {
  return `tone-${TONE[layer] ?? "stack"}`;
}

export function badge(row) {
  if (!row.outcome) return el("span", { class: "badge waiting", title: "This exchange is not judged yet." }, row.end === "open" ? "going on" : "...");
  return el("span", { class: `badge ${tone(row.layer)}`, title: outcomeTitle(row.outcome) }, row.outcome);
}
