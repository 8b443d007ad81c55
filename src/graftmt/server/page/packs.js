// The packs view: a card for each pack, and the matrix of routes as a heat-map.

import { get } from "./api.js";
import { known, nameOf, routeOf } from "./languages.js";

const COLDEST = 40; // chrF that is shown without colour

function made(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

function card(pack) {
  const names = pack.languages.map(nameOf).join(", ");
  const box = made("article", undefined, "card");
  box.append(made("h2", `${names}, to ${pack.side === "source" ? "read" : "write"}`));
  const list = made("dl");
  const scores = Object.entries(pack.scores);
  const best = scores
    .map(([direction, entry]) => `${direction} ${entry.chrf.toFixed(1)}${entry.zero_shot ? " (zero-shot)" : ""}`)
    .join(", ");
  const facts = [
    ["name", pack.name + (pack.default ? "" : " (used where a request names it)")],
    ["recipe", pack.recipe],
    ["size", `${pack.parameters.toLocaleString()} parameters, ${megabytes(pack.bytes)}`],
    ["fingerprint", pack.fingerprint.slice(0, 16) + "…"],
    ["chrF", best || "not scored"],
  ];
  for (const [term, value] of facts) list.append(made("dt", term), made("dd", value));
  box.append(list);
  return box;
}

function cell(from, to) {
  const route = routeOf(from, to);
  if (!route) return made("td", from === to ? "" : "–", "none");
  const chrf = route.scores?.chrf;
  const marks = (route.zero_shot ? "z" : "") + (route.kind === "composed" ? "c" : "");
  const found = made("td", chrf === undefined ? "✓" : chrf.toFixed(1), "heat");
  if (marks) found.append(made("span", ` ${marks}`, "mark"));
  if (chrf !== undefined) {
    const warmth = Math.max(0, (chrf - COLDEST) / (100 - COLDEST));
    found.style.setProperty("--warmth", (0.04 + 0.36 * warmth).toFixed(3));
  }
  const words = chrf === undefined ? "not scored" : `chrF ${chrf.toFixed(1)}`;
  found.title = `${nameOf(from)} → ${nameOf(to)}: ${words}${route.zero_shot ? ", zero-shot" : ""}`;
  return found;
}

function matrix() {
  const languages = [...known.languages.values()];
  const sources = languages.filter((language) => language.reads);
  const targets = languages.filter((language) => language.writes);
  const head = made("tr");
  const corner = made("td", "from \\ to", "none");
  head.append(corner);
  for (const language of targets) {
    const name = made("th", language.code + (language.new ? " *" : ""));
    name.scope = "col";
    name.title = language.name;
    head.append(name);
  }
  const rows = sources.map((language) => {
    const row = made("tr");
    const name = made("th", language.name + (language.new ? " *" : ""));
    name.scope = "row";
    row.append(name, ...targets.map((other) => cell(language.code, other.code)));
    return row;
  });
  const body = made("tbody");
  body.append(...rows);
  const top = made("thead");
  top.append(head);
  document.getElementById("matrix").replaceChildren(top, body);
}

export async function showPacks() {
  const found = await get("v1/packs");
  const languages = found.base.languages.map(nameOf).join(", ");
  document.getElementById("base").textContent =
    `Base ${found.base.fingerprint.slice(0, 16)}…, ${found.base.parameters.toLocaleString()} parameters: ${languages}. * new language`;
  document.getElementById("cards").replaceChildren(...found.packs.map(card));
  const problems = document.getElementById("problems");
  problems.replaceChildren(...found.problems.map((one) => made("li", `${one.file}: ${one.problem}`)));
  problems.hidden = !found.problems.length;
  matrix();
}
