// Tries the API out: one form for each operation of /openapi.json.

function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else node[name] = value;
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const setTheme = localStorage.getItem("theme");
if (setTheme && setTheme !== "system") document.documentElement.dataset.theme = setTheme;

const key = document.getElementById("key");
key.value = sessionStorage.getItem("key") ?? "";
key.addEventListener("change", () => sessionStorage.setItem("key", key.value.trim()));

const api = await (await fetch("/openapi.json")).json();
document.getElementById("about").textContent = api.info.description;

function resolve(schema) {
  return schema?.$ref ? api.components[schema.$ref.split("/")[2]][schema.$ref.split("/")[3]] : schema;
}

function operation(path, verb, about) {
  const parameters = (about.parameters ?? []).map(resolve);
  const fields = parameters.map((parameter) => {
    const input = el("input", { type: "text", value: parameter.example ?? "" });
    const needed = parameter.required ? "" : " (optional)";
    return { parameter, input, row: el("label", { class: "field" }, `${parameter.name}${needed}: ${parameter.description ?? ""}`, input) };
  });
  const kinds = Object.entries(about.requestBody?.content ?? {});
  const [kind, content] = kinds[0] ?? [];
  const example = content?.example ?? content?.examples?.[Object.keys(content.examples)[0]]?.value;
  const body = kind ? el("textarea", { value: typeof example === "string" ? example : JSON.stringify(example ?? {}, null, 2), spellcheck: false }) : null;
  const output = el("pre", { hidden: true, tabIndex: 0 });
  const send = async (event) => {
    event.preventDefault();
    let address = path;
    const query = new URLSearchParams();
    for (const { parameter, input } of fields) {
      if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
      else if (parameter.in === "query" && input.value) query.append(parameter.name, input.value);
    }
    if (query.size) address += `?${query}`;
    const headers = key.value ? { authorization: `Bearer ${key.value.trim()}` } : {};
    if (kind) headers["content-type"] = kind;
    output.hidden = false;
    output.textContent = "…";
    try {
      const begun = performance.now();
      const response = await fetch(address, { method: verb.toUpperCase(), headers, body: body?.value });
      let text = await response.text();
      try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON: shown as it came */ }
      output.textContent = `${response.status} ${response.statusText} · ${Math.round(performance.now() - begun)} ms\n\n${text}`;
    } catch (error) {
      output.textContent = String(error);
    }
  };
  return el("details", {}, el("summary", {}, el("span", { class: "verb" }, verb.toUpperCase()), el("code", {}, path), ` ${about.summary}`),
    about.description ? el("p", {}, about.description) : null,
    el("form", { onsubmit: send }, ...fields.map(({ row }) => row), body ? el("label", { class: "field" }, `Body (${kind})`, body) : null,
      el("button", { type: "submit" }, "Send")), output);
}

const list = document.getElementById("operations");
for (const [path, verbs] of Object.entries(api.paths)) {
  for (const [verb, about] of Object.entries(verbs)) list.append(operation(path, verb, about));
}
