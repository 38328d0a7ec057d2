// Elements are made here and nowhere else: data goes in as text, never as markup, never as a link or a style.

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]/u;
const UNSEEN_ALL = new RegExp(UNSEEN.source, "gu");

/** What stands for a character that would not be seen, or would move others about. */
function shown(character) {
  const code = character.codePointAt(0);
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** Text as it may be shown in a title or a field: nothing invisible in it. */
export function plain(text) {
  return String(text).replace(UNSEEN_ALL, shown);
}

/** Puts text into an element; characters that would not be seen stand written out, marked as such. */
export function addText(parent, text) {
  const value = String(text);
  if (!UNSEEN.test(value)) {
    parent.append(value);
    return parent;
  }
  let from = 0;
  for (const found of value.matchAll(UNSEEN_ALL)) {
    if (found.index > from) parent.append(value.slice(from, found.index));
    const mark = document.createElement("span");
    mark.className = "unseen";
    mark.textContent = shown(found[0]);
    parent.append(mark);
    from = found.index + found[0].length;
  }
  if (from < value.length) parent.append(value.slice(from));
  return parent;
}

const ALLOWED = new Set([
  "class", "id", "role", "type", "for", "name", "value", "placeholder", "title", "tabindex", "hidden", "disabled",
  "checked", "open", "scope", "lang", "dir", "autocomplete", "spellcheck", "rows", "min", "max", "required",
]);

/** An element with attributes and children. `href` takes only addresses within this page. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "href" && String(value).startsWith("#/")) element.setAttribute("href", value);
    else if (ALLOWED.has(name) || name.startsWith("aria-") || name.startsWith("data-")) {
      element.setAttribute(name, value === true ? "" : plain(value));
    } else throw new Error(`no attribute ${name} here`);
  }
  for (const child of children.flat(3)) {
    if (child === undefined || child === null || child === false) continue;
    if (child instanceof Node) element.append(child);
    else addText(element, child);
  }
  return element;
}

/** Replaces all that is in an element. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat(3).filter((child) => child !== undefined && child !== null && child !== false));
  return parent;
}

/** The beginning of a text that may be of any length. */
export function brief(text, most = 80) {
  const value = String(text);
  return value.length > most ? `${value.slice(0, most)}…` : value;
}

export function bytes(count) {
  if (count === null || count === undefined) return "";
  let value = count;
  for (const unit of ["B", "kB", "MB"]) {
    if (value < 1000) return unit === "B" ? `${value} B` : `${value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} GB`;
}

export function duration(us) {
  if (us === null || us === undefined) return "";
  if (us < 1000) return `${us} µs`;
  if (us < 1e6) return `${(us / 1000).toFixed(us < 1e5 ? 1 : 0)} ms`;
  if (us < 6e7) return `${(us / 1e6).toFixed(1)} s`;
  return `${Math.floor(us / 6e7)} min ${Math.round((us % 6e7) / 1e6)} s`;
}

const two = (number) => String(number).padStart(2, "0");

export function clock(us) {
  if (!us) return "";
  const when = new Date(us / 1000);
  return `${two(when.getHours())}:${two(when.getMinutes())}:${two(when.getSeconds())}`;
}

export function day(seconds) {
  const when = new Date(seconds * 1000);
  return `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())} ` +
    `${two(when.getHours())}:${two(when.getMinutes())}`;
}

export function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}
