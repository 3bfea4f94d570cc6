// SPDX-License-Identifier: GPL-2.0-only
// flame.js: the page of ttmon flame. A frame is an element of #flame; what is narrower than half a pixel is not drawn.

const ROW = 19, KINDS = ["native", "python", "call", "note"];
let data, nodes, of, shown, found = "";

const figure = (n) => {
	const unit = data.of[of].unit;

	return unit === "ns" ? time(n) : unit === "bytes" ? bytes(n) : bytes(n) + "\u00b7s";
};
const atLeast = (n) => (data.of[of].at_least ? "\u2265 " : "") + figure(n);

// Nodes with their parents, children and, of each figure, the sum over what they call.
function build() {
	nodes = [{name: "all", kind: 3, children: [], depth: 0, all: data.of.map(() => 0), self: data.of.map(() => 0)}];
	for (const [parent, name, ...self] of data.nodes) {
		const node = {name: clean(data.names[name][0]), kind: data.names[name][1], parent: nodes[parent], children: [], self, all: [...self]};

		node.depth = node.parent.depth + 1;
		node.parent.children.push(node);
		nodes.push(node);
	}
	// A parent stands before its children.
	for (const node of nodes.slice(1).reverse())
		node.all.forEach((v, i) => { node.parent.all[i] += v; });
	for (const node of nodes)
		node.children.sort((a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
	nodes[0].kind = -1;
}

const isFound = (node) => found !== "" && node.name.toLowerCase().includes(found);

function tip(e, node) {
	const whole = nodes[0].all[of];

	showTip(e.clientX, e.clientY, el("span", {class: "text"}, node.name), pairs([
		[data.of[of].title, atLeast(node.all[of])],
		["Of the whole", percent(node.all[of], whole)],
		node.self[of] && node.children.length ? ["Ends here", atLeast(node.self[of])] : null,
	]));
}

function zoom(node) {
	shown = node;
	hideTip();
	draw();
}

// One frame; the texts of narrow ones are left out.
function frame(node, left, width, row) {
	const e = el("div", {class: "frame " + (KINDS[node.kind] || "root") + (isFound(node) ? " found" : "") + (row < shown.depth ? " above" : "") + (width > 24 ? " wide" : ""),
		role: "treeitem", tabindex: width > 3 ? 0 : -1, "aria-level": row + 1, "aria-label": node.name + ", " + atLeast(node.all[of]),
		onclick: () => zoom(node), onmousemove: (ev) => tip(ev, node), onmouseleave: hideTip,
		onkeydown: (ev) => { if (ev.key === "Enter") zoom(node); }}, width > 24 ? node.name : "");

	e.style.left = left + "px";
	e.style.top = row * ROW + "px";
	e.style.width = Math.max(width - 1, 0.5) + "px";
	return e;
}

function draw() {
	const box = $("flame"), wide = box.clientWidth, frames = [];
	let deep = 0;

	// What leads to the frame that is shown has the whole width.
	for (let node = shown.parent; node; node = node.parent)
		frames.push(frame(node, 0, wide, node.depth));
	const below = [[shown, 0, wide]];

	while (below.length) {
		const [node, left, width] = below.pop();
		let x = left;

		frames.push(frame(node, left, width, node.depth));
		deep = Math.max(deep, node.depth);
		for (const child of node.children) {
			const w = width * child.all[of] / node.all[of];

			if (w >= 0.5)
				below.push([child, x, w]);
			x += w || 0;
		}
	}
	box.replaceChildren(...(shown.all[of] ? frames : []));
	box.style.height = (deep + 1) * ROW + "px";
	$("whole").hidden = shown === nodes[0];
	status();
}

// Of nested frames that are found the outermost counts.
function foundSum(node) {
	return isFound(node) ? node.all[of] : node.children.reduce((sum, child) => sum + foundSum(child), 0);
}

function status() {
	const whole = nodes[0].all[of];

	$("status").textContent = !whole ? "Nothing of this was seen." :
		found !== "" ? "Found: " + atLeast(foundSum(nodes[0])) + ", " + percent(foundSum(nodes[0]), whole) + " of " + atLeast(whole) :
		(shown === nodes[0] ? "" : shown.name + ": " + atLeast(shown.all[of]) + ", " + percent(shown.all[of], whole) + " of ") + atLeast(whole) + " in all";
}

function choose(i) {
	of = i;
	shown = nodes[0];
	[...$("of").children].forEach((b, k) => b.setAttribute("aria-pressed", k === i));
	$("about").textContent = data.of[i].title + ": " + data.of[i].about + "." +
		(data.of[i].word === "peak" && data.peak_ns !== null ? " The peak was " + time(data.peak_ns) + " after the beginning." : "");
	draw();
}

function showHead() {
	const notes = [];

	$("run").textContent = clean(data.file) + " on " + clean(data.hostname) + ", " + time(data.length_ns);
	document.title = "ttmon flame: " + clean(data.file);
	if (!data.complete)
		notes.push("Not all was seen" + (data.reasons ? " (" + clean(data.reasons) + ")" : "") + ": figures with \u2265 are lower bounds.");
	if (data.unknown)
		notes.push("Of " + many(data.unknown, "allocation") + " it is not known whether they were pinned; they are not in pinned memory.");
	$("state").append(...notes.map((n) => el("p", {class: "notice"}, n)));
	$("of").append(...data.of.map((o, i) => el("button", {type: "button", title: o.total === null ? "this database does not say" : o.about,
		disabled: o.total === null, onclick: () => choose(i)}, o.title)));
}

async function start() {
	data = JSON.parse(new TextDecoder().decode(await loadPart("stacks")));
	$("wait").hidden = true;
	build();
	showHead();
	choose(data.of[data.shown].total === null ? 0 : data.shown);
	$("find").addEventListener("input", (e) => {
		found = e.target.value.trim().toLowerCase();
		draw();
	});
	$("whole").addEventListener("click", () => zoom(nodes[0]));
	addEventListener("keydown", (e) => { if (e.key === "Escape") zoom(nodes[0]); });
	addEventListener("resize", draw);
	addEventListener("beforeprint", draw);
	themeSwitch($("theme"), () => {});
	document.documentElement.dataset.ready = "yes";
}

start().catch(fail);
