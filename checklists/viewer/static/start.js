// Commands that can be started: the exact one is shown first, and started only when that is confirmed.
import { clock, el, fill, plain } from "./dom.js";
import { get, post } from "./api.js";

export function startPage(facts) {
  const forms = el("div", { class: "forms" });
  const started = el("div", { "data-testid": "commands" });
  const panes = new Map();
  let alive = true;

  function control(field, id, runs) {
    const common = { id, name: field.name, required: field.required, "data-testid": `field-${field.name}`, "aria-describedby": `${id}-help` };
    if (field.kind === "check") return el("input", { ...common, type: "checkbox" });
    if (field.kind === "run") return el("select", common, runs.map((run) => el("option", { value: run }, run)));
    return el("input", { ...common, type: "text", placeholder: field.example, autocomplete: "off", spellcheck: "false" });
  }

  function values(form, box) {
    const found = {};
    for (const field of form.fields) {
      const input = box.querySelector(`[name=${field.name}]`);
      if (field.kind === "check") found[field.name] = input.checked;
      else if (input.value.trim()) found[field.name] = input.value.trim();
    }
    return found;
  }

  function formOf(form, runs) {
    const ask = el("div", { class: "ask", role: "status" });
    const fields = form.fields.map((field) => {
      const id = `f-${form.name}-${field.name}`;
      return [el("label", { for: id }, field.label), el("div", {}, control(field, id, runs), el("p", { id: `${id}-help`, class: "quiet" }, field.help))];
    });
    const box = el("form", { class: "form", "data-testid": `form-${form.name}`, onsubmit: async (event) => {
      event.preventDefault();
      const given = values(form, box);
      try {
        const { command } = await post("/api/commands/preview", { kind: form.name, values: given });
        const go = el("button", { type: "button", "data-testid": "confirm", onclick: async () => {
          go.disabled = true;
          try { const child = await post("/api/commands", { kind: form.name, values: given, confirm: command }); fill(ask); await list(); panes.get(child.id)?.element.scrollIntoView({ block: "nearest" }); } catch (failure) { fill(ask, el("p", { class: "wrong" }, failure.message)); }
        } }, "Run it");
        fill(ask, el("p", {}, "This will run, as you, on this machine:"), el("pre", { "data-testid": "preview", tabindex: "0" }, command), el("p", { class: "bar" }, go, el("button", { type: "button", onclick: () => fill(ask) }, "Cancel")));
        go.focus();
      } catch (failure) { fill(ask, el("p", { class: "wrong", role: "alert", "data-testid": "form-problem" }, failure.message)); }
    } }, fields, el("span"), el("div", {}, el("button", { type: "submit", "data-testid": "show-command" }, "Show the command")));
    box.noValidate = true;
    return el("details", { class: "start-form", "data-testid": `start-${form.name}` }, el("summary", {}, el("b", {}, form.title), el("span", { class: "quiet" }, ` stacktap ${form.name}`)), el("p", {}, form.does), box, ask);
  }

  function pane(child) {
    const output = el("pre", { class: "output", tabindex: "0", "aria-label": "Output", "data-testid": "output" });
    const state = el("span", { class: "quiet", "data-testid": "command-state" });
    const stop = el("button", { type: "button", "data-testid": "stop", onclick: async () => { stop.disabled = true; await post(`/api/commands/${child.id}/stop`, {}).catch(() => {}); } }, "Stop");
    const element = el("section", { class: "command-pane", "data-testid": "command" }, el("h3", { class: "break" }, el("code", {}, child.command)), el("p", { class: "bar" }, el("span", { class: "quiet" }, `begun ${clock(child.began * 1e6)}`), state, stop), output);
    let at = 0, running = true;
    async function follow() {
      while (alive && running) {
        try {
          const next = await get(`/api/commands/${child.id}`, { from: at });
          if (next.from > at && at === 0 && next.dropped) output.append("... (earlier output is no longer kept)\n");
          at = next.next;
          if (next.text) { output.append(plain(next.text)); output.scrollTop = output.scrollHeight; }
          running = next.exit_code === null;
          fill(state, el("span", {}, running ? "running" : next.exit_code === 0 ? "ended well" : `ended with exit code ${next.exit_code}`));
          stop.hidden = !running;
        } catch { running = false; fill(state, el("span", {}, "no longer known")); stop.hidden = true; }
      }
    }
    follow();
    return { element };
  }

  async function list() {
    const found = await get("/api/commands");
    for (const child of found.commands) if (!panes.has(child.id)) panes.set(child.id, pane(child));
    fill(started, found.commands.length ? el("h2", {}, "Started here") : null, found.commands.map((child) => panes.get(child.id).element));
    return found;
  }

  async function update() {
    const found = await list();
    if (facts.read_only) { fill(forms, el("p", {}, "This viewer was started with --read-only: nothing can be started from here.")); return; }
    const runs = found.forms.some((form) => form.fields.some((field) => field.kind === "run")) ? (await get("/api/runs")).runs.map((run) => run.run) : [];
    fill(forms, found.forms.map((form) => formOf(form, runs)));
  }

  return { element: el("section", { class: "page", "data-testid": "start" }, el("h1", {}, "Start"), el("p", { class: "quiet" }, "The exact command is shown before anything runs. What it records appears under Runs."), forms, started), update, close: () => { alive = false; } };
}
