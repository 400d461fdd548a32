"use strict";
// Draws /openapi.json. Everything shown goes through textContent: data is never parsed as HTML.

function element(tag, text, ...children) {
  const node = document.createElement(tag);
  if (text) node.textContent = text;
  node.append(...children);
  return node;
}

// The schema with its references replaced; `seen` ends the ones that go in circles.
function resolved(api, value, seen = []) {
  if (Array.isArray(value)) return value.map((item) => resolved(api, item, seen));
  if (value === null || typeof value !== "object") return value;
  if (typeof value.$ref === "string") {
    const name = value.$ref.split("/").pop();
    if (seen.includes(name)) return name;
    return resolved(api, api.components.schemas[name], [...seen, name]);
  }
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, resolved(api, item, seen)]));
}

function contents(api, title, content) {
  return Object.entries(content ?? {}).filter(([, body]) => body.schema).map(([type, body]) =>
    element("details", "", element("summary", `${title} (${type})`),
      element("pre", JSON.stringify(resolved(api, body.schema), null, 2))));
}

function operation(api, method, path, about) {
  const parameters = (about.parameters ?? []).map((one) =>
    element("li", `${one.name} (${one.in}${one.required ? ", required" : ""})`));
  const answers = Object.entries(about.responses ?? {}).map(([status, answer]) =>
    element("li", `${status} ${answer.description ?? ""}`, ...contents(api, "shape", answer.content)));
  return element("details", "",
    element("summary", "", element("code", `${method.toUpperCase()} ${path}`)),
    element("p", about.description ?? ""),
    element("ul", "", ...parameters),
    ...contents(api, "body", about.requestBody?.content),
    element("ul", "", ...answers));
}

async function draw() {
  const place = document.getElementById("operations");
  try {
    const response = await fetch("/openapi.json");
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    const api = await response.json();
    place.replaceChildren(...Object.entries(api.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, about]) => operation(api, method, path, about))));
  } catch (error) {
    place.textContent = `The description cannot be read: ${error.message}`;
  }
}

draw();
