// The group's znodes as a tree: who is registered, who owns what, how far it has got. What has changed is lit for a
// moment; what is gone stays for that moment, struck through.

import { html, keyed, light, put, say } from "./elements.js";
import { natural } from "./model.js";

const GONE_MS = 2500;

export class Tree {
  constructor(group) {
    this.gone = new Map();
    this.known = null;
    this.list = html("ul", { class: "tree" });
    this.root = html("section", { class: "znodes", "data-part": "znodes" }, html("h3", {}, "What ZooKeeper has"),
      html("p", { class: "faint" }, "⚡ marks what ends with its session. Lit: created or written just now."),
      html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Znodes of ${group.design}` }, this.list));
  }

  update(group, now) {
    const paths = new Map(group.znodes.map((each) => [each.path, each]));
    for (const [path, node] of this.known ?? []) if (!paths.has(path)) this.gone.set(path, { ...node, gone_ms: now.at_ms });
    for (const [path, node] of this.gone) if (paths.has(path) || node.gone_ms < now.at_ms - GONE_MS) this.gone.delete(path);
    this.isFirst = this.known === null;
    this.known = paths;
    const all = [...group.znodes, ...this.gone.values()];
    this.owners = new Map(group.members.filter((each) => each.id).map((each) => [each.id, each.name]));
    keyed(this.list, rows(all), (each) => each.path, () => this.row(), (row, each) => this.show(row, each));
  }

  // For a replay: what is shown next is not what comes next, so that nothing of it has changed just now.
  forget() {
    this.gone.clear();
    this.known = null;
  }

  row() {
    return html("li", {}, html("span", { class: "node" }), html("span", { class: "data" }), html("span", { class: "who faint" }));
  }

  // How deep a row is, and so its name, depends on what else there is.
  show(row, { name, depth, node }) {
    say(row.firstChild, name);
    row.style.paddingInlineStart = `${depth}rem`;
    row.classList.toggle("gone", Boolean(node?.gone_ms));
    if (!node) return;
    const [, data, who] = row.children;
    const text = node.gone_ms ? "deleted" : (node.ephemeral ? "⚡ " : "") + node.data;
    say(data, text.length > 36 ? `${text.slice(0, 36)}…` : text);
    say(who, node.gone_ms ? "" : this.memberOf(node));
    put(row, "title", `${node.path}, version ${node.version}: ${node.data}`);
    const stamp = `${node.version}:${node.changed_ms}:${node.data}:${node.gone_ms ?? ""}`;
    if (row.stamp !== stamp && !this.isFirst) light(row);
    row.stamp = stamp;
  }

  // The member that a registration, or an owner, is of.
  memberOf(node) {
    for (const [id, name] of this.owners)
      if (node.path.endsWith(`/${id}`) || node.data === id || node.data.startsWith(`${id}-`)) return name;
    return "";
  }
}

// A row for each znode and for each folder above one, in the order of the tree.
export function rows(znodes) {
  const found = new Map(), shared = commonFolder(znodes.map((each) => each.path));
  for (const node of [...znodes].sort((one, other) => natural(one.path, other.path))) {
    const parts = node.path.slice(shared.length).split("/").filter(Boolean);
    let path = shared;
    if (shared && !found.has(shared)) found.set(shared, { path: shared, name: shared, depth: 0 });
    parts.forEach((name, place) => {
      path += `/${name}`;
      if (!found.has(path)) found.set(path, { path, name, depth: place + 1 });
    });
    found.get(path || shared).node = node;
  }
  return [...found.values()];
}

function commonFolder(paths) {
  if (!paths.length) return "";
  const split = paths.map((each) => each.split("/").slice(0, -1));
  const first = split[0];
  let length = first.length;
  for (const each of split) while (first.slice(0, length).join("/") !== each.slice(0, length).join("/")) length -= 1;
  return first.slice(0, length).join("/");
}
