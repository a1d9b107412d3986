// Keys of the page. Everything else is links, forms and htmx.
(() => {
  "use strict";

  const items = () => [...document.querySelectorAll("[data-item]")].filter((item) => item.offsetParent !== null);

  const move = (step) => {
    const all = items();
    if (!all.length) return;
    const from = all.indexOf(document.activeElement?.closest("[data-item]"));
    const to = from < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(from + step, 0), all.length - 1);
    all[to].focus({ preventScroll: true });
    all[to].scrollIntoView({ block: "nearest" });
  };

  const focus = (selector) => {
    const element = document.querySelector(selector);
    element?.focus();
    element?.select?.();
    return element !== null;
  };

  // The next change may be among messages that are not fetched yet: then the server knows where it is.
  const nextChange = () => {
    const link = document.querySelector("[data-next-change]");
    if (!link) return;
    const all = [...document.querySelectorAll("[data-number], [data-waiting]")].filter((each) => !each.closest(".child"));
    const held = document.activeElement?.closest("[data-number]");
    const from = all.includes(held) ? held : all.findLast((each) => each.dataset.number && each.getBoundingClientRect().top < 1);
    const next = all.slice(all.indexOf(from) + 1).find((each) => "change" in each.dataset || "waiting" in each.dataset);
    if (next && "change" in next.dataset) {
      next.focus({ preventScroll: true });
      next.scrollIntoView({ block: "start" });
    } else {
      location.assign(`${link.dataset.nextChange}?change_after=${from?.dataset.number ?? -1}`);
    }
  };

  const keys = {
    "/": () => focus("[data-search]") || location.assign("/"),
    j: () => move(1),
    k: () => move(-1),
    n: nextChange,
    t: () => focus("[data-moment]"),
    "?": () => document.getElementById("keys")?.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    if (target.matches("input:not([type=range]):not([type=checkbox]):not([type=radio]), textarea, select")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (event.key === "Enter" && target.matches("[data-item]")) {
      target.querySelector("a[href]")?.click();
    } else if (Object.hasOwn(keys, event.key)) {
      event.preventDefault();
      keys[event.key]();
    }
  });

  // By relevance, a result of one page of results may be on the next one, too.
  document.addEventListener("htmx:load", (event) => {
    for (const item of event.detail.elt.querySelectorAll?.("[data-key]") ?? []) {
      const same = document.querySelectorAll(`[data-key="${CSS.escape(item.dataset.key)}"]`);
      if (same[0] !== item) item.remove();
    }
  });

  // The whole answer replaces the first one; the focus stays on the same result.
  let held;
  document.addEventListener("htmx:beforeSwap", () => { held = document.activeElement?.closest("[data-key]")?.dataset.key; });
  document.addEventListener("htmx:afterSwap", () => {
    if (held && document.activeElement === document.body) {
      document.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus({preventScroll: true});
    }
  });

  // Parts that show what goes on ask again at each tick, while somebody can see them.
  setInterval(() => {
    if (document.visibilityState === "visible") document.body.dispatchEvent(new Event("tick"));
  }, 3000);

  // While the service does not answer, such a part says since when it is old. An answer that is an error is shown itself.
  let answered = new Date();
  const stale = () => document.querySelector("[data-stale]");

  document.addEventListener("htmx:sendError", (event) => {
    const part = event.detail.elt;
    if (!part.matches("[data-live]") || stale()) return;
    const notice = document.createElement("p");
    notice.className = "trouble";
    notice.dataset.stale = "";
    notice.setAttribute("role", "alert");
    notice.textContent = `The service does not answer; this is as of ${answered.toTimeString().slice(0, 5)}.`;
    part.before(notice);
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    if (!event.detail.successful || !event.detail.elt.matches("[data-live]")) return;
    answered = new Date();
    stale()?.remove();
  });

  const copy = async (link) => {
    const said = document.querySelector("[data-copied]");
    try {
      const answer = await fetch(link.href);
      if (!answer.ok) throw new Error(answer.statusText);
      await navigator.clipboard.writeText(await answer.text());
      said.textContent = "Copied";
    } catch {
      location.assign(link.href);
    }
  };

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-keys]")) keys["?"]();
    const link = event.target.closest("a[data-copy]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      copy(link);
    }
    const state = event.target.closest("[data-moments] a[hx-push-url]");
    if (state) choose(state);
  });

  // The slider of a file's states stands for the links in their list.
  const states = () => [...document.querySelectorAll("[data-moments] a[hx-push-url]")];
  const slider = document.querySelector("[data-moment]");

  const describe = (link) => {
    const text = `${link.textContent}, ${link.nextElementSibling.textContent}`;
    document.querySelector("[data-moment-text]").textContent = text;
    slider.setAttribute("aria-valuetext", text);
  };

  const choose = (link) => {
    for (const each of states()) each.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    slider.value = states().indexOf(link);
    describe(link);
  };

  if (slider && states().length) {
    let waiting = 0;
    slider.setAttribute("aria-valuetext", document.querySelector("[data-moment-text]").textContent);
    slider.addEventListener("input", () => {
      const link = states()[slider.value];
      describe(link);
      clearTimeout(waiting);
      waiting = setTimeout(() => link.click(), 80);
    });
  }
})();
