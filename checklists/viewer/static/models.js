// Models on this machine.
import { bytes, counted, el, fill } from "./dom.js";
import { get } from "./api.js";

export function modelsPage() {
  const box = el("div", {}, el("p", { class: "quiet" }, "Looking ..."));
  async function update() {
    const found = await get("/api/models");
    fill(box,
      el("div", { class: "disks" }, found.disks.map((disk) => el("p", {}, el("b", {}, bytes(disk.free)), ` free of ${bytes(disk.total)} where ${disk.what} is`, el("span", { class: "quiet break" }, ` ${disk.path}`)))),
      found.places.map((place) => el("section", {}, el("h2", {}, `${place.name} `, el("span", { class: "quiet" }, `${counted(place.models.length, "model")}, ${bytes(place.models.reduce((sum, model) => sum + model.bytes, 0))}`)), el("p", { class: "quiet break" }, place.folder),
        place.models.length > 0 && el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Models of ${place.name}` }, el("table", {}, el("thead", {}, el("tr", {}, ["Model", "Format", "Size"].map((name) => el("th", { scope: "col" }, name)))),
          el("tbody", {}, place.models.map((model) => el("tr", { "data-testid": "model" }, el("th", { scope: "row", class: "break" }, model.name), el("td", {}, model.format), el("td", { class: "number" }, bytes(model.bytes))))))))),
      !found.places.length && el("p", {}, "No model was found in the places where Ollama, Hugging Face, LM Studio, llama.cpp and stacktap keep theirs."),
      el("p", { class: "quiet" }, "Only folders are read; no server is asked. `stacktap doctor` asks the servers that are running."));
  }
  return { element: el("section", { class: "page", "data-testid": "models" }, el("h1", {}, "Models on this machine"), box), update };
}
