// SPDX-License-Identifier: GPL-2.0-only
// view.js: the page of ttmon view: its data (tools/view/data.c, tools/view/bins.c), which rows there are, and what is said of them.

const OLD = 1, DEVICE_PTR = 2, LIVE = 8;
const KIND_UNKNOWN = 1, KIND_PINNED = 2;
const PAGE = 4096;
const PIN = 1, UNPIN = 2, ALLOCATE = 3, UNKNOWN = 4;
const MATCHES = ["not found", "order of allocations", "function names and size class", "call site and size", "call site, size and ordinal"];
const PARTS = {host: "host memory", managed: "managed memory", device: "device memory", tt: "Tenstorrent"};

// ---- data ----

function readBins(d, packed, total) {
	const next = varints(packed), n = d.n;

	d.at = new Uint32Array(total);
	d.copies = new Uint32Array(total);
	d.bytes = new Float64Array(total);
	d.from = new Uint32Array(n);
	d.middle = new Uint32Array(n);
	d.to = new Uint32Array(n);
	let k = 0;

	for (let a = 0; a < n; a++) {
		d.from[a] = k;
		for (let part = 0; part < 2; part++) {
			let at = 0, size = 0;

			for (let left = next(); left > 0; left--, k++) {
				const head = next();

				at += Math.floor(head / 4);
				d.at[k] = at;
				d.copies[k] = head & 2 ? next() : 1;
				if (head & 1)
					size = next();
				d.bytes[k] = size;
			}
			if (!part)
				d.middle[a] = k;
		}
		d.to[a] = k;
	}
	if (k !== total)
		throw new Error("its data is damaged");
}

function partOf(method) {
	return method.host ? "host" : method.name === "managed" ? "managed" : method.name.startsWith("tt_") ? "tt" : "device";
}

async function load() {
	const meta = JSON.parse(new TextDecoder().decode(await loadPart("meta"))), n = meta.t0.length;
	const d = {n, meta, span: meta.span, width: 2 ** meta.shift, gaps: meta.gaps.map(([from, to, what]) => [from, to, clean(what)]),
		checkpoints: meta.checkpoints.map(([t, proc, label]) => [t, proc, clean(label)]).sort((a, b) => a[0] - b[0])};

	for (const name of ["life", "size", "pages", "h2d_bytes", "d2h_bytes", "pin_ns", "unpin_ns", "gain"])
		d[name] = Float64Array.from(meta[name]);
	for (const name of ["proc", "site", "method", "fn", "ordinal", "flags", "h2d", "d2h", "other", "async", "dropped", "verdict", "match", "in_place", "conf", "reason", "cold", "kind", "at_least"])
		d[name] = Uint32Array.from(meta[name]);
	d.t0 = new Float64Array(n);
	d.t1 = new Float64Array(n);
	for (let a = 0, t = 0; a < n; a++) {
		d.t0[a] = t += meta.t0[a];
		d.t1[a] = t + d.life[a];
	}
	d.methods = meta.methods.map(([name, pinned, host]) => ({name, pinned, host}));
	d.methods.forEach((m) => { m.part = partOf(m); });
	d.names = new Map();
	for (let i = 0; i < meta.names.length; i += 2)
		d.names.set(meta.names[i], clean(meta.names[i + 1]));
	d.ids = new Map();
	for (let i = 0; i < meta.ids.length; i += 2)
		d.ids.set(meta.ids[i], clean(meta.ids[i + 1]));
	d.fns = new Map();
	for (let i = 0; i < meta.fns.length; i += 2)
		d.fns.set(meta.fns[i], clean(meta.fns[i + 1]));
	d.objects = meta.objects.map((path) => clean(path === null ? "?" : path));
	d.sites = meta.sites.map(([key, text, frames, all]) => ({key, text: clean(text), frames, all}));
	d.procs = meta.procs.map(([pid, comm, exe, cmdline, first, last, allocs, pins, copies, h2d, h2d_bytes, h2d_pinned, d2h_bytes, at_least]) =>
		({pid, comm: clean(comm), exe, cmdline, first, last, allocs, pins, copies, h2d, h2d_bytes, h2d_pinned, d2h_bytes, at_least}));
	d.curves = meta.pinned.map(([proc, peak, when, width, ...points]) => {
		const ns = [], pages = [];

		for (let i = 0, t = 0; i < points.length; i += 2) {
			ns.push(t += points[i]);
			pages.push(points[i + 1]);
		}
		return {proc, peak, when, width, ns, pages, atLeast: proc < 0 ? meta.sums_at_least : d.procs[proc].at_least};
	});
	readBins(d, await loadPart("bins"), meta.nr_bins);
	return d;
}

// ---- words ----

const siteText = (d, a) => d.names.get(a) || d.sites[d.site[a]].text;
const moved = (d, a) => d.h2d[a] + d.d2h[a] + d.other[a];
const isPinned = (d, a) => d.kind[a] === KIND_PINNED || d.kind[a] !== KIND_UNKNOWN && d.methods[d.method[a]].pinned;
// A figure of which not all was seen: a lower bound, or not known. The words are those of every other view.
const figure = (atLeast, n, text) => !atLeast ? text : n ? ">= " + text : "-";

function frameText(d, [object, offset, fn]) {
	const path = object < 0 ? "?" : d.objects[object], base = path.slice(path.lastIndexOf("/") + 1);

	return fn === null ? base + "+" + offset : clean(fn) + " (" + base + " " + offset + ")";
}

function idOf(d, a) {
	return d.ids.get(a) || d.sites[d.site[a]].key.slice(2).padStart(16, "0") + ":" + d.size[a] + ":" + d.ordinal[a] + "@" + d.meta.proc_index[d.proc[a]];
}

const short = (text) => text.length > 120 ? text.slice(0, 119) + "\u2026" : text;

// The mark tells them apart without colour; the words are those of every other view.
function verdictMark(advice, pinned) {
	return advice === PIN || advice === ALLOCATE ? "\u25b2" : advice === UNPIN ? "\u25bc" : advice === UNKNOWN ? "?" : pinned ? "\u25cf" : "\u25cb";
}

function verdictText(d, a) {
	return verdictMark(d.verdict[a], isPinned(d, a)) + " " + d.meta.advice_words[d.verdict[a]];
}

const gainText = (ns) => !ns ? "" : ns > 0 ? ", saves " + time(ns) : ", would lose " + time(-ns);

function lifeText(d, a) {
	return (d.flags[a] & OLD ? "before the trace" : time(d.t0[a])) + " to " + (d.flags[a] & LIVE ? "the end" : time(d.t1[a])) +
		" (" + time(d.life[a]) + ")";
}

function movedText(d, a) {
	const parts = [], least = d.at_least[a] ? ">= " : "";

	if (d.h2d[a])
		parts.push(least + many(d.h2d[a], "copy", "copies") + " to the device, " + bytes(d.h2d_bytes[a]));
	if (d.d2h[a])
		parts.push(least + many(d.d2h[a], "copy", "copies") + " from it, " + bytes(d.d2h_bytes[a]));
	if (d.other[a])
		parts.push(least + many(d.other[a], "other"));
	return parts.join("; ") || (least ? "not known" : "never");
}

function methodText(d, a) {
	const m = d.methods[d.method[a]], fn = d.fn[a] ? d.fns.get(d.fn[a]) : "";

	return m.name + (fn ? " by " + fn : "") + (m.part !== "host" ? "" : d.kind[a] === KIND_UNKNOWN ? ", not known whether it is pinned" : isPinned(d, a) ? ", pinned" : ", pageable");
}

// ---- the parts of the page ----

function showHeader(d) {
	const m = d.meta, proc = [...d.procs].sort((a, b) => b.h2d_bytes - a.h2d_bytes)[0];
	const when = m.real_ms ? new Date(m.real_ms).toLocaleString("sv-SE") : "";
	const what = proc ? proc.comm + (d.procs.length > 1 ? " and " + many(d.procs.length - 1, "other") : " (" + proc.pid + ")") : clean(m.file);

	document.title = what + " \u2013 ttmon view";
	$("title").textContent = what;
	$("run").textContent = [clean(m.host), when, time(d.span) + " traced", clean(m.file)].filter((t) => t).join("  \u00b7  ");
	$("foot").textContent = "Made by ttmon " + clean(m.version) + " from a database of ttmond " + clean(m.ttmond) +
		". Pages are of 4 KiB, each allocation rounded up by itself. Cost model: " +
		m.cost.map((n, i) => i < 3 ? (n / 1e9).toFixed(1) + " GB/s " + ["from pageable memory", "from pinned memory", "to pin"][i] : (n / 1e3).toFixed(1) + " us " + ["a call that pins", "a call that unpins"][i - 3]).join(", ") + ".";
}

function showState(d) {
	const m = d.meta, said = [];

	if (!m.complete)
		said.push("This database is not complete" + (m.reasons ? ": " + clean(m.reasons) : "") + ". What is missing is not drawn as if it were nothing:");
	if (m.lost)
		said.push(many(m.lost, "event was", "events were") + " lost; nothing tells whose.");
	if (m.events_dropped)
		said.push(many(m.events_dropped, "event of allocations was", "events of allocations were") + " not kept: their life lines have stripes, and their transfers are counted but not all drawn.");
	if (m.folded)
		said.push(many(m.folded, "freed allocation is", "freed allocations are") + " in the sums of their sites alone, not in here.");
	if (m.evicted)
		said.push(many(m.evicted, "allocation was", "allocations were") + " not kept.");
	if (m.undrawn)
		said.push(many(m.undrawn, "transfer is", "transfers are") + " not drawn: there are too many allocations.");
	if (m.nr_gaps > m.gaps.length)
		said.push("Of " + count(m.nr_gaps) + " times in which something can be missing " + count(m.gaps.length) + " are drawn.");
	if (m.nr_checkpoints > m.checkpoints.length)
		said.push("Of " + count(m.nr_checkpoints) + " checkpoints " + count(m.checkpoints.length) + " are drawn.");
	if (m.allocs > d.n)
		said.push("The " + count(d.n) + " hottest of " + count(m.allocs) + " allocations are shown; the pinned pages and the sums are those of all.");
	const least = d.at_least.filter((n) => n).length, unknown = d.kind.filter((k) => k === KIND_UNKNOWN).length;

	if (least)
		said.push("Of " + many(least, "allocation") + " not all copies were seen: >= is a lower bound, - is not known; advice does not rest on what can be missing.");
	if (unknown)
		said.push("Of " + many(unknown, "allocation") + " it is not known whether " + (unknown === 1 ? "it is" : "they are") + " pinned: calls that would tell were not seen.");
	if (said.length)
		$("state").append(el("div", {class: "notice"}, ...said.map((t) => el("p", null, t))));
	if (d.gaps.length) {
		$("state").append(el("details", null, el("summary", null, many(d.gaps.length, "time") + " in which something can be missing"),
			el("ul", null, ...d.gaps.slice(0, 100).map(([from, to, what]) => el("li", {class: "text"}, time(from) + " to " + time(to) + ": " + what)))));
	}
}

function card(title, figure, ...more) {
	return el("div", {class: "card"}, title, el("b", null, figure), ...more.filter((t) => t).map((t) => el("span", null, t)));
}

function showCards(d, app) {
	const chosen = d.procs.filter((_, i) => app.proc < 0 || i === app.proc);
	const sum = (name) => chosen.reduce((n, p) => n + p[name], 0);
	const curve = app.curve, pinSites = new Set(), coldSites = new Set(), openSites = new Set();
	const atLeast = app.proc < 0 ? d.meta.sums_at_least : d.procs[app.proc].at_least;
	const bound = (n, text) => figure(atLeast, n, text);
	let pinBytes = 0, coldPages = 0;

	for (let a = 0; a < d.n; a++) {
		const m = d.methods[d.method[a]];

		if (app.proc >= 0 && d.proc[a] !== app.proc || !m.host)
			continue;
		if (d.verdict[a] === PIN || d.verdict[a] === ALLOCATE) {
			pinSites.add(d.site[a]);
			pinBytes += d.h2d_bytes[a] + d.d2h_bytes[a];
		}
		if (d.verdict[a] === UNPIN) {
			coldSites.add(d.site[a]);
			coldPages += d.pages[a];
		}
		if (d.verdict[a] === UNKNOWN && (d.kind[a] === KIND_UNKNOWN || d.at_least[a]))
			openSites.add(d.site[a]);
	}
	const best = app.proc < 0 && d.meta.policies.find(([name]) => name === "this advice");

	$("cards").replaceChildren(
		card("Peak pinned pages", bound(curve && curve.peak, count(curve ? curve.peak : 0)), bound(curve && curve.peak, bytes((curve ? curve.peak : 0) * PAGE)),
			curve && curve.peak ? "at " + time(curve.when) : atLeast ? "nothing was seen to be pinned" : "nothing was pinned"),
		card("To the device", bound(sum("h2d_bytes"), bytes(sum("h2d_bytes"))), sum("h2d_bytes") ? percent(sum("h2d_pinned"), sum("h2d_bytes")) + (atLeast ? " of what was seen is known to be" : "") + " from pinned memory" : ""),
		card("Transfers", bound(sum("copies"), count(sum("copies"))), bound(sum("h2d"), count(sum("h2d"))) + " to the device", bound(sum("d2h_bytes"), bytes(sum("d2h_bytes"))) + " from it"),
		card("Host allocations", bound(sum("allocs"), count(sum("allocs"))), bound(sum("pins"), count(sum("pins"))) + " pinned", d.meta.mappings ? count(d.meta.mappings) + " mappings never transferred: not shown" : ""),
		card("Advice, call sites", !pinSites.size && !coldSites.size && !openSites.size ? "as it is" : [pinSites.size && "\u25b2 " + pinSites.size, coldSites.size && "\u25bc " + coldSites.size, openSites.size && "? " + openSites.size].filter((t) => t).join("  "),
			pinSites.size ? "pin " + count(pinSites.size) + ": " + bytes(pinBytes) + " moved" : "",
			coldSites.size ? "unpin " + count(coldSites.size) + ": " + count(coldPages) + " pages" : "",
			openSites.size ? "unknown " + count(openSites.size) + ": not all was seen" : "",
			best ? "peak by it: " + bound(best[2], count(best[2])) + " pages" : ""));
}

function showLegend(d, app) {
	const chart = app.chart, list = [];
	const box = (draw, width = 16) => {
		const c = el("canvas", {width, height: 12});

		draw(c.getContext("2d"), width);
		return c;
	};
	const bar = (fill, [every, open]) => box((g, w) => {
		g.fillStyle = fill;
		g.fillRect(0, 0, w, 12);
		g.fillStyle = chart.colours.plot;
		for (let x = 0; x < w; x += every * CELL)
			g.fillRect(x, 0, open * CELL, 12);
	}, 40);
	const stripes = new Set(Array.from(chart.rows, (a) => stripesOf(d.methods[d.method[a]], d.kind[a])));
	const used = [...new Set(Array.from(chart.rows, (a) => d.method[a]))].map((m) => d.methods[m]);

	if (app.mode === "heat") {
		list.push(["1", box((g, w) => chart.ramp.forEach(([r, b, c], i) => {
			g.fillStyle = `rgb(${r} ${b} ${c})`;
			g.fillRect(i * w / 256, 0, w / 256 + 1, 12);
		}), 120), many(Math.max(1, chart.max || 1), "copy", "copies") + " in a cell"]);
		for (const [kind, words] of [["pinned", "alive, pinned"], ["pageable", "alive, not pinned"], ["unknown", "alive, not known whether pinned"], ["other", "alive, not host memory"], ["tt", "alive, on a Tenstorrent device"]])
			if (stripes.has(STRIPES[kind]))
				list.push([bar(chart.colours.life, STRIPES[kind]), words]);
	} else {
		for (const m of used)
			list.push([bar(methodColour(m), stripesOf(m)), m.name + (m.pinned ? ", pinned" : "")]);
		if (stripes.has(STRIPES.unknown))
			list.push([bar(chart.colours.life, STRIPES.unknown), "not known whether pinned"]);
		list.push([bar(chart.colours.mark, STRIPES.pinned), "transfer"]);
	}
	if (d.meta.events_dropped || d.at_least.some((n) => n))
		list.push([box((g, w) => {
			g.fillStyle = chart.colours.life;
			g.fillRect(0, 0, w, 12);
			for (let x = 0; x < w; x += 6 * CELL) {
				g.fillStyle = chart.colours.plot;
				g.fillRect(x, 0, 3 * CELL, 12);
				g.fillStyle = chart.colours.hatch;
				g.fillRect(x + CELL, 0, CELL, 12);
			}
		}, 40), "some transfers are not in the file"]);
	if (d.gaps.length)
		list.push([box((g, w) => {
			g.fillStyle = hatch(g, chart.colours.hatch);
			g.fillRect(0, 0, w, 12);
		}, 24), "something can be missing"]);
	if (d.checkpoints.length)
		list.push(["\u25be checkpoint"]);
	$("legend").replaceChildren(...list.map((parts) => el("span", null, ...parts)));
}

function showTipOf(d, hit, x, y, app) {
	if (!hit) {
		hideTip();
		return;
	}
	const a = hit.alloc, inside = [];

	if (a >= 0) {
		const site = d.sites[d.site[a]];

		inside.push(el("span", {class: "text"}, short(siteText(d, a))));
		inside.push(...site.frames.slice(d.names.has(a) ? 0 : 1, 4).map((f) => el("div", {class: "soft text"}, short(frameText(d, f)))));
		inside.push(pairs([["Size", bytes(d.size[a]) + " at " + d.meta.addr[a]], ["Method", methodText(d, a)], d.procs.length > 1 && ["Process", d.procs[d.proc[a]].comm + " " + d.procs[d.proc[a]].pid],
			["Life", lifeText(d, a)], ["Moved", movedText(d, a)], d.dropped[a] && ["Not in the file", many(d.dropped[a], "event")],
			["Here", time(hit.t) + ": " + (hit.t < d.t0[a] || hit.t > d.t1[a] ? "not allocated" : hit.copies ? many(hit.copies, "copy", "copies") : d.at_least[a] ? "no copy was seen" : "no copy")], d.methods[d.method[a]].host && ["Advice", verdictText(d, a)]]));
		if (hit.others)
			inside.push(el("div", {class: "soft"}, "and " + many(hit.others, "allocation") + " more on this line: come closer"));
	} else {
		const pages = app.curve ? pagesAt(app.curve, hit.t) : 0;

		inside.push(pairs([["Time", time(hit.t)], ["Pinned", figure(app.proc < 0 ? d.meta.sums_at_least : d.procs[app.proc].at_least, pages, count(pages) + " pages, " + bytes(pages * PAGE))]]));
	}
	for (const [from, to, what] of d.gaps)
		if (hit.t >= from && hit.t <= to)
			inside.push(el("div", {class: "bad"}, what));
	showTip(x, y, ...inside);
}

function pagesAt(curve, t) {
	let pages = 0;

	for (let i = 0; i < curve.ns.length && curve.ns[i] <= t; i++)
		pages = curve.pages[i];
	return pages;
}

function showDetails(d, a, app) {
	const box = $("details");

	box.hidden = a < 0;
	app.chart.select(a, "show");
	if (a < 0)
		return;
	const site = d.sites[d.site[a]], p = d.procs[d.proc[a]];

	box.replaceChildren(...[el("h2", {class: "text"}, siteText(d, a)), pairs([
		["Allocation", idOf(d, a)], ["Process", p.comm + " " + p.pid + (p.cmdline ? ": " + p.cmdline : "")],
		["Size", bytes(d.size[a]) + " (" + count(d.size[a]) + " bytes, " + many(d.pages[a], "page") + ") at " + d.meta.addr[a]],
		["Method", methodText(d, a)], ["Life", lifeText(d, a)],
		(d.pin_ns[a] || d.unpin_ns[a]) && ["Calls took", time(d.pin_ns[a]) + " to allocate" + (d.unpin_ns[a] ? ", " + time(d.unpin_ns[a]) + " to free" : "")],
		["Moved", movedText(d, a) + (d.async[a] ? "; " + count(d.async[a]) + " of them asynchronously" : "")],
		d.dropped[a] && ["Not in the file", many(d.dropped[a], "event")],
		d.methods[d.method[a]].host && ["Advice", verdictText(d, a) + gainText(d.gain[a]) + (d.verdict[a] !== UNKNOWN ? ", " + d.conf[a] + " % sure" + (d.match[a] ? "; found again by " + MATCHES[d.match[a]] : "") : "") + ": " + d.meta.advice_reasons[d.reason[a]]],
		d.in_place[a] && ["In place", "a kernel may read it where it is: its pin is not to be taken away"],
		d.flags[a] & DEVICE_PTR && ["Device pointer", "was asked for"],
	]), site.frames.length ? el("ol", {class: "text"}, ...site.frames.map((f) => el("li", null, frameText(d, f)))) : el("p", {class: "soft"}, "No call site is known."),
	site.all > site.frames.length ? el("p", {class: "soft"}, "and " + many(site.all - site.frames.length, "frame") + " more") : null,
	el("button", {type: "button", class: "noprint", onclick: () => app.chart.select(a, "closer")}, "Come closer"), " ",
	el("button", {type: "button", class: "noprint", onclick: () => showDetails(d, -1, app)}, "Close")].filter((e) => e));
}

// One row a call site and method: [first allocation stands for it].
function bySite(d, rows) {
	const sites = new Map();

	for (const a of rows) {
		const key = (d.names.get(a) || d.site[a]) + " " + d.method[a];
		let s = sites.get(key);

		if (!s)
			sites.set(key, s = {a, allocs: 0, bytes: 0, max: 0, pages: 0, copies: 0, h2d: 0, atLeast: false, said: new Set()});
		s.allocs++;
		s.max = Math.max(s.max, d.size[a]);
		s.pages += d.pages[a];
		s.copies += moved(d, a);
		s.h2d += d.h2d_bytes[a];
		s.atLeast ||= d.at_least[a] > 0;
		s.said.add(d.verdict[a]);
	}
	return [...sites.values()];
}

function siteVerdict(d, s) {
	const m = d.methods[d.method[s.a]];

	if (!m.host)
		return "";
	// Of several processes: each has a verdict of its own.
	if (s.said.size > 1)
		return "\u25d0 " + [...s.said].map((v) => d.meta.advice_words[v]).join(", ");
	return verdictText(d, s.a);
}

function showTables(d, app) {
	const pick = (a) => {
		showDetails(d, a, app);
		app.chart.select(a, "closer");
		$("charts").scrollIntoView({block: "start"});
	};
	const rows = app.rows, pinned = Array.from(rows).filter((a) => isPinned(d, a));
	const site = {title: "Call site", name: true, value: (a) => short(siteText(d, a))}, size = {title: "Size", num: true, value: (a) => d.size[a], show: (a) => bytes(d.size[a])};
	const method = {title: "Method", value: (a) => d.methods[d.method[a]].name}, life = {title: "Life", num: true, value: (a) => d.life[a], show: (a) => time(d.life[a])};
	const copies = {title: "Copies", num: true, value: (a) => moved(d, a), show: (a) => figure(d.at_least[a], moved(d, a), count(moved(d, a)))};
	const h2d = {title: "To the device", num: true, value: (a) => d.h2d_bytes[a], show: (a) => figure(d.at_least[a], d.h2d_bytes[a], bytes(d.h2d_bytes[a]))};
	const advice = {title: "Advice", value: (a) => d.methods[d.method[a]].host ? verdictText(d, a) : ""};
	// What a pin cost and gave least for: pages by the time they were held.
	const held = {title: "Page-seconds", num: true, help: "pages, times how long they were pinned", value: (a) => d.pages[a] * d.life[a] / 1e9, show: (a) => count(d.pages[a] * d.life[a] / 1e9)};
	const parts = [
		el("h2", null, "Call sites"),
		table([{title: "Call site", name: true, value: (s) => short(siteText(d, s.a))}, {title: "Method", value: (s) => d.methods[d.method[s.a]].name},
			{title: "Allocations", num: true, value: (s) => s.allocs, show: (s) => count(s.allocs)}, {title: "Largest", num: true, value: (s) => s.max, show: (s) => bytes(s.max)},
			{title: "Pages", num: true, help: "of all its allocations together", value: (s) => s.pages, show: (s) => count(s.pages)},
			{title: "Copies", num: true, value: (s) => s.copies, show: (s) => figure(s.atLeast, s.copies, count(s.copies))},
			{title: "To the device", num: true, value: (s) => s.h2d, show: (s) => figure(s.atLeast, s.h2d, bytes(s.h2d))}, {title: "Advice", value: (s) => siteVerdict(d, s)}],
		bySite(d, rows), {by: 6, pick: (s) => pick(s.a)}),
		el("h2", null, "Hottest allocations"),
		table([site, method, size, life, copies, h2d, advice], Array.from(rows).filter((a) => moved(d, a)), {by: 5, first: 10, pick}),
		el("h2", null, "Coldest pinned allocations ", el("small", null, "whose transfers do not pay for that, by what they held")),
		table([site, size, life, copies, h2d, held, advice], pinned.filter((a) => d.cold[a]), {by: 5, first: 10, pick}),
	];

	if (d.meta.policies.length && d.procs.length) {
		parts.push(el("h2", null, "Ways of pinning ", el("small", null, "what each would have cost in this run, by the cost model below" + (d.meta.sums_at_least ? "; of what was seen alone" : ""))),
			table([{title: "Way", name: true, value: (p) => p[0] + ": " + p[1]}, {title: "Peak pages", num: true, value: (p) => p[2], show: (p) => count(p[2])},
				{title: "Pages pinned in all", num: true, value: (p) => p[3], show: (p) => count(p[3])},
				{title: "From pinned memory", num: true, value: (p) => p[4] ? p[5] / p[4] : 0, show: (p) => percent(p[5], p[4])},
				{title: "Time", num: true, help: "of transfers and pinning", value: (p) => p[6] + p[7], show: (p) => time(p[6] + p[7])},
				{title: "Transfers", num: true, value: (p) => p[6], show: (p) => time(p[6])}, {title: "Pinning", num: true, value: (p) => p[7], show: (p) => time(p[7])}],
			d.meta.policies, {by: 1}));
	}
	$("tables").replaceChildren(...parts);
}

// ---- which rows ----

// Rows in order, and where each group begins.
function choose(d, app) {
	const words = app.filter.toLowerCase().split(/\s+/).filter((w) => w), rows = [], heat = new Map();
	const weight = (a) => d.h2d_bytes[a] + (app.all ? d.d2h_bytes[a] : 0), group = (a) => d.names.get(a) || d.site[a];

	for (let a = 0; a < d.n; a++) {
		if (app.proc >= 0 && d.proc[a] !== app.proc || app.kind && d.methods[d.method[a]].part !== app.kind)
			continue;
		if (words.length && !words.every((w) => app.text(a).includes(w)))
			continue;
		rows.push(a);
		heat.set(group(a), (heat.get(group(a)) || 0) + weight(a));
	}
	const number = new Map([...heat.entries()].sort((x, y) => y[1] - x[1]).map(([g], i) => [g, i]));
	const orders = {
		heat: (a, b) => number.get(group(a)) - number.get(group(b)) || d.t0[a] - d.t0[b] || a - b,
		time: (a, b) => d.t0[a] - d.t0[b] || a - b,
		size: (a, b) => d.size[b] - d.size[a] || d.t0[a] - d.t0[b] || a - b,
	};
	const groups = [];
	let last;

	rows.sort(orders[app.order]);
	rows.forEach((a, i) => {
		if (i && group(a) === last)
			return;
		last = group(a);
		groups.push([i, siteText(d, a)]);
	});
	return [Uint32Array.from(rows), groups];
}

function status(d, app) {
	const chart = app.chart, cell = (chart.t1 - chart.t0) / Math.max(1, chart.nx);

	const step = (chart.t1 - chart.t0) / 100;

	return axisTime(chart.t0, step) + " to " + axisTime(chart.t1, step) + ", " + many(Math.round(chart.r1 - chart.r0), "row") + ". A cell is " + time(cell) + "; transfers are known to " + time(d.width) +
		(cell < d.width ? ": this is as close as it gets, what is wider than a cell is one piece of time." : ".");
}

function start(d) {
	const app = {mode: "heat", all: false, filter: "", proc: -1, kind: "host", order: "heat", rows: [], curve: null};
	const texts = new Map();
	const parts = new Set(Array.from(d.method, (m) => d.methods[m].part));

	app.text = (a) => {
		const key = d.site[a] + " " + d.method[a] + " " + d.proc[a];
		let text = texts.get(key);

		if (text === undefined) {
			const site = d.sites[d.site[a]], p = d.procs[d.proc[a]];

			text = [site.key, site.text, ...site.frames.map((f) => frameText(d, f)), d.methods[d.method[a]].name, p.comm, p.pid].join(" ").toLowerCase();
			texts.set(key, text);
		}
		return d.names.has(a) ? text + " " + d.names.get(a).toLowerCase() : text;
	};
	$("wait").hidden = true;
	$("charts").hidden = $("tables").hidden = $("help").hidden = false;
	showHeader(d);
	showState(d);
	d.procs.map((p, i) => [i, p]).sort((x, y) => y[1].h2d_bytes - x[1].h2d_bytes).forEach(([i, p]) => $("proc").append(el("option", {value: i}, p.comm + " " + p.pid)));
	$("proc").prepend(el("option", {value: -1, selected: true}, "all " + count(d.procs.length)));
	$("proc-label").hidden = d.procs.length < 2;
	if (!parts.has("host") && parts.size)
		app.kind = [...parts][0];
	$("kind").append(...Object.keys(PARTS).filter((k) => parts.has(k)).map((k) => el("option", {value: k, selected: k === app.kind}, PARTS[k])), el("option", {value: ""}, "all"));
	$("kind-label").hidden = parts.size < 2;

	app.chart = new Chart($("plot"), d, {
		hover: (hit, x, y) => showTipOf(d, hit, x, y, app),
		pick: (a) => showDetails(d, a, app),
		// Words in the page take longer than the picture: once it stands still.
		drawn: () => {
			clearTimeout(app.later);
			app.later = setTimeout(() => {
				$("status").textContent = status(d, app);
				showLegend(d, app);
			}, 100);
		},
	});
	const update = () => {
		const [rows, groups] = choose(d, app);

		app.rows = rows;
		app.curve = d.curves.find((c) => c.proc === app.proc) || null;
		app.chart.all = app.all;
		app.chart.proc = app.proc;
		app.chart.show(rows, groups, app.curve);
		$("rows").textContent = many(rows.length, "allocation") + (rows.length < d.n ? " of " + count(d.n) : "") + ", " + many(groups.length, app.order === "heat" ? "call site" : "group");
		showCards(d, app);
		showTables(d, app);
	};
	const mode = (name) => {
		app.mode = app.chart.mode = name;
		$("mode-heat").setAttribute("aria-pressed", name === "heat");
		$("mode-life").setAttribute("aria-pressed", name === "life");
		app.chart.redraw();
	};

	$("mode-heat").addEventListener("click", () => mode("heat"));
	$("mode-life").addEventListener("click", () => mode("life"));
	$("zoom-in").addEventListener("click", () => app.chart.zoom(0.5, 1));
	$("zoom-out").addEventListener("click", () => app.chart.zoom(2, 2));
	$("zoom-all").addEventListener("click", () => app.chart.fit());
	for (const [id, set] of [["filter", (v) => { app.filter = v; }], ["proc", (v) => { app.proc = Number(v); }], ["kind", (v) => { app.kind = v; }],
		["dir", (v) => { app.all = v === "all"; }], ["order", (v) => { app.order = v; }]]) {
		$(id).addEventListener("input", () => {
			set($(id).value);
			update();
		});
	}
	addEventListener("keydown", (e) => {
		if (e.target.matches("input, select") || e.ctrlKey || e.altKey || e.metaKey)
			return;
		if (e.key === "1" || e.key === "2")
			mode(e.key === "1" ? "heat" : "life");
		if (e.key === "/") {
			e.preventDefault();
			$("filter").focus();
		}
	});
	themeSwitch($("theme"), () => app.chart.theme());
	update();
	document.documentElement.dataset.ready = "yes";
}

load().then(start).catch(fail);
