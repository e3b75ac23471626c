// Replaces what a page shows by what it would show now. Without this file, a reload does the same.
const EVERY = 3000;
let timer;

async function refresh() {
  if (document.hidden || document.activeElement?.closest("form")) return again();
  try {
    const response = await fetch(location.href, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    replace("main", page);
    replace("#freshness", page);
    document.body.classList.remove("stale");
  } catch {
    document.body.classList.add("stale");
  }
  again();
}

function replace(selector, page) {
  const now = document.querySelector(selector);
  const next = page.querySelector(selector);
  if (!now || !next || now.innerHTML === next.innerHTML) return;
  const open = new Set([...now.querySelectorAll("details[open]")].map((item) => item.id));
  const focused = document.activeElement?.id;
  for (const item of next.querySelectorAll("details")) if (open.has(item.id)) item.open = true;
  now.replaceChildren(...next.childNodes);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

function again() {
  clearTimeout(timer);
  timer = setTimeout(refresh, EVERY);
}

document.addEventListener("visibilitychange", () => document.hidden || refresh());
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, select, textarea")) return;
  const field = document.querySelector("input[type=search]");
  if (field) {
    event.preventDefault();
    field.focus();
  }
});
again();
