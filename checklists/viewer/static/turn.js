// What was asked and what came, put together from the wire.
import { counted, el } from "./dom.js";

function text(value, className = "") {
  const cut = value.length > value.text.length;
  return [el("pre", { class: className, tabindex: "0" }, value.text), cut && el("p", { class: "quiet" }, `the first ${value.text.length.toLocaleString("en")} of ${value.length.toLocaleString("en")} characters; the wire has all of it`)];
}

function call(one, judged) {
  return el("div", { class: "call" }, el("p", {}, el("b", {}, "calls "), el("code", {}, one.name || "(no name)"), one.id && el("span", { class: "quiet" }, ` ${one.id}`),
    judged && judged.verdict !== "ok" && el("span", { class: "wrong" }, ` ${judged.verdict}${judged.reason ? `: ${judged.reason}` : ""}`)), text(one.arguments, "arguments"));
}

function message(one) {
  return el("details", { class: `said role-${/^[a-z]+$/.test(one.role) ? one.role : "other"}`, open: one.content.length < 1500 }, el("summary", {}, el("b", {}, one.role), one.answers && el("span", { class: "quiet" }, ` for ${one.answers}`), el("span", { class: "quiet" }, ` ${counted(one.content.length, "character")}`)),
    one.reasoning.length > 0 && [el("p", { class: "quiet" }, "reasoning"), text(one.reasoning, "reasoning")], one.content.length > 0 && text(one.content), one.calls.map((each) => call(each)));
}

function asked(given) {
  const settings = Object.entries(given.settings);
  return el("section", { class: "asked", "data-testid": "asked" }, el("h3", {}, "Asked"),
    given.error && el("p", { class: "wrong" }, `the body cannot be read: ${given.error}`),
    settings.length > 0 && el("p", { class: "settings break" }, settings.map(([name, value]) => [el("span", { class: "chip" }, el("b", {}, name), ` ${value.length > 120 ? `${value.slice(0, 120)} ...` : value}`), " "])),
    given.tools.length > 0 && el("details", {}, el("summary", {}, counted(given.tool_count, "tool"), ": ", given.tools.map((tool) => tool.name).join(", ").slice(0, 200)),
      given.tools.map((tool) => el("div", { class: "tool" }, el("p", {}, el("code", {}, tool.name), ` ${tool.description.slice(0, 2000)}`), tool.schema.text && text(tool.schema)))),
    given.prompt && text(given.prompt),
    given.message_count > given.messages.length && el("p", { class: "quiet" }, `the last ${given.messages.length} of ${given.message_count} messages`),
    given.messages.map(message));
}

function answered(given, response) {
  const turns = given.turns;
  return el("section", { class: "answered", "data-testid": "answered" }, el("h3", {}, "Answered ", el("span", { class: "quiet" }, `${given.dialect}, ${given.kind}, ${counted(response.piece_count, "piece")}`)),
    given.errors.map((error) => el("div", { class: "error" }, el("p", { class: "wrong" }, error.type || "error"), text(error.message))),
    turns.map((turn, number) => el("div", {}, turns.length > 1 && el("h4", {}, `Choice ${number + 1}`),
      turn.reasoning?.length > 0 && el("details", { open: turn.reasoning.length < 1500 }, el("summary", {}, `reasoning, ${counted(turn.reasoning.length, "character")}`), text(turn.reasoning, "reasoning")),
      turn.content?.length > 0 && text(turn.content), turn.refusal && text(turn.refusal),
      turn.calls.map((one, which) => call(one, number === 0 ? given.calls[which] : null)),
      !turn.content?.length && !turn.calls.length && !turn.reasoning?.length && !turn.refusal && el("p", { class: "wrong" }, "Nothing in it: no text, no call."),
      el("p", { class: "quiet" }, `finish: ${turn.finish ?? "not said"}`, turn.tokens ? ` · ${turn.tokens.prompt ?? "?"} tokens in, ${turn.tokens.completion ?? "?"} out` : " · no token counts"))),
    !turns.length && !given.errors.length && el("p", { class: "quiet" }, response.bytes ? "No turn can be read from what came: see the wire." : "Nothing came."),
    given.irregular.length > 0 && el("details", {}, el("summary", {}, counted(given.irregular.length, "irregularity").replace("ys", "ies")), el("ul", {}, given.irregular.map((item) => el("li", { class: "break" }, `${item.message} (body bytes ${item.start}–${item.end})`)))));
}

export function turnView(found, { answer = false } = {}) {
  return el("div", { class: answer ? "turn" : "turn both" }, !answer && found.asked && asked(found.asked), found.answered && answered(found.answered, found.response));
}

export function prompt(rendered) {
  if (!rendered) return el("p", { class: "quiet" }, "Not known: the record does not hold the prompt that the template made of the messages. `stacktap diagnose` asks the server for it, where the server can tell.");
  return el("div", { "data-testid": "rendered" }, el("p", { class: "quiet" }, `As the model got it (${rendered.from}).`), text(rendered));
}
