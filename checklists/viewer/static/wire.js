// The bytes of both directions as they came, piece by piece with the time of each, evidence marked in them.
import { addText, bytes, counted, duration, el, fill } from "./dom.js";
import { get } from "./api.js";

const STRETCH = 64 * 1024;
const BEFORE = 4096;
const strict = new TextDecoder("utf-8", { fatal: true });

function decoded(data) {
  const raw = atob(data);
  const out = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at += 1) out[at] = raw.charCodeAt(at);
  return out;
}

/** How many bytes the character at `at` has, 0 where they are no UTF-8. */
function width(data, at) {
  const first = data[at];
  const size = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (!size || at + size > data.length) return 0;
  for (let next = at + 1; next < at + size; next += 1) if ((data[next] & 0xc0) !== 0x80) return 0;
  return size;
}

/** Puts bytes in as text; line ends are shown and kept, what is no text stands as \xNN. */
function addBytes(parent, data) {
  let text = "";
  const flush = () => { if (text) addText(parent, text); text = ""; };
  const mark = (shown, tail = "") => { flush(); const sign = el("span", { class: "unseen", "aria-hidden": tail ? "true" : undefined }, shown); parent.append(sign, tail); };
  try {
    if (!data.some((byte) => byte < 32 && byte !== 9)) { addText(parent, strict.decode(data)); return; }
  } catch { /* not all of it is text: byte by byte */ }
  for (let at = 0; at < data.length;) {
    const byte = data[at];
    if (byte === 13 && data[at + 1] === 10) { mark("\\r\\n", "\n"); at += 2; continue; }
    if (byte === 10) { mark("\\n", "\n"); at += 1; continue; }
    const size = width(data, at);
    let letter = null;
    if (size > 1) { try { letter = strict.decode(data.subarray(at, at + size)); } catch { letter = null; } }
    if (size === 1) text += String.fromCharCode(byte);
    else if (letter !== null) text += letter;
    else { mark(`\\x${byte.toString(16).padStart(2, "0")}`); at += 1; continue; }
    at += size;
  }
  flush();
}

/** Where a stretch is cut so that each part is in the same set of marks: [start, end, evidence or null]. */
function parts(start, end, ranges) {
  const cuts = new Set([start, end]);
  for (const range of ranges) for (const cut of [range.start, range.end]) if (cut > start && cut < end) cuts.add(cut);
  const sorted = [...cuts].sort((a, b) => a - b);
  return sorted.slice(0, -1).map((from, number) => [from, sorted[number + 1], ranges.filter((range) => range.start <= from && range.end >= sorted[number + 1])]);
}

export function wireView({ base, found, signal }) {
  const key = found.row.key;
  const evidence = (found.outcome?.evidence ?? []).filter((cited) => cited.key === key && cited.end > cited.start);
  const sides = { request: side("request", "Request"), response: side("response", "Response") };
  const element = el("div", { class: "wire" }, el("p", { class: "quiet" }, "Framing included, each piece one read from the socket with its time after the request's first byte. Secrets were masked when recorded."), sides.request.element, sides.response.element);

  function side(direction, title) {
    const message = found[direction];
    const box = el("div", { class: "bytes", tabindex: "0", role: "region", "aria-label": `${title} bytes`, "data-testid": `wire-${direction}` });
    const info = el("p", { class: "quiet" });
    const earlier = el("button", { type: "button", hidden: true, "data-testid": `earlier-${direction}` }, "Earlier bytes");
    const later = el("button", { type: "button", hidden: true, "data-testid": `later-${direction}` }, "Later bytes");
    let from = 0, to = 0, data = new Uint8Array(), at = null;

    async function load(start) {
      const answer = await get(`${base}/exchanges/${encodeURIComponent(key)}/wire`, { direction, start, size: STRETCH }, signal);
      from = answer.start; to = answer.end; data = decoded(answer.base64);
      draw(answer.total);
    }

    function draw(total) {
      const ranges = evidence.filter((cited) => cited.direction === direction).map((cited) => ({ start: cited.start, end: cited.end }));
      if (at && !ranges.some((range) => range.start === at.start && range.end === at.end)) ranges.push(at);
      const pieces = message.pieces.filter(([, start, end]) => start < to && end > from);
      const whole = pieces.length ? pieces : [[null, from, to]];
      const lines = whole.map(([time, start, end], number) => piece(time, Math.max(start, from), Math.min(end, to), ranges, number === 0 ? 0 : whole[number - 1][0]));
      fill(box, total ? lines : el("p", { class: "quiet" }, "no bytes"));
      fill(info, el("span", {}, total > to - from ? `bytes ${from.toLocaleString("en")}–${to.toLocaleString("en")} of ${total.toLocaleString("en")}, ` : `${bytes(total)} in `, counted(message.piece_count, "piece"), message.withheld !== null && message.withheld !== undefined ? `; from byte ${message.withheld} on masked` : ""));
      earlier.hidden = from === 0;
      later.hidden = to >= total;
    }

    function piece(time, start, end, ranges, before) {
      const text = el("pre", { class: "piece-text" });
      for (const [one, two, over] of parts(start, end, ranges)) {
        const chunk = data.subarray(one - from, two - from);
        if (!over.length) { addBytes(text, chunk); continue; }
        const now = Boolean(at) && over.some((range) => range.start === at.start && range.end === at.end);
        const mark = el("mark", { class: now ? "now" : "", "data-testid": now ? "evidence-now" : "evidence" });
        addBytes(mark, chunk);
        text.append(mark);
      }
      return el("div", { class: "piece" }, el("span", { class: "time", title: `wire bytes ${start}–${end}${time !== null && before !== null ? `, ${duration(time - before)} after the one before` : ""}` }, time === null ? "" : duration(time)), text);
    }

    earlier.addEventListener("click", () => load(Math.max(0, from - STRETCH)));
    later.addEventListener("click", () => load(to));
    return {
      element: el("section", {}, el("h3", {}, title), info, earlier, box, later),
      async show(place) { at = place; await load(place ? Math.max(0, place.start - (place.start < STRETCH / 2 ? place.start : BEFORE)) : 0); },
      box,
    };
  }

  async function show(at) {
    await Promise.all(Object.entries(sides).map(([direction, one]) => one.show(at?.direction === direction ? at : null)));
    const mark = element.querySelector("mark.now");
    if (!mark) return;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    mark.scrollIntoView({ block: "center", behavior: calm ? "auto" : "instant" });
  }

  return { element, show };
}
