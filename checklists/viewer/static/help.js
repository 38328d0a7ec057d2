// The keys and the words.
import { el, fill } from "./dom.js";

const KEYS = [
  ["j / k", "next, previous exchange (or run)"], ["Enter", "open it"], ["Esc", "close it; leave the filter"],
  ["/", "filter"], ["g / G", "first, last exchange"], ["n / p", "next, previous piece of evidence in the bytes"],
  ["1 ... 5", "what is shown of an exchange: turn, wire, prompt, beside, record"], ["?", "this help"],
];

function list(title, entries) {
  return [el("h3", {}, title), el("dl", {}, entries.map(([name, text]) => [el("dt", {}, el("code", {}, name)), el("dd", {}, text)]))];
}

export function showHelp(dialog, terms) {
  const close = el("button", { type: "button", "data-testid": "help-close", onclick: () => dialog.close() }, "Close");
  fill(dialog, el("div", { class: "bar" }, el("h2", { id: "help-title" }, "Keys and words"), close),
    el("div", { class: "columns" },
      el("section", {}, list("Keys", KEYS), list("Filters", Object.entries(terms.filters ?? {}).map(([name, text]) => [`${name}:`, text])),
        el("p", {}, "Commas mean or, a minus in front means not, \"two words\" are one text. Any other word is looked for in: ", terms.searched ?? "", ".")),
      el("section", {}, list("Layers, in the order of a request's way", Object.entries(terms.layer ?? {})), list("At fault", Object.entries(terms.fault ?? {})),
        list("The model ran", Object.entries(terms.ran ?? {})))));
  dialog.showModal();
  close.focus();
}
