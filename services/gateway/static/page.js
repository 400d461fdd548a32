"use strict";
// Everything shown goes through textContent: data is never parsed as HTML.

const WORDS = {
  en: {
    fresh: "New conversation", key: "API key", use: "Use", chat: "Ask", send: "Ask", stop: "Stop", close: "Close", more: "More",
    hint: "Upload documents, then ask about them.", question: "Your question", documents: "Documents",
    drop: "Choose files or drop them here", remove: "Delete", again: "Delete this document?", sources: "Sources", page: "page",
    ready: "Ready", waiting: "Waiting for: ", away: "The server does not answer.", uploading: "Uploading", known: "is known already",
    declined: "No document answers this", extractive: "Quoted from the documents, no model involved", cancelled: "Stopped",
    failed: "Failed", lost: "Connection lost, resuming…", noPassage: "The text of this document is not available.", none: "No documents yet.",
    states: { uploaded: "waiting", parsed: "parsed", chunked: "chunked", indexed: "searchable", failed: "failed", cancelled: "cancelled", deleted: "deleted" },
    steps: {
      requested: "Waiting…", planned: "Planned", searching: "Searching the documents…", answering: "Writing…", restarted: "Starting again…",
      "asking-back": "Asking back…", "quoting-documents": "The model is not available; quoting the documents…", waiting: "Nobody works on it yet; still trying…",
    },
    ends: { "no-answer-in-time": "No answer came within the time that a question may wait. Please ask again later." },
  },
  zh: {
    fresh: "新对话", key: "API 密钥", use: "使用", chat: "提问", send: "提问", stop: "停止", close: "关闭", more: "更多",
    hint: "先上传文档，再就文档内容提问。", question: "请输入问题", documents: "文档",
    drop: "选择文件，或拖放到这里", remove: "删除", again: "确定删除该文档？", sources: "来源", page: "第…页",
    ready: "就绪", waiting: "等待：", away: "服务器没有响应。", uploading: "正在上传", known: "已存在",
    declined: "文档中没有相关内容", extractive: "摘自文档原文，未使用模型", cancelled: "已停止",
    failed: "失败", lost: "连接中断，正在恢复…", noPassage: "无法读取该文档的文本。", none: "还没有文档。",
    states: { uploaded: "等待处理", parsed: "已解析", chunked: "已切分", indexed: "可检索", failed: "失败", cancelled: "已取消", deleted: "已删除" },
    steps: {
      requested: "等待中…", planned: "已规划", searching: "正在检索文档…", answering: "正在作答…", restarted: "重新开始…",
      "asking-back": "正在反问…", "quoting-documents": "模型不可用，正在摘录文档…", waiting: "暂时无法处理，正在继续尝试…",
    },
    ends: { "no-answer-in-time": "在允许的等待时间内没有得到回答，请稍后再问。" },
  },
};
const language = (navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en";
const words = WORDS[language];
const $ = (id) => document.getElementById(id);
const FINAL = ["indexed", "failed", "cancelled", "deleted"];

function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function translate() {
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = words[node.dataset.t];
  for (const node of document.querySelectorAll("[data-p]")) node.placeholder = words[node.dataset.p];
}

// --- calling the API -----------------------------------------------------------------------

let key = sessionStorage.getItem("sluice_key"); // only where the server set no cookie

async function call(path, options = {}) {
  const headers = { ...(key ? { Authorization: `Bearer ${key}` } : {}), ...options.headers };
  const response = await fetch(path, { ...options, headers, credentials: "same-origin" });
  if (response.ok) return response;
  if (response.status === 401) $("key-form").hidden = false;
  const problem = await response.json().catch(() => ({}));
  throw Object.assign(new Error(problem.detail || `HTTP ${response.status}`), { status: response.status });
}

const post = (path, body, headers = {}) =>
  call(path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json", ...headers } });

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  key = $("key").value.trim();
  sessionStorage.setItem("sluice_key", key);
  $("key-form").hidden = true;
  listDocuments();
});

async function watchReadiness() {
  for (;;) {
    let ready = false;
    try {
      const body = await (await fetch("/ready")).json();
      ready = body.missing.length === 0;
      $("ready").textContent = ready ? words.ready : words.waiting + body.missing.join(", ");
    } catch {
      $("ready").textContent = words.away;
    }
    await wait(ready ? 15000 : 2000);
  }
}

// --- documents ------------------------------------------------------------------------------

const documents = new Map(); // id -> document, in the order shown
let nextPage = null;
let polling = false;

async function listDocuments(more = false) {
  try {
    const query = more && nextPage ? `?cursor=${encodeURIComponent(nextPage)}` : "";
    const body = await (await call(`/v1/documents${query}`)).json();
    if (!more) documents.clear();
    for (const item of body.items) documents.set(item.id, item);
    if (more || nextPage === null) nextPage = body.next ?? null;
    $("more").hidden = !nextPage;
  } catch (error) {
    $("upload-news").textContent = error.message;
  }
  showDocuments();
  watchDocuments();
}

async function watchDocuments() {
  if (polling) return;
  polling = true;
  for (;;) {
    const open = [...documents.values()].filter((item) => !FINAL.includes(item.state)).slice(0, 20);
    if (open.length === 0) break;
    await wait(1000);
    await Promise.all(open.map(refresh));
    showDocuments();
  }
  polling = false;
}

async function refresh(item) {
  try {
    documents.set(item.id, await (await call(`/v1/documents/${item.id}`)).json());
  } catch (error) {
    if (error.status === 404) documents.delete(item.id);
  }
}

function showDocuments() {
  const list = $("documents");
  const focused = document.activeElement?.dataset?.document;
  list.replaceChildren(...[...documents.values()].map(documentRow));
  if (documents.size === 0) list.append(element("li", "hint", words.none));
  if (focused) list.querySelector(`[data-document="${CSS.escape(focused)}"]`)?.focus();
}

function documentRow(item) {
  const row = element("li");
  const head = element("div", "row");
  const remove = element("button", "quiet", "×");
  remove.type = "button";
  remove.dataset.document = item.id;
  remove.setAttribute("aria-label", `${words.remove} ${item.name}`);
  remove.addEventListener("click", () => removeDocument(item));
  head.append(element("span", "", item.name), remove);
  const tone = item.state === "failed" ? " bad" : item.state === "indexed" ? " good" : "";
  const state = element("p", `meta${tone}`, words.states[item.state] ?? item.state);
  if (item.reason) state.textContent += ` · ${item.reason}`;
  row.append(head, state);
  if (item.detail) row.append(element("p", "meta", item.detail));
  return row;
}

async function removeDocument(item) {
  if (!confirm(`${words.again}\n${item.name}`)) return;
  try {
    await call(`/v1/documents/${item.id}`, { method: "DELETE" });
    documents.delete(item.id);
  } catch (error) {
    $("upload-news").textContent = error.message;
  }
  showDocuments();
}

async function upload(files) {
  const waiting = [...files];
  const problems = [];
  const one = async () => {
    for (let file = waiting.shift(); file; file = waiting.shift()) {
      $("upload-news").textContent = `${words.uploading} ${file.name}`;
      const form = new FormData();
      form.append("file", file);
      try {
        const response = await call("/v1/documents", { method: "POST", body: form });
        const item = await response.json();
        if (response.status === 200) problems.push(`${file.name}: ${words.known}`);
        documents.delete(item.id);
        const older = [...documents];
        documents.clear();
        documents.set(item.id, item);
        for (const [id, other] of older) documents.set(id, other);
      } catch (error) {
        problems.push(`${file.name}: ${error.message}`);
      }
      showDocuments();
      watchDocuments();
    }
  };
  await Promise.all([one(), one(), one()]);
  $("upload-news").textContent = problems.join("\n");
}

$("files").addEventListener("change", async (event) => {
  await upload(event.target.files);
  event.target.value = "";
});
$("more").addEventListener("click", () => listDocuments(true));
for (const kind of ["dragenter", "dragover"]) {
  document.addEventListener(kind, (event) => { event.preventDefault(); $("drop").classList.add("over"); });
}
for (const kind of ["dragleave", "drop"]) {
  document.addEventListener(kind, (event) => { event.preventDefault(); $("drop").classList.remove("over"); });
}
document.addEventListener("drop", (event) => upload(event.dataTransfer.files));

// --- asking ---------------------------------------------------------------------------------

let conversation = null;
let running = null; // the turn being answered

async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = {};
      for (const line of block.split("\n")) {
        const colon = line.indexOf(":");
        if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
      }
      if (fields.data) yield { id: Number(fields.id), type: fields.event, data: JSON.parse(fields.data) };
    }
  }
}

// Tries again while the server is away: `attempt` gives a result, or undefined for not yet.
async function persist(attempt, view) {
  for (let tries = 1; tries <= 30; tries += 1) {
    try {
      const result = await attempt(() => { tries = 0; });
      if (result !== undefined) return result;
    } catch (error) {
      if (error.status && error.status < 500) throw error;
    }
    view.say(words.lost);
    await wait(Math.min(500 * Math.max(tries, 1), 5000));
  }
  throw new Error(words.away);
}

// Follows a turn to its terminal event; a broken stream is taken up where it ended. `open` asks
// the question, again with the same key if the answer does not begin.
function follow(open, view) {
  let last = 0;
  return persist(async (heard) => {
    const response = running
      ? await call(`/v1/turns/${running}/events`, { headers: { "Last-Event-ID": String(last) } })
      : await open();
    for await (const event of eventsOf(response)) {
      heard();
      last = event.id;
      if (event.data.turn_id) running = event.data.turn_id;
      view.take(event);
      if (event.type === "done" || event.type === "error") return true;
    }
    return undefined;
  }, view);
}

function turnView(question) {
  const box = element("article", "turn");
  const badges = element("div");
  const answer = element("div", "answer");
  const status = element("p", "status");
  const sources = element("ol", "sources");
  const suggestions = element("div");
  answer.setAttribute("aria-live", "polite");
  sources.hidden = true;
  sources.setAttribute("aria-label", words.sources);
  box.append(element("h3", "", question), badges, answer, status, sources, suggestions);
  $("hint")?.remove();
  $("turns").append(box);
  box.scrollIntoView({ block: "nearest" });
  let text = "";
  const evidence = new Map(); // n -> passage that the answer may cite
  const citations = new Map(); // n -> what it does cite

  const write = () => answer.replaceChildren(...cited(text, new Map([...evidence, ...citations])));
  const list = () => {
    sources.hidden = citations.size === 0;
    sources.replaceChildren(...[...citations.values()].sort((a, b) => a.n - b.n).map(source));
  };
  const handlers = {
    status: (data) => {
      const lacks = data.status === "waiting" && (data.for ?? []).join(", ");
      status.textContent = lacks ? words.waiting + lacks : words.steps[data.status] ?? "";
    },
    evidence: (data) => { for (const item of data.items ?? []) evidence.set(item.n, item); },
    delta: (data) => { text += data.text ?? ""; write(); },
    citation: (data) => { citations.set(data.n, data); list(); write(); },
    suggestion: (data) => suggest(data.text, suggestions),
    restarted: () => {
      text = "";
      citations.clear();
      list();
      write();
      suggestions.replaceChildren();
      status.textContent = words.steps.restarted;
    },
    done: (data) => {
      text = data.answer || text;
      citations.clear();
      for (const citation of data.citations ?? []) citations.set(citation.n, citation);
      if (data.declined) badges.append(element("span", "badge", words.declined));
      if (data.extractive) badges.append(element("span", "badge", words.extractive));
      if (data.state === "cancelled") badges.append(element("span", "badge", words.cancelled));
      suggestions.replaceChildren();
      for (const item of data.suggestions ?? []) suggest(item, suggestions);
      status.textContent = "";
      list();
      write();
    },
    error: (data) => {
      badges.append(element("span", "badge bad", words.failed));
      const { reason, detail } = data.error ?? {};
      status.textContent = words.ends[reason] || detail || reason || "";
    },
  };
  return {
    take: (event) => handlers[event.type]?.(event.data),
    say: (message) => { status.textContent = message; },
    fail: (message) => { status.textContent = message; status.classList.add("bad"); },
  };
}

// The text with its [n] marks as buttons that open the passage.
function cited(text, citations) {
  return text.split(/(\[\d{1,3}\])/).map((part) => {
    const citation = /^\[\d+\]$/.test(part) ? citations.get(Number(part.slice(1, -1))) : undefined;
    if (!citation) return document.createTextNode(part);
    const button = element("button", "cite", String(citation.n));
    button.type = "button";
    button.title = citation.document_name;
    button.setAttribute("aria-label", `${words.sources} ${citation.n}: ${citation.document_name}`);
    button.addEventListener("click", () => openPassage(citation));
    return button;
  });
}

const pageLabel = (page) => (language === "zh" ? `第 ${page} 页` : `${words.page} ${page}`);

function source(citation) {
  const item = element("li");
  const button = element("button", "quiet");
  button.type = "button";
  const place = citation.page ? ` · ${pageLabel(citation.page)}` : "";
  button.append(element("span", "", `${citation.n}. ${citation.document_name}${place}`));
  if (citation.quote) {
    const quote = citation.quote.length > 160 ? `${citation.quote.slice(0, 160)}…` : citation.quote;
    button.append(document.createElement("br"), element("span", "quote", quote));
  }
  button.addEventListener("click", () => openPassage(citation));
  item.append(button);
  return item;
}

function suggest(text, box) {
  if (!text) return;
  const button = element("button", "quiet", text);
  button.type = "button";
  button.addEventListener("click", () => { $("question").value = text; $("question").focus(); });
  box.append(button);
}

// Offsets count code points, JavaScript strings count UTF-16 units.
function unitOffset(text, codePoints) {
  let units = 0;
  for (let points = 0; points < codePoints && units < text.length; points += 1) {
    units += text.codePointAt(units) > 0xffff ? 2 : 1;
  }
  return units;
}

async function openPassage(citation) {
  const place = citation.page ? ` · ${pageLabel(citation.page)}` : "";
  $("passage-title").textContent = citation.document_name + place;
  const box = $("passage-text");
  box.textContent = "…";
  if (!$("passage").open) $("passage").showModal();
  try {
    const text = await (await call(`/v1/documents/${encodeURIComponent(citation.document_id)}/text`)).text();
    const start = unitOffset(text, citation.start);
    const end = start + unitOffset(text.slice(start), citation.end - citation.start);
    const from = Math.max(0, start - 2000);
    const mark = element("mark", "", text.slice(start, end));
    box.replaceChildren(
      document.createTextNode((from > 0 ? "…" : "") + text.slice(from, start)), mark,
      document.createTextNode(text.slice(end, end + 2000) + (end + 2000 < text.length ? "…" : "")));
    mark.scrollIntoView({ block: "center" });
  } catch (error) {
    box.textContent = error.status === 404 ? words.noPassage : error.message;
  }
}

// A repeat with the same key is the same request. (`randomUUID` needs a secure address.)
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

function remember(id) {
  conversation = id;
  if (id) sessionStorage.setItem("sluice_conversation", id);
  else sessionStorage.removeItem("sluice_conversation");
}

async function ask(question) {
  const begin = { "Idempotency-Key": newKey() };
  const once = { "Idempotency-Key": newKey(), Accept: "text/event-stream" };
  await answerIn(turnView(question), null, async (view) => {
    if (!conversation) {
      remember(await persist(async () => (await (await post("/v1/conversations", {}, begin)).json()).id, view));
    }
    await follow(() => post(`/v1/conversations/${conversation}/turns`, { text: question }, once), view);
  });
}

// Shows what this tab's conversation holds already, and goes on with a turn that is not answered yet.
async function restore() {
  const id = sessionStorage.getItem("sluice_conversation");
  if (!id) return;
  let turns;
  try {
    turns = (await (await call(`/v1/conversations/${encodeURIComponent(id)}`)).json()).turns;
  } catch (error) {
    if (error.status === 404) remember(null);
    return;
  }
  if (conversation || $("send").disabled) return; // something was asked meanwhile
  remember(id);
  for (const turn of turns) {
    const view = turnView(turn.text);
    if (turn.state === "requested" || turn.state === "planned") await answerIn(view, turn.turn_id, () => follow(null, view));
    else view.take({ type: turn.state === "failed" ? "error" : "done", data: turn });
  }
}

// One answer at a time: `work` brings it into the view, whatever happens to the connection.
async function answerIn(view, turnId, work) {
  $("send").disabled = true;
  $("stop").hidden = false;
  running = turnId;
  view.say(words.steps.requested);
  try {
    await work(view);
  } catch (error) {
    view.fail(error.message);
  } finally {
    running = null;
    $("send").disabled = false;
    $("stop").hidden = true;
  }
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = $("question").value.trim();
  if (!question || $("send").disabled) return;
  $("question").value = "";
  ask(question);
});
$("question").addEventListener("keydown", (event) => {
  // Enter that ends a Chinese input composition is not a question yet.
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("ask").requestSubmit();
  }
});
$("stop").addEventListener("click", () => {
  if (running) call(`/v1/turns/${running}`, { method: "DELETE" }).catch(() => {});
});
$("fresh").addEventListener("click", () => {
  remember(null);
  $("turns").replaceChildren(Object.assign(element("p", "hint", words.hint), { id: "hint" }));
  $("question").focus();
});
$("passage-close").addEventListener("click", () => $("passage").close());

translate();
watchReadiness();
listDocuments();
restore();
